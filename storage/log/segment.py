"""One segment of a log: its `.log` and its three indexes.

Its recovery is in `segment_recovery`. Source: Kafka, LogSegment (append, read, truncateTo,
onBecomeInactiveSegment); spec L-8 to L-11, F-12.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.file_names import (
    DELETED,
    INDEX,
    LOG,
    MAX_RELATIVE_OFFSET,
    SEGMENT_SUFFIXES,
    TIME_INDEX,
    TXN_INDEX,
    file_name,
    parse_future_dir,
)
from storage.files.file_pool import FilePool
from storage.files.files import Files, remove_if_exists
from storage.formats.batch_header import NO_TIMESTAMP
from storage.formats.index_entry import OffsetPosition
from storage.formats.txn_index import Aborted, AbortedTxn
from storage.kafka_versions import NEWEST, KafkaVersion
from storage.log.batches import Batch, Bytes
from storage.log.errors import (
    IllegalArgumentError,
    LogError,
    LogSegmentOffsetOverflowError,
)
from storage.log.file_records import (
    MAX_BYTES,
    NOT_KNOWN,
    WINDOW_BYTES,
    BatchPosition,
    FileRecords,
    Slice,
)
from storage.log.index_files import OffsetIndexFile, TimeIndexFile, TxnIndexFile
from storage.log.lazy_kernels import COMPILED
from storage.log.log_config import LogConfig
from storage.log.offsets import LargestTimestamp, OffsetMetadata, TimestampAndOffset

Clock = Callable[[], int]  # ms since 1970


@dataclass(frozen=True, slots=True)
class LogPlace:
    """Where a log is, and what it works with."""

    files: FilePool
    path: str  # of the partition's directory
    clock: Clock
    kafka: KafkaVersion = NEWEST  # whose answer is given where the versions differ


class IncomingBytes(NamedTuple):
    """What is about to be appended, as far as it decides whether a segment is rolled."""

    size_bytes: int
    max_timestamp: int
    last_offset: int


class SegmentRead(NamedTuple):
    """A range of one segment."""

    metadata: OffsetMetadata  # of the first batch
    records: Slice | None  # None: nothing
    first_entry_incomplete: bool


Int64Array = NDArray[np.int64]


class LogSegment:
    """One writer; a reader sees what was in use when its read began."""

    def __init__(
        self,
        place: LogPlace,
        base_offset: int,
        config: LogConfig,
        is_new: bool = False,
        suffix: str = "",
    ) -> None:
        """Open a segment, or create its `.log`. suffix: at the end of all its file names."""
        self._files, self._clock = place.files, place.clock
        self.base_offset, self._suffix = base_offset, suffix
        self._stem = os.path.join(place.path, file_name(base_offset, ""))
        files, index_bytes = place.files, config.segment_index_bytes
        initial = config.initial_log_bytes if is_new else 0
        self.log = FileRecords.open(files, self.path(LOG), is_new, initial)
        self.offset_index = OffsetIndexFile(files, self.path(INDEX), base_offset, index_bytes)
        self.time_index = TimeIndexFile(files, self.path(TIME_INDEX), base_offset, index_bytes)
        self.txn_index = TxnIndexFile(files, self.path(TXN_INDEX), base_offset, place.kafka)
        self._is_prepared = place.kafka.prepares_to_close
        self.index_interval_bytes = config.index_interval_bytes
        self._index_bytes, self.jitter_ms = index_bytes, config.drawn_jitter_ms()
        self._created_ms = place.clock()
        self.bytes_since_entry = 0
        self.first_timestamp: int | None = None  # of the first batch, once it was looked at
        self._largest: tuple[int, int] | None = None  # as LargestTimestamp; None: not looked at

    def path(self, kind: str) -> str:
        """Return the path of one of its files, by the suffix."""
        return self._stem + kind + self._suffix

    @property
    def size_bytes(self) -> int:
        return self.log.size_bytes

    @property
    def log_bytes(self) -> int:
        """The size, by the name that a segment has in a listing."""
        return self.log.size_bytes

    @property
    def is_deleted(self) -> bool:
        return self._suffix == DELETED

    # ---- times --------------------------------------------------------------------------------

    @property
    def largest_so_far(self) -> LargestTimestamp:
        """The largest time, from the time index when it is first asked for."""
        if self._largest is None:
            found = self.time_index.last
            if self._largest is None:  # still: the writer may have taken a larger one
                self._largest = found
        return LargestTimestamp(*self._largest)

    @property
    def last_modified_ms(self) -> int:
        found = self._files.look_up(self.path(LOG))
        return 0 if found is None else found.mtime_ns // 1_000_000

    def set_last_modified(self, time_ms: int) -> None:
        """Set when the `.log` was written last: where no record has a time, retention asks it."""
        self._files.set_modified(self.path(LOG), time_ms)

    @property
    def largest_timestamp(self) -> int:
        """The largest time of a record; where none has one, when the file was written last."""
        largest = self.largest_so_far.timestamp_ms
        return largest if largest >= 0 else self.last_modified_ms

    def first_batch_ms(self) -> int | None:
        """The time of the first batch, read when it is first asked for; None without a batch."""
        if self.first_timestamp is None:
            first = next(self.log.batches(), None)
            self.first_timestamp = None if first is None else first.max_timestamp
        return self.first_timestamp

    def _waited_ms(self, timestamp_ms: int) -> int:
        """Return the age by the times of records, if the first batch has one; else by the clock."""
        first_ms = self.first_batch_ms()
        if first_ms is not None and first_ms >= 0:
            return timestamp_ms - first_ms
        return self._clock() - self._created_ms

    # ---- append -------------------------------------------------------------------------------

    def should_roll(self, incoming: IncomingBytes, config: LogConfig) -> bool:
        """Whether a new segment has to take what comes. Opens both indexes."""
        size_bytes, timestamp_ms, last_offset = incoming
        size, waited_ms = self.log.size_bytes, self._waited_ms(timestamp_ms)
        return (
            size > config.segment_bytes - size_bytes
            or (size > 0 and waited_ms > config.max_segment_ms - self.jitter_ms)
            or self.offset_index.is_full
            or self.time_index.is_full
            or not self.holds(last_offset)
        )

    def holds(self, offset: int) -> bool:
        """Whether an offset is not too far from the base. Opens the offset index."""
        self.offset_index.file.opened()  # which Kafka asks
        return 0 <= offset - self.base_offset <= MAX_RELATIVE_OFFSET

    def append(
        self, largest_offset: int, data: Bytes, batches: Iterable[Batch | IncomingBytes]
    ) -> None:
        """Put batches at the end, and entries for them in the indexes. batches: those of data.

        Where an index refuses its entry, the bytes stay in the `.log`.
        """
        if not len(data):
            return
        position = self.size_bytes
        if not self.holds(largest_offset):
            raise LogSegmentOffsetOverflowError(self.base_offset, largest_offset)
        self.log.append(data)
        for batch in batches:
            size = batch.size_bytes
            self.index(IncomingBytes(size, batch.max_timestamp, batch.last_offset), position)
            position += size

    def index(self, batch: IncomingBytes, position: int) -> None:
        """Note the time of a batch, and put it in the indexes where its turn has come."""
        size_bytes, timestamp_ms, last_offset = batch
        self.note_time(timestamp_ms, last_offset)
        if self.bytes_since_entry > self.index_interval_bytes:
            self.put_in_indexes(last_offset, position)
            self.bytes_since_entry = 0
        self.bytes_since_entry += size_bytes

    def append_bytes(self, data: Bytes) -> int:
        """Put batches at the end, without an index entry; return the position of the first."""
        position = self.log.size_bytes
        self.log.append(data)
        return position

    def can_index(self, size_bytes: int, last_offset: int) -> bool:
        """Whether both indexes surely take the entries of batches at the end of the log.

        size_bytes: of all of them. last_offset: of the first one.
        """
        most = 1 + size_bytes // (self.index_interval_bytes + 1)
        offsets, times = self.offset_index.file.opened(), self.time_index.file.opened()
        return (
            offsets.entries + most <= offsets.max_entries
            and times.entries + most < times.max_entries
            and self.is_indexed_in_order(last_offset)
        )

    def is_indexed_in_order(self, last_offset: int) -> bool:
        """Return whether the indexes have nothing at or past a batch that comes next."""
        offsets, times = self.offset_index, self.time_index
        return (not offsets.entries or last_offset > offsets.last_offset) and (
            self.largest_so_far.offset >= times.last.offset
        )

    def index_batches(self, kernels: ModuleType, position: int, batches: Int64Array) -> int:
        """Note the times of batches in the log, and put entries for them in the indexes.

        Return how many batches were taken in; the next one is due for an entry that an index does
        not take. position: of the first one. batches: rows that begin with size, last offset and
        largest time; the offsets rise, and are above those in the indexes.
        """
        offsets, times = self.offset_index.file.opened(), self.time_index.file.opened()
        base, largest = self.base_offset, self.largest_so_far
        indexes = kernels.segment_indexes
        limits = indexes.IndexLimits(
            base_offset=base,
            interval_bytes=self.index_interval_bytes,
            offset_entries=offsets.max_entries - offsets.entries,
            time_entries=times.max_entries - 1 - times.entries,
        )
        state = indexes.index_state(
            indexes.IndexState(
                position=position,
                since_entry_bytes=self.bytes_since_entry,
                max_timestamp=largest.timestamp_ms,
                offset_of_max=largest.offset - base,
                last_indexed=self.time_index.last.timestamp_ms,
            )
        )
        made = indexes.make_entries(limits, batches, state)
        _, self.bytes_since_entry, max_timestamp, offset_of_max, *_ = state.tolist()
        self.note_time(max_timestamp, base + offset_of_max)
        if made.offsets:
            offsets.add(made.offsets)
        if made.times:
            times.add(made.times)
        return int(made.batches)

    def note_time(self, timestamp_ms: int, last_offset: int) -> None:
        """Note the time of a batch, by its last offset."""
        largest_ms, _ = self._largest or self.largest_so_far
        if timestamp_ms > largest_ms:
            self._largest = timestamp_ms, last_offset

    def put_in_indexes(self, last_offset: int, position: int) -> None:
        """Add an entry for the batch at a position, and one of the largest time so far."""
        self.offset_index.append(last_offset, position)
        self.time_index.maybe_append(*self.largest_so_far)

    def become_inactive(self) -> None:
        """The last time entry, and the files as long as what is in use of them."""
        self.time_index.maybe_append(*self.largest_so_far, skip_full_check=True)
        self.trim_indexes()
        self.log.trim()

    def open_indexes(self) -> None:
        """Make the index files that do not exist yet."""
        self.offset_index.file.opened()
        self.time_index.file.opened()

    def trim_indexes(self) -> None:
        self.offset_index.file.opened().trim()
        self.time_index.file.opened().trim()

    def resize_indexes(self, size_bytes: int, keeps_files: bool = False) -> None:
        """Make the index files longer or shorter. keeps_files: as for `IndexFile`."""
        self.offset_index.file.opened().resize(size_bytes, keeps_files)
        self.time_index.file.opened().resize(size_bytes, keeps_files)

    # ---- look-up and read ---------------------------------------------------------------------

    def translate(self, offset: int) -> BatchPosition | None:
        """Find the batch that holds an offset, or the next one; None past the last."""
        kernels = COMPILED.kernels or COMPILED.kernels_for(WINDOW_BYTES)
        if kernels is not None:
            found = self.log.quick_search(kernels, self.offset_index.file.opened(), offset)
            if found is not NOT_KNOWN:
                return found
        start = self.offset_index.lookup(offset).position
        return self.log.search_for_offset(offset, start)

    def read(
        self,
        start_offset: int,
        max_bytes: int,
        max_position: int | None,
        min_one_message: bool = False,
    ) -> SegmentRead | None:
        """Return a range from the batch that holds an offset on; None past the last batch.

        max_position: where the range ends at the latest; None: nothing is returned but the place.
        min_one_message: the first batch is in it even if it is larger than max_bytes.
        """
        if max_bytes < 0:
            raise IllegalArgumentError(f"at most {max_bytes} bytes")
        found = self.translate(start_offset)
        if found is None:
            return None
        metadata = OffsetMetadata(found.base_offset, self.base_offset, found.position)
        most = max(max_bytes, found.size_bytes) if min_one_message else max_bytes
        if not most or max_position is None:
            return SegmentRead(metadata, None, False)
        length = min(max_position - found.position, most)
        records = self.log.slice(found.position, length)
        return SegmentRead(metadata, records, most < found.size_bytes)

    def batches_between(self, start: int, end: int | None) -> tuple[int, Iterable[Batch]]:
        """Return the position of the batch that holds offset `start`, and the batches from there.

        end: stop before the batch that holds this offset; None: go on to the last batch.
        """
        found = None if end is None else self.translate(end)
        stop = self.size_bytes if found is None else found.position
        read = self.read(start, MAX_BYTES, stop)
        if read is None or read.records is None:
            return stop, ()
        return read.metadata.position, read.records.batches()

    def next_offset(self) -> int:
        """Return the offset after the last batch, by way of the last index entry.

        Few batches are past that: so it needs no kernels, which take longer to load than a thousand
        logs.
        """
        last = self.offset_index.last_offset
        end = self.log.end_offset(last, self.offset_index.lookup(last).position)
        return self.base_offset if end is None else end

    def find_offset(self, target_ms: int, from_offset: int) -> TimestampAndOffset | None:
        """The first record that is not older than target and not below an offset."""
        indexed = self.time_index.lookup(target_ms)
        start = self.offset_index.lookup(max(indexed.offset, from_offset)).position
        return self.log.search_for_timestamp(target_ms, start, from_offset)

    def upper_bound(self, start: OffsetPosition, size_bytes: int) -> int | None:
        """Return some offset past a range of the log; None if the index has none."""
        found = self.offset_index.upper_bound(start, size_bytes)
        return None if found is None else found.offset

    def collect_aborted(self, from_offset: int, end_offset: int) -> Aborted:
        return self.txn_index.collect(from_offset, end_offset)

    # ---- recovery and truncation --------------------------------------------------------------

    def check(self, time_index_is_missing: bool) -> None:
        """Look at the indexes as Kafka does when it loads a log.

        Raise FileNotFoundError if there is no offset index, and CorruptIndexError for a wrong entry
        of an aborted transaction.
        """
        if not self._files.exists(self.path(INDEX)):
            raise FileNotFoundError(self.path(INDEX))
        if time_index_is_missing:
            self.time_index.file.opened().resize(0)
        self.txn_index.check()

    def reset_indexes(self) -> None:
        """Forget all that is known of the batches."""
        self.offset_index.file.reset()
        self.time_index.file.reset()
        self.txn_index.reset()
        self._largest = None

    def truncate_to(self, offset: int) -> int:
        """Cut off the batch that holds an offset and all after it; return the bytes cut."""
        found = self.translate(offset)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        self.resize_indexes(self._index_bytes)
        cut = 0 if found is None else self.log.truncate_to(found.position)
        if not self.size_bytes:
            self._created_ms, self.first_timestamp = self._clock(), None
        self.bytes_since_entry = 0
        if self.largest_so_far.timestamp_ms >= 0:
            self._largest = self._read_largest()
        return cut

    def _read_largest(self) -> LargestTimestamp:
        indexed = self.time_index.last
        start = self.offset_index.lookup(indexed.offset).position
        found = self.log.largest_timestamp_after(start)
        return found if found.timestamp_ms > indexed.timestamp_ms else indexed

    def add_aborted(self, txn: AbortedTxn) -> None:
        self.txn_index.append(txn)

    # ---- life ---------------------------------------------------------------------------------

    def flush(self) -> None:
        """Sync all files; makes those of the indexes that do not exist yet."""
        self.log.flush()
        self.offset_index.file.opened().flush()
        self.time_index.file.opened().flush()
        self.txn_index.flush()

    def sync(self) -> None:
        """Sync the files that exist."""
        self.log.flush()
        for index in (self.offset_index.file, self.time_index.file):
            if index.is_open:
                index.flush()
        self.txn_index.flush()

    def change_suffix(self, old: str, new: str) -> None:
        """Rename all files, in Kafka's order."""
        self.rename_log(old, new)
        self.rename_indexes()

    def rename_log(self, old: str, new: str) -> None:
        """Rename the `.log`, which is the first; `rename_indexes` has to follow."""
        assert self._suffix == old, f"{self._stem} has the suffix {self._suffix!r}"
        before = self.path(LOG)
        self._suffix = new
        self._files.rename(before, self.path(LOG))

    def rename_indexes(self) -> None:
        """Give the indexes the suffix that the `.log` has got."""
        for kind in (INDEX, TIME_INDEX, TXN_INDEX):
            self._rename_index(kind)

    def _rename_index(self, kind: str) -> None:
        files = {INDEX: self.offset_index.file, TIME_INDEX: self.time_index.file}
        files.get(kind, self.txn_index).rename(self.path(kind))

    def rename_file(self, kind: str, target: str) -> None:
        """Rename one file, the `.log` first. target: its path, with another suffix at the end."""
        if kind == LOG:
            self.rename_log(self._suffix, target.removeprefix(self._stem + LOG))
        else:
            self._rename_index(kind)

    def move_to(self, directory: str) -> None:
        """The directory of the log has got another name; what is open stays so."""
        self._stem = os.path.join(directory, file_name(self.base_offset, ""))
        self.offset_index.file.path = self.path(INDEX)
        self.time_index.file.path = self.path(TIME_INDEX)
        self.txn_index.path = self.path(TXN_INDEX)

    def close(self) -> None:
        """Close all files; up to Kafka 4.3 first trim them, and add the last time entry (V-7).

        All steps are tried. What a closed log cannot do is passed over, as in Kafka; an error of
        the disk is raised, so that the shutdown does not count as a clean one.
        """
        steps: list[Callable[[], object]] = [
            partial(self.offset_index.file.close, trims=not self._is_prepared),
            partial(self.time_index.file.close, trims=not self._is_prepared),
            self.log.close,
            self.txn_index.close,
        ]
        largest = None if self._is_prepared else self._largest
        if largest is not None and largest != LargestTimestamp(NO_TIMESTAMP, -1):
            steps.insert(0, lambda: self.time_index.maybe_append(*largest, skip_full_check=True))
        failed: list[OSError] = []
        for step in steps:
            try:
                step()
            except (LogError, FileNotFoundError):
                continue
            except OSError as error:
                failed.append(error)
        if failed:
            raise failed[0]

    def close_handles(self) -> None:
        """Close all files without a flush."""
        self.log.close_handle()
        self.offset_index.file.close_handle()
        self.time_index.file.close_handle()
        self.txn_index.close()

    def delete(self) -> None:
        """Close and remove all files, in Kafka's order; one that is gone is no error."""
        self.close_handles()
        for kind in SEGMENT_SUFFIXES:
            remove_if_exists(self._files, _moved_meanwhile(self._files, self.path(kind)))


def _moved_meanwhile(files: Files, path: str) -> str:
    """Return where a file that was to be deleted is now.

    The directory of a log that was on its way to another log directory may have got its final name
    since (L-11.8).
    """
    directory, name = os.path.split(path)
    partition = parse_future_dir(os.path.basename(directory))
    if partition is None or not name.endswith(DELETED) or files.exists(path):
        return path
    return os.path.join(os.path.dirname(directory), "{}-{}".format(*partition), name)
