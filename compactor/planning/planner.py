"""Segments to segment groups: which neighbours become one segment when they are cleaned.

Pure. Source: Kafka, Cleaner.groupSegmentsBySize, lastOffsetForFirstSegment; spec C-9.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cleaner_jobs.plan import LogPlan, SegmentGroup
from storage.formats.segment import MAX_RELATIVE_OFFSET, Segment

OFFSET_INDEX_ENTRY_BYTES = 8
TIME_INDEX_ENTRY_BYTES = 12


@dataclass(frozen=True, slots=True)
class SegmentLimits:
    """What the sources of one cleaned segment may add up to."""

    log_bytes: int  # segment.bytes
    index_bytes: int  # segment.index.bytes, for either index


@dataclass(slots=True)
class _Group:
    """A group being filled, with its sums."""

    segments: list[Segment]
    log_bytes: int
    index_bytes: int
    time_index_bytes: int

    def takes(self, segment: Segment, last_offset: int, limits: SegmentLimits) -> bool:
        """Say whether a segment fits in too (C-9.1); last_offset is the highest it can hold."""
        return (
            self.log_bytes + segment.log_bytes <= limits.log_bytes
            and self.index_bytes + _index_bytes(segment) <= limits.index_bytes
            and self.time_index_bytes + _time_index_bytes(segment) <= limits.index_bytes
            and (
                segment.log_bytes == 0
                or last_offset - self.segments[0].base_offset <= MAX_RELATIVE_OFFSET
            )
        )

    def add(self, segment: Segment) -> None:
        self.segments.append(segment)
        self.log_bytes += segment.log_bytes
        self.index_bytes += _index_bytes(segment)
        self.time_index_bytes += _time_index_bytes(segment)


def group_segments(
    segments: Sequence[Segment], limits: SegmentLimits, first_uncleanable_offset: int
) -> tuple[SegmentGroup, ...]:
    """Split segments, by rising base offset, into runs that each fit one cleaned segment.

    Greedy from the first on. A segment over the limits by itself stays alone. Sizes are those
    before the cleaning, and a segment's last offset is taken to be as high as the next one's base
    offset allows (C-9.2), for the last one as first_uncleanable_offset does.
    """
    groups: list[_Group] = []
    base_offsets = [segment.base_offset for segment in segments]
    end_offsets = [*base_offsets[1:], first_uncleanable_offset]
    for segment, end_offset in zip(segments, end_offsets, strict=False):
        if not groups or not groups[-1].takes(segment, end_offset - 1, limits):
            groups.append(_Group([], 0, 0, 0))
        groups[-1].add(segment)
    return tuple(SegmentGroup(tuple(group.segments)) for group in groups)


def with_map_end(plan: LogPlan, end_offset: int) -> LogPlan:
    """Shorten a round to a map that ends at end_offset, exclusive (C-6.4, C-7.8)."""
    segments = [
        segment
        for group in plan.groups
        for segment in group.segments
        if segment.base_offset < end_offset
    ]
    limits = SegmentLimits(plan.segment_bytes, plan.segment_index_bytes)
    groups = group_segments(segments, limits, plan.first_uncleanable_offset)
    return replace(plan, groups=groups, limited_map_end_offset=end_offset)


def _index_bytes(segment: Segment) -> int:
    """Whole entries, as Kafka has them in memory (C-9.4)."""
    entries = (segment.index_bytes or 0) // OFFSET_INDEX_ENTRY_BYTES
    return entries * OFFSET_INDEX_ENTRY_BYTES


def _time_index_bytes(segment: Segment) -> int:
    entries = (segment.time_index_bytes or 0) // TIME_INDEX_ENTRY_BYTES
    return entries * TIME_INDEX_ENTRY_BYTES
