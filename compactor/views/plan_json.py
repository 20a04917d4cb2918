"""A round's plan as JSON, whole: what is taken on, what is not, and how large every log is."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from cleaner_jobs.messages import LogPlan
from compactor.host.printable import iso_time
from compactor.outcome.round_report import LogStatus
from compactor.planning.expected import Estimates, Expected, expected_document
from compactor.planning.inventory import Extent, LogSize, by_standing, by_topic, sort_key_of
from compactor.planning.log_retention import retention_report
from compactor.planning.round_plan import LogDirFacts, LogFacts, RoundPlan, notices_of
from compactor.planning.space import SpaceFacts
from compactor.settings.rules import Order
from compactor.views.report_json import JsonObject, retention_document
from storage.formats.kafka_settings import MAX_LONG


def plan_document(
    plan: RoundPlan,
    space: SpaceFacts | None = None,
    refusals: Sequence[str] = (),
    order: Order = Order.GAIN,
) -> JsonObject:
    """Everything that is known: the fields of the plan's JSON after those of the summary.

    order: of the topics; logs stand in the order of the round.
    """
    sizes = {(size.log_dir, size.topic, size.partition): size for size in plan.inventory}
    return {
        "as_of_ms": plan.as_of_ms,
        "as_of": iso_time(plan.as_of_ms),
        "totals": plan_totals(plan),
        "notices": list(notices_of(plan)),
        "refusals": list(refusals),
        "standings": {
            standing.value: _extent(extent)
            for standing, extent in by_standing(plan.inventory).items()
        },
        "topics": _topics(plan, order),
        "logs": [
            _taken(log, facts, sizes) for log, facts in zip(plan.logs, plan.facts, strict=False)
        ],
        "not_taken": _not_taken(plan, sizes),
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


def plan_totals(plan: RoundPlan) -> dict[str, int]:
    statuses = [report.status for report in plan.not_cleaned]
    taken = plan.facts[: len(plan.logs)]
    return {
        "to_clean": len(plan.logs),
        "set_aside": statuses.count(LogStatus.SET_ASIDE),
        "passed_over": statuses.count(LogStatus.PASSED_OVER),
        "cleanable_bytes": sum(facts.judgement.cleanable.cleanable_bytes for facts in taken),
        "rewrite_bytes": sum(group.log_bytes for log in plan.logs for group in log.groups),
    }


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


def _log_dir(facts: LogDirFacts) -> JsonObject:
    return {
        "path": facts.path,
        "partitions": facts.partitions,
        "has_clean_shutdown": facts.has_clean_shutdown,
        "has_high_watermarks": facts.has_high_watermarks,
        "ignored": [{"name": name, "reason": why} for name, why in facts.ignored],
        "foreign": list(facts.foreign),
        "problem": facts.problem,
    }


def _topics(plan: RoundPlan, order: Order) -> list[JsonObject]:
    key = sort_key_of(order)
    found = sorted(by_topic(plan.inventory).items(), key=lambda item: (*key(item[1]), item[0]))
    return [{"topic": topic, **_extent(extent)} for topic, extent in found]


def _extent(extent: Extent) -> JsonObject:
    return {
        "logs": extent.logs,
        "to_clean": extent.logs_to_clean,
        "total_bytes": extent.total_bytes,
        "dirty_bytes": extent.dirty_bytes,
        "gain_bytes": extent.gain_bytes,
        "held_bytes": extent.held_bytes,
        "held_by": extent.held_by,
    }


class Planned(Protocol):
    """A plan, with what is expected of its run."""

    @property
    def round_plan(self) -> RoundPlan: ...
    @property
    def expected(self) -> Expected: ...
    @property
    def estimates(self) -> Estimates | None: ...


_Sizes = Mapping[tuple[str, str, int], LogSize]


def _size(size: LogSize) -> JsonObject:
    return {
        "standing": size.standing.value,
        "total_bytes": size.total_bytes,
        "dirty_bytes": size.dirty_bytes,
        "gain_bytes": size.gain_bytes,
        "held_bytes": size.held_bytes,
        "held_by": size.held_by,
        "dirty_since_ms": size.dirty_since_ms,
    }


def _taken(log: LogPlan, facts: LogFacts, sizes: _Sizes) -> JsonObject:
    return {
        "log_dir": log.log_dir,
        "topic": log.topic,
        "partition": log.partition,
        **_size(sizes[log.log_dir, log.topic, log.partition]),
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


def _not_taken(plan: RoundPlan, sizes: _Sizes) -> list[JsonObject]:
    judged = {}
    for facts in plan.facts[len(plan.logs) :]:
        judgement = facts.judgement
        partition = judgement.partition
        judged[judgement.log_dir, partition.topic, partition.partition] = facts
    documents = []
    for report in plan.not_cleaned:
        key = report.log_dir, report.topic, report.partition
        facts_of = judged.get(key)
        documents.append(
            {
                "log_dir": report.log_dir,
                "topic": report.topic,
                "partition": report.partition,
                "status": report.status.value,
                "reason": report.reason,
                "reason_code": report.reason_code,
                **_size(sizes[key]),
                **(_judged(facts_of) if facts_of else {}),
            }
        )
    return documents


def _judged(facts: LogFacts) -> JsonObject:
    """The numbers of selection, and what set each bound."""
    judgement = facts.judgement
    cleanable = judgement.cleanable
    max_lag_ms = judgement.config.max_compaction_lag_ms
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
        "max_compaction_lag_ms": None if max_lag_ms == MAX_LONG else max_lag_ms,
        "compaction_delay_ms": judgement.compaction_delay_ms,
    }


def estimates_document(plan: Planned) -> JsonObject:
    """How long a run would take, and what a sample says would go: of all logs, and of each."""
    estimates = [
        {
            "log_dir": log.log_dir,
            "topic": log.topic,
            "partition": log.partition,
            **(plan.estimates or {})[log.path]._asdict(),
        }
        for log in plan.round_plan.logs
        if plan.estimates is not None
    ]
    return {"expected": expected_document(plan.expected), "estimates": estimates}
