"""Values that the driver and the tasks of a cleaning round send to each other.

A log's plan stays in the driver. A task finds its own values in a JSON file of the run's work
directory. It returns rows: a kind, and a value as a JSON array. No value stands for one record or
one batch: a part stands for up to a million records. This module loads neither numpy nor kernels.
"""

import functools
import json
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from io import BufferedWriter
from types import UnionType
from typing import Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from storage.errors import CorruptFileError
from storage.file_names import LOG, Segment, file_name
from storage.files.descriptors import naming
from storage.files.files import Disk, Entry
from storage.files.local import LOCAL
from storage.formats.txn_index import AbortedTxn
from storage.kafka_versions import NEWEST, KafkaVersion


class ActiveProducer(NamedTuple):
    """What the log knows of a producer whose id has not expired (spec C-10.1)."""

    producer_id: int
    producer_epoch: int
    last_data_offset: int | None  # None: only a marker was seen in this epoch


@dataclass(frozen=True, slots=True)
class SegmentGroup:
    """Adjacent segments that become one segment, named after the first (spec C-9, C-14.1)."""

    segments: tuple[Segment, ...]

    @property
    def base_offset(self) -> int:
        return self.segments[0].base_offset

    @property
    def log_bytes(self) -> int:
        return sum([segment.log_bytes for segment in self.segments])


@dataclass(frozen=True, slots=True)
class LogPlan:
    """One log of a round: what is to be read and rewritten, and by which settings."""

    log_id: int  # the place in the round, dirtiest first
    log_dir: str
    topic: str
    partition: int
    path: str  # the partition directory
    first_dirty_offset: int
    first_uncleanable_offset: int  # exclusive; a segment's base offset
    groups: tuple[SegmentGroup, ...]
    delete_retention_ms: int
    index_interval_bytes: int
    segment_index_bytes: int
    active_producers: tuple[ActiveProducer, ...]
    segment_bytes: int = 2**31 - 1
    log_start_offset: int = 0
    txn_index_base_offsets: tuple[int, ...] = ()  # of all segments whose `.txnindex` has entries
    # base offset and entries of segments whose `.txnindex` a broker would rebuild, file or not
    rebuilt_txn_indexes: tuple[tuple[int, tuple[AbortedTxn, ...]], ...] = ()
    notes: tuple[str, ...] = ()  # what was done to the log before this round
    limited_map_end_offset: int | None = None  # exclusive; None: the map took everything
    files: tuple[Entry, ...] = ()  # of the log, as they were when the round was planned
    legacy_horizon_ms: int = 0  # legacy tombstones go from segments no younger than that (C-6.1)
    kafka: KafkaVersion = NEWEST  # whose answer is given
    max_record_bytes: int | None = None  # of a compressed batch, decompressed; None: no limit
    # an empty batch that ends there, exclusive, stays; None: where the round ends
    kept_end_offset: int | None = None

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def key(self) -> tuple[str, str, int]:
        return self.log_dir, self.topic, self.partition

    @property
    def kept_end(self) -> int:
        """Return where a batch ends that stays although it is empty, exclusive (V-2)."""
        if self.kept_end_offset is None:
            return self.first_uncleanable_offset
        return self.kept_end_offset

    @property
    def segment_count(self) -> int:
        """Return how many segments are read and rewritten, as log_bytes does."""
        return sum(len(group.segments) for group in self.groups)

    @property
    def log_bytes(self) -> int:
        return sum([group.log_bytes for group in self.groups])

    @property
    def end_offset(self) -> int:
        """Return what the map covers, exclusive: the checkpoint after the round (C-6.3)."""
        if self.limited_map_end_offset is None:
            return self.first_uncleanable_offset
        return self.limited_map_end_offset

    def sources_of(self, group: int) -> "tuple[Source, ...]":
        """Return the `.log` files of a segment group."""
        return tuple(
            Source(
                path=f"{self.path}/{file_name(segment.base_offset, LOG)}",
                base_offset=segment.base_offset,
                log_bytes=segment.log_bytes,
                log_mtime_ns=segment.log_mtime_ns,
                log_inode=segment.log_inode,
                log_ctime_ns=segment.log_ctime_ns,
                log_device=segment.log_device,
            )
            for segment in self.groups[group].segments
        )


PROBLEM, PART, VERDICT, REWRITTEN = "problem", "part", "verdict", "rewritten"  # kinds of rows
MAP_END = "map-end"
# stages; those after the first of a kind do it again, for some of the logs
SCAN, PARTIAL_SCAN, RESCAN = "scan", "partial-scan", "rescan"
FILL_MAP = "fill-map"
RESOLVE, RESOLVE_AGAIN = "resolve", "resolve-again"
REWRITE = "rewrite"  # its rows are also partial results
INSPECT, MERGE = "inspect", "merge"  # stages of an inspection, and the kinds of their rows
MAP = "map"  # the stage that calls a function for each value, and the kind of its rows
FINGERPRINT_RANGE = 1 << 64  # sums of fingerprints are taken modulo this
ENTRY_BYTES = 24  # of a map entry in a part's file
_BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id"

Row = tuple[str, str]  # kind, and the value as a JSON array
T = TypeVar("T")
Value = TypeVar("Value")  # a named tuple or a dataclass


class WrongMessageError(Exception):
    """What was sent is no value of the class that is expected: a fault of this program."""


class RoundSettings(NamedTuple):
    """What every task of the round must know. The hash key makes these files private."""

    run_id: str
    work_dir: str
    now_ms: int
    hash_key_low: int
    hash_key_high: int
    dry_run: bool
    horizons_from_ms: int | None = None  # the time of cleaning; None: now_ms is that
    io_limit: int | None = None  # bytes a second that are read and written on each host
    nice: int | None = None  # of the processes of tasks


class Source(NamedTuple):
    """A segment's `.log` as it was when the round was planned."""

    path: str
    base_offset: int
    log_bytes: int
    log_mtime_ns: int
    log_inode: int
    log_ctime_ns: int
    log_device: int  # as the driver's host has it

    @classmethod
    def of(cls, path: str, base_offset: int, found: Entry) -> "Source":
        """Return the file at path as it was found."""
        times = found.mtime_ns, found.inode, found.ctime_ns, found.device
        return cls(path, base_offset, found.size_bytes, *times)


class Stretch(NamedTuple):
    """A run of whole batches of one segment."""

    log_id: int
    group: int  # number of the segment group in its log
    segment: int  # number of the segment in its group
    start: int  # position in the file
    end: int  # exclusive
    source: Source
    first_dirty_offset: int
    map_end_offset: int  # exclusive: what the map of the round covers
    hash_partition_bits: int  # the log's keys are spread over 2 ** so many hash partitions
    aborted_file: str = ""  # of the log: ranges of txn_batches; "" where nothing is aborted
    legacy_expired: bool = False  # its legacy tombstones are past their horizon (C-6.1)
    ends_part: bool = False  # what comes after it is another part
    max_record_bytes: int | None = None  # of a compressed batch, decompressed; None: no limit


class PartSection(NamedTuple):
    """The records of one segment that a part covers."""

    segment: int
    start: int  # position in the file
    end: int
    first_ordinal: int  # in the part
    first_offset: int  # of the first batch
    last_offset: int  # of the last batch
    heads: int  # sum of what its batches begin with: offsets, sizes, leader epochs, checksums


class Part(NamedTuple):
    """What a scan task found in consecutive stretches of one group, and where it left the details.

    In file at block_at, one after another: map entries, where each hash partition starts in
    them, a checksum for each hash partition's entries, a state byte for each record, a TXN_BATCH
    for each transactional or control batch.
    """

    log_id: int
    group: int
    file: str
    block_at: int
    block_checksum: int  # of all but the entries
    entries: int
    survivors: int  # records that may survive; the other entries are in the map alone
    hash_partition_bits: int
    first_record_offset: int  # entries are relative to it
    log_bytes: int
    batches: int
    records: int
    superseded: int  # within the part
    null_keys: int
    expired: int  # at most: tombstones past their horizon, unless another part supersedes them
    aborted: int
    control_records: int
    txn_batches: int
    txn_at: int  # where they stand in file
    txn_checksum: int
    survivor_fingerprints: int  # sum, modulo 2^64
    tombstones_without_horizon: int  # of batches that must get one if such a record stays
    empty_batches: int
    sections: tuple[PartSection, ...]
    legacy_batches: int = 0
    codecs: int = 0  # of its batches: a bit for each, 1 << its id
    builds: Sequence[str] = ()  # the CodecBuilds of the process that has read it


class Verdict(NamedTuple):
    """What a resolve task decided for one hash partition of one log, and where it wrote it.

    In file at block_at: for each part, and once more, four uint64: where its ordinals start, their
    checksum, how many of its records are dropped and the sum of their fingerprints; then the
    ordinals (uint32) of the records that another part supersedes.
    """

    log_id: int
    hash_partition: int
    file: str
    block_at: int
    parts: int  # of the log
    superseded: int
    expired: int
    dropped_fingerprints: int  # of both


class Piece(NamedTuple):
    """Consecutive parts of one group that one task rewrites, and what it is to leave.

    Where a group has one piece, the task finishes the destination segment itself, unless it has
    come out too long for one.
    """

    log_id: int
    group: int
    number: int
    of: int  # pieces of the group
    parts: tuple[Part, ...]
    first_part: int  # number of parts[0] among the parts of the log, as the verdicts know it
    sources: tuple[Source, ...]  # those of the group that the parts are of; of one piece, all
    txn_index_file: str = ""  # what its `.txnindex` is to be; "" where it is to have none
    changes_markers: bool = False  # whether a control batch of the group is not to be copied
    discardable_file: str = ""  # base offsets of control batches that may go; "" where none may
    first_source: int = 0  # number of sources[0] among those of the group, as sections know it


class MapEnd(NamedTuple):
    """Where the map of a log ends, exclusive, if it takes no more than so many keys."""

    log_id: int
    offset: int


class LogRules(NamedTuple):
    """What a rewrite task must know of a log."""

    log_id: int
    path: str  # the partition directory
    kept_end_offset: int  # an empty batch that ends there, exclusive, stays
    delete_retention_ms: int
    index_interval_bytes: int
    segment_index_bytes: int
    active_producers: tuple[ActiveProducer, ...]
    verdicts: tuple[Verdict, ...]  # of all its hash partitions
    directory_inode: int | None = None  # of path: nothing is staged in another; None: in any


class Rewritten(NamedTuple):
    """What a rewrite task made of a piece."""

    log_id: int
    group: int
    number: int
    left_in_place: bool = False  # the one segment of the group would come out as it is
    log_file: str = ""  # staged, or "" where nothing was written
    index_file: str = ""
    time_index_file: str = ""
    txn_index_file: str = ""  # where the driver joins, or cuts: not staged, what it wrote itself
    facts_file: str = ""  # where the driver joins, or cuts: BATCH_FACTS, to make the indexes of
    log_bytes: int = 0
    log_checksum: int = 0
    records_kept: int = 0
    control_records_kept: int = 0
    kept_fingerprints: int = 0
    dropped: int = 0  # records that go by the verdicts
    dropped_fingerprints: int = 0
    batches_kept: int = 0
    batches_rebuilt: int = 0
    batches_emptied: int = 0
    sparse_indexes: bool = False  # made to fit segment.index.bytes, where Kafka stops
    legacy_emptied: int = 0  # of the emptied batches: legacy ones
    refused: int = 0  # of the rebuilt batches: those that Kafka's builder refuses (C-11.14)
    index_checksums: tuple[int, ...] = ()  # of those index files that are staged, in their order
    builds: Sequence[str] = ()  # the CodecBuilds of the process that has written it
    facts_checksum: int = 0

    @property
    def staged_files(self) -> tuple[str, ...]:
        """Return what goes live as it is, the log first; nothing where the driver joins or cuts."""
        if self.facts_file:
            return ()
        files = self.log_file, self.index_file, self.time_index_file, self.txn_index_file
        return tuple(filter(None, files))


class TaskProblem(NamedTuple):
    """Why a log cannot be cleaned, as it crosses from a task to the driver."""

    log_id: int
    code: str  # a reason code
    path: str  # "": none
    position: int  # -1: none
    problem: str
    errno: int | None = None  # of the operating system; None: it has not said so
    is_proof: bool = False  # the driver's: the counts of the tasks contradict one another


def plain(value: Any) -> Any:
    """Return what JSON can hold of a value, and `value_of` makes the same value of.

    A dataclass becomes the list of its fields, as JSON makes one of a named tuple by itself.
    """
    if is_dataclass(value):
        return [plain(getattr(value, each.name)) for each in fields(value)]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    return value


def value_of(kind: type[Value], values: object) -> Value:
    """Return the value of a class that JSON has made a list of, and those in it.

    Raise WrongMessageError where the list has not exactly the fields of the class, with their
    types. Field by field, so that a value of another class, or of another state of the source, is
    never taken for one.
    """
    of_class: Any = kind
    decoders = _decoders(of_class)
    if not isinstance(values, list) or len(values) != len(decoders):
        raise WrongMessageError(f"not the fields of {kind.__name__}: {values!r}")
    decoded = [decode(value) for decode, value in zip(decoders, values, strict=True)]
    if is_dataclass(kind):
        names = [each.name for each in fields(kind)]
        return kind(**dict(zip(names, decoded, strict=True)))
    value: Value = of_class._make(decoded)
    return value


@functools.cache
def _decoders(kind: Any) -> tuple[Callable[[Any], Any], ...]:
    """Return what makes each field of a value of what JSON has made of it."""
    types = get_type_hints(kind)
    names = [each.name for each in fields(kind)] if is_dataclass(kind) else kind._fields
    return tuple(_decoder(types[name]) for name in names)


def _decoder(of_field: Any) -> Callable[[Any], Any]:
    if isinstance(of_field, UnionType):
        return _decoder_of_union(of_field)
    items = get_args(of_field)
    if not items:
        return _decoder_of_class(of_field)
    if get_origin(of_field) in (dict, Mapping):
        of_value = _decoder(items[1])
        return lambda values: {
            _checked(str, key): of_value(value) for key, value in _checked(dict, values).items()
        }
    of_items = [_decoder(item) for item in items if item is not ...]
    if get_origin(of_field) is tuple and ... not in items:
        return lambda values: tuple(
            [decode(value) for decode, value in _paired(of_items, _checked(list, values))]
        )
    (of_item,) = of_items
    return lambda values: tuple([of_item(value) for value in _checked(list, values)])


def _decoder_of_union(of_field: UnionType) -> Callable[[Any], Any]:
    kinds = get_args(of_field)
    others = [kind for kind in kinds if kind is not type(None)]
    if all(isinstance(kind, type) and kind in _PLAIN for kind in others):
        return functools.partial(_checked, kinds)
    (other,) = others
    decode = _decoder(other)
    return lambda value: None if value is None else decode(value)


def _decoder_of_class(of_field: Any) -> Callable[[Any], Any]:
    if hasattr(of_field, "_fields") or is_dataclass(of_field):
        return functools.partial(value_of, of_field)
    if issubclass(of_field, Enum):
        return functools.partial(_member, of_field)
    return functools.partial(_checked, of_field)


_PLAIN = (str, int, float, bool)


def _paired(
    decoders: Sequence[Callable[[Any], Any]], values: Sequence[Any]
) -> "zip[tuple[Callable[[Any], Any], Any]]":
    if len(values) != len(decoders):
        raise WrongMessageError(f"not of length {len(decoders)}: {values!r}")
    return zip(decoders, values, strict=True)


def _member(kind: type[Enum], value: object) -> Enum:
    try:
        return kind(value)
    except ValueError:
        raise WrongMessageError(f"no {kind.__name__}: {value!r}") from None


def _checked(kinds: Any, value: T) -> T:
    if not isinstance(value, kinds):
        raise WrongMessageError(f"not of type {kinds}: {value!r}")
    return value


def io_limit_file(work_dir: str) -> str:
    """Return the path of the file through which the processes of this host share `--io-limit`.

    It holds a time of a clock that begins with each boot, so its name has the host and the boot.
    """
    return os.path.join(work_dir, f"io-limit-{socket.gethostname()}-{_boot_id()}")


@functools.cache
def _boot_id() -> str:
    try:
        return LOCAL.read_bytes(_BOOT_ID_FILE).decode("ascii").strip()
    except (CorruptFileError, OSError):  # a sandbox that does not tell it
        return "unknown"


def task_file(work_dir: str, stage: str, number: int) -> str:
    return os.path.join(work_dir, "tasks", f"{stage}-{number}.json")


def save_task(path: str, task: dict[str, Any], disk: Disk = LOCAL) -> None:
    """Write a task's values where only this user can read them."""
    data = json.dumps(task).encode()  # `dump` would be done in Python, five times as slowly
    with naming(path), BufferedWriter(disk.open_raw(path, "xb")) as out:
        out.write(data)


def load_task(path: str, disk: Disk = LOCAL) -> dict[str, Any]:
    """Return the values that were saved."""
    task: dict[str, Any] = json.loads(disk.read_bytes(path))
    return task
