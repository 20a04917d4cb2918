"""Swaps a cleaned segment group in: the one place that changes what stands in a log directory.

For each group, with what a starting broker makes of it if the power goes in the step (compaction
C-15.5 to C-15.9, C-16.5). Of what a step renames any part may have reached the disk by then, in
whatever order: only the sync at its end says that all has.

1. staged files -> .cleaned; sync         .cleaned is deleted: the old log
2. .cleaned -> .swap, .log first, the     while a .cleaned is left, it is of the lowest base: that
   destinations in descending order;      and all .swap from it on go, the old log; all .swap: the
   sync before the lowest one; sync       sources in their range go, the new log
3. remove the sources, ascending; sync    those in the range of the destinations go: the new log;
                                          of those behind it the last ones are left, whole
4. of each destination, ascending:
   .log.swap -> live; sync                from the lowest .log.swap on nothing else is left that
                                          could be deleted, index files are renamed: the new log
   .index.swap and so on -> live          likewise
5. sync                                   nothing is left to do
6. remove snapshots of merged bases       stale ones are removed, or stay without harm

Kafka's own cleaner makes the same renames in the same order and syncs in 1 and 5 alone (C-15.1): it
counts on a file system that keeps the order. Without the other syncs sources could be gone and
their successor not be there, or old segments lie beside the one that they were merged into.
It renames the sources to .deleted in 3, for those who still read them, and removes them a minute
later. Here nobody does, and a starting broker makes the same of a source in either state.

The range begins at the lowest destination and ends where the highest one's last batch does: behind
that, all the records of the group have gone, and that of an empty destination has nothing in it
(C-15.9). What lies behind goes from the front, so that no tombstone goes before what it hides: the
.log of each is synced away by itself, its index files after it.

Two things stand in .swap for the sake of recovery alone, and are removed where the others get their
names. An empty .txnindex beside an empty destination: the first source's own would outlive it
otherwise. An empty segment in the place of a source with a lower base offset than all destinations,
as a split may leave one (C-16.3): it stretches the range over that source.

One group of a log at a time, in ascending order: while two stand in .swap, recovery deletes what
lies between them, and a later group may drop a tombstone as an earlier one drops what it hides.
Groups with nothing between them, none of which becomes empty, may go in as one: as a split does,
they count all together or not at all.
"""

import os
from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

from cleaner_jobs.task_values import Source
from cleaner_jobs.unchanged import check_in_place
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
from storage.files.files import Files, size_of
from storage.formats.index_entry import read_last
from storage.log.segment_reader import read_batch_headers

INDEX_FILES = (INDEX, TIME_INDEX, TXN_INDEX)
SEGMENT_FILES = (LOG, *INDEX_FILES)  # Kafka's order of renames


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
    destinations: tuple[StagedSegment, ...]  # one, but for a split (C-16.3), one over 2 GiB, or
    # several groups side by side


def side_by_side(groups: Sequence[StagedGroup]) -> StagedGroup:
    """Groups that follow one another in a log as one. No destination of several may be empty."""
    sources = chain.from_iterable(group.sources for group in groups)
    destinations = chain.from_iterable(group.destinations for group in groups)
    return StagedGroup(groups[0].path, tuple(sources), tuple(destinations))


class _Move(NamedTuple):
    """A file of a destination: where it is staged, and its name in the log."""

    staged: str
    live: str
    stands_in: bool = False  # empty, for recovery alone: it never gets that name


def swap_group(
    files: Files,
    group: StagedGroup,
    remove: Callable[[Sequence[str]], object] | None = None,
    names: Container[str] | None = None,
) -> None:
    """Replace the sources by the staged segments, in the steps above.

    remove: removes files, which may be many, and comes back when their names are gone; by default
    they are removed here, one after the other. names: of the files of the sources, where the caller
    has just looked.
    Raise LogChangedError, before the first of them, where a source is not what was planned for.
    """
    for source in group.sources:
        check_in_place(source, files)
    ascending = _moves(files, group)
    range_end = _end_offset(files, max(group.destinations))
    _put_beside(files, group.path, ascending)
    _complete(files, group.path, ascending)
    replaced = [source.base_offset for source in group.sources]
    there = _Standing(files, group.path, names)
    remove = remove or partial(_remove_each, files)
    _remove_sources(there, replaced, range_end, remove)
    _name(files, group.path, ascending)
    bases = {segment.base_offset for segment in group.destinations}
    remove(there.paths_of([base for base in replaced if base not in bases], (SNAPSHOT,)))


class _Standing(NamedTuple):
    """The files of a partition directory that are there."""

    files: Files
    path: str
    names: Container[str] | None  # None: each is looked for

    def paths_of(self, base_offsets: Iterable[int], kinds: Sequence[str]) -> list[str]:
        """Those of segments' files, in the order given, as far as they are there."""
        names = (file_name(base_offset, kind) for base_offset in base_offsets for kind in kinds)
        if self.names is not None:
            known = self.names
            # a .log is there: if it were passed over, it would lie beside what replaces it
            names = (name for name in names if name in known or name.endswith(LOG))
            return [f"{self.path}/{name}" for name in names]
        paths = (f"{self.path}/{name}" for name in names)
        return [path for path in paths if self.files.exists(path)]


def _moves(files: Files, group: StagedGroup) -> list[list[_Move]]:
    """The files of each destination, .log first, by ascending base offset."""
    ascending = [
        [
            _Move(staged, os.path.join(group.path, file_name(segment.base_offset, kind)))
            for kind, staged in segment.files.items()
        ]
        for segment in sorted(group.destinations)
    ]
    lowest, first = min(group.destinations), group.sources[0].base_offset
    if first < lowest.base_offset:
        missing = [_stand_in(group, kind) for kind in (LOG, INDEX, TIME_INDEX)]
        return [missing, *ascending]
    if not lowest.txn_index_file and not size_of(files, lowest.log_file):
        stand_in = _stand_in(group, TXN_INDEX)
        if files.exists(stand_in.live):
            ascending[0].append(stand_in)
    return ascending


def _stand_in(group: StagedGroup, kind: str) -> _Move:
    """An empty file in the place of one of the first source's."""
    live = os.path.join(group.path, file_name(group.sources[0].base_offset, kind))
    staged = f"{min(group.destinations).log_file}-no-{kind[1:]}"
    return _Move(staged, live, stands_in=True)


def _end_offset(files: Files, segment: StagedSegment) -> int:
    """Where recovery takes a destination to end (C-15.6, F-12.9)."""
    start = 0
    if segment.index_file:
        start = read_last(segment.index_file, segment.base_offset, files).position
    end_offset = segment.base_offset
    for _, header in read_batch_headers(segment.log_file, start, files=files):
        end_offset = header.next_offset
    return end_offset


def _put_beside(files: Files, path: str, ascending: list[list[_Move]]) -> None:
    """Step 1. The old log is whole: an error leaves nothing that would have to be settled."""
    moves = [move for each in reversed(ascending) for move in reversed(each)]
    try:
        for staged, live, stands_in in moves:
            if stands_in:
                files.replace_file(staged, b"")
            files.rename(staged, live + CLEANED)
        files.sync_directory(path)
    except OSError:
        for move in moves:
            _remove(files, move.live + CLEANED)
        raise


def _complete(files: Files, path: str, ascending: list[list[_Move]]) -> None:
    """Step 2: with its end the new log counts."""
    lowest, *others = ascending
    for move in chain.from_iterable(reversed(others)):
        files.rename(move.live + CLEANED, move.live + SWAP)
    if others:
        files.sync_directory(path)
    for move in lowest:
        files.rename(move.live + CLEANED, move.live + SWAP)
    files.sync_directory(path)


def _remove_sources(
    there: _Standing,
    base_offsets: Sequence[int],
    range_end: int,
    remove: Callable[[Sequence[str]], object],
) -> None:
    """Step 3."""
    remove(there.paths_of([base for base in base_offsets if base < range_end], SEGMENT_FILES))
    for base_offset in base_offsets:
        if base_offset >= range_end:
            _remove_each(there.files, there.paths_of([base_offset], (LOG,)))
            there.files.sync_directory(there.path)
            _remove_each(there.files, there.paths_of([base_offset], INDEX_FILES))
    there.files.sync_directory(there.path)


def _name(files: Files, path: str, ascending: list[list[_Move]]) -> None:
    """Steps 4 and 5."""
    for log, *indexes in ascending:
        _give_name(files, log)
        files.sync_directory(path)
        for index in indexes:
            _give_name(files, index)
    files.sync_directory(path)


def _give_name(files: Files, move: _Move) -> None:
    if move.stands_in:
        files.remove(move.live + SWAP)
    else:
        files.rename(move.live + SWAP, move.live)


def mark_deleted(
    files: Files, path: str, base_offsets: Sequence[int], kinds: Sequence[str] = SEGMENT_FILES
) -> list[str]:
    """Rename files of segments to .deleted, in the order given; their new names."""
    deleted = []
    for live in _Standing(files, path, None).paths_of(base_offsets, kinds):
        files.rename(live, live + DELETED)
        deleted.append(live + DELETED)
    return deleted


def _remove_each(files: Files, paths: Iterable[str]) -> None:
    for path in paths:
        files.remove(path)


def _remove(files: Files, path: str) -> None:
    if files.exists(path):
        files.remove(path)


def remove_cleaned(files: Files, path: str) -> None:
    """Remove what a cleaner that failed has left in a partition directory, before its first swap.

    A broker that starts does so too, and would then take a `.swap` of ours at or above the base
    offset of such a file for one that is not complete (C-15.5). The caller holds the lock.
    """
    _, names = files.list_names(path)
    left = [name for name in names if name.endswith(CLEANED)]
    for name in left:
        files.remove(os.path.join(path, name))
    if left:
        files.sync_directory(path)


def sweep_staged(files: Files, path: str, marker: str) -> None:
    """Remove files of a partition directory that runs staged and never finished.

    marker: what their names contain. The caller holds the log directory's lock.
    """
    for name in _staged(files, path, marker):
        files.remove(os.path.join(path, name))


def may_have_staged(files: Files, paths: Iterable[str], marker: str) -> bool:
    """Whether such a file stands in one of these partition directories, or that cannot be told."""
    for path in paths:
        try:
            if _staged(files, path, marker):
                return True
        except FileNotFoundError:
            continue
        except OSError:
            return True
    return False


def _staged(files: Files, path: str, marker: str) -> list[str]:
    return [name for name in files.list_names(path)[1] if marker in name]
