"""What a log is made of, and the moves of its end that several operations need.

Source: Kafka, UnifiedLog.roll, flush; spec L-21.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from storage.log.leader_epoch_file_cache import LeaderEpochFileCache
from storage.log.local_log import LocalLog
from storage.log.log_config import LogConfig
from storage.log.producer_state_manager import ProducerStateManager
from storage.log.scheduler import Scheduler
from storage.log.segment import LogSegment
from storage.log.watermarks import Watermarks

Truncating = Callable[[int, int | None], AbstractContextManager[object]]


def no_owner(end: int, base: int | None) -> AbstractContextManager[object]:
    """A log that stands for itself."""
    return nullcontext((end, base))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogParts:
    """Whoever works on them holds the log's lock."""

    local: LocalLog
    marks: Watermarks
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


def roll(parts: LogParts, expected: int = 0) -> LogSegment:
    """Begin a new segment, with a snapshot of the producers; what lies before is flushed."""
    local, producers = parts.local, parts.producers

    def action() -> LogSegment:
        segment = local.roll(expected)
        producers.map_end_offset = segment.base_offset
        snapshot = producers.take_snapshot(sync=False)
        parts.marks.follow_end()
        parts.scheduler.schedule_once(lambda: _flush_rolled(parts, snapshot, segment.base_offset))
        return segment

    return local.directory.guarded("rolling a segment", action)


def _flush_rolled(parts: LogParts, snapshot: str | None, base_offset: int) -> None:
    if snapshot is not None:
        directory = parts.local.directory
        directory.guarded("flushing", lambda: parts.producers.flush_snapshot(snapshot))
    flush(parts, base_offset, including=False)


def flush(parts: LogParts, offset: int, including: bool) -> None:
    """Sync what lies below an offset; from then on the recovery point is there.

    including: the active segment too, where the offset is the log end, even if it is empty.
    """
    local = parts.local

    def action() -> None:
        end = offset + 1 if including else offset
        if end > local.recovery_point:
            cuts = local.cuts
            local.flush(end)
            local.require_open()
            local.mark_flushed(offset, cuts)

    local.directory.guarded("flushing", action)
