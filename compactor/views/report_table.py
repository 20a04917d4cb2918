"""A round's report for a person: tables that fit the terminal and never flood it."""

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from compactor.host.printable import iso_time, one_line, printable, size_text
from compactor.planning.remedies import REMEDIES
from compactor.retention.rules import Rule
from compactor.round_report import CleaningReport, Counts, LogReport, LogStatus
from compactor.views.copy_lines import copy_lines
from compactor.views.next_steps import next_steps
from compactor.views.originals_lines import originals_lines
from compactor.views.report_json import mb_per_second
from compactor.views.report_totals import (
    ReasonGroup,
    Totals,
    dropped_by_reason,
    group_reasons,
    rewritten,
    totals_of,
)

WIDE = 112  # columns from which each reason for dropping a record gets a column of its own
ALWAYS_SHOWN = ("superseded", "tombstone", "null_key")  # the others where a record went for them
SHOWN_LOGS = 40
SHOWN_REASONS = 20
SHOWN_NAMES = 3
_PHASES = {"session": "start Spark"}  # Java and the workers of Python
RETENTION_ESTIMATE = "Retention would delete, of the segments as they are before cleaning"


def report_view(report: CleaningReport, width: int) -> RenderableType:
    """The whole report, to be printed on a console of that width."""
    totals = totals_of(report)
    parts: list[RenderableType] = [Text(_heading(report))]
    logs = rewritten(report)
    if logs:
        parts.append(_logs_table(logs, totals, width))
    if len(logs) > SHOWN_LOGS:
        more = len(logs) - SHOWN_LOGS
        parts.append(Text(f"… and {more:,} more (all: --report FILE.json)", "dim"))
    retained = [log for log in report.logs if log.retention.deleted.segments]
    if retained:
        title = RETENTION_ESTIMATE if report.dry_run else "Deleted by retention"
        parts += [Text(title, "bold"), retention_table(retained, SHOWN_LOGS)]
    trouble = [x for x in report.logs if x.status in (LogStatus.FAILED, LogStatus.SET_ASIDE)]
    if trouble:
        parts += [Text("Set aside or failed", "bold"), _reasons_table(trouble)]
    parts += [Text(one_line(note)) for note in _notes(report.logs)]
    passed_over = [log for log in report.logs if log.status is LogStatus.PASSED_OVER]
    if passed_over:
        parts += [Text("Passed over", "bold"), _reasons_table(passed_over)]
    if report.phases:
        parts.append(_phases_table(report))
    parts += [Text(one_line(notice)) for notice in report.notices]
    parts += [Text(f"Warning: {one_line(warning)}", "bold") for warning in report.warnings]
    parts.append(Text(_summary(report, totals)))
    parts += [_line(line) for line in copy_lines(report.copies)]
    if report.originals is not None:
        parts += [_line(line) for line in originals_lines(report.originals)]
    parts += [_line(line) for line in next_steps(report)]
    return Group(*parts)


def _line(line: str) -> Text:
    """A command, behind blanks, is never broken."""
    is_command = line.startswith(" ")
    return Text(printable(line), no_wrap=is_command, overflow="ignore" if is_command else "fold")


def _heading(report: CleaningReport) -> str:
    what = "Dry run, nothing was written" if report.dry_run else "Compaction"
    return f"{what}; as of {iso_time(report.as_of_ms)}"


def _logs_table(logs: list[LogReport], totals: Totals, width: int) -> Table:
    dropped = dropped_by_reason(totals.counts)
    others = [reason for reason, count in dropped.items() if count and reason not in ALWAYS_SHOWN]
    wide = width >= WIDE + sum(len("   ") + max(len(r), len(f"{dropped[r]:,}")) for r in others)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_footer=len(logs) > 1)
    several_dirs = len({log.log_dir for log in logs}) > 1
    reasons = [*ALWAYS_SHOWN, *others] if wide else []
    headings = ["offsets"] if wide else []
    headings += ["segments", "size", "records"] + [r.replace("_", " ") for r in reasons]
    headings += [] if wide else ["dropped"]
    total = [""] if wide else []
    total += _changes(totals, totals.counts, reasons, wide)
    table.add_column("log", "total", overflow="fold")
    for heading, footer in zip(headings, total, strict=True):
        table.add_column(heading, footer, justify="right", no_wrap=True)
    for log in logs[:SHOWN_LOGS]:
        name = Text(printable(f"{log.topic}-{log.partition}"))
        if several_dirs:
            name.append(f"\n{printable(log.log_dir)}", "dim")
        offsets = [f"{log.first_dirty_offset}–{log.first_uncleanable_offset}"] if wide else []
        table.add_row(name, *offsets, *_changes(log, log.counts, reasons, wide))
    return table


def _changes(log: LogReport | Totals, counts: Counts, reasons: list[str], wide: bool) -> list[str]:
    dropped = dropped_by_reason(counts)
    cells = [
        f"{log.segments_before:,} → {log.segments_after:,}",
        f"{size_text(log.bytes_before)} → {size_text(log.bytes_after)}",
        f"{counts.records_read:,} → {counts.records_kept:,}",
    ]
    if wide:
        return cells + [f"{dropped[reason]:,}" for reason in reasons]
    return [*cells, f"{sum(dropped.values()):,}"]


def _notes(logs: Sequence[LogReport]) -> list[str]:
    """Each note once, with the logs that it is of."""
    names: dict[str, list[str]] = {}
    for log in logs:
        for note in log.notes:
            names.setdefault(note, []).append(printable(f"{log.topic}-{log.partition}"))
    return [f"{_some(of_note)}: {note}" for note, of_note in names.items()]


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN_NAMES:,} more" if len(names) > SHOWN_NAMES else ""
    return ", ".join(names[:SHOWN_NAMES]) + more


def retention_table(logs: Sequence[LogReport], shown: int) -> Table:
    """What retention deletes by each rule that says so, apart from what cleaning does."""
    rules = [rule for rule in Rule if any(getattr(log.retention, rule).segments for log in logs)]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("log", overflow="fold")
    by_rule = [f"by {rule.replace('_', ' ')}" for rule in rules]
    for heading in (*by_rule, "segments", "bytes", "log starts at"):
        table.add_column(heading, justify="right", no_wrap=True)
    for log in logs[:shown]:
        found = log.retention
        table.add_row(
            Text(printable(f"{log.topic}-{log.partition}")),
            *(f"{getattr(found, rule).segments:,}" for rule in rules),
            f"{found.deleted.segments:,}",
            size_text(found.deleted.bytes),
            str(found.log_start_offset),
        )
    if len(logs) > shown:
        table.add_row(Text(f"… and {len(logs) - shown:,} more", "dim"))
    return table


def _reasons_table(logs: list[LogReport]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right")
    table.add_column(overflow="fold")
    groups = group_reasons(logs)
    for group in groups[:SHOWN_REASONS]:
        style = "red" if group.status is LogStatus.FAILED else ""
        table.add_row(f"{len(group.names):,}", _reason(group, style))
    if len(groups) > SHOWN_REASONS:
        rest = sum(len(group.names) for group in groups[SHOWN_REASONS:])
        table.add_row(f"{rest:,}", Text("for other reasons (all: --report FILE.json)", "dim"))
    return table


def _reason(group: ReasonGroup, style: str) -> Text:
    names = _some([printable(name) for name in group.names])
    word = "failed: " if group.status is LogStatus.FAILED else ""
    text = Text(f"{word}{one_line(group.reason)}", style).append(f"\n{names}", "dim")
    remedy = REMEDIES.get(group.reason_code) if group.reason_code else None
    return text.append(f"\n→ {remedy.briefly}") if remedy and remedy.briefly else text


def _phases_table(report: CleaningReport) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("phase")
    for heading in ("seconds", "read", "MB/s"):
        table.add_column(heading, justify="right")
    for phase in report.phases:
        rate = mb_per_second(phase)
        table.add_row(
            Text(printable(_PHASES.get(phase.name, phase.name))),
            f"{phase.seconds:.2f}",
            size_text(phase.log_bytes) if phase.log_bytes else "",
            "" if rate is None else f"{rate:,.1f}",
        )
    return table


def _summary(report: CleaningReport, totals: Totals) -> str:
    words = {
        LogStatus.CLEANED: "cleaned",
        LogStatus.WOULD_CLEAN: "would be cleaned",
        LogStatus.FAILED: "failed",
        LogStatus.SET_ASIDE: "set aside",
        LogStatus.PASSED_OVER: "passed over",
    }
    counted = [f"{totals.logs[s]:,} {word}" for s, word in words.items() if totals.logs.get(s)]
    logs = "Logs: " + (", ".join(counted) or "none found")
    if not totals.bytes_before:
        return f"{logs}. {report.seconds:.1f} s."
    dropped = dropped_by_reason(totals.counts)
    part = 1 - totals.bytes_after / totals.bytes_before
    verb = "would go" if report.dry_run else "gone"
    dropped_words = [f"{n:,} {reason.replace('_', ' ')}" for reason, n in dropped.items() if n]
    return (
        f"Records dropped: {', '.join(dropped_words) or 'none'}.\n"
        f"{logs}. {size_text(totals.bytes_before)} → {size_text(totals.bytes_after)}, "
        f"{part:.1%} {verb}, in {report.seconds:.1f} s."
    )
