"""What callers make of results: tables, conditions, metrics, one report of several."""

from collections.abc import Iterable
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any

from compactor.errors import UsageError
from compactor.outcome.row_tables import Row, arrow_table, pandas_frame, row_of

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
import os
from collections.abc import Mapping, Sequence

from compactor.host.clock import now_ms
from compactor.host.printable import printable
from compactor.outcome.round_report import CleaningReport
from compactor.planning.round_plan import RoundPlan
from compactor.watching import merged_reports
from compactor.watching.conditions import Condition, Met
from compactor.watching.measures import (
    LOG_MEASURES_OF_PLAN,
    LOG_MEASURES_OF_RUN,
    Measures,
    measures_of_plan,
    measures_of_run,
)
from compactor.watching.merged_reports import MergedReports
from compactor.watching.metrics import Ending, metrics_text
from storage.files.local import LOCAL


def to_arrow(results: Iterable[Any]) -> "pa.Table":
    """Return an Arrow table of results: dataclasses, named tuples or dictionaries, a row each.

    Names within names are joined.
    """
    return arrow_table(map(_row, results))


def to_pandas(results: Iterable[Any]) -> "pd.DataFrame":
    """Return a pandas frame of results, a row each. ImportError without pandas."""
    return pandas_frame(map(_row, results))


def _row(result: Any) -> Row:
    if isinstance(result, dict):
        return result
    if not (is_dataclass(result) or hasattr(result, "_fields")) or isinstance(result, type):
        expected = "expected results of the API's functions, or dictionaries"
        raise UsageError(f"{expected}, not {type(result).__name__}", "results")
    return row_of(result)


def merge_reports(paths: Sequence[str]) -> MergedReports:
    """Read reports (JSON) and add them up; the worst ending is that of all.

    Raise UsageError without a path and for a path of no file, ConfigError for a file that is no
    report, and OSError for one that cannot be read.
    """
    if not paths:
        raise UsageError("expected one report at least", "paths")
    for path in paths:
        if not LOCAL.exists(path):
            raise UsageError("there is no such file", value=path or repr(path))
        if LOCAL.is_directory(path):
            raise UsageError("is a directory", value=path)
    return merged_reports.merged_reports(paths, LOCAL)


def conditions_of_plan(texts: Iterable[str]) -> tuple[Condition, ...]:
    """Read conditions on a plan. Raise UsageError where one cannot be read."""
    return tuple(Condition(text, LOG_MEASURES_OF_PLAN) for text in texts)


def conditions_of_run(texts: Iterable[str]) -> tuple[Condition, ...]:
    """Read conditions on a run, dry or real. Raise UsageError where one cannot be read."""
    return tuple(Condition(text, LOG_MEASURES_OF_RUN) for text in texts)


def met_by_plan(conditions: Sequence[Condition], plan: RoundPlan) -> list[Met]:
    """Return the conditions that hold of a plan, with ages counted from its clock."""
    return _met(conditions, measures_of_plan(plan)) if conditions else []


def met_by_run(conditions: Sequence[Condition], report: CleaningReport) -> list[Met]:
    """Return the conditions that hold of a report."""
    return _met(conditions, measures_of_run(report)) if conditions else []


def _met(conditions: Sequence[Condition], measures: Measures) -> list[Met]:
    return [
        Met(condition.text, tuple(condition.concerned(measures)))
        for condition in conditions
        if condition.holds(measures)
    ]


_OF_ENDING = ("command", "exit_code", "status", "reason_code", "seconds", "version")


def metrics_of(
    ending: Mapping[str, Any], measured: RoundPlan | CleaningReport | None, path: str
) -> bytes:
    """Return the metrics of a command as text, to replace the file at path.

    ending: the fields that every report and summary begins with. measured: what a plan or a run
    came to; None where it did not come to its end. Raise OSError where a file at path cannot be
    read.
    """
    missing = [name for name in _OF_ENDING if name not in ending]
    if missing:
        raise UsageError(
            f"has no {missing[0]!r}; every report and summary begins with it", "ending"
        )
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
        with LOCAL.open_named(path) as file:
            return file.read()
    except FileNotFoundError:
        return b""
