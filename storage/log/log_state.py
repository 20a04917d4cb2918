"""The state of one log that is in use, and the moves of its end that several operations need.

`LogState` is what a log consists of; `Watermarks` says where it begins, how far it is replicated,
and how far its transactions are decided.

Source: Kafka, UnifiedLog.roll, flush, fetchOffsetByTimestamp; spec L-17, L-20, L-21, C-4.5.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import Enum, auto

from storage.files.files import remove_if_exists
from storage.formats.batch_header import NO_TIMESTAMP
from storage.log.errors import IllegalArgumentError, OffsetOutOfRangeError
from storage.log.leader_epoch_file_cache import LeaderEpochFileCache
from storage.log.local_log import LocalLog
from storage.log.log_config import LogConfig
from storage.log.offsets import UNKNOWN, OffsetMetadata, TimestampAndOffset
from storage.log.producer_state_manager import ProducerStateManager
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
        directory.guarded("flushing", lambda: state.producers.flush_snapshot(snapshot))
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
    found = [producers.mark_snapshot_deleted(segment.base_offset) for segment in segments]
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


class Isolation(Enum):
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
