"""What an inspection finds in logs: the values that it returns."""

from dataclasses import dataclass, field
from typing import NamedTuple

from compactor.outcome.json_values import OF_ENDING, json_property, written


class BatchKind(NamedTuple):
    """The batches of one format and codec."""

    format: str  # v0, v1, v2
    codec: str
    batches: int
    bytes: int
    records: int


class SizeClass(NamedTuple):
    """A count of keys between two sizes, or two numbers of versions, both included."""

    least: int
    greatest: int
    members: int


class TombstoneKind(NamedTuple):
    """The tombstones of one section of a log with one kind of delete horizon."""

    section: str  # clean, dirty, uncleanable
    horizon: str  # none, ahead, passed, legacy: formats v0 and v1 have none
    records: int
    bytes: int


class Tombstones(NamedTuple):
    """The records with a key and no value, but for those of aborted transactions."""

    records: int
    bytes: int  # of records, not compressed
    latest_of_their_keys: int | None  # None: of a sample nobody knows
    oldest_ms: int | None  # by timestamp
    newest_ms: int | None
    earliest_removal_ms: int | None  # before that none can go; None: none ever, as it stands
    why: tuple[str, ...]  # why they are still there
    kinds: tuple[TombstoneKind, ...]


class Keys(NamedTuple):
    """The keys of a log, without records of aborted transactions."""

    keys: int
    live_keys: int  # whose latest record is no tombstone
    records: int  # with a key
    bytes: int  # of these records, not compressed
    live_bytes: int  # of the latest record of each live key
    versions: tuple[SizeClass, ...]  # how many keys have how many records

    @property
    @json_property
    def duplicates(self) -> int:
        """Records that a later one of the same key supersedes."""
        return self.records - self.keys


class HeavyKey(NamedTuple):
    """A key with most versions or most bytes."""

    key: str | None  # as text, or in hex; None: it could not be read
    is_hex: bool
    versions: int
    bytes: int
    latest_offset: int


class BlockingTransaction(NamedTuple):
    """A transaction without a marker: nothing from its first offset on is cleaned."""

    producer_id: int
    producer_epoch: int
    transactional_id: str | None  # None: no __transaction_state here tells it
    first_offset: int
    last_ms: int | None  # of the last record that its producer wrote; None: it has no time
    age_ms: int | None  # since then
    blocked_bytes: int  # of .log, from its first offset to the end


@dataclass(frozen=True, slots=True, kw_only=True)
class LogInspection:
    """What stands in one log."""

    log_dir: str
    topic: str
    partition: int
    segments: int
    bytes: int  # of .log
    read_bytes: int  # fewer than bytes in a sample
    problem: str | None  # why the log could not be read; then nothing below counts
    plan: str  # what a round would do with it, and why
    batches: int
    records: int  # of data
    record_bytes: int  # not compressed
    control_records: int
    aborted_records: int
    null_keys: int
    empty_batches: int
    first_ms: int | None  # of the earliest and the latest timestamp of a record
    last_ms: int | None
    kinds: tuple[BatchKind, ...]
    batch_sizes: tuple[SizeClass, ...]
    record_sizes: tuple[SizeClass, ...]
    greatest_batch: int | None
    greatest_record: int | None
    tombstones: Tombstones
    keys: Keys
    most_versions: tuple[HeavyKey, ...]
    most_bytes: tuple[HeavyKey, ...]
    open_transactions: tuple[BlockingTransaction, ...]
    gains_nothing: bool  # from compaction: no duplicate, no tombstone, nothing aborted

    # of __consumer_offsets: by bytes, versions are records
    heavy_groups: tuple[HeavyKey, ...] = ()
    heavy_topics: tuple[HeavyKey, ...] = ()

    @property
    @json_property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    @json_property
    def is_sample(self) -> bool:
        """Whether a part of it was read; then every count is of that part."""
        return self.read_bytes < self.bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What stands in logs."""

    logs: tuple[LogInspection, ...]  # by topic, then partition, then log directory
    as_of_ms: int = field(metadata=OF_ENDING)
    seconds: float = field(metadata=written(is_of_ending=True, digits=3))
    warnings: tuple[str, ...] = ()
