"""The state of one log that is in use, and what is done to it besides appends.

`LogState` is what a log consists of; `Watermarks` says where it begins, how far it is replicated,
and how far its transactions are decided. The functions roll, flush, look a time up, put cleaned
segments in place, delete and truncate; `Log` calls them under its lock. What goes by one rule of
retention is deleted before the next one is asked; `storage.log.retention` says which segments go.

Source: Kafka, UnifiedLog.roll, flush, fetchOffsetByTimestamp, replaceSegments, deleteOldSegments,
maybeIncrementLogStartOffset, truncateTo, truncateFullyAndStartAt, renameDir, delete; spec C-4.5,
C-15.1, C-18, L-14.10, L-17, L-20 to L-24.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import NamedTuple

from storage.file_names import DELETED, SEGMENT_SUFFIXES, file_name
from storage.files.files import Files, remove_if_exists
from storage.formats import producer_snapshot
from storage.formats.batch_header import NO_TIMESTAMP
from storage.log.errors import IllegalArgumentError, OffsetOutOfRangeError
from storage.log.leader_epoch_file_cache import LeaderEpochFileCache
from storage.log.local_log import LocalLog, replace_segments
from storage.log.log_config import LogConfig
from storage.log.offsets import UNKNOWN, OffsetMetadata, TimestampAndOffset
from storage.log.producer_state_manager import ProducerStateManager, rebuild_producers
from storage.log.retention import RetentionLimits, RetentionRule, deletable
from storage.log.scheduler import Scheduler
from storage.log.segment import LogSegment


class Watermarks:
    """Log start, high watermark and first unstable offset. Changed under the log's lock.

    The high watermark and the first unstable offset may be known without their place; who needs
    that looks for the batch, and then its base offset takes the place of the value.
    """

    def __init__(self, local: LocalLog, producers: ProducerStateManager, log_start: int) -> None:
        self._local, self._producers = local, producers
        self.log_start = log_start
        self._high_watermark = OffsetMetadata(log_start)
        self.first_unstable: OffsetMetadata | None = None

    # ---- high watermark -----------------------------------------------------------------------

    @property
    def high_watermark(self) -> int:
        return self._high_watermark.offset

    def high_watermark_place(self) -> OffsetMetadata:
        self._local.require_open()
        if self._high_watermark.is_offset_only:
            self._set_high_watermark(self.place_of(self.high_watermark))
        return self._high_watermark

    def set_high_watermark(self, to: OffsetMetadata) -> int:
        """Move it, also down, but not below the log start or past the end; give where it is."""
        end = self._local.end
        if to.offset < self.log_start:
            to = OffsetMetadata(self.log_start)
        elif to.offset >= end.offset:
            to = end
        self._set_high_watermark(to)
        return to.offset

    def increment_high_watermark(self, to: OffsetMetadata) -> OffsetMetadata | None:
        """Move it up; give what it was, None if it did not move."""
        if to.offset > self._local.end_offset:
            raise IllegalArgumentError(f"high watermark {to.offset}, past the end of the log")
        before = self.high_watermark_place()
        is_newer = before.offset == to.offset and before.segment < to.segment
        if before.offset < to.offset or is_newer:
            self._set_high_watermark(to)
            return before
        return None

    def follow_end(self) -> None:
        """Take the place of the log end, where the high watermark has got there."""
        if self._high_watermark.offset >= self._local.end.offset:
            self._set_high_watermark(self._local.end)

    def _set_high_watermark(self, to: OffsetMetadata) -> None:
        if to.offset < 0:
            raise IllegalArgumentError(f"high watermark {to.offset}")
        self._high_watermark = to
        self._producers.on_high_watermark(to.offset)
        self.update_first_unstable()

    # ---- last stable offset -------------------------------------------------------------------

    @property
    def last_stable(self) -> int:
        unstable = self.first_unstable
        if unstable is not None and unstable.offset < self.high_watermark:
            return unstable.offset
        return self.high_watermark

    def last_stable_place(self) -> OffsetMetadata:
        self._local.require_open()
        high_watermark = self.high_watermark_place()
        unstable = self.first_unstable
        if unstable is None or unstable.offset >= high_watermark.offset:
            return high_watermark
        if unstable.is_offset_only:
            unstable = self.first_unstable = self.place_of(unstable.offset)
        return unstable

    def update_first_unstable(self) -> None:
        """Ask the producers again."""
        self._local.require_open()
        found = self._producers.first_unstable
        if found is not None and (found.is_offset_only or found.offset < self.log_start):
            found = self.place_of(max(found.offset, self.log_start))
        self.first_unstable = found

    def place_of(self, offset: int) -> OffsetMetadata:
        """The place of the batch that holds an offset; the offset alone if none does."""
        try:
            place: OffsetMetadata = self._local.directory.guarded(
                "reading the log", lambda: self._local.place_of(offset)
            )
            return place
        except OffsetOutOfRangeError:
            return OffsetMetadata(offset)

    def require_readable(self, offset: int) -> None:
        if offset < self.log_start:
            raise OffsetOutOfRangeError(f"offset {offset} is below the log start {self.log_start}")

    # ---- log start ----------------------------------------------------------------------------

    def set_log_start(self, offset: int) -> None:
        """Let the log begin at an offset; nothing that it holds is below."""
        self.log_start = offset
        if self.high_watermark < offset:
            self.set_high_watermark(OffsetMetadata(offset))
        self._local.recovery_point = max(self._local.recovery_point, offset)


Truncating = Callable[[int, int | None], AbstractContextManager[object]]


def no_owner(end: int, base: int | None) -> AbstractContextManager[object]:
    """Allow each truncation: for a log that no manager owns, so that nobody has to know of it."""
    return nullcontext((end, base))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """What a log consists of. Who works on it holds the log's lock."""

    local: LocalLog
    watermarks: Watermarks
    producers: ProducerStateManager
    epochs: LeaderEpochFileCache
    scheduler: Scheduler
    truncating: Truncating = no_owner  # see LogOptions

    @property
    def config(self) -> LogConfig:
        return self.local.config

    @property
    def now_ms(self) -> int:
        return self.local.place.clock()


def roll(state: LogState, expected: int = 0) -> LogSegment:
    """Begin a new segment, with a snapshot of the producers; what lies before is flushed."""
    local, producers = state.local, state.producers

    def action() -> LogSegment:
        segment = local.roll(expected)
        producers.map_end_offset = segment.base_offset
        snapshot = producers.take_snapshot(sync=False)
        state.watermarks.follow_end()
        state.scheduler.schedule_once(lambda: _flush_rolled(state, snapshot, segment.base_offset))
        return segment

    return local.directory.guarded("rolling a segment", action)


def _flush_rolled(state: LogState, snapshot: str | None, base_offset: int) -> None:
    if snapshot is not None:
        directory = state.local.directory
        directory.guarded("flushing", lambda: state.producers.snapshots.flush(snapshot))
    flush(state, base_offset, including=False)


def flush(state: LogState, offset: int, including: bool) -> None:
    """Sync what lies below an offset; from then on it is the recovery point.

    including: the active segment too, where the offset is the log end, even if it is empty.
    """
    local = state.local

    def action() -> None:
        end = offset + 1 if including else offset
        if end > local.recovery_point:
            cuts = local.cuts
            local.flush(end)
            local.require_open()
            local.mark_flushed(offset, cuts)

    local.directory.guarded("flushing", action)


def delete_snapshots(
    local: LocalLog, producers: ProducerStateManager, segments: Iterable[LogSegment]
) -> None:
    """Rename the snapshots at the bases of segments now, and remove them with the segments."""
    found = [producers.snapshots.mark_deleted(segment.base_offset) for segment in segments]
    paths = [path for path in found if path is not None]

    def delete() -> None:
        for path in paths:
            remove_if_exists(local.files, path)

    if paths:
        local.schedule_deletion("deleting producer snapshots", delete)


LATEST = -1
EARLIEST = -2
MAX = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6


class FetchIsolation(Enum):
    """How far a reader sees."""

    LOG_END = auto()  # all there is
    HIGH_WATERMARK = auto()  # what is replicated
    COMMITTED = auto()  # of that what is decided, with the transactions that were aborted


def offset_by_timestamp(state: LogState, timestamp_ms: int) -> TimestampAndOffset | None:
    """The first record that is not older than a time, or the answer to a special one."""
    if timestamp_ms == LATEST:
        epoch = state.epochs.latest
        return TimestampAndOffset(NO_TIMESTAMP, state.local.end_offset, epoch)
    if timestamp_ms in (EARLIEST, EARLIEST_LOCAL):
        return _earliest(state)
    if timestamp_ms == MAX:
        return _largest(state)
    if timestamp_ms in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return TimestampAndOffset(NO_TIMESTAMP, UNKNOWN, UNKNOWN)
    for segment in state.local.segments:
        if segment.largest_timestamp >= timestamp_ms:
            return segment.find_offset(timestamp_ms, state.watermarks.log_start)
    return None


def _earliest(state: LogState) -> TimestampAndOffset:
    start = state.watermarks.log_start
    first = next(iter(state.epochs.entries), None)
    epoch = first.epoch if first is not None and first.start_offset <= start else None
    return TimestampAndOffset(NO_TIMESTAMP, start, epoch)


def _largest(state: LogState) -> TimestampAndOffset | None:
    segment = max(state.local.segments, key=lambda each: each.largest_so_far.timestamp_ms)
    largest = segment.largest_so_far
    start = segment.offset_index.lookup(largest.offset).position
    for batch in segment.log.batches(start):
        if batch.max_timestamp == largest.timestamp_ms:
            offset = batch.offset_of_max_timestamp()
            if offset is None:
                return None
            epoch = None if batch.leader_epoch < 0 else batch.leader_epoch
            return TimestampAndOffset(largest.timestamp_ms, offset, epoch)
    return None


class CleanedGroup(NamedTuple):
    """Segments of a log, by base offset, and those that take their place."""

    directory: str  # which has the files of the new ones, synced, on the log's file system
    old_bases: tuple[int, ...]  # rising
    new_bases: tuple[int, ...]  # rising; the first is that of the old ones


class CleanerView(NamedTuple):
    """A log at one moment, as far as a cleaning has to know it."""

    segments: tuple[LogSegment, ...]  # rising; the last one is active
    active_bytes: int  # of its `.log`, up to log_end
    log_start: int
    log_end: int
    last_stable: int  # nothing at or past it is decided
    high_watermark: int
    producers: bytes  # as a snapshot at log_end


def view_of(state: LogState) -> CleanerView:
    segments, end = tuple(state.local.segments), state.local.end
    active = segments[-1]  # after the end may be what an append that failed has left
    is_end_known = end.segment == active.base_offset
    return CleanerView(
        segments=segments,
        active_bytes=end.position if is_end_known else active.size_bytes,
        log_start=state.watermarks.log_start,
        log_end=state.local.end_offset,
        last_stable=state.watermarks.last_stable,
        high_watermark=state.watermarks.high_watermark,
        producers=producer_snapshot.encode(each.entry() for each in state.producers.producers),
    )


def is_unchanged(state: LogState, old: Sequence[LogSegment]) -> bool:
    """Whether a log still has the very segments that were cleaned."""
    there = {segment.base_offset: segment for segment in state.local.segments}
    return all(there.get(segment.base_offset) is segment for segment in old)


def swap_in(state: LogState, group: CleanedGroup) -> None:
    """Replace a group. The caller has made sure that the old ones are what was cleaned.

    Afterwards the producer snapshots at base offsets that are no more are deleted.
    """
    local = state.local
    local.require_open()
    old = [segment for segment in local.segments if segment.base_offset in group.old_bases]
    replace_segments(local, old, {base: _files_of(state, group, base) for base in group.new_bases})
    gone = set(group.old_bases) - set(group.new_bases)
    delete_snapshots(local, state.producers, [s for s in old if s.base_offset in gone])


def _files_of(state: LogState, group: CleanedGroup, base: int) -> dict[str, str]:
    paths = {
        kind: os.path.join(group.directory, file_name(base, kind)) for kind in SEGMENT_SUFFIXES
    }
    return {kind: path for kind, path in paths.items() if state.local.files.exists(path)}


def delete_old_segments(state: LogState) -> int:
    """Delete what the topic's retention says; give how many segments were selected."""
    return sum(_delete(state, rule) for rule in RetentionRule)


def _delete(state: LogState, rule: RetentionRule) -> int:
    chosen = deletable(
        list(state.local.segments),
        rule,
        _limits(state),
        state.local.end_offset,
        lambda segment: segment.largest_timestamp,
    )
    if chosen:
        state.local.directory.guarded("deleting segments", lambda: _remove(state, chosen))
    return len(chosen)


def _limits(state: LogState) -> RetentionLimits:
    config, watermarks = state.config, state.watermarks
    has_time = config.is_deleted and config.retention_ms >= 0
    has_size = config.is_deleted and config.retention_bytes >= 0
    return RetentionLimits(
        watermarks.log_start,
        watermarks.high_watermark,
        state.now_ms,
        config.retention_ms if has_time else None,
        config.retention_bytes if has_size else None,
    )


def _remove(state: LogState, chosen: list[LogSegment]) -> None:
    local, removed = state.local, chosen
    if len(local.segments) == len(chosen):
        made = roll(state)
        if chosen[-1].base_offset == made.base_offset:  # it was empty, and is replaced already
            removed = chosen[:-1]
    local.require_open()
    if removed:
        after = local.segments.higher(removed[-1].base_offset)
        assert after is not None, "there is always an active segment"
        increment_log_start(state, after.base_offset)
        local.remove(removed)
        delete_snapshots(local, state.producers, chosen)


def increment_log_start(state: LogState, offset: int) -> bool:
    """Let the log begin later; return whether it does. No file is deleted yet."""
    if offset > state.watermarks.high_watermark:
        raise OffsetOutOfRangeError(
            f"offset {offset} is past the high watermark {state.watermarks.high_watermark}"
        )
    state.local.require_open()
    if offset <= state.watermarks.log_start:
        return False
    state.watermarks.set_log_start(offset)
    state.epochs.truncate_from_start(offset)
    state.producers.on_log_start(offset)
    state.watermarks.update_first_unstable()
    return True


def rename_directory(state: LogState, name: str, goes_on: bool) -> None:
    """Give the directory another name beside its own; files that are open stay so.

    goes_on: the log is used on under that name, and keeps its leader epochs.
    """
    local = state.local
    path = os.path.join(os.path.dirname(local.place.path), name)
    local.files.rename(local.place.path, path)
    local.files.sync_directory(os.path.dirname(path))
    local.place = replace(local.place, path=path)
    local.segments.move_to(path)
    state.producers.snapshots.move_to(path)
    state.epochs.move_to(path)
    if not goes_on:
        state.epochs.forget()


def delete_directory(state: LogState) -> None:
    """Remove all segments, then the directory with whatever else is in it."""
    local = state.local
    state.epochs.forget()
    segments = list(local.segments)
    local.segments.clear()
    for segment in segments:
        if not segment.is_deleted:
            segment.change_suffix("", DELETED)
    for segment in segments:
        segment.delete()
    local.is_closed = True
    remove_tree(local.files, local.place.path)


def remove_tree(files: Files, path: str) -> None:
    """Remove a directory and all that is in it; one that is gone is no error."""
    if not files.is_directory(path):
        return
    for entry in files.list_directory(path):
        below = os.path.join(path, entry.name)
        if entry.is_dir:
            remove_tree(files, below)
        else:
            remove_if_exists(files, below)
    files.remove_directory(path)


def owner_context(
    state: LogState, offset: int, is_full: bool = False
) -> AbstractContextManager[object]:
    """Return what the owner of the log does about a truncation, as a context."""
    local, segments = state.local, state.local.segments
    if local.is_closed or offset < 0 or not len(segments):
        return nullcontext()
    if is_full:
        return state.truncating(offset, offset)
    if offset >= local.end_offset:
        return nullcontext()
    if offset >= segments.active.base_offset:  # in which no cleaner is ever at work
        return state.truncating(offset, None)
    left = segments.floor(offset)
    return state.truncating(offset, offset if left is None else left.base_offset)


def truncate_to(state: LogState, offset: int) -> bool:
    """End the log at an offset; whether anything was cut off."""
    local = state.local
    if offset < 0:
        raise IllegalArgumentError(f"a log cannot end at offset {offset}")
    if offset >= local.end_offset:
        state.epochs.truncate_from_end(local.end_offset)
        return False
    local.require_open()
    if local.segments.first.base_offset > offset:
        truncate_fully(state, offset, None)
        return True
    gone = local.truncate_to(offset)
    delete_snapshots(local, state.producers, gone)
    state.epochs.truncate_from_end(offset)
    state.watermarks.log_start = min(offset, state.watermarks.log_start)
    rebuild(state, offset)
    local.sync_names()  # snapshots are gone that would say too much, once the log is as long again
    if state.watermarks.high_watermark >= local.end_offset:
        state.watermarks.set_high_watermark(local.end)
    return True


def truncate_fully(state: LogState, offset: int, log_start: int | None) -> None:
    """Delete everything, and go on at an offset."""
    state.local.truncate_fully(offset)
    state.epochs.clear()
    state.producers.truncate_fully(offset)
    state.watermarks.log_start = offset if log_start is None else log_start
    rebuild(state, offset)
    state.local.sync_names()
    state.watermarks.set_high_watermark(state.local.end)


def rebuild(state: LogState, end: int) -> None:
    """Bring the state of producers to an offset."""
    state.local.require_open()
    segments, start = state.local.segments.all, state.watermarks.log_start
    rebuild_producers(state.producers, segments, start, end, state.now_ms, False)
