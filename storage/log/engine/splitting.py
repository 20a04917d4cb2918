"""A segment with offsets too far apart for its indexes, cut into several while a log is loaded.

1. The batches are copied to new segments, each of which takes them as long as they fit above its
   first one; the files have `.cleaned` at their end, and are synced.
2. They take its place (`segment_swap`). A start that comes before the last of them has `.swap` at
   its end finds the old segment as it was, and splits it again.
3. The old files are deleted where the segment was loaded already; else a new one of the same base
   offset takes their names.

Source: Kafka, LocalLog.splitOverflowedSegment, LogLoader.retryOnOffsetOverflow; spec L-8.4, L-25.3,
C-16.3 to C-16.6.
"""

from collections.abc import Sequence

from storage.file_names import CLEANED
from storage.log.engine.errors import (
    IllegalArgumentError,
    IllegalStateError,
    NoSuchElementError,
)
from storage.log.engine.local_log import LocalLog
from storage.log.engine.segment import LogSegment
from storage.log.engine.segment_swap import put_in_place
from storage.log.engine.segment_values import IncomingBytes


def split(local: LocalLog, segment: LogSegment) -> list[LogSegment]:
    """Put several segments in the place of one; give it where no new one has its base offset.

    Raise IllegalArgumentError where its last offset does fit, as where one in the middle is wrong.
    """
    end = segment.next_offset()
    if end <= segment.base_offset or segment.holds(end - 1):
        raise IllegalArgumentError(
            f"segment {segment.base_offset} ends at offset {end}: there is nothing to split"
        )
    made: list[LogSegment] = []
    try:
        _copy(local, segment, made)
        time_ms = segment.last_modified_ms
        for new in made:
            new.become_inactive()
            new.flush()
            new.set_last_modified(time_ms)
    except BaseException:
        for new in made:
            new.delete()
        raise
    return _swap_in(local, segment, made)


def _copy(local: LocalLog, source: LogSegment, made: list[LogSegment]) -> None:
    position = 0
    while position < source.size_bytes:
        first = next(source.log.batches(position), None)
        if first is None:
            raise NoSuchElementError(f"no batch at byte {position} of {source.base_offset}")
        new = _cleaned(local, first.base_offset)
        made.append(new)
        copied = _fill(new, source, position)
        if not copied:
            raise IllegalStateError(f"no batch fits a segment of base {new.base_offset}")
        position += copied


def _cleaned(local: LocalLog, base_offset: int) -> LogSegment:
    stale = LogSegment(local.place, base_offset, local.config, suffix=CLEANED)
    stale.delete()
    return LogSegment(local.place, base_offset, local.config, is_new=True, suffix=CLEANED)


def _fill(new: LogSegment, source: LogSegment, start: int) -> int:
    """Copy the batches from a position on that fit; give their bytes."""
    copied = 0
    for batch in source.log.batches(start):
        if not new.holds(batch.last_offset):
            break
        incoming = IncomingBytes(batch.size_bytes, batch.max_timestamp, batch.last_offset)
        new.append_one(incoming, batch.data)
        copied += batch.size_bytes
    return copied


def _swap_in(local: LocalLog, old: LogSegment, made: Sequence[LogSegment]) -> list[LogSegment]:
    bases = {new.base_offset for new in made}
    if any(each is old for each in local.segments):
        put_in_place(local, [old], made)
        return [] if old.base_offset in bases else [old]
    # Kafka's own way: an old one that was not loaded is replaced by the one of its base offset
    # alone. Without such a one it stays, behind those that its batches are in.
    put_in_place(local, [], made)
    old.close_handles()
    return []
