"""Swaps a cleaned segment group in: the one place that changes what stands in a log directory.

For each group, with what a starting broker makes of a crash after the step (compaction C-15.5 to
C-15.9, C-16.5); Kafka's own cleaner makes the same renames in the same order (C-15.1):

1. staged files -> .cleaned            .cleaned is deleted: the old log
2. .cleaned -> .swap, .log first, the  while a .cleaned is left, it is of the lowest or a higher
   destinations in descending order    base: that and all .swap from it on go, the old log;
                                       all .swap: the sources in their range go, the new log
3. sources -> .deleted, ascending      .deleted and the rest of the sources go: the new log
4. .swap -> live, .log first, the      renamed, from the lowest .log.swap on nothing else is left
   destinations in ascending order     that could be deleted: the new log
5. sync the directory
6. remove snapshots of merged bases    stale ones are removed, or stay without harm
7. remove the .deleted files           likewise

The lowest destination has the base offset of the first source. Only where a segment is split can
it be higher (C-16.3): then a crash between 2 and 3 leaves the source beside its copies, as it does
in Kafka. An empty .log.swap has no range: of its group only the first source is replaced, the
others stay with what they held, to be cleaned again (C-15.9).

One group at a time: while two stand in .swap, recovery deletes what lies between them.
"""

import os
from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

from cleaner_jobs.task_values import Source
from cleaner_jobs.unchanged import check_unchanged
from storage import filesystem
from storage.file_names import (
    CLEANED,
    DELETED,
    INDEX,
    LOG,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    file_name,
)

SEGMENT_FILES = (LOG, INDEX, TIME_INDEX, TXN_INDEX)  # Kafka's order of renames


class StagedSegment(NamedTuple):
    """A finished segment under names that no broker knows; "" for a file that it does not have."""

    base_offset: int
    log_file: str
    index_file: str
    time_index_file: str
    txn_index_file: str

    @property
    def files(self) -> dict[str, str]:
        """The staged file of each kind that there is, in SEGMENT_FILES' order."""
        staged = self.log_file, self.index_file, self.time_index_file, self.txn_index_file
        return {kind: path for kind, path in zip(SEGMENT_FILES, staged, strict=True) if path}


class StagedGroup(NamedTuple):
    """Finished segments beside the ones that they replace."""

    path: str  # the partition directory
    sources: tuple[Source, ...]
    destinations: tuple[StagedSegment, ...]  # one, but for a split (C-16.3) or one over 2 GiB


class _Move(NamedTuple):
    """A file of a destination: where it is staged, and its name in the log."""

    staged: str
    live: str


def swap_group(group: StagedGroup, remove: Callable[[str], object] | None = None) -> None:
    """Replace the sources by the staged segments, in the steps above.

    remove: takes over the removal of the files of the last step; by default it is done at once.
    Raise LogChangedError, before the first of them, where a source is not what was planned for.
    """
    for source in group.sources:
        check_unchanged(source, os.stat(source.path))
    ascending = [
        [
            _Move(staged, os.path.join(group.path, file_name(segment.base_offset, kind)))
            for kind, staged in segment.files.items()
        ]
        for segment in sorted(group.destinations)
    ]
    _put_beside(group.path, ascending)
    for _, live in chain.from_iterable(reversed(ascending)):
        filesystem.rename(live + CLEANED, live + SWAP)
    deleted = mark_deleted(group.path, [source.base_offset for source in group.sources])
    for _, live in chain.from_iterable(ascending):
        filesystem.rename(live + SWAP, live)
    filesystem.sync_directory(group.path)
    bases = {segment.base_offset for segment in group.destinations}
    for source in group.sources:
        if source.base_offset not in bases:
            _remove(os.path.join(group.path, file_name(source.base_offset, SNAPSHOT)))
    for path in deleted:
        (remove or filesystem.remove)(path)


def _put_beside(path: str, ascending: list[list[_Move]]) -> None:
    """Step 1. The old log is whole: an error leaves nothing that would have to be settled."""
    moves = [move for files in reversed(ascending) for move in reversed(files)]
    try:
        for staged, live in moves:
            filesystem.rename(staged, live + CLEANED)
        filesystem.sync_directory(path)
    except OSError:
        for _, live in moves:
            _remove(live + CLEANED)
        raise


def mark_deleted(path: str, base_offsets: Sequence[int]) -> list[str]:
    """Rename the files of segments to .deleted, in the order given; their new names."""
    deleted = []
    for base_offset in base_offsets:
        for kind in SEGMENT_FILES:
            live = os.path.join(path, file_name(base_offset, kind))
            if os.path.lexists(live):
                filesystem.rename(live, live + DELETED)
                deleted.append(live + DELETED)
    return deleted


def _remove(path: str) -> None:
    if os.path.lexists(path):
        filesystem.remove(path)


def remove_cleaned(path: str) -> None:
    """Remove what a cleaner that failed has left in a partition directory, before its first swap.

    A broker that starts does so too, and would then take a `.swap` of ours at or above the base
    offset of such a file for one that is not complete (C-15.5). Only for who holds the lock.
    """
    left = [e.name for e in filesystem.list_directory(path) if e.name.endswith(CLEANED)]
    for name in left:
        filesystem.remove(os.path.join(path, name))
    if left:
        filesystem.sync_directory(path)


def sweep_staged(path: str, marker: str) -> None:
    """Remove files of a partition directory that runs staged and never finished.

    marker: what their names contain. Only for who holds the log directory's lock.
    """
    for entry in filesystem.list_directory(path):
        if marker in entry.name and not entry.is_dir:
            filesystem.remove(os.path.join(path, entry.name))
