"""Old segments: which go by log start, size and time.

Source: Kafka, UnifiedLog; spec C-18, L-23.
"""

from collections.abc import Callable

from storage.log.engine.errors import OffsetOutOfRangeError
from storage.log.engine.parts import LogParts, roll
from storage.log.engine.segment import LogSegment
from storage.log.engine.snapshot_deletion import delete_snapshots

_Goes = Callable[[LogSegment, LogSegment | None], bool]  # a segment, and the next one


def delete_old_segments(parts: LogParts) -> int:
    """Delete what the topic's retention says; give how many segments were selected."""
    deleted = _delete(parts, lambda _, after: _is_below_start(parts, after))
    if parts.config.is_deleted:
        deleted += _by_size(parts)
        deleted += _by_time(parts)
    return deleted


def _is_below_start(parts: LogParts, after: LogSegment | None) -> bool:
    return after is not None and after.base_offset <= parts.marks.log_start


def _by_size(parts: LogParts) -> int:
    most, size = parts.config.retention_bytes, parts.local.segments.size_bytes
    if most < 0 or size < most:
        return 0
    excess = size - most

    def goes(segment: LogSegment, _: LogSegment | None) -> bool:
        nonlocal excess
        if excess < segment.size_bytes:
            return False
        excess -= segment.size_bytes
        return True

    return _delete(parts, goes)


def _by_time(parts: LogParts) -> int:
    most, now_ms = parts.config.retention_ms, parts.now_ms
    if most < 0:
        return 0
    return _delete(parts, lambda segment, _: now_ms - segment.largest_timestamp > most)


def _delete(parts: LogParts, goes: _Goes) -> int:
    chosen = _chosen(parts, goes)
    if chosen:
        parts.local.directory.guarded("deleting segments", lambda: _remove(parts, chosen))
    return len(chosen)


def _chosen(parts: LogParts, goes: _Goes) -> list[LogSegment]:
    """The oldest segments, up to the first that stays; none that is not replicated."""
    segments, chosen = parts.local.segments, []
    for segment in segments:
        after = segments.higher(segment.base_offset)
        end = parts.local.end_offset if after is None else after.base_offset
        if parts.marks.high_watermark < end or not goes(segment, after):
            break
        if after is None and not segment.size_bytes:
            break
        chosen.append(segment)
    return chosen


def _remove(parts: LogParts, chosen: list[LogSegment]) -> None:
    local, removed = parts.local, chosen
    if len(local.segments) == len(chosen):
        made = roll(parts)
        if chosen[-1].base_offset == made.base_offset:  # it was empty, and is replaced already
            removed = chosen[:-1]
    local.require_open()
    if removed:
        after = local.segments.higher(removed[-1].base_offset)
        assert after is not None, "there is always an active segment"
        increment_log_start(parts, after.base_offset)
        local.remove(removed)
        delete_snapshots(local, parts.producers, chosen)


def increment_log_start(parts: LogParts, offset: int) -> bool:
    """Let the log begin later; whether it does. No file is deleted here."""
    if offset > parts.marks.high_watermark:
        raise OffsetOutOfRangeError(
            f"offset {offset} is past the high watermark {parts.marks.high_watermark}"
        )
    parts.local.require_open()
    if offset <= parts.marks.log_start:
        return False
    parts.marks.set_log_start(offset)
    parts.epochs.truncate_from_start(offset)
    parts.producers.on_log_start(offset)
    parts.marks.update_first_unstable()
    return True
