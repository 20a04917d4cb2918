"""The view of `undo`: lines, JSON, exit code. Pure."""

from collections.abc import Iterator, Sequence

from compactor.host.printable import counted, size_text
from compactor.host.shell_commands import compactor
from compactor.originals.undo import UndoReport, UndoStatus
from compactor.outcome.exit_codes import ExitCode
from compactor.outcome.start_problems import StartProblem
from compactor.reason_codes import ReasonCode
from compactor.views.json_values import to_json
from compactor.views.next_steps import before_a_start
from compactor.views.report_json import JsonObject

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


def undo_exit_code(reports: Sequence[UndoReport]) -> ExitCode:
    """Return refused where every log was changed since; partial where some were not undone."""
    found = {report.status for report in reports}
    if found.isdisjoint({UndoStatus.REFUSED, UndoStatus.FAILED}):
        return ExitCode.OK
    if found == {UndoStatus.REFUSED}:
        return ExitCode.REFUSED
    return ExitCode.FAILED if found == {UndoStatus.FAILED} else ExitCode.PARTIAL


def undo_reason_code(reports: Sequence[UndoReport]) -> ReasonCode:
    """Return why not all logs could be undone, where that is so."""
    found = {report.status for report in reports}
    if UndoStatus.FAILED in found:
        return ReasonCode.LOGS_FAILED
    return ReasonCode.CHANGED_MEANWHILE if UndoStatus.REFUSED in found else ReasonCode.DONE


def undo_totals(reports: Sequence[UndoReport]) -> JsonObject:
    statuses = [report.status for report in reports]
    return {
        "logs": {status.value: statuses.count(status) for status in UndoStatus},
        "segments": sum(report.segments for report in reports),
        "bytes": sum(report.bytes for report in reports),
    }


def undo_documents(reports: Sequence[UndoReport]) -> list[JsonObject]:
    documents: list[JsonObject] = to_json(reports)
    return documents


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
