"""The types of the documents that commands end with; the JSON Schema is made of these.

A value that is shown as it is has its own type. An object that exists in a document alone has a
type whose name ends with `Document`.

A field that is not required is absent from a summary, or where a command was not asked for it.
`report.schema.json` beside this module is what comes out; a test holds the two together, and
`python -m compactor.views.report_types` writes it.
"""

import os
from typing import Any, Literal, NotRequired, TypedDict

from compactor.diagnosis.checks import Check
from compactor.inspection.explain import NamedBound
from compactor.inspection.inspection import LogInspection
from compactor.offline_log.log_offsets import Ends, LogOffsets
from compactor.offline_log.truncate import AppendedRecord
from compactor.originals.undo import UndoReport
from compactor.outcome.round_report import (
    REPORT_SCHEMA_VERSION,
    CopyReport,
    LogStatus,
    OriginalsReport,
    SegmentCounts,
)
from compactor.outcome.start_problems import StartProblem
from compactor.planning.expected import Expected
from compactor.planning.outcomes import Standing
from compactor.planning.remedies import Remedy
from compactor.reason_codes import ReasonCode
from compactor.verification.evidence import Soundness
from compactor.views.json_values import Schema
from compactor.views.report_json import JsonObject, to_text
from storage.files.local import LOCAL


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
    """What a run needs, and what is missing; checks of a log directory stand with it."""

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
    """A report of several, by its file; it may be that of an older version."""

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


SCHEMA_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "report.schema.json")
Status = Literal["ok", "failed", "usage", "refused", "partial", "condition", "interrupted"]
Value = int | float | str | bool


class IgnoredDocument(TypedDict):
    name: str
    reason: str


class LogDirDocument(TypedDict):
    """A log directory; some commands add what they have seen in it."""

    path: str
    partitions: NotRequired[int]
    has_clean_shutdown: NotRequired[bool]
    has_high_watermarks: NotRequired[bool]
    ignored: NotRequired[list[IgnoredDocument]]
    foreign: NotRequired[list[str]]
    problem: NotRequired[str | None]
    clean_shutdown: NotRequired[bool]
    removed: NotRequired[list[str]]
    checks: NotRequired[list[Check]]


class SettingDocument(TypedDict):
    value: Value | None  # None: of an unknown setting, which may be a secret
    source: str
    is_known: NotRequired[bool]  # of `configs`: a Kafka that is known has it
    note: NotRequired[str | None]  # of `configs`: why it has no effect


class ConfigurationDocument(TypedDict):
    include: str | None
    exclude: str | None
    assume_fully_replicated: bool
    producer_id_expiration_ms: int
    topics: dict[str, dict[str, SettingDocument]]


class KafkaDocument(TypedDict):
    """Which Kafka's answer a command followed, for the logs of these directories."""

    version: str
    release: str
    why: str
    log_dirs: list[str]


class EndingDocument(TypedDict):
    """Every ending of every command."""

    schema_version: Literal[2]
    command: str
    status: Status
    exit_code: int
    reason_code: ReasonCode
    error: NotRequired[str]
    changed: bool
    run_id: str
    version: str
    host: str
    started_at_ms: int
    started_at: str
    seconds: float
    as_of_ms: int | None
    as_of: str | None
    kafka: NotRequired[list[KafkaDocument]]  # none: the command needs no version, or ended before
    log_dirs: list[LogDirDocument]
    configuration: NotRequired[ConfigurationDocument | None]
    run_would_end: NotRequired[
        RunEndingDocument | None
    ]  # of `plan`, also where it fails, and of `doctor`


class DroppedDocument(TypedDict):
    superseded: int
    tombstone: int
    null_key: int
    aborted: int
    marker: int


class RecordsDocument(TypedDict):
    read: int
    kept: int
    dropped: DroppedDocument


class BatchesDocument(TypedDict):
    read: int
    kept: int
    rebuilt: int
    emptied: int


class RunTotalsDocument(TypedDict):
    logs: dict[LogStatus, int]
    segments_before: int
    segments_after: int
    bytes_before: int
    bytes_after: int
    records: RecordsDocument
    batches: BatchesDocument
    retention: RetentionDocument


class RunLogDocument(TypedDict):
    log_dir: str
    topic: str
    partition: int
    status: LogStatus
    reason: str | None
    reason_code: ReasonCode | None
    total_bytes: int | None
    clean_bytes: int | None
    dirty_bytes: int | None
    held_bytes: int | None
    notes: list[str]
    first_dirty_offset: int | None
    first_uncleanable_offset: int | None
    end_offset: int | None
    delete_retention_ms: int | None
    segments_before: int
    segments_after: int
    bytes_before: int
    bytes_after: int
    records: RecordsDocument
    batches: BatchesDocument
    retention: LogRetentionDocument


class PhaseDocument(TypedDict):
    name: str
    seconds: float
    log_bytes: int
    mb_per_second: float | None


class RunDocument(TypedDict):
    """A run that came to its end, dry or real."""

    dry_run: bool
    totals: RunTotalsDocument
    originals: OriginalsReport | None
    copies: NotRequired[list[CopyReport]]
    horizons_from_ms: NotRequired[int]
    conditions_met: NotRequired[list[MetConditionDocument]]
    phases: NotRequired[list[PhaseDocument]]
    logs: NotRequired[list[RunLogDocument]]
    warnings: NotRequired[list[str]]
    notices: NotRequired[list[str]]
    start_problems: NotRequired[list[StartProblem]]


class RecoveryTotalsDocument(TypedDict):
    partitions: int
    recovered: int
    set_aside: int
    finished: int
    undone: int
    removed: int
    rebuilt: int
    truncated: int


class RecoveredLogDocument(TypedDict):
    log_dir: str
    topic: str
    partition: int
    finished: list[str]
    undone: list[str]
    removed: list[str]
    rebuilt: list[str]
    truncated: str | None
    problem: str | None
    reason_code: ReasonCode | None


class RecoveryDocument(TypedDict):
    """A recovery."""

    totals: RecoveryTotalsDocument
    logs: NotRequired[list[RecoveredLogDocument]]
    notices: NotRequired[list[str]]
    start_problems: NotRequired[list[StartProblem]]


class UndoTotalsDocument(TypedDict):
    logs: dict[str, int]
    segments: int
    bytes: int


class UndoDocument(TypedDict):
    """What a run kept, brought back or discarded."""

    dry_run: NotRequired[bool]
    totals: NotRequired[UndoTotalsDocument]
    logs: NotRequired[list[UndoReport]]
    discarded: NotRequired[str]
    start_problems: NotRequired[list[StartProblem]]
    undone_run: NotRequired[str]


class VerificationTotalsDocument(TypedDict):
    partitions: int
    segments: int
    batches: int
    records: int
    log_bytes: int
    findings: int


class VerificationDocument(TypedDict):
    """A verification."""

    totals: NotRequired[VerificationTotalsDocument]
    notices: NotRequired[list[str]]
    findings: NotRequired[list[FindingDocument]]
    against: NotRequired[ComparisonDocument]
    partitions: NotRequired[list[ComparedPartitionDocument]]


class SectionDocument(TypedDict):
    """A part of a log: what is clean, dirty, has to wait, or is in the active segment."""

    name: str
    start_offset: int
    end_offset: int
    size_bytes: int


class ExplanationDocument(TypedDict):
    """Why one log is cleaned or not."""

    log_dir: NotRequired[str]
    topic: NotRequired[str]
    partition: NotRequired[int]
    outcome: NotRequired[str]
    verdict: NotRequired[str]
    reason: NotRequired[str | None]
    log_reason_code: NotRequired[ReasonCode | None]
    remedy: NotRequired[Remedy | None]
    sections: NotRequired[list[SectionDocument]]
    bounds: NotRequired[list[NamedBound]]
    retention: NotRequired[LogRetentionDocument]
    notes: NotRequired[list[str]]
    notices: NotRequired[list[str]]
    warnings: NotRequired[list[str]]
    start_problems: NotRequired[list[StartProblem]]


class TopicSettingsDocument(TypedDict):
    topic: str
    is_deleted: bool
    broker: str | None
    settings: dict[str, SettingDocument]


class ConfigsDocument(TypedDict):
    """The settings of topics."""

    topics: NotRequired[list[TopicSettingsDocument]]


class InspectionsDocument(TypedDict):
    """What stands in logs."""

    logs: NotRequired[list[LogInspection]]
    warnings: NotRequired[list[str]]


# what a type is called in the schema, where that is not its name
NAMES: dict[type, str] = {
    CopyReport: "Copy",
    Expected: "PlanExpected",
    NamedBound: "Bound",
    OriginalsReport: "Originals",
    SegmentCounts: "Segments",
    UndoReport: "UndoneLog",
}
PARTIAL = (LogOffsets,)  # every field may be absent
_CHANGES = ("roll", "delete-records", "truncate", "append", "abort", "move")
# of a command that came to its end; an error has the fields of every ending alone
OF_COMMANDS = {
    "run": RunDocument,
    "plan": PlanDocument,
    "recover": RecoveryDocument,
    "undo": UndoDocument,
    "verify": VerificationDocument,
    "explain": ExplanationDocument,
    "configs": ConfigsDocument,
    "inspect": InspectionsDocument,
    "doctor": CheckupDocument,
    "report": MergedReportsDocument,
    "log offsets": LogOffsets,
    **dict.fromkeys((f"log {verb}" for verb in _CHANGES), LogChangeDocument),
}


def report_schema() -> JsonObject:
    """Return the schema, draft 2020-12. New fields may come: it forbids none."""
    schema = Schema(NAMES, PARTIAL)
    ending = schema.of(EndingDocument)
    rest = [
        {
            "if": {
                "properties": {"command": {"const": command}, "error": False},
                "required": ["command"],
            },
            "then": schema.of(type_),
        }
        for command, type_ in OF_COMMANDS.items()
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What a command of log-compactor ends with",
        "version": REPORT_SCHEMA_VERSION,
        "allOf": [ending, *rest],
        "$defs": schema.parts,
    }


def write_schema() -> None:
    """Write the file again after a change of the types."""
    LOCAL.replace_file(SCHEMA_FILE, to_text(report_schema()).encode())


if __name__ == "__main__":
    write_schema()
