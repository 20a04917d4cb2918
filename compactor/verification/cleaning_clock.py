"""When the cleaning was that a comparison is about: what its delete horizons are checked against.

By default only that it is over. `--as-of` names its clock; the report of the run says that, too,
and `delete.retention.ms` of each log, whose sum is the delete horizon that the run has set.
"""

from collections.abc import Mapping
from typing import NamedTuple

from compactor.verification.evidence import NOTHING, Evidence, LogEvidence


class LogClock(NamedTuple):
    """What is known of the cleaning of one log."""

    as_of_ms: int  # no later than this; that very moment where is_exact
    is_exact: bool = False
    delete_retention_ms: int | None = None  # None: not known
    horizons_from_ms: int | None = None  # of those that it has set; None: as_of_ms
    evidence: LogEvidence = LogEvidence()

    @property
    def complete_as_of_ms(self) -> int | None:
        """The clock of the last complete cleaning; None: not known."""
        if not self.evidence.has_reports:
            return self.as_of_ms if self.is_exact else None
        complete = self.evidence.complete
        return complete[-1].as_of_ms if complete else None

    @property
    def horizons(self) -> frozenset[int] | None:
        """Every delete horizon that may have been set; None: not known."""
        if self.evidence.has_reports:
            return self.evidence.horizons
        return None if self.horizon_ms is None else frozenset([self.horizon_ms])

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
    evidence: Evidence = NOTHING

    def of(self, topic: str, partition: int) -> LogClock:
        retention_ms = self.delete_retention_ms.get((topic, partition))
        evidence = self.evidence.of(topic, partition)
        return LogClock(self.as_of_ms, self.is_exact, retention_ms, self.horizons_from_ms, evidence)
