"""The view of `undo`: lines, JSON, exit code. Pure."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from compactor.host.printable import counted, size_text
from compactor.host.shell_commands import compactor
from compactor.originals.undo import UndoReport, UndoStatus
from compactor.outcome.exit_codes import ExitCode, ExitStatus
from compactor.outcome.json_values import MAY_LACK, written
from compactor.outcome.start_problems import StartProblem
from compactor.reason_codes import ReasonCode
from compactor.views.next_steps import before_a_start

_WORDS = {
    UndoStatus.UNDONE: "undone",
    UndoStatus.AS_BEFORE: "as before the run",
    UndoStatus.REFUSED: "left as it is",
    UndoStatus.FAILED: "failed",
}
_DRY_WORDS = _WORDS | {
    UndoStatus.UNDONE: "would be undone",
    UndoStatus.REFUSED: "would be left as it is",
    UndoStatus.FAILED: "would fail",
}
SHOWN_LOGS = 40


def ending_of_undo(reports: Sequence[UndoReport]) -> ExitStatus:
    """Return refused where every log was changed since; partial where some were not undone."""
    found = {report.status for report in reports}
    if found.isdisjoint({UndoStatus.REFUSED, UndoStatus.FAILED}):
        return ExitStatus(ExitCode.OK, ReasonCode.DONE)
    if found == {UndoStatus.REFUSED}:
        return ExitStatus(ExitCode.REFUSED, ReasonCode.CHANGED_MEANWHILE)
    if UndoStatus.FAILED not in found:
        return ExitStatus(ExitCode.PARTIAL, ReasonCode.CHANGED_MEANWHILE)
    code = ExitCode.FAILED if found == {UndoStatus.FAILED} else ExitCode.PARTIAL
    return ExitStatus(code, ReasonCode.LOGS_FAILED)


@dataclass(frozen=True, slots=True)
class UndoTotalsDocument:
    logs: dict[str, int]
    segments: int
    bytes: int


_KNOWN = written(is_in_summary=True, may_lack=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoDocument:
    """What a run kept, brought back or discarded."""

    dry_run: bool | None = field(default=None, metadata=_KNOWN)
    totals: UndoTotalsDocument | None = field(default=None, metadata=_KNOWN)
    undone_run: str | None = field(default=None, metadata=MAY_LACK)
    logs: Sequence[UndoReport] | None = field(default=None, metadata=MAY_LACK)
    start_problems: Sequence[StartProblem] | None = field(default=None, metadata=MAY_LACK)
    discarded: str | None = field(default=None, metadata=_KNOWN)


def undo_document(
    run_dir: str, reports: Sequence[UndoReport], problems: Sequence[StartProblem], is_dry_run: bool
) -> UndoDocument:
    statuses = [report.status for report in reports]
    totals = UndoTotalsDocument(
        logs={status.value: statuses.count(status) for status in UndoStatus},
        segments=sum(report.segments for report in reports),
        bytes=sum(report.bytes for report in reports),
    )
    return UndoDocument(
        dry_run=is_dry_run,
        totals=totals,
        undone_run=None if is_dry_run else os.path.basename(os.path.abspath(run_dir)),
        logs=reports,
        start_problems=problems,
    )


def undo_lines(reports: Sequence[UndoReport], is_dry_run: bool = False) -> Iterator[str]:
    """Yield a line for each log, those with a problem first, and one for all."""
    words = _DRY_WORDS if is_dry_run else _WORDS
    with_problem = [report for report in reports if report.reason is not None]
    others = [report for report in reports if report.reason is None]
    for report in [*with_problem, *others[:SHOWN_LOGS]]:
        name = f"{report.log_dir}: {report.topic}-{report.partition}"
        if report.reason is not None:
            yield f"{name} {words[report.status]}: {report.reason}"
        else:
            yield f"{name} {words[report.status]}{_counts(report)}"
    if len(others) > SHOWN_LOGS:
        yield f"… and {len(others) - SHOWN_LOGS:,} more (all: --format json)"
    statuses = [report.status for report in reports]
    counts = [
        f"{statuses.count(status):,} {words[status]}" for status in UndoStatus if status in statuses
    ]
    yield f"Logs: {', '.join(counts) or 'none'}."


def after_undo_dry_run(run_dir: str, reports: Sequence[UndoReport]) -> list[str]:
    """Return the command that brings back what could be brought back."""
    said = ["Dry run: nothing was changed."]
    if any(report.status is UndoStatus.UNDONE for report in reports):
        said += ["This brings them back:", f"  {compactor('undo', run_dir)}"]
    return said


def after_undo(
    run_dir: str, reports: Sequence[UndoReport], problems: Sequence[StartProblem] = ()
) -> list[str]:
    """Return what to do next: start the broker, undo again, discard what was kept."""
    if any(report.status is UndoStatus.FAILED for report in reports):
        return ["Next: set right what has failed, and undo again; what is done stays done."]
    lines = before_a_start(problems) or ["Next: start the broker."]
    if any(report.status is UndoStatus.REFUSED for report in reports):
        lines = [
            "Logs that were left as they are cannot be undone any more.",
            *before_a_start(problems),
        ]
    return [
        *lines,
        "This removes what the run has kept, and is still there:",
        f"  {compactor('undo', run_dir, options=('--discard',))}",
    ]


def _counts(report: UndoReport) -> str:
    if not report.segments:
        return ""
    return f": {counted(report.segments, 'segment')}, {size_text(report.bytes)}"
