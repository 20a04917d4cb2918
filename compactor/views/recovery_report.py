"""The view of `recover`: a table for a person that never floods the terminal, and JSON."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.text import Text

from compactor.host.printable import counted, one_line, printable
from compactor.outcome.json_values import ALWAYS, OF_ENDING
from compactor.outcome.start_problems import StartProblem
from compactor.recovery.log_dir_recovery import (
    LogDirRecovery,
    LogRecovery,
    advice_of,
    what_was_done,
)
from compactor.views.fitting_table import name_lines, whole_words


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryTotalsDocument:
    partitions: int
    recovered: int
    set_aside: int
    finished: int
    undone: int
    removed: int
    rebuilt: int
    truncated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryDocument:
    """A recovery."""

    totals: RecoveryTotalsDocument = field(metadata=ALWAYS)
    log_dirs: Sequence[LogDirRecovery] = field(metadata=OF_ENDING)
    notices: Sequence[str]
    logs: Sequence[LogRecovery]
    start_problems: Sequence[StartProblem]


def recovery_document(
    recovered: Sequence[LogDirRecovery], problems: Sequence[StartProblem]
) -> RecoveryDocument:
    """Return the fields that follow those of the summary. problems: of a start afterwards."""
    logs = [log for log_dir in recovered for log in log_dir.logs]
    totals = RecoveryTotalsDocument(
        partitions=sum(log_dir.partitions for log_dir in recovered),
        recovered=sum(log.problem is None for log in logs),
        set_aside=sum(log.problem is not None for log in logs),
        finished=sum(len(log.finished) for log in logs),
        undone=sum(len(log.undone) for log in logs),
        removed=sum(len(log.removed) for log in logs)
        + sum(len(log_dir.removed) for log_dir in recovered),
        rebuilt=sum(len(log.rebuilt) for log in logs),
        truncated=sum(log.truncated is not None for log in logs),
    )
    return RecoveryDocument(
        totals=totals,
        log_dirs=recovered,
        notices=advice_of(recovered),
        logs=logs,
        start_problems=problems,
    )


SHOWN_LOGS = 40


def recovery_view(recovered: Sequence[LogDirRecovery], width: int) -> RenderableType:
    """Return a line for each log that was not as a broker leaves it, the sum, what a run needs."""
    logs = [log for log_dir in recovered for log in log_dir.logs]
    partitions = sum(log_dir.partitions for log_dir in recovered)
    parts: list[RenderableType] = []
    if logs:
        # those that are not as they should be first
        first = sorted(logs, key=lambda log: log.problem is None)[:SHOWN_LOGS]
        parts += name_lines([_row(log) for log in first], width)
    if len(logs) > SHOWN_LOGS:
        parts.append(
            Text(f"… and {len(logs) - SHOWN_LOGS:,} more (all: --report FILE.json)", "dim")
        )
    set_aside = sum(log.problem is not None for log in logs)
    settled = f"{counted(partitions, 'partition')}: {len(logs) - set_aside:,} settled"
    others = f", {set_aside:,} set aside as they were" if set_aside else ""
    parts.append(Text(f"{settled}{others}, nothing to be done for the others."))
    for line in advice_of(recovered):
        parts += whole_words(printable(line), width)
    return Group(*parts)


def _row(log: LogRecovery) -> tuple[str, str]:
    outcome = f"set aside: {log.problem}" if log.problem else what_was_done(log)
    return printable(log.name), one_line(outcome)
