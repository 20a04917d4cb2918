"""Group the segments of a log: which neighbours become one segment when they are cleaned. Pure.

Source: Kafka, Cleaner.groupSegmentsBySize, lastOffsetForFirstSegment; spec C-9.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cleaner_jobs.messages import LogPlan, SegmentGroup
from storage.file_names import MAX_RELATIVE_OFFSET, Segment

OFFSET_INDEX_ENTRY_BYTES = 8
TIME_INDEX_ENTRY_BYTES = 12


@dataclass(frozen=True, slots=True)
class SegmentLimits:
    """What the sources of one cleaned segment may add up to."""

    log_bytes: int  # segment.bytes
    index_bytes: int  # segment.index.bytes, for either index


def group_segments(
    segments: Sequence[Segment], limits: SegmentLimits, first_uncleanable_offset: int
) -> tuple[SegmentGroup, ...]:
    """Split segments, by rising base offset, into runs that each fit one cleaned segment.

    Greedy from the first on. A segment over the limits by itself stays alone. Sizes are those
    before the cleaning, and a segment's last offset is taken to be as high as the next one's base
    offset allows (C-9.2), for the last one as first_uncleanable_offset does.
    """
    groups: list[list[Segment]] = []
    log_bytes = index_bytes = time_index_bytes = 0  # of the last group
    base_offsets = [segment.base_offset for segment in segments]
    end_offsets = [*base_offsets[1:], first_uncleanable_offset]
    for segment, end_offset in zip(segments, end_offsets, strict=False):
        own_bytes = segment.log_bytes
        own_index, own_time_index = _index_bytes(segment), _time_index_bytes(segment)
        fits = (  # C-9.1
            log_bytes + own_bytes <= limits.log_bytes
            and index_bytes + own_index <= limits.index_bytes
            and time_index_bytes + own_time_index <= limits.index_bytes
        )
        if groups and fits and (not own_bytes or _reaches(groups[-1][0], end_offset - 1)):
            groups[-1].append(segment)
            log_bytes += own_bytes
            index_bytes += own_index
            time_index_bytes += own_time_index
        else:
            groups.append([segment])
            log_bytes, index_bytes, time_index_bytes = own_bytes, own_index, own_time_index
    return tuple(SegmentGroup(tuple(group)) for group in groups)


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


def _reaches(first: Segment, last_offset: int) -> bool:
    """Whether an offset can be expressed relative to the base offset of a group's first segment."""
    return last_offset - first.base_offset <= MAX_RELATIVE_OFFSET


def _index_bytes(segment: Segment) -> int:
    """Whole entries, as Kafka has them in memory (C-9.4)."""
    found = segment.index_bytes or 0
    return found - found % OFFSET_INDEX_ENTRY_BYTES


def _time_index_bytes(segment: Segment) -> int:
    found = segment.time_index_bytes or 0
    return found - found % TIME_INDEX_ENTRY_BYTES
