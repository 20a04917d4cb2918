"""Offsets for times, the special ones too. Source: Kafka, UnifiedLog.fetchOffsetByTimestamp; spec
L-20.
"""

from enum import Enum, auto

from storage.formats.batch_header import NO_TIMESTAMP
from storage.log.offsets import UNKNOWN, TimestampAndOffset
from storage.log.parts import LogParts

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


def offset_by_timestamp(parts: LogParts, timestamp_ms: int) -> TimestampAndOffset | None:
    """The first record that is not older than a time, or the answer to a special one."""
    if timestamp_ms == LATEST:
        epoch = parts.epochs.latest
        return TimestampAndOffset(NO_TIMESTAMP, parts.local.end_offset, epoch)
    if timestamp_ms in (EARLIEST, EARLIEST_LOCAL):
        return _earliest(parts)
    if timestamp_ms == MAX:
        return _largest(parts)
    if timestamp_ms in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return TimestampAndOffset(NO_TIMESTAMP, UNKNOWN, UNKNOWN)
    for segment in parts.local.segments:
        if segment.largest_timestamp >= timestamp_ms:
            return segment.find_offset(timestamp_ms, parts.marks.log_start)
    return None


def _earliest(parts: LogParts) -> TimestampAndOffset:
    start = parts.marks.log_start
    first = next(iter(parts.epochs.entries), None)
    epoch = first.epoch if first is not None and first.start_offset <= start else None
    return TimestampAndOffset(NO_TIMESTAMP, start, epoch)


def _largest(parts: LogParts) -> TimestampAndOffset | None:
    segment = max(parts.local.segments, key=lambda each: each.largest_so_far.timestamp_ms)
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
