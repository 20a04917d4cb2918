"""A round's plan for a person, as tables that never flood the terminal, and whole, as JSON."""

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cleaner_jobs.plan import LogPlan
from compactor.host.printable import iso_time, one_line, printable, size_text
from compactor.planning.notices import notices_of
from compactor.planning.round_plan import LogDirFacts, LogFacts, RoundPlan
from compactor.planning.space import SpaceFacts, leaving_out
from compactor.retention.retention_round import retention_report
from compactor.round_report import LogReport, LogStatus
from compactor.views.report_json import JsonObject, retention_document
from compactor.views.report_table import RETENTION_ESTIMATE, retention_table
from compactor.views.report_totals import group_reasons

WIDE = 100  # columns from which offsets are shown too
SHOWN_LOGS = 40
SHOWN_REASONS = 30
SHOWN_NAMES = 3
_ALL = "all: --format json"


def plan_view(
    plan: RoundPlan,
    width: int,
    space: SpaceFacts | None = None,
    refusals: Sequence[str] = (),
    warnings: Sequence[str] = (),
) -> RenderableType:
    """The whole plan, to be printed on a console of that width.

    refusals: why a run would not be done, in its words.
    """
    parts: list[RenderableType] = [
        Text(f"Plan as of {iso_time(plan.as_of_ms)}; nothing is written")
    ]
    if plan.logs:
        parts.append(_logs_table(plan, width))
    for title, status in (
        ("Set aside, to be left as they are", LogStatus.SET_ASIDE),
        ("Passed over", LogStatus.PASSED_OVER),
    ):
        reports = [report for report in plan.not_cleaned if report.status is status]
        if reports:
            parts.append(_reasons_table(title, reports))
    doomed = _doomed(plan)
    if doomed:
        parts += [Text(RETENTION_ESTIMATE, "bold"), retention_table(doomed, SHOWN_LOGS)]
    parts += [Text(line) for line in _remarks(plan)]
    parts += [Text(line) for line in _space_lines(space)]
    parts += [Text(one_line(notice)) for notice in notices_of(plan)]
    parts += [Text(f"Warning: {one_line(warning)}", "bold") for warning in warnings]
    parts += [Text(f"A run would be refused: {one_line(why)}", "bold") for why in refusals]
    parts.append(Text(_summary(plan)))
    return Group(*parts)


def plan_document(
    plan: RoundPlan, space: SpaceFacts | None = None, refusals: Sequence[str] = ()
) -> JsonObject:
    """Everything that is known: the fields of the plan's JSON after those of the summary."""
    return {
        "as_of_ms": plan.as_of_ms,
        "as_of": iso_time(plan.as_of_ms),
        "totals": _totals(plan),
        "notices": list(notices_of(plan)),
        "refusals": list(refusals),
        "logs": [_taken(log, facts) for log, facts in zip(plan.logs, plan.facts, strict=False)],
        "not_taken": _not_taken(plan),
        "retention": [
            {
                "log_dir": log.log_dir,
                "topic": log.topic,
                "partition": log.partition,
                "high_watermark": log.limits.high_watermark,
                "retention_ms": log.limits.retention_ms,
                "retention_bytes": log.limits.retention_bytes,
                **retention_document(retention_report(log.estimate)),
            }
            for log in plan.retention
        ],
        "space": _space(plan, space),
        "checkpoint_repairs": [
            {"log_dir": log_dir, "topic": topic, "partition": partition, "offset": offset}
            for log_dir, entries in plan.checkpoint_repairs.items()
            for (topic, partition), offset in entries.items()
        ],
        "log_dirs": [_log_dir(log_dir) for log_dir in plan.log_dirs],
    }


def _logs_table(plan: RoundPlan, width: int) -> Table:
    wide = width >= WIDE
    several_dirs = len(plan.log_dirs) > 1
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("log", overflow="fold")
    headings = ["dirty", "dirty ratio", "to rewrite", "segments"] + (["offsets"] if wide else [])
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for log, facts in zip(plan.logs[:SHOWN_LOGS], plan.facts, strict=False):
        cleanable = facts.judgement.cleanable
        name = Text(printable(log.name))
        if several_dirs:
            name.append(f"\n{printable(log.log_dir)}", "dim")
        segments = log.segment_count
        cells = [
            size_text(cleanable.cleanable_bytes),
            f"{cleanable.ratio:.1%}" + (" overdue" if facts.judgement.compaction_delay_ms else ""),
            size_text(log.log_bytes),
            f"{segments:,} → {len(log.groups):,}",
        ]
        if wide:
            cells.append(f"{log.first_dirty_offset}–{log.first_uncleanable_offset}")
        table.add_row(name, *cells)
    if len(plan.logs) > SHOWN_LOGS:
        table.add_row(Text(f"… and {len(plan.logs) - SHOWN_LOGS:,} more ({_ALL})", "dim"))
    return table


def _reasons_table(title: str, reports: Sequence[LogReport]) -> Table:
    table = Table(
        title=Text(title, "bold"), title_justify="left", box=None, pad_edge=False, show_header=False
    )
    table.add_column(justify="right")
    table.add_column(overflow="fold")
    groups = group_reasons(reports)
    for group in groups[:SHOWN_REASONS]:
        names = ", ".join(printable(name) for name in group.names[:SHOWN_NAMES])
        more = len(group.names) - SHOWN_NAMES
        names += f" and {more:,} more" if more > 0 else ""
        table.add_row(
            f"{len(group.names):,}", Text(one_line(group.reason)).append(f"\n{names}", "dim")
        )
    if len(groups) > SHOWN_REASONS:
        rest = sum(len(group.names) for group in groups[SHOWN_REASONS:])
        table.add_row(f"{rest:,}", Text(f"for other reasons ({_ALL})", "dim"))
    return table


def _remarks(plan: RoundPlan) -> list[str]:
    """What else an operator should know before the round is run."""
    remarks = []
    for log_dir in plan.log_dirs:
        remarks += [
            f"{printable(log_dir.path)}: {printable(name)} is not looked at: {one_line(reason)}"
            for name, reason in log_dir.ignored[:SHOWN_NAMES]
        ]
        if len(log_dir.ignored) > SHOWN_NAMES:
            remarks.append(f"… and {len(log_dir.ignored) - SHOWN_NAMES:,} more ({_ALL})")
        repairs = len(plan.checkpoint_repairs.get(log_dir.path, {}))
        if repairs:
            where = f"cleaner checkpoint of {printable(log_dir.path)}"
            remarks.append(f"Impossible entries in the {where}, corrected by a run: {repairs:,}")
    noted = sum(1 for facts in plan.facts if facts.notes)
    if noted:
        note = next(facts.notes[0] for facts in plan.facts if facts.notes)
        remarks.append(f"Note on {noted:,} of the logs: {one_line(note)}")
    return remarks


def _doomed(plan: RoundPlan) -> list[LogReport]:
    """What retention would delete of the segments as they are, as reports that say nothing else."""
    return [
        LogReport(
            log_dir=log.log_dir,
            topic=log.topic,
            partition=log.partition,
            status=LogStatus.PASSED_OVER,
            retention=retention_report(log.estimate),
        )
        for log in plan.retention
        if log.estimate.by_rule
    ]


def _space(plan: RoundPlan, space: SpaceFacts | None) -> JsonObject | None:
    if space is None:
        return None
    rooms, found = space
    by_path = {log.path: log for log in plan.logs}
    return {
        "file_systems": [
            {
                "path": rooms[device].path,
                "need_bytes": need.bytes,
                "free_bytes": rooms[device].free_bytes,
                "need_files": need.files,
                "free_files": rooms[device].free_files,
            }
            for device, need in found.needs.items()
        ],
        "left_out": [
            {
                "log_dir": by_path[path].log_dir,
                "topic": by_path[path].topic,
                "partition": by_path[path].partition,
                "reason": reason,
            }
            for path, reason in found.left_out.items()
        ],
    }


def _space_lines(space: SpaceFacts | None) -> list[str]:
    """What a run needs of each file system; which logs it would leave out."""
    if space is None:
        return []
    rooms, found = space
    return [
        f"Room at {printable(rooms[device].path)}: up to {size_text(need.bytes)} needed at the "
        f"peak, {size_text(rooms[device].free_bytes)} free"
        for device, need in found.needs.items()
    ] + leaving_out(found)


def _summary(plan: RoundPlan) -> str:
    totals = _totals(plan)
    return (
        f"Logs: {totals['to_clean']:,} to clean, {totals['set_aside']:,} set aside, "
        f"{totals['passed_over']:,} passed over. "
        f"{size_text(totals['cleanable_bytes'])} dirty, {size_text(totals['rewrite_bytes'])} "
        "to read and rewrite."
    )


def _totals(plan: RoundPlan) -> dict[str, int]:
    statuses = [report.status for report in plan.not_cleaned]
    taken = plan.facts[: len(plan.logs)]
    return {
        "to_clean": len(plan.logs),
        "set_aside": statuses.count(LogStatus.SET_ASIDE),
        "passed_over": statuses.count(LogStatus.PASSED_OVER),
        "cleanable_bytes": sum(facts.judgement.cleanable.cleanable_bytes for facts in taken),
        "rewrite_bytes": sum(group.log_bytes for log in plan.logs for group in log.groups),
    }


def _log_dir(found: LogDirFacts) -> JsonObject:
    return {
        "path": found.path,
        "partitions": found.partitions,
        "has_clean_shutdown": found.has_clean_shutdown,
        "has_high_watermarks": found.has_high_watermarks,
        "ignored": [{"name": name, "reason": why} for name, why in found.ignored],
        "problem": found.problem,
    }


def _taken(log: LogPlan, facts: LogFacts) -> JsonObject:
    return {
        "log_dir": log.log_dir,
        "topic": log.topic,
        "partition": log.partition,
        **_judged(facts),
        "segments": log.segment_count,
        "groups": [
            {
                "base_offset": group.base_offset,
                "segments": [segment.base_offset for segment in group.segments],
                "log_bytes": group.log_bytes,
            }
            for group in log.groups
        ],
        "active_producers": len(log.active_producers),
        "notes": list(facts.notes),
    }


def _not_taken(plan: RoundPlan) -> list[JsonObject]:
    judged = {}
    for facts in plan.facts[len(plan.logs) :]:
        judgement = facts.judgement
        partition = judgement.partition
        judged[judgement.log_dir, partition.topic, partition.partition] = facts
    documents = []
    for report in plan.not_cleaned:
        facts_of = judged.get((report.log_dir, report.topic, report.partition))
        documents.append(
            {
                "log_dir": report.log_dir,
                "topic": report.topic,
                "partition": report.partition,
                "status": report.status.value,
                "reason": report.reason,
                **(_judged(facts_of) if facts_of else {}),
            }
        )
    return documents


def _judged(facts: LogFacts) -> JsonObject:
    """The numbers of selection, and what set each bound."""
    judgement = facts.judgement
    cleanable = judgement.cleanable
    return {
        "log_start_offset": judgement.offsets.log_start,
        "log_end_offset": judgement.log_end_offset,
        "last_stable_offset": judgement.last_stable_offset,
        "cleaner_checkpoint": judgement.offsets.cleaner,
        "first_dirty_offset": cleanable.first_dirty_offset,
        "first_dirty_set_by": judgement.first_dirty.set_by.value,
        "first_uncleanable_offset": cleanable.first_uncleanable_offset,
        "bounds": [
            {"name": bound.name.value, "offset": bound.offset, "cause": bound.cause}
            for bound in judgement.bounds
        ],
        "clean_bytes": cleanable.clean_bytes,
        "cleanable_bytes": cleanable.cleanable_bytes,
        "dirty_ratio": cleanable.ratio,
        "min_cleanable_dirty_ratio": judgement.config.min_cleanable_dirty_ratio,
        "max_compaction_lag_ms": judgement.config.max_compaction_lag_ms,
        "compaction_delay_ms": judgement.compaction_delay_ms,
    }
