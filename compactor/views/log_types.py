"""What stands in the documents of `doctor`, `report` and the commands on one log, as types.

And what those of several commands have in common.
"""

from typing import Any, Literal, NotRequired, TypedDict

from compactor.diagnosis.checks import Check
from compactor.offline_log.log_offsets import Ends, LogOffsets
from compactor.offline_log.truncate import AppendedRecord
from compactor.outcome.round_report import SegmentCounts
from compactor.reason_codes import ReasonCode
from compactor.verification.evidence import Soundness


class RetentionDocument(TypedDict):
    log_start: SegmentCounts
    size: SegmentCounts
    time: SegmentCounts


class LogRetentionDocument(RetentionDocument):
    log_start_offset: int | None


class ObstacleDocument(TypedDict):
    """What a run would end at, before it changes anything."""

    status: str
    exit_code: int
    reason_code: ReasonCode
    path: str | None
    errno: int | None
    problem: str
    remedy: str | None


class RunEndingDocument(TypedDict):
    """How a run with the same arguments would end now; without obstacles, by its logs."""

    status: str
    exit_code: int
    reason_code: ReasonCode
    obstacles: list[ObstacleDocument]


class CheckupDocument(TypedDict):
    """What a run needs, and what of it is not there; checks of a log directory stand with it."""

    counts: NotRequired[dict[Literal["ok", "warn", "fail"], int]]
    machine: NotRequired[list[Check]]
    run: NotRequired[list[Check]]


class LogChangeDocument(TypedDict):
    """A change of one log, or what it would be."""

    topic: NotRequired[str]
    partition: NotRequired[int]
    appended: NotRequired[list[AppendedRecord]]
    dry_run: NotRequired[bool]
    does: NotRequired[str]
    before: NotRequired[Ends]
    after: NotRequired[Ends]


class OneReportDocument(TypedDict):
    """One of several reports, by its file; it may be that of an older version."""

    file: str
    command: str
    status: str
    exit_code: int
    reason_code: str
    run_id: str
    host: str
    changed: NotRequired[bool]
    dry_run: NotRequired[bool]
    started_at: NotRequired[str]
    seconds: NotRequired[float]
    log_dirs: NotRequired[list[dict[str, Any]]]
    error: NotRequired[str]
    totals: NotRequired[dict[str, Any]]


class MergedReportsDocument(TypedDict):
    """Several reports, and what they come to."""

    totals: NotRequired[dict[str, Any]]
    reports: NotRequired[list[OneReportDocument]]


class ConcernedDocument(TypedDict):
    log_dir: str
    topic: str
    partition: int
    values: dict[str, float]


class MetConditionDocument(TypedDict):
    """A condition of --fail-if that holds, and the logs that it holds for."""

    condition: str
    logs: list[ConcernedDocument]


class ComparisonDocument(TypedDict):
    """A log directory held against a copy from before, in numbers."""

    before: str
    as_of_ms: int | None
    as_of: str
    as_of_is_clock_of_cleaning: bool
    partitions: int
    untouched_partitions: int
    unmatched_partitions: int
    partitions_sharing_files: int
    keys: int
    records_before: int
    records_after: int
    gone: dict[str, int]
    soundness: dict[Soundness, int]
    findings: int


class ComparedPartitionDocument(TypedDict):
    partition: str
    log_start_offset: int
    log_start_offset_before: int
    keys: int
    records_before: int
    records_after: int
    soundness: Soundness
    log_start_shown_by: str | None
    gone: dict[str, int]
    batches_of_disputed_transactions: int
    horizon_moments: int
    unreported_moments: int
    possible_removals: int
    appended_from: int | None
    checkpoint_missing: bool


class FindingDocument(TypedDict):
    """Something that is not as it should be."""

    path: str
    position: int | None
    problem: str
    reason_code: ReasonCode


_CHANGES = ("roll", "delete-records", "truncate", "append", "abort", "move")
OF_LOG_COMMANDS = {
    "doctor": CheckupDocument,
    "report": MergedReportsDocument,
    "log offsets": LogOffsets,
    **dict.fromkeys(
        (
            f"log {verb}"
            for verb in ("roll", "delete-records", "truncate", "append", "abort", "move")
        ),
        LogChangeDocument,
    ),
}
