"""What stands in the document of a plan, as types."""

from typing import NotRequired, TypedDict

from compactor.broker_start.values import StartProblem
from compactor.outcome.round_report import LogStatus
from compactor.planning.expected import Expected
from compactor.planning.outcomes import Standing
from compactor.reason_codes import ReasonCode
from compactor.views.log_types import LogRetentionDocument, MetConditionDocument


class PlanTotalsDocument(TypedDict):
    to_clean: int
    set_aside: int
    passed_over: int
    cleanable_bytes: int
    rewrite_bytes: int


class ExtentDocument(TypedDict):
    logs: int
    to_clean: int
    total_bytes: int
    dirty_bytes: int
    gain_bytes: int
    held_bytes: int
    held_by: str | None


class TopicExtentDocument(ExtentDocument):
    topic: str


class OffsetBoundDocument(TypedDict):
    name: str
    offset: int
    cause: str


class SegmentGroupDocument(TypedDict):
    base_offset: int
    segments: list[int]
    log_bytes: int


class PlanLogDocument(TypedDict):
    log_dir: str
    topic: str
    partition: int
    standing: Standing
    total_bytes: int
    dirty_bytes: int | None
    gain_bytes: int
    held_bytes: int
    held_by: str | None
    dirty_since_ms: int | None
    log_start_offset: NotRequired[int]
    log_end_offset: NotRequired[int | None]
    last_stable_offset: NotRequired[int | None]
    cleaner_checkpoint: NotRequired[int | None]
    first_dirty_offset: NotRequired[int]
    first_dirty_set_by: NotRequired[str]
    first_uncleanable_offset: NotRequired[int]
    bounds: NotRequired[list[OffsetBoundDocument]]
    clean_bytes: NotRequired[int]
    cleanable_bytes: NotRequired[int]
    dirty_ratio: NotRequired[float]
    min_cleanable_dirty_ratio: NotRequired[float]
    max_compaction_lag_ms: NotRequired[int | None]  # None: no limit
    compaction_delay_ms: NotRequired[int]
    segments: NotRequired[int]
    groups: NotRequired[list[SegmentGroupDocument]]
    active_producers: NotRequired[int]
    notes: NotRequired[list[str]]


class LogNotTakenDocument(PlanLogDocument):
    status: LogStatus
    reason: str | None
    reason_code: ReasonCode | None


class PlanEstimateDocument(TypedDict):
    log_dir: str
    topic: str
    partition: int
    least: float | None
    most: float | None
    read_bytes: int
    problem: str | None


class PlanRetentionDocument(LogRetentionDocument):
    log_dir: str
    topic: str
    partition: int
    high_watermark: int | None
    retention_ms: int | None
    retention_bytes: int | None


class FileSystemNeedDocument(TypedDict):
    path: str
    need_bytes: int
    free_bytes: int
    need_files: int
    free_files: int


class LeftOutDocument(TypedDict):
    log_dir: str
    topic: str
    partition: int
    reason: str


class SpaceDocument(TypedDict):
    file_systems: list[FileSystemNeedDocument]
    left_out: list[LeftOutDocument]


class CheckpointRepairDocument(TypedDict):
    log_dir: str
    topic: str
    partition: int
    offset: int


class PlanDocument(TypedDict):
    """A plan."""

    totals: PlanTotalsDocument
    logs: NotRequired[list[PlanLogDocument]]
    not_taken: NotRequired[list[LogNotTakenDocument]]
    topics: NotRequired[list[TopicExtentDocument]]
    standings: NotRequired[dict[Standing, ExtentDocument]]
    expected: NotRequired[Expected]
    estimates: NotRequired[list[PlanEstimateDocument]]
    refusals: NotRequired[list[str]]
    retention: NotRequired[list[PlanRetentionDocument]]
    space: NotRequired[SpaceDocument | None]
    checkpoint_repairs: NotRequired[list[CheckpointRepairDocument]]
    conditions_met: NotRequired[list[MetConditionDocument]]
    warnings: NotRequired[list[str]]
    notices: NotRequired[list[str]]
    start_problems: NotRequired[list[StartProblem]]
