"""Puts a cleaned segment group in the place of its sources.

The steps are those of `storage.log.swap`, which says what they are for. For each group, with what a
starting broker makes of it if the power goes in the step (compaction C-15.5 to C-15.9, C-16.5). Of
what a step renames any part may have reached the disk by then, in whatever order: only the sync at
its end says that all has.

1. staged files -> .cleaned; sync         .cleaned is deleted: the old log
2. .cleaned -> .swap, .log first, the     while a .cleaned is left, it is of the lowest base: that
   destinations in descending order;      and all .swap from it on go, the old log; all .swap: the
   sync before the lowest one; sync       sources in their range go, the new log
3. remove the sources, ascending; sync    those in the range of the destinations go: the new log;
                                          of those after it the last ones are left, whole
4. of each destination, ascending:
   .log.swap -> live; sync                from the lowest .log.swap on nothing else is left that
                                          could be deleted, index files are renamed: the new log
   .index.swap and so on -> live          the same
5. sync                                   nothing is left to do
6. remove snapshots of merged bases       stale ones are removed, or stay without harm

Kafka's own cleaner makes the same renames in the same order and syncs in 1 and 5 alone (C-15.1): it
counts on a file system that keeps the order. Without the other syncs sources could be gone and
their successor not be there, or old segments lie beside the one that they were merged into.
It renames the sources to .deleted in 3, for those who still read them, and removes them a minute
later. Here nobody does, and a starting broker makes the same of a source in either state.

One group of a log at a time, in ascending order: while two stand in .swap, recovery deletes what
lies between them, and a later group may drop a tombstone as an earlier one drops what it hides.
Groups with nothing between them, none of which becomes empty, may go in as one: as a split does,
they count all together or not at all.
"""

import os
from collections.abc import Callable, Container, Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from cleaner_jobs.messages import Source
from cleaner_jobs.source_identity import check_in_place
from storage.file_names import CLEANED, DELETED, LOG, SEGMENT_SUFFIXES, SNAPSHOT, file_name
from storage.files.files import Files
from storage.formats.index_entry import read_last
from storage.log.segment_reader import read_batch_headers
from storage.log.swap import Action, Step, apply_steps, plan_swap


class StagedSegment(NamedTuple):
    """A finished segment under names that no broker knows; "" for a file that it does not have."""

    base_offset: int
    log_file: str
    index_file: str
    time_index_file: str
    txn_index_file: str

    @classmethod
    def beside(
        cls, path: str, base_offset: int, suffix: str, has_txn_index: bool
    ) -> "StagedSegment":
        """Name the files of a segment to be, in a partition directory."""
        names = [f"{path}/{file_name(base_offset, kind)}{suffix}" for kind in SEGMENT_SUFFIXES]
        return cls(base_offset, *(names if has_txn_index else (*names[:-1], "")))

    @property
    def files(self) -> dict[str, str]:
        """The staged file of each kind that there is, in SEGMENT_SUFFIXES' order."""
        staged = self.log_file, self.index_file, self.time_index_file, self.txn_index_file
        return {kind: path for kind, path in zip(SEGMENT_SUFFIXES, staged, strict=True) if path}


class StagedGroup(NamedTuple):
    """Finished segments beside the ones that they replace."""

    path: str  # the partition directory
    sources: tuple[Source, ...]
    destinations: tuple[StagedSegment, ...]  # one, but for a split (C-16.3), one over 2 GiB, or
    # several groups side by side


def merge_groups(groups: Sequence[StagedGroup]) -> StagedGroup:
    """Groups that follow one another in a log as one. No destination of several may be empty."""
    sources = chain.from_iterable(group.sources for group in groups)
    destinations = chain.from_iterable(group.destinations for group in groups)
    return StagedGroup(groups[0].path, tuple(sources), tuple(destinations))


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
    bases = [source.base_offset for source in group.sources]
    destinations = {segment.base_offset: segment.files for segment in sorted(group.destinations)}
    plan = plan_swap(
        {base: _kinds(files, group.path, base, SEGMENT_SUFFIXES, names) for base in bases},
        destinations,
        _end_offset(files, max(group.destinations)),
    )
    try:
        apply_steps(files, group.path, plan.stage)
    except OSError:  # the old log is whole: nothing is left that would have to be settled
        for name in (step.target or step.name for step in plan.stage):
            if name:
                _remove(files, os.path.join(group.path, name))
        raise
    apply_steps(files, group.path, plan.complete)
    apply_steps(files, group.path, plan.replace, remove)
    apply_steps(files, group.path, plan.name)
    merged = [base for base in bases if base not in destinations]
    snapshots = [
        Step(Action.REMOVE, file_name(base, kind))
        for base in merged
        for kind in _kinds(files, group.path, base, (SNAPSHOT,), names)
    ]
    apply_steps(files, group.path, snapshots, remove)


def _kinds(
    files: Files, path: str, base_offset: int, kinds: Sequence[str], names: Container[str] | None
) -> list[str]:
    """Which files of a segment are there. names: those that are; None: each is looked for."""

    def exists(name: str) -> bool:
        if names is None:
            return files.exists(f"{path}/{name}")
        # a .log is there: if it were passed over, it would lie beside what replaces it
        return name in names or name.endswith(LOG)

    return [kind for kind in kinds if exists(file_name(base_offset, kind))]


def _end_offset(files: Files, segment: StagedSegment) -> int:
    """Where recovery takes a destination to end (C-15.6, F-12.9)."""
    start = 0
    if segment.index_file:
        start = read_last(segment.index_file, segment.base_offset, files).position
    end_offset = segment.base_offset
    for _, header in read_batch_headers(segment.log_file, start, files=files):
        end_offset = header.next_offset
    return end_offset


def mark_deleted(
    files: Files, path: str, base_offsets: Sequence[int], kinds: Sequence[str] = SEGMENT_SUFFIXES
) -> list[str]:
    """Rename files of segments to .deleted, in the order given; their new names."""
    deleted = []
    for base_offset in base_offsets:
        for kind in _kinds(files, path, base_offset, kinds, None):
            live = f"{path}/{file_name(base_offset, kind)}"
            files.rename(live, live + DELETED)
            deleted.append(live + DELETED)
    return deleted


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
    """Whether such a file stands in one of these partition directories, or that is not known."""
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
