"""A round's report for a person: tables that fit the terminal and never flood it."""

import os
from collections.abc import Sequence
from functools import partial

from rich.console import Group, RenderableType
from rich.text import Text

from compactor.host.printable import counted, first_few, iso_time, one_line, printable, size_text
from compactor.host.shell_commands import compactor
from compactor.outcome.round_report import (
    WHY_LOGS_GROW,
    CleaningReport,
    CopyReport,
    Counts,
    EngineReport,
    LogReport,
    LogStatus,
    OriginalsReport,
    RunTotals,
)
from compactor.outcome.start_problems import forbid_start
from compactor.planning.remedies import brief_of
from compactor.views.fitting_table import (
    SHOWN_NAMES,
    Column,
    reason_lines,
    table_lines,
    text_of_line,
    whole_words,
)
from compactor.views.next_steps import next_steps
from compactor.views.report_json import phase_name
from storage.kafka_versions import KafkaUse
from storage.log.retention import RetentionRule

SHOWN_LOGS = 40
SHOWN_REASONS = 20
_COLUMNS = (
    Column("offsets", 6),
    Column("segments", 4),
    Column("size", 0),
    Column("records", 1),
    Column("dropped", 3),
)
_PHASE_COLUMNS = (Column("seconds", 0), Column("read", 1), Column("MB/s", 2))
RETENTION_ESTIMATE = "Retention would delete, of the segments as they are before cleaning"


def report_view(report: CleaningReport, width: int) -> RenderableType:
    """The whole report, to be printed on a console of that width."""
    totals = report.totals
    parts: list[RenderableType] = [Text(_heading(report)), *kafka_lines(report.kafka, width)]
    logs = report.done
    if logs:
        parts += [Text(), *_logs_lines(logs, totals, width)]
    if len(logs) > SHOWN_LOGS:
        more = len(logs) - SHOWN_LOGS
        parts.append(Text(f"… and {more:,} more (all: --report FILE.json)", "dim"))
    retained = [log for log in report.logs if log.retention.deleted.segments]
    if retained:
        title = RETENTION_ESTIMATE if report.dry_run else "Deleted by retention"
        parts += [Text(), Text(title, "bold"), *retention_lines(retained, SHOWN_LOGS, width)]
    trouble = [x for x in report.logs if x.status in (LogStatus.FAILED, LogStatus.SET_ASIDE)]
    if trouble:
        parts += [Text(), Text("Set aside or failed", "bold"), *_reasons(trouble, report, width)]
    for note in _notes(report.logs):
        parts += whole_words(one_line(note), width)
    passed_over = [log for log in report.logs if log.status is LogStatus.PASSED_OVER]
    if passed_over:
        parts += [Text(), Text("Passed over", "bold"), *_reasons(passed_over, report, width)]
    if report.phases:
        parts += [Text(), *_phases_lines(report, width)]
    parts.append(Text())
    if report.engine is not None:
        parts += whole_words(_engine_line(report.engine), width)
    for notice in report.notices:
        parts += whole_words(one_line(notice), width)
    for warning in report.warnings:
        parts += whole_words(f"Warning: {one_line(warning)}", width, "bold")
    parts.append(Text(_summary(report, totals)))
    parts += [text_of_line(line) for line in copy_lines(report.copies)]
    if report.originals is not None:
        parts += [text_of_line(line) for line in originals_lines(report.originals)]
    parts += [text_of_line(line) for line in next_steps(report)]
    return Group(*parts)


def kafka_lines(uses: Sequence[KafkaUse], width: int) -> list[Text]:
    """Return which Kafka's answer a round follows, and why: a line for each that differs."""
    said = dict.fromkeys(use.text for use in uses)
    return [line for text in said for line in whole_words(one_line(text), width)]


def _reasons(logs: list[LogReport], report: CleaningReport, width: int) -> list[Text]:
    may_start = not forbid_start(report.start_problems)
    brief = partial(brief_of, may_start=may_start)
    return reason_lines(logs, SHOWN_REASONS, width, "all: --report FILE.json", brief)


def _heading(report: CleaningReport) -> str:
    what = "Dry run, nothing was written" if report.dry_run else "Compaction"
    return f"{what}; as of {iso_time(report.as_of_ms)}"


def _logs_lines(logs: list[LogReport], totals: RunTotals, width: int) -> list[Text]:
    """A line a log. A wide terminal shows for which reasons records went, and the offsets."""
    reasons = [reason for reason, count in totals.counts.dropped._asdict().items() if count]
    if len(reasons) == 1:
        reasons = []  # its column would be that of `dropped` once more
    columns = (*_COLUMNS, *(Column(reason.replace("_", " "), 5) for reason in reasons))
    several_dirs = len({log.log_dir for log in logs}) > 1
    rows = []
    for log in logs[:SHOWN_LOGS]:
        where = os.path.join(log.log_dir, log.name) if several_dirs else log.name
        offsets = f"{log.first_dirty_offset}–{log.first_uncleanable_offset}"
        rows.append([printable(where), offsets, *_changes(log, log.counts, reasons)])
    if len(logs) > 1:
        rows.append(["total", "", *_changes(totals, totals.counts, reasons)])
    return table_lines("log", columns, rows, width)


def _changes(log: LogReport | RunTotals, counts: Counts, reasons: list[str]) -> list[str]:
    dropped = counts.dropped._asdict()
    return [
        f"{log.segments_before:,} → {log.segments_after:,}",
        f"{size_text(log.bytes_before)} → {size_text(log.bytes_after)}",
        f"{counts.records_read:,} → {counts.records_kept:,}",
        f"{sum(dropped.values()):,}",
        *(f"{dropped[reason]:,}" for reason in reasons),
    ]


def _notes(logs: Sequence[LogReport]) -> list[str]:
    """Each note once, with the logs that it is of."""
    names: dict[str, list[str]] = {}
    for log in logs:
        for note in log.notes:
            names.setdefault(note, []).append(log.name)
    return [f"{first_few(of_note, SHOWN_NAMES)}: {note}" for note, of_note in names.items()]


def retention_lines(logs: Sequence[LogReport], shown: int, width: int) -> list[Text]:
    """What retention deletes by each rule that says so, apart from what cleaning does."""
    rules = [
        rule for rule in RetentionRule if any(getattr(log.retention, rule).segments for log in logs)
    ]
    by_rule = [Column(f"by {rule.replace('_', ' ')}", 2) for rule in rules]
    columns = (*by_rule, Column("segments", 3), Column("bytes", 0), Column("log starts at", 1))
    rows = [
        [
            printable(log.name),
            *(f"{getattr(log.retention, rule).segments:,}" for rule in rules),
            f"{log.retention.deleted.segments:,}",
            size_text(log.retention.deleted.bytes),
            str(log.retention.log_start_offset),
        ]
        for log in logs[:shown]
    ]
    lines = table_lines("log", columns, rows, width)
    if len(logs) > shown:
        lines.append(Text(f"… and {len(logs) - shown:,} more", "dim"))
    return lines


def _phases_lines(report: CleaningReport, width: int) -> list[Text]:
    rows = []
    for phase in report.phases:
        rate = phase.mb_per_second
        rows.append(
            [
                phase_name(phase.name),
                f"{phase.seconds:.2f}",
                size_text(phase.log_bytes) if phase.log_bytes else "",
                "" if rate is None else f"{rate:,.1f}",
            ]
        )
    return table_lines("phase", _PHASE_COLUMNS, rows, width)


def _engine_line(engine: EngineReport) -> str:
    at_once = counted(engine.tasks_at_once, "task")
    return f"Engine: {engine.name}, {at_once} at once ({engine.why})."


def _summary(report: CleaningReport, totals: RunTotals) -> str:
    words = {
        LogStatus.CLEANED: "cleaned",
        LogStatus.WOULD_CLEAN: "would be cleaned",
        LogStatus.FAILED: "failed",
        LogStatus.SET_ASIDE: "set aside",
        LogStatus.PASSED_OVER: "passed over",
    }
    counts = [f"{totals.logs[s]:,} {word}" for s, word in words.items() if totals.logs[s]]
    logs = "Logs: " + (", ".join(counts) or "none found")
    if not totals.bytes_before:
        return f"{logs}. {report.seconds:.1f} s."
    dropped = totals.counts.dropped._asdict()
    dropped_words = [f"{n:,} {reason.replace('_', ' ')}" for reason, n in dropped.items() if n]
    return (
        f"Records dropped: {', '.join(dropped_words) or 'none'}.\n"
        f"{logs}. {size_text(totals.bytes_before)} → {size_text(totals.bytes_after)}, "
        f"{_change(totals, report.dry_run)}, in {report.seconds:.1f} s."
    )


def _change(totals: RunTotals, dry_run: bool) -> str:
    """Say which part goes, or why the logs grow."""
    part = 1 - totals.bytes_after / totals.bytes_before
    if part >= 0:
        return f"{part:.1%} {'would go' if dry_run else 'gone'}"
    return f"{'would grow' if dry_run else 'grown'} by {-part:.1%} ({WHY_LOGS_GROW})"


def originals_lines(kept: OriginalsReport) -> list[str]:
    """Return where originals were kept; the last two lines are commands for a shell."""
    if not kept.files:
        return []
    files = f"{counted(kept.files, 'file')} {'is' if kept.files == 1 else 'are'}"
    size = size_text(kept.linked_bytes + kept.copied_bytes)
    return [
        f"Originals: {size} in {files} kept in {kept.path}, {_how_kept(kept)}.",
        f"  to discard them: {compactor('undo', kept.path, options=('--discard',))}",
        f"  to undo the run: {compactor('undo', kept.path)}",
    ]


def _how_kept(kept: OriginalsReport) -> str:
    links = "no disk space is freed until they are discarded"
    if not kept.copied_bytes:
        return f"as hard links: {links}"
    if not kept.linked_bytes:
        return "as copies, which take that room there until they are discarded"
    return (
        f"{size_text(kept.linked_bytes)} as hard links: {links}; "
        f"{size_text(kept.copied_bytes)} as copies"
    )


def copy_lines(copies: Sequence[CopyReport]) -> list[str]:
    """Return what became of copies; lines that begin with blanks are commands for a shell."""
    return [line for copy in copies for line in _lines_of_copy(copy)]


def _lines_of_copy(copy: CopyReport) -> list[str]:
    size = f"{size_text(copy.bytes)} in {counted(copy.files, 'file')}"
    if copy.manifest is None:
        room = size_text(copy.needed_bytes)
        return [
            f"Would be copied: {size} from {copy.source} to {copy.path}. Up to {room} of room are "
            "needed there for the copy, none of it where both share their bytes (reflinks)."
        ]
    if copy.linked_bytes:
        size += f" ({size_text(copy.linked_bytes)} as hard links)"
    lines = [
        f"Copy: {size} from {copy.source}, which is as it was, to {copy.path}. Its manifest is "
        f"{copy.manifest}."
    ]
    if copy.why_not is not None:
        lines.append(f"No broker may be started on {copy.path}: {copy.why_not}.")
    options = ("--against", copy.source, "--manifest")
    return [*lines, f"  to prove it: {compactor('verify', copy.path, options=options)}"]
