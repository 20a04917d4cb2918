"""What stands in the document of a plan, as types."""

from typing import NotRequired, TypedDict

from compactor.broker_start.values import StartProblem
from compactor.planning.outcomes import Standing
from compactor.reason_codes import ReasonCode
from compactor.round_report import LogStatus
from compactor.views.log_types import LogRetention, MetCondition


class PlanTotals(TypedDict):
    to_clean: int
    set_aside: int
    passed_over: int
    cleanable_bytes: int
    rewrite_bytes: int


class Extent(TypedDict):
    logs: int
    to_clean: int
    total_bytes: int
    dirty_bytes: int
    gain_bytes: int
    held_bytes: int
    held_by: str | None


class TopicExtent(Extent):
    topic: str


class OffsetBound(TypedDict):
    name: str
    offset: int
    cause: str


class SegmentGroup(TypedDict):
    base_offset: int
    segments: list[int]
    log_bytes: int


class PlanLog(TypedDict):
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
    bounds: NotRequired[list[OffsetBound]]
    clean_bytes: NotRequired[int]
    cleanable_bytes: NotRequired[int]
    dirty_ratio: NotRequired[float]
    min_cleanable_dirty_ratio: NotRequired[float]
    max_compaction_lag_ms: NotRequired[int | None]  # None: no limit
    compaction_delay_ms: NotRequired[int]
    segments: NotRequired[int]
    groups: NotRequired[list[SegmentGroup]]
    active_producers: NotRequired[int]
    notes: NotRequired[list[str]]


class LogNotTaken(PlanLog):
    status: LogStatus
    reason: str | None
    reason_code: ReasonCode | None


class PlanExpected(TypedDict):
    """Of a run over the logs that a plan takes on; of bytes, where it has a sample."""

    seconds: float
    runs: int
    least_bytes: int | None
    most_bytes: int | None
    read_bytes: int
    untold: int


class PlanEstimate(TypedDict):
    log_dir: str
    topic: str
    partition: int
    least: float | None
    most: float | None
    read_bytes: int
    problem: str | None


class PlanRetention(LogRetention):
    log_dir: str
    topic: str
    partition: int
    high_watermark: int | None
    retention_ms: int | None
    retention_bytes: int | None


class FileSystemNeed(TypedDict):
    path: str
    need_bytes: int
    free_bytes: int
    need_files: int
    free_files: int


class LeftOut(TypedDict):
    log_dir: str
    topic: str
    partition: int
    reason: str


class Space(TypedDict):
    file_systems: list[FileSystemNeed]
    left_out: list[LeftOut]


class CheckpointRepair(TypedDict):
    log_dir: str
    topic: str
    partition: int
    offset: int


class Plan(TypedDict):
    """A plan."""

    totals: PlanTotals
    logs: NotRequired[list[PlanLog]]
    not_taken: NotRequired[list[LogNotTaken]]
    topics: NotRequired[list[TopicExtent]]
    standings: NotRequired[dict[Standing, Extent]]
    expected: NotRequired[PlanExpected]
    estimates: NotRequired[list[PlanEstimate]]
    refusals: NotRequired[list[str]]
    retention: NotRequired[list[PlanRetention]]
    space: NotRequired[Space | None]
    checkpoint_repairs: NotRequired[list[CheckpointRepair]]
    conditions_met: NotRequired[list[MetCondition]]
    warnings: NotRequired[list[str]]
    notices: NotRequired[list[str]]
    start_problems: NotRequired[list[StartProblem]]
