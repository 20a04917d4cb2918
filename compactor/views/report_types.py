"""The types of the documents that commands end with; the JSON Schema is made of these.

A value that is shown as it is has its own type. An object that exists in a document alone has a
type whose name ends with `Document`.

A field that is not required is absent from a summary, or where a command was not asked for it.
`report.schema.json` beside this module is what comes out; a test holds the two together, and
`python -m compactor.views.report_types` writes it.
"""

import os
from dataclasses import is_dataclass
from typing import NotRequired, TypedDict

from compactor.diagnosis.checks import Checkup
from compactor.inspection.explain import Explanation, NamedBound
from compactor.inspection.inspection import Inspection
from compactor.offline_log.log_offsets import LogOffsets
from compactor.originals.undo import UndoReport
from compactor.outcome.json_values import Schema
from compactor.outcome.round_report import (
    REPORT_SCHEMA_VERSION,
    CopyReport,
    LogStatus,
    OriginalsReport,
    RetentionReport,
    SegmentCounts,
)
from compactor.outcome.start_problems import StartProblem
from compactor.planning.expected import Expected
from compactor.planning.outcomes import Standing
from compactor.reason_codes import ReasonCode
from compactor.recovery.log_dir_recovery import LogRecovery
from compactor.verification.verify_against import Compared
from compactor.views.configs_table import ConfigsDocument
from compactor.views.ending import EndingDocument
from compactor.views.merged_table import MergedReportsDocument
from compactor.views.one_log import LogChangeDocument
from compactor.views.recovery_report import RecoveryDocument
from compactor.views.report_json import JsonObject, to_text
from compactor.views.undo_report import UndoDocument
from compactor.views.verification_report import VerificationDocument
from compactor.watching.conditions import Met
from storage.files.local import LOCAL


class RetentionDocument(TypedDict):
    log_start: SegmentCounts
    size: SegmentCounts
    time: SegmentCounts


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


class PlanRetentionDocument(RetentionDocument):
    log_start_offset: int | None
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
    conditions_met: NotRequired[list[Met]]
    warnings: NotRequired[list[str]]
    notices: NotRequired[list[str]]
    start_problems: NotRequired[list[StartProblem]]


SCHEMA_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "report.schema.json")


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
    retention: RetentionReport


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
    conditions_met: NotRequired[list[Met]]
    phases: NotRequired[list[PhaseDocument]]
    logs: NotRequired[list[RunLogDocument]]
    warnings: NotRequired[list[str]]
    notices: NotRequired[list[str]]
    start_problems: NotRequired[list[StartProblem]]


# what a type is called in the schema, where that is not its name
NAMES: dict[type, str] = {
    Compared: "ComparedPartition",
    CopyReport: "Copy",
    Expected: "PlanExpected",
    Inspection: "Inspections",
    LogRecovery: "RecoveredLog",
    Met: "MetCondition",
    NamedBound: "Bound",
    OriginalsReport: "Originals",
    RetentionReport: "LogRetention",
    SegmentCounts: "Segments",
    UndoReport: "UndoneLog",
}
_CHANGES = ("roll", "delete-records", "truncate", "append", "abort", "move")
# of a command that came to its end; an error has the fields of every ending alone
OF_COMMANDS = {
    "run": RunDocument,
    "plan": PlanDocument,
    "recover": RecoveryDocument,
    "undo": UndoDocument,
    "verify": VerificationDocument,
    "explain": Explanation,
    "configs": ConfigsDocument,
    "inspect": Inspection,
    "doctor": Checkup,
    "report": MergedReportsDocument,
    "log offsets": LogOffsets,
    **dict.fromkeys((f"log {verb}" for verb in _CHANGES), LogChangeDocument),
}


def report_schema() -> JsonObject:
    """Return the schema, draft 2020-12. New fields may come: it forbids none."""
    schema = Schema(NAMES, [type_ for type_ in OF_COMMANDS.values() if is_dataclass(type_)])
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
