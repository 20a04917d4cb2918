"""Offsets that are missing between segments, and that no cleaning has taken away.

A cleaning leaves gaps of every kind: inside of batches, between them, and between segments, since a
segment keeps its base offset when its last records go. So does one that was cut short, or whose
checkpoint was lost since, and then they lie above the first dirty offset, too. But whatever took
records from behind a segment has gone over it and all before it: with all keys up to there in its
map, it left none of them there twice. Where one is, no cleaning was there, and what is missing is
missing for another reason: segments were deleted by hand, or old ones put back before a log that
had gone on.

A replica that copies from one that is being cleaned meanwhile has gaps behind what it copied
before, too, but small ones, and all over its segments. So nothing is said where offsets are missing
anywhere but between segments, from the first dirty one on, nor of fewer than half of what the
segment before has; nor below the first dirty offset, where a checkpoint may claim more than was
cleaned; nor by records of transactions, of which a cleaning takes some for other reasons.
"""

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from compactor.verification.verify_batches import Finding, SegmentCheck, SegmentColumns
from storage.file_names import LOG, file_name
from storage.formats.batch_columns import (
    ATTRIBUTES,
    IN_MAP,
    RECORDS_COUNT,
    Int64Array,
)
from storage.formats.batch_header import TRANSACTIONAL
from storage.formats.segment import Segment

KEYS = 1 << 22  # of a log are looked at, 24 bytes each
_END_OF_OFFSETS = 2**63 - 1


class Gap(NamedTuple):
    """What is missing behind a segment."""

    path: str  # of its .log
    base_offset: int
    end_position: int  # of its last batch
    end_offset: int
    next_base_offset: int  # of the segment behind it

    @property
    def is_small(self) -> bool:
        missing, there = self.next_base_offset - self.end_offset, self.end_offset - self.base_offset
        return 2 * missing < there


def gap_behind(
    path: str, segment: Segment, columns: SegmentColumns, next_base_offset: int | None
) -> Gap | None:
    """The gap; None if the next segment begins where this one ends, or if there is no next
    segment or no record."""
    if next_base_offset is None or not len(columns.last_offsets):
        return None
    end_offset = int(columns.last_offsets[-1]) + 1
    if end_offset >= next_base_offset:
        return None
    return Gap(path, segment.base_offset, columns.end_position, end_offset, next_base_offset)


def check_gaps(
    directory: str, bases: Sequence[int], gaps: Iterable[Gap], first_dirty_offset: int
) -> Iterator[Finding]:
    """What is wrong with gaps between sound segments, which have no others from there on.

    bases: of all segments. OSError where one cannot be read again.
    """
    keys, twice = _Keys(), None
    unread = list(bases[max(bisect_right(bases, first_dirty_offset) - 1, 0) :])
    limits = first_dirty_offset, _END_OF_OFFSETS, 0
    for gap in gaps:
        if gap.end_offset <= first_dirty_offset or gap.is_small:
            continue
        while twice is None and unread and unread[0] < gap.end_offset:
            base_offset = unread.pop(0)
            path = os.path.join(directory, file_name(base_offset, LOG))
            SegmentCheck(path, base_offset, limits, keys.take).run()
            twice = keys.first_twice()
        if twice is not None:
            problem = (
                f"offsets {gap.end_offset} to {gap.next_base_offset - 1} are missing behind this "
                f"segment, and no cleaning has removed them: it would not have left both offset "
                f"{twice[0]} and offset {twice[1]}, which have the same key"
            )
            yield Finding(gap.path, gap.end_position, problem)


class _Keys:
    """The keys of some segments, as far as they are looked at."""

    def __init__(self) -> None:
        self._taken: list[tuple[Any, Any, Int64Array]] = []
        self._count = 0

    def take(self, rows: Int64Array, columns: Any) -> None:
        if self._count >= KEYS:
            return
        first_hash, second_hash, offsets, states = columns
        plain = np.repeat(rows[:, ATTRIBUTES] & TRANSACTIONAL == 0, rows[:, RECORDS_COUNT])
        taken = plain & (states & IN_MAP != 0)
        self._taken.append((first_hash[taken], second_hash[taken], offsets[taken]))
        self._count += int(taken.sum())

    def first_twice(self) -> tuple[int, int] | None:
        """Two offsets of one key."""
        if not self._taken:
            return None
        columns = [np.concatenate(column) for column in zip(*self._taken, strict=True)]
        order = np.lexsort(columns[::-1])
        first, second, offsets = (column[order] for column in columns)
        twice = np.flatnonzero((first[1:] == first[:-1]) & (second[1:] == second[:-1]))
        if not len(twice):
            return None
        at = twice[np.argmin(offsets[twice + 1])]
        return int(offsets[at]), int(offsets[at + 1])
