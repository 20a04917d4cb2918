"""Offsets with the place in the log where they stand. Source: Kafka, LogOffsetMetadata."""

from typing import NamedTuple

UNKNOWN = -1


class OffsetMetadata(NamedTuple):
    """An offset, the segment that it is in, and the position in that; both -1 where unknown."""

    offset: int
    segment: int = UNKNOWN  # base offset
    position: int = UNKNOWN

    @property
    def is_offset_only(self) -> bool:
        return self.segment == UNKNOWN and self.position == UNKNOWN


class EndOffset(NamedTuple):
    """Where a leader epoch ends: the epoch that is meant, and the offset after its last record."""

    epoch: int
    offset: int


class TimestampAndOffset(NamedTuple):
    """The answer to a look-up by time."""

    timestamp_ms: int
    offset: int
    leader_epoch: int | None


class LargestTimestamp(NamedTuple):
    """A time, and the last offset of the first batch that has it; both -1 for none."""

    timestamp_ms: int
    offset: int


class OffsetSnapshot(NamedTuple):
    """Where a log begins and ends, for whom."""

    log_start: int
    log_end: OffsetMetadata
    high_watermark: OffsetMetadata
    last_stable: OffsetMetadata
