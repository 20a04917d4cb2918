"""When the cleaning was that a comparison is about: what its delete horizons are checked against.

By default only that it is over. `--as-of` names its clock; the report of the run says that, too,
and `delete.retention.ms` of each log, whose sum is the delete horizon that the run has set.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from compactor.exit_codes import UsageError

MAX_LONG = 2**63 - 1


class LogClock(NamedTuple):
    """What is known of the cleaning of one log."""

    as_of_ms: int  # no later than this; that very moment where is_exact
    is_exact: bool = False
    delete_retention_ms: int | None = None  # None: not known
    horizons_from_ms: int | None = None  # of those that it has set; None: as_of_ms

    @property
    def horizon_ms(self) -> int | None:
        """What a batch was given for a delete horizon; None: not known.

        Above MAX_LONG, it was given none (C-11.8).
        """
        if not self.is_exact or self.delete_retention_ms is None:
            return None
        from_ms = self.as_of_ms if self.horizons_from_ms is None else self.horizons_from_ms
        return from_ms + self.delete_retention_ms


class CleaningClock(NamedTuple):
    """What is known of the cleaning of a log directory."""

    as_of_ms: int
    is_exact: bool = False
    delete_retention_ms: Mapping[tuple[str, int], int] = {}  # by topic and partition
    horizons_from_ms: int | None = None  # as of a log

    def of(self, topic: str, partition: int) -> LogClock:
        retention_ms = self.delete_retention_ms.get((topic, partition))
        return LogClock(self.as_of_ms, self.is_exact, retention_ms, self.horizons_from_ms)


def read_run_report(path: str) -> CleaningClock:
    """What the report of a run says (`compactor run --report`). UsageError if it is none."""
    try:
        with open(path, encoding="utf-8") as source:
            document = json.load(source)
        return _from_document(document)
    except OSError as error:
        raise UsageError(f"--run-report {path}: {error.strerror}") from error
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise UsageError(f"--run-report {path}: is not a report of a run") from error


def _from_document(document: Any) -> CleaningClock:
    if document["command"] != "run" or document["dry_run"]:
        raise ValueError("not of a run")
    retention = {
        (str(log["topic"]), int(log["partition"])): int(log["delete_retention_ms"])
        for log in document["logs"]
        if log["delete_retention_ms"] is not None
    }
    as_of_ms = int(document["as_of_ms"])
    from_ms = int(document.get("horizons_from_ms", as_of_ms))  # older versions wrote none
    return CleaningClock(as_of_ms, True, retention, from_ms)
