"""What stands in the documents of endings, as types: the JSON Schema is made of these.

A field that is not required is absent from a summary, or where a command was not asked for it.
"""

from typing import Literal, NotRequired, TypedDict

from compactor.broker_start.values import StartProblem
from compactor.diagnosis.checks import Check
from compactor.inspection.inspection import LogInspection
from compactor.originals.undo import UndoReport
from compactor.planning.remedies import Remedy
from compactor.reason_codes import ReasonCode
from compactor.round_report import CopyReport, LogStatus, OriginalsReport, SegmentCounts
from compactor.stopped_log.log_offsets import LogOffsets
from compactor.views.log_types import (
    OF_LOG_COMMANDS,
    ComparedPartition,
    Comparison,
    Finding,
    LogRetention,
    MetCondition,
    Retention,
    RunEnding,
)
from compactor.views.plan_types import Plan

Status = Literal["ok", "failed", "usage", "refused", "partial", "condition", "interrupted"]
Value = int | float | str | bool


class Ignored(TypedDict):
    name: str
    reason: str


class LogDir(TypedDict):
    """Of some commands with what they have looked at there."""

    path: str
    partitions: NotRequired[int]
    has_clean_shutdown: NotRequired[bool]
    has_high_watermarks: NotRequired[bool]
    ignored: NotRequired[list[Ignored]]
    foreign: NotRequired[list[str]]
    problem: NotRequired[str | None]
    clean_shutdown: NotRequired[bool]
    removed: NotRequired[list[str]]
    checks: NotRequired[list[Check]]


class Setting(TypedDict):
    value: Value | None  # None: of an unknown setting, which may be a secret
    source: str
    is_known: NotRequired[bool]  # of `configs`: a Kafka that is known has it
    note: NotRequired[str | None]  # of `configs`: why it has no effect


class Configuration(TypedDict):
    include: str | None
    exclude: str | None
    assume_fully_replicated: bool
    producer_id_expiration_ms: int
    topics: dict[str, dict[str, Setting]]


class Kafka(TypedDict):
    """Whose answer was given, for the logs of these directories."""

    version: str
    release: str
    why: str
    log_dirs: list[str]


class Ending(TypedDict):
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
    kafka: NotRequired[list[Kafka]]  # none: the command needs no version, or ended before
    log_dirs: list[LogDir]
    configuration: NotRequired[Configuration | None]
    run_would_end: NotRequired[RunEnding | None]  # of `plan`, also where it fails, and of `doctor`


class Dropped(TypedDict):
    superseded: int
    tombstone: int
    null_key: int
    aborted: int
    marker: int


class Records(TypedDict):
    read: int
    kept: int
    dropped: Dropped


class Batches(TypedDict):
    read: int
    kept: int
    rebuilt: int
    emptied: int


class RunTotals(TypedDict):
    logs: dict[LogStatus, int]
    segments_before: int
    segments_after: int
    bytes_before: int
    bytes_after: int
    records: Records
    batches: Batches
    retention: Retention


class RunLog(TypedDict):
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
    records: Records
    batches: Batches
    retention: LogRetention


class Phase(TypedDict):
    name: str
    seconds: float
    log_bytes: int
    mb_per_second: float | None


class Run(TypedDict):
    """A run that came to its end, dry or real."""

    dry_run: bool
    totals: RunTotals
    originals: OriginalsReport | None
    copies: NotRequired[list[CopyReport]]
    horizons_from_ms: NotRequired[int]
    conditions_met: NotRequired[list[MetCondition]]
    phases: NotRequired[list[Phase]]
    logs: NotRequired[list[RunLog]]
    warnings: NotRequired[list[str]]
    notices: NotRequired[list[str]]
    start_problems: NotRequired[list[StartProblem]]


class RecoveryTotals(TypedDict):
    partitions: int
    recovered: int
    set_aside: int
    finished: int
    undone: int
    removed: int
    rebuilt: int
    truncated: int


class RecoveredLog(TypedDict):
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


class Recovery(TypedDict):
    """A recovery."""

    totals: RecoveryTotals
    logs: NotRequired[list[RecoveredLog]]
    notices: NotRequired[list[str]]
    start_problems: NotRequired[list[StartProblem]]


class UndoTotals(TypedDict):
    logs: dict[str, int]
    segments: int
    bytes: int


class Undo(TypedDict):
    """What a run kept, brought back or discarded."""

    dry_run: NotRequired[bool]
    totals: NotRequired[UndoTotals]
    logs: NotRequired[list[UndoReport]]
    discarded: NotRequired[str]
    start_problems: NotRequired[list[StartProblem]]
    undone_run: NotRequired[str]


class VerificationTotals(TypedDict):
    partitions: int
    segments: int
    batches: int
    records: int
    log_bytes: int
    findings: int


class Verification(TypedDict):
    """A verification."""

    totals: NotRequired[VerificationTotals]
    notices: NotRequired[list[str]]
    findings: NotRequired[list[Finding]]
    against: NotRequired[Comparison]
    partitions: NotRequired[list[ComparedPartition]]


class Bound(TypedDict):
    name: str
    value: float | None  # a dirty ratio is no whole number
    set_by: str


class Section(TypedDict):
    """A part of a log: what is clean, dirty, has to wait, or is in the active segment."""

    name: str
    start_offset: int
    end_offset: int
    size_bytes: int


class Explanation(TypedDict):
    """Why one log is cleaned or not."""

    log_dir: NotRequired[str]
    topic: NotRequired[str]
    partition: NotRequired[int]
    outcome: NotRequired[str]
    verdict: NotRequired[str]
    reason: NotRequired[str | None]
    log_reason_code: NotRequired[ReasonCode | None]
    remedy: NotRequired[Remedy | None]
    sections: NotRequired[list[Section]]
    bounds: NotRequired[list[Bound]]
    retention: NotRequired[LogRetention]
    notes: NotRequired[list[str]]
    notices: NotRequired[list[str]]
    warnings: NotRequired[list[str]]
    start_problems: NotRequired[list[StartProblem]]


class TopicSettings(TypedDict):
    topic: str
    is_deleted: bool
    broker: str | None
    settings: dict[str, Setting]


class Configs(TypedDict):
    """The settings of topics."""

    topics: NotRequired[list[TopicSettings]]


class Inspections(TypedDict):
    """What stands in logs."""

    logs: NotRequired[list[LogInspection]]
    warnings: NotRequired[list[str]]


# what a type is called in the schema, where that is not its name
NAMES: dict[type, str] = {
    CopyReport: "Copy",
    OriginalsReport: "Originals",
    SegmentCounts: "Segments",
    UndoReport: "UndoneLog",
}
PARTIAL = (LogOffsets,)  # every field may be absent
# of a command that came to its end; an error has the fields of every ending alone
OF_COMMANDS = {
    "run": Run,
    "plan": Plan,
    "recover": Recovery,
    "undo": Undo,
    "verify": Verification,
    "explain": Explanation,
    "configs": Configs,
    "inspect": Inspections,
    **OF_LOG_COMMANDS,
}
