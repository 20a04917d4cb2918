"""A log cut at its bounds: what is clean, what would be cleaned, what has to wait, in bytes. Pure.

An offset inside of a segment is given a position in proportion, since only segments have a size.
"""

from bisect import bisect_right
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from storage.file_names import Segment


class SectionName(StrEnum):
    """The parts of a log, in their order."""

    CLEAN = "clean"
    DIRTY = "dirty"  # would be cleaned now, were it enough
    WAITING = "waiting"  # dirty, and kept from being cleaned by a bound
    ACTIVE = "active"  # the active segment


class Section(NamedTuple):
    name: SectionName
    start_offset: int
    end_offset: int  # exclusive
    size_bytes: int  # of .log files


class Mark(NamedTuple):
    """An offset with a name, and where in the log it lies."""

    name: str
    offset: int
    position: int  # bytes of .log files below it


class Bounds(NamedTuple):
    """The offsets at which a log is cut."""

    log_start: int
    first_dirty: int
    first_uncleanable: int
    log_end: int


def sections_of(segments: Sequence[Segment], bounds: Bounds) -> tuple[Section, ...]:
    """Give the parts of a log that are not empty. segments: all, by rising base offset."""
    active = max(segments[-1].base_offset, bounds.log_start)
    dirty = min(bounds.first_dirty, active)
    waiting = min(max(bounds.first_uncleanable, dirty), active)
    cuts = (bounds.log_start, dirty, waiting, active, bounds.log_end)
    positions = [position_of(segments, bounds.log_end, offset) for offset in cuts]
    found = (
        Section(
            name=name,
            start_offset=cuts[n],
            end_offset=cuts[n + 1],
            size_bytes=positions[n + 1] - positions[n],
        )
        for n, name in enumerate(SectionName)
    )
    return tuple(section for section in found if section.start_offset < section.end_offset)


def position_of(segments: Sequence[Segment], log_end: int, offset: int) -> int:
    """Give how many bytes of the log lie below an offset, in proportion within its segment."""
    number = max(bisect_right(segments, offset, key=lambda s: s.base_offset) - 1, 0)
    segment = segments[number]
    end = segments[number + 1].base_offset if number + 1 < len(segments) else log_end
    before = sum(each.log_bytes for each in segments[:number])
    span = max(end - segment.base_offset, 1)
    within = min(max(offset - segment.base_offset, 0), span)
    return before + segment.log_bytes * within // span
