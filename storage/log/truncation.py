"""The end of a log, moved back: to an offset, or all of it gone.

Source: Kafka, UnifiedLog.truncateTo, truncateFullyAndStartAt; spec L-22.
"""

from contextlib import AbstractContextManager, nullcontext

from storage.log.errors import IllegalArgumentError
from storage.log.parts import LogParts
from storage.log.rebuilding_producers import rebuild_producers
from storage.log.segment_deletion import delete_snapshots


def around(parts: LogParts, offset: int, is_full: bool = False) -> AbstractContextManager[object]:
    """What the owner of the log does about a truncation."""
    local, segments = parts.local, parts.local.segments
    if local.is_closed or offset < 0 or not len(segments):
        return nullcontext()
    if is_full:
        return parts.truncating(offset, offset)
    if offset >= local.end_offset:
        return nullcontext()
    if offset >= segments.active.base_offset:  # in which no cleaner is ever at work
        return parts.truncating(offset, None)
    left = segments.floor(offset)
    return parts.truncating(offset, offset if left is None else left.base_offset)


def truncate_to(parts: LogParts, offset: int) -> bool:
    """End the log at an offset; whether anything was cut off."""
    local = parts.local
    if offset < 0:
        raise IllegalArgumentError(f"a log cannot end at offset {offset}")
    if offset >= local.end_offset:
        parts.epochs.truncate_from_end(local.end_offset)
        return False
    local.require_open()
    if local.segments.first.base_offset > offset:
        truncate_fully(parts, offset, None)
        return True
    gone = local.truncate_to(offset)
    delete_snapshots(local, parts.producers, gone)
    parts.epochs.truncate_from_end(offset)
    parts.marks.log_start = min(offset, parts.marks.log_start)
    rebuild(parts, offset)
    local.sync_names()  # snapshots are gone that would say too much, once the log is as long again
    if parts.marks.high_watermark >= local.end_offset:
        parts.marks.set_high_watermark(local.end)
    return True


def truncate_fully(parts: LogParts, offset: int, log_start: int | None) -> None:
    """Delete everything, and go on at an offset."""
    parts.local.truncate_fully(offset)
    parts.epochs.clear()
    parts.producers.truncate_fully(offset)
    parts.marks.log_start = offset if log_start is None else log_start
    rebuild(parts, offset)
    parts.local.sync_names()
    parts.marks.set_high_watermark(parts.local.end)


def rebuild(parts: LogParts, end: int) -> None:
    """Bring the state of producers to an offset."""
    parts.local.require_open()
    segments, start = parts.local.segments, parts.marks.log_start
    rebuild_producers(parts.producers, segments, start, end, parts.now_ms, False)
