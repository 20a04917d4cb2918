"""Offsets that are missing between segments, and that no cleaning has taken away.

A gap between two segments is reported if a key from below it occurs again above it. A cleaning that
made the gap would have had all keys up to there in its map, and would have left none of them twice.
So the offsets are missing for another reason: segments were deleted by hand, or old ones were put
back before a log that had gone on.

Other gaps are left alone, since a cleaning, or a replica that copied from a log while it was
cleaned, leaves them:

- inside of batches, and between batches of one segment
- below the first dirty offset, where a checkpoint may claim more than was cleaned
- of fewer offsets than half of what the segment before has
- seen by records of transactions alone, of which a cleaning removes some for other reasons

Three more gaps prove nothing, however large they are (`gap_checks`):

- The producers' state at the next segment ends with the last batch before the gap: the log went on
  with that segment, since the leader had no more of what was between. Source: Kafka,
  UnifiedLog.maybeRoll: a replica's segment begins at the first batch that is fetched for it.
- The gap is as wide as a segment can be: a segment of such a replica was split there.
- An aborted transaction reaches over the end of the gap. A cleaning whose offset map was full takes
  aborted records up to the end of the segment, also above the map, where it leaves keys twice.
"""

import os
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from compactor.log_checks.findings import Finding
from storage.file_names import INDEX, LOG, file_name
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats import checkpoint
from storage.log.log_dir import PartitionListing, segment_end_offset

END_OF_OFFSETS = 2**63 - 1


class Gap(NamedTuple):
    """The offsets that are missing after a segment."""

    path: str  # of its .log
    base_offset: int
    end_position: int  # of its last batch
    end_offset: int
    next_base_offset: int  # of the segment after it

    @property
    def is_small(self) -> bool:
        missing, there = self.next_base_offset - self.end_offset, self.end_offset - self.base_offset
        return 2 * missing < there


def first_dirty_offsets(
    log_dir: str, files: Files = LOCAL
) -> Callable[[PartitionListing, int], int]:
    """Return a function: partition and end offset to first dirty offset.

    Raise CorruptFileError or OSError.
    """
    names = checkpoint.CLEANER_OFFSET, checkpoint.LOG_START
    cleaned, starts = (checkpoint.read(os.path.join(log_dir, name), files) for name in names)

    def of(partition: PartitionListing, end_offset: int) -> int:
        key = partition.topic, partition.partition
        start = max(starts.get(key, 0), partition.segments[0].base_offset)
        entry = cleaned.get(key, start)
        return entry if start <= entry <= end_offset else start

    return of


def missing_segment(partition: PartitionListing, first_dirty_offset: int) -> Finding | None:
    """Say what a round finds of a log, as verify does: None if no missing segment is proven.

    Reads the end of each dirty segment, and more only where one ends far before the next. Raise
    CorruptFileError or OSError where what is damaged, or cannot be read, may hide that one is.
    """
    if not _may_miss_one(partition, first_dirty_offset):
        return None
    from compactor.log_checks.gap_checks import prove_missing  # with kernels, which few logs need

    return prove_missing(partition, first_dirty_offset)


def _may_miss_one(partition: PartitionListing, first_dirty_offset: int) -> bool:
    for segment, following in pairwise(partition.segments):
        if following.base_offset <= first_dirty_offset:
            continue
        stem = os.path.join(partition.path, file_name(segment.base_offset, ""))
        end_offset = segment_end_offset(
            stem + LOG, stem + INDEX, segment.base_offset, partition.access
        )
        gap = Gap(stem, segment.base_offset, 0, end_offset, following.base_offset)
        is_gap = segment.base_offset < end_offset < following.base_offset
        if is_gap and end_offset > first_dirty_offset and not gap.is_small:
            return True
    return False
