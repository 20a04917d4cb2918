"""Prove of the gaps between segments which are missing offsets; see `missing_offsets`."""

import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from compactor.host.printable import first_few, offset_range
from compactor.log_checks.batch_checks import SegmentCheck, SegmentColumns
from compactor.log_checks.findings import Finding
from compactor.log_checks.missing_offsets import END_OF_OFFSETS, Gap
from compactor.log_checks.segment_checks import check_segment
from storage.errors import CorruptFileError
from storage.file_names import DELETED, LOG, SNAPSHOT, TXN_INDEX, Segment, file_name, offset_of
from storage.formats import producer_snapshot, txn_index
from storage.formats.batch_columns import (
    ATTRIBUTES,
    IN_MAP,
    RECORDS_COUNT,
    Int64Array,
    RecordLimits,
)
from storage.formats.batch_header import TRANSACTIONAL
from storage.log.log_dir import PartitionListing

KEYS = 1 << 22  # of a log are looked at, 24 bytes each
SPLIT_OFFSETS = 1 << 29  # what is missing where a segment was split is never fewer


class Missing(NamedTuple):
    """What is missing between two segments, and what has it."""

    finding: Finding
    filling: tuple[str, ...]  # `.log.deleted` files that have all of it, in order; none: it is gone


def gap_after(
    path: str, segment: Segment, columns: SegmentColumns, next_base_offset: int | None
) -> Gap | None:
    """Return the gap after a segment; None if the next segment begins where this one ends.

    None without a next segment, or without a record, too.
    """
    if next_base_offset is None or not len(columns.last_offsets):
        return None
    end_offset = int(columns.last_offsets[-1]) + 1
    if end_offset >= next_base_offset:
        return None
    return Gap(path, segment.base_offset, columns.end_position, end_offset, next_base_offset)


def check_gaps(
    partition: PartitionListing, gaps: Iterable[Gap], first_dirty_offset: int
) -> Iterator[Missing]:
    """Yield what is wrong with gaps between sound segments, which have no other gaps from then on.

    OSError where one cannot be read again.
    """
    bases, files = [segment.base_offset for segment in partition.segments], partition.access
    keys, twice = _Keys(), None
    unread = list(bases[max(bisect_right(bases, first_dirty_offset) - 1, 0) :])
    limits = RecordLimits(first_dirty_offset, END_OF_OFFSETS, 0)
    for gap in gaps:
        if gap.end_offset <= first_dirty_offset or gap.is_small:
            continue
        if _may_be_sound(partition, bases, gap):
            continue
        while twice is None and unread and unread[0] < gap.end_offset:
            base_offset = unread.pop(0)
            path = os.path.join(partition.path, file_name(base_offset, LOG))
            SegmentCheck(path, base_offset, limits, keys.take, files).run()
            twice = keys.first_twice()
        if twice is not None:
            missing = offset_range(gap.end_offset, gap.next_base_offset - 1)
            problem = (
                f"missing behind this segment: {missing}, and no cleaning has removed that: "
                f"it would not have left both offset {twice[0]} and offset {twice[1]}, "
                "which have the same key"
            )
            filling = _filling(partition, gap)
            if filling:
                names = first_few([os.path.basename(path) for path in filling])
                problem += f"; all of it is in {names}, to be renamed back"
            yield Missing(Finding(gap.path, gap.end_position, problem), filling)


def _filling(partition: PartitionListing, gap: Gap) -> tuple[str, ...]:
    """Look for `.log.deleted` files that have every offset of a gap, each of them sound."""
    files, found, end_offset = partition.access, [], gap.end_offset
    _, names = files.list_names(partition.path)
    for name in sorted(name for name in names if name.endswith(LOG + DELETED)):
        base_offset, path = offset_of(name), os.path.join(partition.path, name)
        if base_offset != end_offset:
            continue
        check = SegmentCheck(path, base_offset, files=files)
        columns = check.run()
        if check.findings or columns.last_missing_offset >= 0 or not len(columns.last_offsets):
            break
        found.append(path)
        end_offset = int(columns.last_offsets[-1]) + 1
        if end_offset == gap.next_base_offset:
            return tuple(found)
    return ()


def _may_be_sound(partition: PartitionListing, bases: Sequence[int], gap: Gap) -> bool:
    if gap.next_base_offset - gap.end_offset >= SPLIT_OFFSETS:
        return True
    if _last_of_producers(partition, gap.next_base_offset) == gap.end_offset - 1:
        return True
    behind = bases[bisect_left(bases, gap.next_base_offset) :]
    indexes = (os.path.join(partition.path, file_name(base, TXN_INDEX)) for base in behind)
    try:
        return any(
            aborted.first_offset < gap.next_base_offset <= aborted.last_offset
            for path in indexes
            for aborted in txn_index.read(path, partition.access)
        )
    except CorruptFileError:  # a finding of its own: what it hides may have been aborted
        return True


def _last_of_producers(partition: PartitionListing, offset: int) -> int | None:
    """The last offset of what idempotent producers had written below an offset, if it is known."""
    path = os.path.join(partition.path, file_name(offset, SNAPSHOT))
    try:
        entries = producer_snapshot.read(path, partition.access)
    except (CorruptFileError, FileNotFoundError):  # a finding of its own, or a broker makes it
        return None
    return max(
        (entry.last_offset for entry in entries if entry.last_offset is not None), default=None
    )


def prove_missing(partition: PartitionListing, first_dirty_offset: int) -> Finding | None:
    """Read the dirty segments, and say what is missing; None if no missing segment is proven.

    Raise CorruptFileError or OSError where what is damaged, or cannot be read, may hide one.
    """
    bases = [segment.base_offset for segment in partition.segments]
    gaps, files, hiding = [], partition.access, None
    for segment, next_base in zip(partition.segments, [*bases[1:], None], strict=True):
        if next_base is not None and next_base <= first_dirty_offset:
            continue
        findings, columns = check_segment(partition.path, segment, next_base, files)
        if columns.last_missing_offset >= first_dirty_offset:
            return None
        path = os.path.join(partition.path, file_name(segment.base_offset, LOG))
        gap = None if findings else gap_after(path, segment, columns, next_base)
        gaps += [] if gap is None else [gap]
        telling = (TXN_INDEX,) if next_base is None else (LOG, TXN_INDEX)
        hiding = hiding or next((f for f in findings if f.path.endswith(telling)), None)
    found = next(check_gaps(partition, gaps, first_dirty_offset), None)
    if found is None and hiding is not None:
        raise CorruptFileError(hiding.path, hiding.position, hiding.problem)
    return None if found is None else found.finding


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
