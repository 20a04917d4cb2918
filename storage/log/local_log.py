"""The segments of one log, by base offset, with the log's end and its recovery point.

Source: Kafka, LocalLog (replaceSegments), LogSegments; spec L-11.9, L-12, L-17.1, L-19, L-21.1,
L-22, C-2.1, C-15.1.
"""

import errno
import os
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, TypeVar

from storage.file_names import CLEANED, DELETED, LOG, SEGMENT_SUFFIXES, TXN_INDEX, file_name
from storage.files.file_pool import FilePool
from storage.files.files import ChangingFile, remove_if_exists
from storage.formats.index_entry import OffsetPosition
from storage.formats.txn_index import AbortedTxn
from storage.log.batches import Batch, Bytes
from storage.log.errors import (
    IllegalArgumentError,
    KafkaError,
    KafkaStorageError,
    LogError,
    OffsetOutOfRangeError,
)
from storage.log.file_records import Slice
from storage.log.log_config import LogConfig
from storage.log.offsets import OffsetMetadata
from storage.log.scheduler import Scheduler
from storage.log.segment import LogPlace, LogSegment, SegmentRead
from storage.log.swap import apply_steps, plan_swap


class LogSegments:
    """The segments of a log as a sorted map; the last one is active.

    One writer, many readers: a change puts another list in the place of the one before, so that a
    reader works on the segments as they were when its call began.
    """

    def __init__(self) -> None:
        self._segments: tuple[LogSegment, ...] = ()

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(self._segments)

    def __contains__(self, base_offset: int) -> bool:
        found = self.floor(base_offset)
        return found is not None and found.base_offset == base_offset

    def add(self, segment: LogSegment) -> None:
        """Put a segment in its place, over one of the same base offset."""
        self.exchange([], [segment])

    def remove(self, base_offset: int) -> None:
        self.exchange([base_offset], [])

    def exchange(self, gone: Collection[int], made: Sequence[LogSegment]) -> None:
        """Take segments out by base offset, and put others in, over those of the same base offset.

        No reader sees anything between.
        """
        before = self._segments
        if (
            not gone
            and len(made) == 1
            and (not before or before[-1].base_offset < made[0].base_offset)
        ):
            self._segments = (*before, made[0])
            return
        kept = {segment.base_offset: segment for segment in before}
        for base in gone:
            kept.pop(base, None)
        kept |= {segment.base_offset: segment for segment in made}
        self._segments = tuple(kept[base] for base in sorted(kept))

    def clear(self) -> None:
        self._segments = ()

    @property
    def all(self) -> tuple[LogSegment, ...]:
        """Rising, as they are now."""
        return self._segments

    @property
    def bases(self) -> list[int]:
        return [segment.base_offset for segment in self._segments]

    @property
    def first(self) -> LogSegment:
        return self._segments[0]

    @property
    def active(self) -> LogSegment:
        return self._segments[-1]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self)

    def floor(self, offset: int) -> LogSegment | None:
        """The segment with the greatest base offset that is not above offset."""
        segments = self._segments
        at = bisect_right(segments, offset, key=_base)
        return segments[at - 1] if at else None

    def higher(self, offset: int) -> LogSegment | None:
        """The segment with the smallest base offset above offset."""
        segments = self._segments
        at = bisect_right(segments, offset, key=_base)
        return segments[at] if at < len(segments) else None

    def values(self, start: int, end: int) -> list[LogSegment]:
        """The segments of a range of offsets, from the one that holds start on."""
        if start == end:
            return []
        if end < start:
            raise IllegalArgumentError(f"a range of offsets from {start} to {end}")
        segments = self._segments
        first = max(bisect_right(segments, start, key=_base) - 1, 0)
        return list(segments[first : bisect_left(segments, end, key=_base)])

    def move_to(self, directory: str) -> None:
        """The directory of the log has got another name."""
        for segment in self:
            segment.move_to(directory)

    def close(self) -> None:
        for segment in self:
            segment.close()

    def close_handles(self) -> None:
        for segment in self:
            segment.close_handles()


def _base(segment: LogSegment) -> int:
    return segment.base_offset


Result = TypeVar("Result")


class LogDirState:
    """Whether a log directory is online; shared by all its logs."""

    def __init__(self) -> None:
        self.is_offline = False

    def guarded(self, what: str, action: Callable[[], Result]) -> Result:
        """Do something with files. Raise KafkaStorageError where that fails, and from then on."""
        if self.is_offline:
            raise KafkaStorageError(f"{what}: the log directory is offline since an earlier error")
        return self.reported(what, action)

    def reported(self, what: str, action: Callable[[], Result]) -> Result:
        """Do something with files as `guarded` does, also where the directory is offline."""
        try:
            return action()
        except OSError as error:
            raise self.failed(what, error) from error

    def failed(self, what: str, error: OSError) -> KafkaStorageError:
        """Take the directory offline, and return what to raise.

        A file that another thread closed says nothing of the disk.
        """
        self.is_offline |= error.errno != errno.EBADF
        return KafkaStorageError(f"{what}: {error}")


class ReadResult(NamedTuple):
    """What a read returns: bytes of whole batches, except that the last one may be cut."""

    metadata: OffsetMetadata  # of the first batch, or of where there is nothing to read
    records: Slice | None  # None: nothing
    first_entry_incomplete: bool = False
    aborted: tuple[tuple[int, int], ...] | None = None  # producer id, first offset; None: not asked

    def read(self) -> bytes:
        """The bytes."""
        return b"" if self.records is None else self.records.read()

    def batches(self) -> Iterator[Batch]:
        """Yield the whole batches that were read."""
        return iter(()) if self.records is None else self.records.batches()


class LocalLog:
    """The segments of a log, its end, and its recovery point.

    Who changes it holds the log's lock; a reader works with the end as it was.
    """

    def __init__(
        self,
        place: LogPlace,
        segments: LogSegments,
        scheduler: Scheduler,
        directory: LogDirState,
    ) -> None:
        self.place, self.segments, self._scheduler = place, segments, scheduler
        self.directory = directory
        self.recovery_point = 0
        self.cuts = 0  # of the end, so far
        self._flushed = threading.Lock()  # of how far it was synced, for who does without the log's
        self.end = OffsetMetadata(0)
        self.is_closed = False
        self.config = LogConfig()
        self.flushed_ms = place.clock()

    @property
    def files(self) -> FilePool:
        return self.place.files

    @property
    def end_offset(self) -> int:
        return self.end.offset

    def require_open(self) -> None:
        if self.is_closed:
            raise KafkaStorageError(f"the log in {self.place.path} is closed")

    def prepare_for_close(self) -> None:
        """Since Kafka 4.4: give the active segment its last time entry, and trim it (V-7)."""
        if self.place.kafka.prepares_to_close:
            self.segments.active.become_inactive()

    def close(self) -> None:
        """Close all files. What an unprepared log cannot do is passed over, as in Kafka."""
        with suppress(LogError, FileNotFoundError):
            if self.segments.active.log.is_open:
                self.prepare_for_close()
        self.segments.close()

    def set_end(self, offset: int) -> None:
        """Let the log end at an offset, in the active segment as it is now."""
        active = self.segments.active
        self.end = OffsetMetadata(offset, active.base_offset, active.log.size_bytes)
        if offset < self.recovery_point:
            self.recovery_point = offset

    def append(self, last_offset: int, data: Bytes, batches: Iterable[Batch]) -> None:
        """Put batches at the end; the log ends after them."""
        self.segments.active.append(last_offset, data, batches)
        self.set_end(last_offset + 1)

    # ---- read ---------------------------------------------------------------------------------

    def read(
        self, start: int, max_bytes: int, min_one: bool, limit: OffsetMetadata, aborted: bool
    ) -> ReadResult:
        """Read from the segment that holds an offset, or from the next that has anything."""
        end = self.end
        segment = self.segments.floor(start)
        if start > end.offset or segment is None:
            raise OffsetOutOfRangeError(f"offset {start} is not in the log, which ends at {end}")
        none = () if aborted else None
        if start == limit.offset:
            return ReadResult(limit, None, aborted=none)
        if start > limit.offset:
            return ReadResult(self.place_of(start), None, aborted=none)
        while segment is not None:
            found = segment.read(start, max_bytes, _max_position(segment, limit), min_one)
            if found is not None:
                txns = self._aborted_of(start, segment, found) if aborted else None
                return ReadResult(*found, aborted=txns)
            segment = self.segments.higher(segment.base_offset)
        return ReadResult(self.end, None)

    def place_of(self, offset: int) -> OffsetMetadata:
        """The place of the batch that holds an offset. Raise OffsetOutOfRangeError."""
        end, segment = self.end, self.segments.floor(offset)
        if segment is not None and offset < end.offset:  # as `read` finds it, without a range
            found = segment.translate(offset)
            if found is not None:
                return OffsetMetadata(found.base_offset, segment.base_offset, found.position)
        return self.read(offset, 1, False, end, False).metadata

    def _aborted_of(
        self, start: int, segment: LogSegment, read: SegmentRead
    ) -> tuple[tuple[int, int], ...]:
        size = 0 if read.records is None else read.records.size_bytes
        place = OffsetPosition(read.metadata.offset, read.metadata.position)
        upper = segment.upper_bound(place, size)
        if upper is None:
            after = self.segments.higher(segment.base_offset)
            upper = self.end_offset if after is None else after.base_offset
        txns = self._collect(start, upper, segment)
        return tuple((txn.producer_id, txn.first_offset) for txn in txns)

    def aborted_transactions(self, log_start: int, base: int, upper: int) -> list[AbortedTxn]:
        """Collect the aborted transactions of offsets from `log_start` to `upper`.

        Read are the `.txnindex` files from the segment that holds `base` on.
        """
        segment = self.segments.floor(base)
        return [] if segment is None else self._collect(log_start, upper, segment)

    def _collect(self, start: int, upper: int, first: LogSegment) -> list[AbortedTxn]:
        found: list[AbortedTxn] = []
        segment: LogSegment | None = first
        while segment is not None:
            part = segment.collect_aborted(start, upper)
            found += part.transactions
            if part.is_complete:
                break
            segment = self.segments.higher(segment.base_offset)
        return found

    # ---- roll and flush -----------------------------------------------------------------------

    def roll(self, expected: int) -> LogSegment:
        """Begin a new segment at the log end, or later where the next batch begins later."""
        self.require_open()
        offset = max(expected, self.end_offset)
        active = self.segments.active
        if offset in self.segments:
            if active.base_offset != offset or active.size_bytes:
                raise KafkaError(f"a segment with base offset {offset} is there already")
            active.open_indexes()
            made = self.replace(offset, active)
            self.set_end(self.end_offset)
            return made
        if offset < active.base_offset:
            raise KafkaError(f"offset {offset} is below the active segment's {active.base_offset}")
        for kind in SEGMENT_SUFFIXES:
            remove_if_exists(self.files, os.path.join(self.place.path, file_name(offset, kind)))
        active.become_inactive()
        if self.recovery_point >= offset:
            active.flush()  # nobody would: all its records were flushed before
        made = LogSegment(self.place, offset, self.config, is_new=True)
        self.segments.add(made)
        self.set_end(self.end_offset)
        return made

    def replace(self, offset: int, gone: LogSegment) -> LogSegment:
        """Begin a new segment, and delete another, which may have the same base offset."""
        if offset == gone.base_offset:
            self._mark_deleted([gone])
        made = LogSegment(self.place, offset, self.config, is_new=True)
        self.segments.add(made)
        if offset != gone.base_offset:
            self.segments.remove(gone.base_offset)
        self.delete_files([gone])
        return made

    def flush(self, end: int) -> None:
        """Sync the segments between the recovery point and an offset."""
        point = self.recovery_point
        if point > end:
            return
        flushed = self.segments.values(point, end)
        has_new_names = any(
            segment.base_offset >= point or segment.txn_index.is_new for segment in flushed
        )
        for segment in flushed:
            segment.flush()
        if has_new_names:
            self.sync_names()
            for segment in flushed:
                segment.txn_index.is_new = False

    def mark_flushed(self, offset: int, cuts: int) -> None:
        """Note that what lay below an offset is on disk, unless the log was cut meanwhile.

        cuts: how often it had been cut before; what lies there now may be something else.
        """
        with self._flushed:
            if cuts == self.cuts and offset > self.recovery_point:
                self.recovery_point, self.flushed_ms = offset, self.place.clock()

    def _note_cut(self) -> None:
        with self._flushed:
            self.cuts += 1

    def sync(self) -> None:
        """Sync all files that exist; the recovery point stays."""
        for segment in self.segments:
            segment.sync()
        self.sync_names()

    def sync_names(self) -> None:
        """Sync the directory of the log."""
        if self.files.is_directory(self.place.path):
            self.files.sync_directory(self.place.path)

    # ---- deletion and truncation --------------------------------------------------------------

    def remove(self, segments: Iterable[LogSegment]) -> None:
        """Take segments out of the log, and leave their files to be removed later."""
        gone = list(segments)
        for segment in gone:
            self.segments.remove(segment.base_offset)
        if gone:
            self.delete_files(gone)

    def delete_files(self, segments: Sequence[LogSegment]) -> None:
        """Rename the files of segments now, and remove them after file.delete.delay.ms."""
        self._mark_deleted([segment for segment in segments if not segment.is_deleted])

        def delete() -> None:
            for segment in segments:
                segment.delete()

        self.schedule_deletion("deleting segments", delete)

    def _mark_deleted(self, segments: Sequence[LogSegment]) -> None:
        """Rename the files of segments.

        A power cut brings none of them back, and none without its index of aborted transactions, as
        it might in Kafka, which does not sync.
        """
        for segment in segments:
            segment.rename_log("", DELETED)
        if segments:
            self.sync_names()
        for segment in segments:
            segment.rename_indexes()

    def schedule_deletion(self, what: str, delete: Callable[[], None]) -> None:
        """Remove files after file.delete.delay.ms, as it is set now."""
        self._scheduler.schedule_once(
            lambda: self.directory.guarded(what, delete), self.config.file_delete_delay_ms
        )

    def truncate_to(self, offset: int) -> list[LogSegment]:
        """End the log at an offset; give the segments that this deletes."""
        self._note_cut()
        gone = [segment for segment in self.segments if segment.base_offset > offset]
        self.remove(gone)
        active = self.segments.active
        if active.truncate_to(offset):
            active.log.flush()  # else a power cut would bring back what another epoch has written
        self.set_end(offset)
        return gone

    def truncate_fully(self, offset: int) -> None:
        """Start again at an offset, with nothing."""
        self.require_open()
        self._note_cut()
        *others, last = self.segments
        self.remove(others)
        self.replace(offset, last)
        self.set_end(offset)


def _max_position(segment: LogSegment, limit: OffsetMetadata) -> int | None:
    if segment.base_offset < limit.segment:
        return segment.size_bytes
    if segment.base_offset == limit.segment and not limit.is_offset_only:
        return limit.position
    return None


def replace_segments(
    local: LocalLog, old: Sequence[LogSegment], new: Mapping[int, Mapping[str, str]]
) -> list[LogSegment]:
    """Replace segments of a log in use by others, and return these.

    The steps are those of `storage.log.swap`. Until they get `.cleaned` at their end the files of
    the new segments may be in another directory. What is replaced gets `.deleted` at its end in
    step 3, for those who still read it, and is removed after file.delete.delay.ms.

    A start after a crash finishes the swap, or goes back to the old segments (`compactor.finalizer`
    has a table). Kafka syncs the directory at the end alone, and counts on a file system that keeps
    the order.

    Args:
        local: The log.
        old: Segments of the log, rising.
        new: The paths that the finished files of the others have now, by rising base offset and
            by suffix.
    """
    path, files = local.place.path, _FilesInUse(local)
    files.follow(old)
    plan = plan_swap(
        {segment.base_offset: _kinds(local, segment) for segment in old},
        new,
        _end_offset(local, max(new), new[max(new)][LOG]),
        keeps_sources=True,
    )
    apply_steps(files, path, plan.stage)
    made = [_opened(local, base) for base in new]
    files.follow(made)
    apply_steps(files, path, plan.complete)
    local.segments.exchange([segment.base_offset for segment in old], made)
    apply_steps(files, path, [*plan.replace, *plan.name])
    if old:
        local.delete_files(old)
    return made


def _kinds(local: LocalLog, segment: LogSegment) -> list[str]:
    """The files that a segment has, or may get by a read."""
    has_txns = local.files.exists(segment.path(TXN_INDEX))
    return [kind for kind in SEGMENT_SUFFIXES if kind != TXN_INDEX or has_txns]


def _end_offset(local: LocalLog, base: int, log_path: str) -> int:
    directory, name = os.path.split(log_path)
    place = replace(local.place, path=directory)
    return end_of(place, base, local.config, name.removeprefix(file_name(base, LOG)))


def end_of(place: LogPlace, base: int, config: LogConfig, suffix: str) -> int:
    """Return where a start takes a segment to end whose files have a suffix."""
    segment = LogSegment(place, base, config, suffix=suffix)
    try:
        return segment.next_offset()
    finally:
        segment.close_handles()


def _opened(local: LocalLog, base: int) -> LogSegment:
    segment = LogSegment(local.place, base, local.config, suffix=CLEANED)
    segment.open_indexes()  # as those of Kafka's cleaner are, which has just written them
    segment.note_time(*segment.time_index.last)
    return segment


class _FilesInUse:
    """Files of a log in use: a segment that is open follows the renames of its own."""

    def __init__(self, local: LocalLog) -> None:
        self._local = local
        self._followed: dict[str, tuple[LogSegment, str]] = {}  # by path; with the suffix

    def follow(self, segments: Iterable[LogSegment]) -> None:
        self._followed |= {
            segment.path(kind): (segment, kind) for segment in segments for kind in SEGMENT_SUFFIXES
        }

    def rename(self, source: str, target: str) -> None:
        followed = self._followed.pop(source, None)
        if followed is None:
            self._local.files.rename(source, target)
            return
        segment, kind = followed
        segment.rename_file(kind, target)
        self._followed[target] = followed

    def open_to_change(self, path: str, create: bool = False) -> ChangingFile:
        return self._local.files.open_to_change(path, create)

    def remove(self, path: str) -> None:
        self._local.files.remove(path)

    def sync_directory(self, _: str) -> None:
        self._local.sync_names()
