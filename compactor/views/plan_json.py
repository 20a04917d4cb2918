"""A round's plan as JSON, whole: what is taken on, what is not, and how large every log is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from cleaner_jobs.messages import LogPlan, SegmentGroup
from compactor.outcome.json_values import ALWAYS, FLAT, IN_SUMMARY, MAY_LACK, OF_ENDING, written
from compactor.outcome.round_report import LogKey, LogStatus, RetentionReport
from compactor.outcome.start_problems import StartProblem
from compactor.planning.expected import Estimate, Estimates, Expected
from compactor.planning.inventory import Extent, LogSize, by_standing, by_topic, sort_key_of
from compactor.planning.log_retention import LogRetention, retention_report
from compactor.planning.outcomes import Standing
from compactor.planning.round_plan import LogDirFacts, LogFacts, RoundPlan, notices_of
from compactor.planning.selection import Bound, DirtyFrom
from compactor.planning.space import SpaceFacts
from compactor.reason_codes import ReasonCode
from compactor.settings.rules import Order
from storage.formats.kafka_settings import MAX_LONG


class PlanTotals(NamedTuple):
    to_clean: int
    set_aside: int
    passed_over: int
    cleanable_bytes: int
    rewrite_bytes: int

    @classmethod
    def of(cls, plan: RoundPlan) -> "PlanTotals":
        statuses = [report.status for report in plan.not_cleaned]
        taken = plan.facts[: len(plan.logs)]
        return cls(
            to_clean=len(plan.logs),
            set_aside=statuses.count(LogStatus.SET_ASIDE),
            passed_over=statuses.count(LogStatus.PASSED_OVER),
            cleanable_bytes=sum(facts.judgement.cleanable.cleanable_bytes for facts in taken),
            rewrite_bytes=sum(group.log_bytes for log in plan.logs for group in log.groups),
        )


@dataclass(frozen=True, slots=True)
class TopicExtentDocument:
    topic: str
    extent: Extent = field(metadata=FLAT)


class SegmentGroupDocument(NamedTuple):
    base_offset: int
    segments: list[int]
    log_bytes: int

    @classmethod
    def of(cls, group: SegmentGroup) -> "SegmentGroupDocument":
        bases = [segment.base_offset for segment in group.segments]
        return cls(group.base_offset, bases, group.log_bytes)


class JudgedDocument(NamedTuple):
    """The numbers of selection, and what set each bound."""

    log_start_offset: int
    log_end_offset: int | None
    last_stable_offset: int | None
    cleaner_checkpoint: int | None
    first_dirty_offset: int
    first_dirty_set_by: DirtyFrom
    first_uncleanable_offset: int
    bounds: Sequence[Bound]
    clean_bytes: int
    cleanable_bytes: int
    dirty_ratio: float
    min_cleanable_dirty_ratio: float
    max_compaction_lag_ms: int | None  # None: no limit
    compaction_delay_ms: int

    @classmethod
    def of(cls, facts: LogFacts) -> "JudgedDocument":
        judgement = facts.judgement
        cleanable = judgement.cleanable
        max_lag_ms = judgement.config.max_compaction_lag_ms
        return cls(
            log_start_offset=judgement.offsets.log_start,
            log_end_offset=judgement.log_end_offset,
            last_stable_offset=judgement.last_stable_offset,
            cleaner_checkpoint=judgement.offsets.cleaner,
            first_dirty_offset=cleanable.first_dirty_offset,
            first_dirty_set_by=judgement.first_dirty.set_by,
            first_uncleanable_offset=cleanable.first_uncleanable_offset,
            bounds=judgement.bounds,
            clean_bytes=cleanable.clean_bytes,
            cleanable_bytes=cleanable.cleanable_bytes,
            dirty_ratio=cleanable.ratio,
            min_cleanable_dirty_ratio=judgement.config.min_cleanable_dirty_ratio,
            max_compaction_lag_ms=None if max_lag_ms == MAX_LONG else max_lag_ms,
            compaction_delay_ms=judgement.compaction_delay_ms,
        )


@dataclass(frozen=True, slots=True)
class PlanFactsDocument:
    """What is known of a log; of one that is not taken on, no group, and none of the others."""

    size: LogSize = field(metadata=FLAT)
    judged: JudgedDocument | None = field(metadata=written(is_flat=True, may_lack=True))
    segments: int | None = field(default=None, metadata=MAY_LACK)
    groups: Sequence[SegmentGroupDocument] | None = field(default=None, metadata=MAY_LACK)
    active_producers: int | None = field(default=None, metadata=MAY_LACK)
    notes: Sequence[str] | None = field(default=None, metadata=MAY_LACK)


@dataclass(frozen=True, slots=True)
class PlanLogDocument:
    log_dir: str
    topic: str
    partition: int
    facts: PlanFactsDocument = field(metadata=FLAT)


@dataclass(frozen=True, slots=True)
class LogNotTakenDocument:
    log_dir: str
    topic: str
    partition: int
    status: LogStatus
    reason: str | None
    reason_code: ReasonCode | None
    facts: PlanFactsDocument = field(metadata=FLAT)


@dataclass(frozen=True, slots=True)
class PlanEstimateDocument:
    log_dir: str
    topic: str
    partition: int
    estimate: Estimate = field(metadata=FLAT)


@dataclass(frozen=True, slots=True)
class PlanRetentionDocument:
    log_dir: str
    topic: str
    partition: int
    high_watermark: int | None
    retention_ms: int | None
    retention_bytes: int | None
    retention: RetentionReport = field(metadata=FLAT)

    @classmethod
    def of(cls, log: LogRetention) -> "PlanRetentionDocument":
        return cls(
            log_dir=log.log_dir,
            topic=log.topic,
            partition=log.partition,
            high_watermark=log.limits.high_watermark,
            retention_ms=log.limits.retention_ms,
            retention_bytes=log.limits.retention_bytes,
            retention=retention_report(log.estimate),
        )


class FileSystemNeedDocument(NamedTuple):
    path: str
    need_bytes: int
    free_bytes: int
    need_files: int
    free_files: int | None


class LeftOutDocument(NamedTuple):
    log_dir: str
    topic: str
    partition: int
    reason: str


class SpaceDocument(NamedTuple):
    file_systems: list[FileSystemNeedDocument]
    left_out: list[LeftOutDocument]


class CheckpointRepairDocument(NamedTuple):
    log_dir: str
    topic: str
    partition: int
    offset: int


class PlannedRun(Protocol):
    """A plan, with what is expected of its run."""

    @property
    def round_plan(self) -> RoundPlan: ...
    @property
    def space(self) -> SpaceFacts | None: ...
    @property
    def refusals(self) -> Sequence[str]: ...
    @property
    def warnings(self) -> Sequence[str]: ...
    @property
    def start_problems(self) -> Sequence[StartProblem]: ...
    @property
    def expected(self) -> Expected: ...
    @property
    def estimates(self) -> Estimates | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDocument:
    """A plan."""

    totals: PlanTotals = field(metadata=ALWAYS)
    notices: Sequence[str]
    refusals: Sequence[str]
    standings: Mapping[Standing, Extent]
    topics: Sequence[TopicExtentDocument]
    logs: Sequence[PlanLogDocument]
    not_taken: Sequence[LogNotTakenDocument]
    retention: Sequence[PlanRetentionDocument]
    space: SpaceDocument | None
    checkpoint_repairs: Sequence[CheckpointRepairDocument]
    log_dirs: Sequence[LogDirFacts] = field(metadata=OF_ENDING)
    warnings: Sequence[str] = field(metadata=IN_SUMMARY)
    start_problems: Sequence[StartProblem]
    expected: Expected
    estimates: Sequence[PlanEstimateDocument]


def plan_document(planned: PlannedRun, order: Order = Order.GAIN) -> PlanDocument:
    """Everything that is known: the fields of the plan's JSON after those of the summary.

    order: of the topics; logs stand in the order of the round.
    """
    plan, estimates = planned.round_plan, planned.estimates or {}
    sizes = {size.key: size for size in plan.inventory}
    return PlanDocument(
        totals=PlanTotals.of(plan),
        notices=tuple(notices_of(plan)),
        refusals=planned.refusals,
        standings=by_standing(plan.inventory),
        topics=_topics(plan, order),
        logs=[_taken(log, facts, sizes) for log, facts in zip(plan.logs, plan.facts, strict=False)],
        not_taken=_not_taken(plan, sizes),
        retention=[PlanRetentionDocument.of(log) for log in plan.retention],
        space=_space(plan, planned.space),
        checkpoint_repairs=[
            CheckpointRepairDocument(log_dir, topic, partition, offset)
            for log_dir, entries in plan.checkpoint_repairs.items()
            for (topic, partition), offset in entries.items()
        ],
        log_dirs=plan.log_dirs,
        warnings=planned.warnings,
        start_problems=planned.start_problems,
        expected=planned.expected,
        estimates=[
            PlanEstimateDocument(*log.key, estimates[log.path])
            for log in (plan.logs if planned.estimates is not None else ())
        ],
    )


_Sizes = Mapping[LogKey, LogSize]


def _taken(log: LogPlan, facts: LogFacts, sizes: _Sizes) -> PlanLogDocument:
    known = PlanFactsDocument(
        size=sizes[log.key],
        judged=JudgedDocument.of(facts),
        segments=log.segment_count,
        groups=[SegmentGroupDocument.of(group) for group in log.groups],
        active_producers=len(log.active_producers),
        notes=facts.notes,
    )
    return PlanLogDocument(*log.key, known)


def _not_taken(plan: RoundPlan, sizes: _Sizes) -> list[LogNotTakenDocument]:
    judged = {facts.key: JudgedDocument.of(facts) for facts in plan.facts[len(plan.logs) :]}
    return [
        LogNotTakenDocument(
            *report.key,
            status=report.status,
            reason=report.reason,
            reason_code=report.reason_code,
            facts=PlanFactsDocument(size=sizes[report.key], judged=judged.get(report.key)),
        )
        for report in plan.not_cleaned
    ]


def _topics(plan: RoundPlan, order: Order) -> list[TopicExtentDocument]:
    key = sort_key_of(order)
    found = sorted(by_topic(plan.inventory).items(), key=lambda item: (*key(item[1]), item[0]))
    return [TopicExtentDocument(topic, extent) for topic, extent in found]


def _space(plan: RoundPlan, space: SpaceFacts | None) -> SpaceDocument | None:
    if space is None:
        return None
    rooms, found = space
    by_path = {log.path: log for log in plan.logs}
    needs = [(rooms[device], need) for device, need in found.needs.items()]
    left_out = [(by_path[path], reason) for path, reason in found.left_out.items()]
    return SpaceDocument(
        [
            FileSystemNeedDocument(
                path=room.path,
                need_bytes=need.bytes,
                free_bytes=room.free_bytes,
                need_files=need.files,
                free_files=room.free_files,
            )
            for room, need in needs
        ],
        [LeftOutDocument(*log.key, why) for log, why in left_out],
    )
