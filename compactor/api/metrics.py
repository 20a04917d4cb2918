"""The metrics of a plan or a run, for a collector of text files."""

import os
from collections.abc import Mapping
from typing import Any

from compactor.host.clock import now_ms
from compactor.host.printable import printable
from compactor.outcome.exit_codes import UsageError
from compactor.outcome.round_report import CleaningReport
from compactor.planning.round_plan import RoundPlan
from compactor.watching.measures import measures_of_plan
from compactor.watching.metrics import Ending, metrics_text

_OF_ENDING = ("command", "exit_code", "status", "reason_code", "seconds", "version")


def metrics_of(
    ending: Mapping[str, Any], measured: RoundPlan | CleaningReport | None, path: str
) -> bytes:
    """The metrics of a command as text, to replace the file at path.

    ending: the fields that every report and summary begins with. measured: what a plan or a run
    came to; None where it did not come to its end. Raise OSError where the file is there and cannot
    be read.
    """
    missing = [name for name in _OF_ENDING if name not in ending]
    if missing:
        raise UsageError(f"ending: has no {missing[0]!r}; every report and summary begins with it")
    ended = Ending(
        command=ending["command"],
        exit_code=ending["exit_code"],
        status=ending["status"],
        reason_code=ending["reason_code"],
        ended_ms=now_ms(),
        seconds=ending["seconds"],
        version=ending["version"],
        file=printable(os.path.abspath(path)),
    )
    plan = measures_of_plan(measured) if isinstance(measured, RoundPlan) else None
    run = measured if isinstance(measured, CleaningReport) else None
    return metrics_text(ended, plan, run, _previous(path))


def _previous(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""
