"""Hold the outcome of a round as values, with the names that JSON has for them."""

from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from compactor.host.printable import counted
from compactor.outcome.json_values import (
    ALWAYS,
    FLAT,
    IN_SUMMARY,
    always_property,
    json_property,
    written,
)
from compactor.outcome.row_tables import arrow_table, html_table, pandas_frame, row_of
from compactor.outcome.start_problems import StartProblem
from compactor.reason_codes import ReasonCode, missing_first
from storage.kafka_versions import KafkaUse

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

REPORT_SCHEMA_VERSION = 2  # 1: -1 or 2^63-1 stood for none in some fields


class LogStatus(StrEnum):
    """What a round did with one log, or would do."""

    CLEANED = "cleaned"  # rewritten, swapped in, checkpointed
    WOULD_CLEAN = "would-clean"  # dry run: what a real run would do
    PASSED_OVER = "passed-over"  # not eligible; reason says why
    SET_ASIDE = "set-aside"  # eligible, but refused or damaged; left as it was; reason says why
    FAILED = "failed"  # an error that is not the data's: full disk, changed under us, lost task


class DroppedCounts(NamedTuple):
    """Records that went, by reason."""

    superseded: int
    tombstone: int
    null_key: int
    aborted: int
    marker: int


class RecordCounts(NamedTuple):
    read: int
    kept: int
    dropped: DroppedCounts


class BatchCounts(NamedTuple):
    read: int
    kept: int
    rebuilt: int
    emptied: int


@dataclass(frozen=True, slots=True)
class Counts:
    """What happened to the records and batches of one log, or of all. Numbers, not bytes."""

    JSON_NAMES: ClassVar = ("records", "batches")

    records_read: int = 0
    records_kept: int = 0
    dropped_superseded: int = 0  # a later record of the same key stands in the range
    dropped_tombstone: int = 0  # the latest of its key, without a value, past its delete horizon
    dropped_null_key: int = 0  # without a key
    dropped_aborted: int = 0  # of an aborted transaction
    dropped_marker: int = 0  # control records of transactions whose data is gone, past the horizon
    batches_read: int = 0
    batches_kept: int = 0  # verbatim or rebuilt, the empty ones among them
    batches_rebuilt: int = 0
    batches_emptied: int = 0  # kept as a header without records

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(getattr(self, n) + getattr(other, n) for n in self.__slots__))

    @property
    def records(self) -> RecordCounts:
        return RecordCounts(self.records_read, self.records_kept, self.dropped)

    @property
    def dropped(self) -> DroppedCounts:
        return DroppedCounts(
            superseded=self.dropped_superseded,
            tombstone=self.dropped_tombstone,
            null_key=self.dropped_null_key,
            aborted=self.dropped_aborted,
            marker=self.dropped_marker,
        )

    @property
    def batches(self) -> BatchCounts:
        return BatchCounts(
            read=self.batches_read,
            kept=self.batches_kept,
            rebuilt=self.batches_rebuilt,
            emptied=self.batches_emptied,
        )


@dataclass(frozen=True, slots=True)
class SegmentCounts:
    segments: int = 0
    bytes: int = 0  # of .log files

    def __add__(self, other: "SegmentCounts") -> "SegmentCounts":
        return SegmentCounts(self.segments + other.segments, self.bytes + other.bytes)


class RetentionCounts(NamedTuple):
    """What retention deleted of several logs, by the rule that said so."""

    log_start: SegmentCounts
    size: SegmentCounts
    time: SegmentCounts


@dataclass(frozen=True, slots=True)
class RetentionReport:
    """What retention deleted, by the rule that said so; in a dry run, what it would delete."""

    JSON_NAMES: ClassVar = ("log_start_offset", "log_start", "size", "time")

    log_start: SegmentCounts = SegmentCounts()
    size: SegmentCounts = SegmentCounts()
    time: SegmentCounts = SegmentCounts()
    log_start_offset: int | None = None  # afterwards; None: nothing went

    @property
    def deleted(self) -> SegmentCounts:
        return self.log_start + self.size + self.time

    @property
    def counts(self) -> RetentionCounts:
        return RetentionCounts(self.log_start, self.size, self.time)

    def __add__(self, other: "RetentionReport") -> "RetentionReport":
        """Add the counts; a sum over logs has no log start offset."""
        return RetentionReport(
            self.log_start + other.log_start, self.size + other.size, self.time + other.time
        )


@dataclass(frozen=True, slots=True)
class LogSections:
    """How large a log was when it was planned, by what could become of it. Bytes of .log files."""

    total_bytes: int
    clean_bytes: int = 0
    dirty_bytes: int = 0  # of inactive segments, those that wait among them
    held_bytes: int = 0  # of the dirty ones, those that a bound keeps from being cleaned


WHY_LOGS_GROW = (
    "batches that are written anew take more room where they were of format v0 or v1, or where "
    "their producer compressed better than Kafka's cleaner does"
)


LogKey = tuple[str, str, int]  # log directory, topic, partition


@dataclass(frozen=True, slots=True)
class LogReport:
    """What a round did with one log, or would do, and why not more."""

    JSON_NAMES: ClassVar = (
        *("log_dir", "topic", "partition", "status", "reason", "reason_code", "sections", "notes"),
        *("first_dirty_offset", "first_uncleanable_offset", "end_offset", "delete_retention_ms"),
        *("segments_before", "segments_after", "bytes_before", "bytes_after", "counts"),
        "retention",
    )

    log_dir: str
    topic: str
    partition: int
    status: LogStatus
    reason: str | None = None
    first_dirty_offset: int | None = None
    first_uncleanable_offset: int | None = None  # exclusive
    segments_before: int = 0  # of the rewritten range, as all of these
    segments_after: int = 0
    bytes_before: int = 0  # of .log files
    bytes_after: int = 0
    counts: Counts = field(default_factory=Counts, metadata=FLAT)
    # what was done otherwise than Kafka would, and why
    notes: tuple[str, ...] = field(default=(), metadata=written(attribute="all_notes"))
    # what went after the cleaning, and apart from it
    retention: RetentionReport = field(default_factory=RetentionReport)
    end_offset: int | None = None  # exclusive; what the map covered: the checkpoint after the round
    delete_retention_ms: int | None = None  # of its topic; None: the log was not looked into
    is_data_problem: bool = False  # set aside or failed for what is in its files
    reason_code: ReasonCode | None = None  # of a log that is not cleaned
    sections: LogSections | None = field(default=None, metadata=FLAT)  # None: not looked into

    @property
    def is_done(self) -> bool:
        """Whether it was cleaned, or would be."""
        return self.status in (LogStatus.CLEANED, LogStatus.WOULD_CLEAN)

    @property
    def all_notes(self) -> tuple[str, ...]:
        """The notes, and why the log grew, where it did."""
        growth = self.bytes_after - self.bytes_before
        if not self.is_done or growth <= 0:
            return self.notes
        return (*self.notes, f"larger by {growth:,} bytes: {WHY_LOGS_GROW}")

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def key(self) -> LogKey:
        return self.log_dir, self.topic, self.partition


# phases before the first task: what is done once for a machine, and the start of the engine
FIRST_USE, SESSION = "first-use", "session"
SESSION_END = "session-end"
OTHER = "other"  # what no other phase times: proofs, checkpoints, files of the work directory
_RATED = ("scan", "rewrite", "copy")
FEWEST_RATED_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class PhaseReport:
    """How long a step of the round took, and how many bytes of .log it worked through."""

    name: str  # survey, select, scan, resolve, rewrite, swap, ...
    seconds: float = field(metadata=written(digits=3))
    log_bytes: int

    @property
    @json_property
    def mb_per_second(self) -> float | None:
        """Return megabytes (10^6) of .log a second.

        None for a phase that works through none of them, as renames and the resolving of keys, and
        for one of so few that what is measured is the start of the workers.
        """
        is_rated = self.name in _RATED and self.log_bytes >= FEWEST_RATED_BYTES
        if not is_rated or self.seconds <= 0:
            return None
        return round(self.log_bytes / 1e6 / self.seconds, 1)


@dataclass(frozen=True, slots=True)
class EngineReport:
    """What ran the tasks of a round."""

    name: str  # local or spark
    tasks_at_once: int
    why: str  # it was this one


@dataclass(frozen=True, slots=True)
class OriginalsReport:
    """What a run has kept of what it replaced or deleted; the bytes are those of all files."""

    path: str  # the run's own directory
    files: int
    linked_bytes: int  # which take the room that they had, and free it once they are discarded
    copied_bytes: int  # which take as much once more


@dataclass(frozen=True, slots=True)
class CopyReport:
    """A log directory that was copied and cleaned in its copy; in a dry run, that would be."""

    source: str  # which is as it was
    path: str  # of the copy
    files: int  # that were copied, as all of these
    bytes: int
    needed_bytes: int  # of room for them: none where the file system shares the bytes of copies
    linked_bytes: int = 0  # of the bytes, in hard links to the original, which take no room
    manifest: str | None = None  # its path; None: a dry run
    why_not: str | None = None  # a broker may be started there; None: it may
    missing: tuple[str, ...] = ()  # logs that are not in the copy, and should be
    not_wanted: tuple[str, ...] = ()  # logs that were not asked for


@dataclass(frozen=True, slots=True)
class RunTotals:
    """Totals of the logs that were (or would be) cleaned; `logs` and `retention` count all."""

    logs: dict[LogStatus, int]
    segments_before: int
    segments_after: int
    bytes_before: int
    bytes_after: int
    counts: Counts = field(metadata=FLAT)
    retention: RetentionCounts


@dataclass(frozen=True, slots=True)
class CleaningReport:
    """What became of each log in one round, and how long the round took."""

    JSON_NAMES: ClassVar = (
        *(
            "dry_run",
            "seconds",
            "originals",
            "copies",
            "totals",
            "engine",
            "horizons_from_ms",
            "warnings",
        ),
        *("notices", "start_problems", "phases", "logs"),
    )

    version: str  # of this project
    run_id: str
    dry_run: bool = field(metadata=ALWAYS)
    as_of_ms: int  # the clock of every horizon and lag
    started_at_ms: int
    seconds: float = field(metadata=written(is_of_ending=True, is_in_summary=True, digits=3))
    # in the order of the round, then those passed over
    logs: tuple[LogReport, ...] = field(metadata=written(attribute="logs_missing_first"))
    phases: tuple[PhaseReport, ...]
    warnings: tuple[str, ...] = ()  # about no log, and yet to be looked at
    # None: none were to be kept
    originals: OriginalsReport | None = field(default=None, metadata=ALWAYS)
    notices: tuple[str, ...] = ()  # likewise, said each time
    # when new delete horizons begin; None: as_of_ms
    horizons_from_ms: int | None = field(
        default=None, metadata=written(attribute="horizons_begin_ms")
    )
    # where the logs are; none: they were cleaned in place
    copies: tuple[CopyReport, ...] = field(default=(), metadata=IN_SUMMARY)
    kafka: tuple[KafkaUse, ...] = ()  # whose answer was given, of each broker
    start_problems: tuple[StartProblem, ...] = ()  # what a broker's start does not do well with
    engine: EngineReport | None = field(default=None, metadata=ALWAYS)  # None: there was no task

    @property
    def done(self) -> list[LogReport]:
        """The logs that were cleaned, or would be."""
        return [log for log in self.logs if log.is_done]

    @property
    def logs_missing_first(self) -> list[LogReport]:
        return missing_first(self.logs)

    @property
    def horizons_begin_ms(self) -> int:
        return self.as_of_ms if self.horizons_from_ms is None else self.horizons_from_ms

    @property
    @always_property
    def totals(self) -> RunTotals:
        statuses, done = [log.status for log in self.logs], self.done
        return RunTotals(
            logs={status: statuses.count(status) for status in LogStatus},
            segments_before=sum(log.segments_before for log in done),
            segments_after=sum(log.segments_after for log in done),
            bytes_before=sum(log.bytes_before for log in done),
            bytes_after=sum(log.bytes_after for log in done),
            counts=sum((log.counts for log in done), Counts()),
            retention=sum((log.retention for log in self.logs), RetentionReport()).counts,
        )

    @property
    def start_seconds(self) -> float:
        """Until the engine was ready, without what only the first run of a machine does."""
        return self._seconds_of(SESSION)

    @property
    def work_seconds(self) -> float:
        """Of all that a start of the engine, and a first run, do not take."""
        return self.seconds - self._seconds_of(SESSION) - self._seconds_of(FIRST_USE)

    def _seconds_of(self, name: str) -> float:
        return sum(phase.seconds for phase in self.phases if phase.name == name)

    def rows(self) -> list[dict[str, Any]]:
        """Of its logs: the names are those of the JSON report where it has them."""
        return [_row_of(log) for log in self.logs]

    def to_arrow(self) -> "pa.Table":
        """A row for each log."""
        return arrow_table(self.rows())

    def to_pandas(self) -> "pd.DataFrame":
        """Make a data frame of the logs; ImportError without pandas."""
        return pandas_frame(self.rows())

    def _repr_html_(self) -> str:
        what = "Dry run" if self.dry_run else "Run"
        return html_table(f"{what} {self.run_id}: {counted(len(self.logs), 'log')}", self.rows())


def _row_of(log: LogReport) -> dict[str, Any]:
    row = row_of(log)
    counts, sections = row.pop("counts"), row.pop("sections")
    del row["is_data_problem"]
    return {**row, **(sections or dict.fromkeys(_SECTIONS)), **counts}


_SECTIONS = [field.name for field in fields(LogSections)]
