"""A swap of segments: its steps as data, how they are done, and what settles one cut short.

Names in, ordered lists of operations out. A round (`compactor.finalizer`, with what a starting
broker makes of each step) and a log in use (`storage.log.local_log`) do the same steps:

1. the files of the new segments -> .cleaned; sync
2. .cleaned -> .swap, .log first, the destinations in descending order, the lowest one after a
   sync; sync: now the new log counts
3. the sources in the range of the destinations go, then those after it, one after the other, the
   .log of each before its index files; a sync after each of these, and at the end
4. .swap -> live, the destinations in ascending order, a sync after each .log
5. sync

The range begins at the lowest destination and ends where the highest one's last batch does. After
it all the records of the group have gone, and that of an empty destination has nothing in it
(C-15.9). What lies after goes from the front, so that no tombstone goes before what it hides.

Two things stand in .swap for the sake of settling alone, and are removed where the others get their
names. An empty .txnindex beside an empty destination: the first source's own would outlive it
otherwise, and records that were committed later would be read as aborted. An empty segment in the
place of a source with a lower base offset than all destinations, as a split may leave one (C-16.3):
it stretches the range over that source.

What finishes or undoes a swap that was cut short is what Kafka's loader does when a broker starts
(LogLoader.removeTempFilesAndCollectSwapFiles, completeSwapOperations, load; compaction C-15.5 to
C-15.9, C-16.5). The order is such that it may be cut short anywhere and lose what is not synced:
decided again from what it left, it comes to the same end:

1. sync the directory                a process that was killed had not always: what is decided on
                                     these names must not lose them to a power cut
2. remove .swap at or above the      until all of them are gone on disk, the .cleaned still says
   lowest .cleaned; sync             that they are not complete: decided again, they go
3. remove .cleaned; sync             until then the same; without them the log is the old one
4. remove what is in the range of    while a .log.swap stands it has the same range: the rest of the
   the .log.swap files and is not    sources goes. The snapshots in the range go with them
   .swap; sync
5. .log.swap -> .log, ascending, a   a log that is in place is below the range of those left; no
   sync after each                   index is in place before its log
6. the other .swap -> live; sync     without a .log.swap nothing is in a range: they are renamed

An empty .log.swap has no range (C-15.9). A broker lets it replace the source of its base offset.
Where nothing of the group was taken away yet, the old log may stay instead (docs/differences.md):
before step 2 the .log.swap becomes .cleaned again, and a sync. Whoever goes on then, a broker
too, takes all of the swap for incomplete; before, the broker puts all of it in place.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import NamedTuple, Protocol

from storage.file_names import (
    CLEANED,
    DELETED,
    INDEX,
    LOG,
    OFFSET_DIGITS,
    SEGMENT_SUFFIXES,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    file_name,
    is_offset,
    offset_of,
)
from storage.files.files import ChangingFile

_REPLACED = (*SEGMENT_SUFFIXES, SNAPSHOT)


class Action(StrEnum):
    CREATE = "create"  # an empty file
    REMOVE = "remove"
    RENAME = "rename"
    SYNC = "sync"


class Step(NamedTuple):
    """One operation on a name of the directory, or on the directory itself."""

    action: Action
    name: str = ""
    target: str = ""


class SwapPlan(NamedTuple):
    """The steps of a swap.

    Until the last of `complete` the old log counts, from then on the new one.
    """

    stage: Sequence[Step]  # 1
    complete: Sequence[Step]  # 2
    replace: Sequence[Step]  # 3
    name: Sequence[Step]  # 4 and 5


class _File(NamedTuple):
    """A file of a destination: where it is now, and its name in the log."""

    staged: str
    live: str
    stands_in: bool = False  # empty, for settling alone: it never gets that name

    @property
    def brought(self) -> list[Step]:
        if self.stands_in:
            return [Step(Action.CREATE, self.live + CLEANED)]
        if self.staged == self.live + CLEANED:
            return []
        return [Step(Action.RENAME, self.staged, self.live + CLEANED)]

    @property
    def completed(self) -> Step:
        return Step(Action.RENAME, self.live + CLEANED, self.live + SWAP)

    @property
    def named(self) -> Step:
        if self.stands_in:
            return Step(Action.REMOVE, self.live + SWAP)
        return Step(Action.RENAME, self.live + SWAP, self.live)


def plan_swap(
    sources: Mapping[int, Collection[str]],
    destinations: Mapping[int, Mapping[str, str]],
    end_offset: int,
    keeps_sources: bool = False,
) -> SwapPlan:
    """Decide the steps that put segments in the place of others.

    Args:
        sources: The suffixes of the files that go, by rising base offset; `.log` is one of them.
        destinations: The names, or paths, that the files of the new segments have now, by rising
            base offset and by suffix in Kafka's order.
        end_offset: Where settling takes the highest destination to end (C-15.6, F-12.9).
        keeps_sources: Whether what goes is renamed to `.deleted`, for those who still read it,
            instead of removed.
    """
    ascending = [
        [_File(staged, file_name(base, kind)) for kind, staged in files.items()]
        for base, files in destinations.items()
    ]
    lowest = min(destinations)
    first = min(sources, default=lowest)
    if first < lowest:
        ascending.insert(0, [_stand_in(first, kind) for kind in (LOG, INDEX, TIME_INDEX)])
    elif (
        end_offset == lowest
        and TXN_INDEX not in destinations[lowest]
        and TXN_INDEX in sources.get(lowest, ())
    ):
        ascending[0].append(_stand_in(lowest, TXN_INDEX))
    sync = Step(Action.SYNC)
    return SwapPlan(
        stage=[
            *(
                step
                for each in reversed(ascending)
                for file in reversed(each)
                for step in file.brought
            ),
            sync,
        ],
        complete=_completion(ascending),
        replace=[*_replacement(sources, end_offset, keeps_sources), sync],
        name=[
            *(
                step
                for log, *others in ascending
                for step in (log.named, sync, *(f.named for f in others))
            ),
            sync,
        ],
    )


def _stand_in(base_offset: int, kind: str) -> _File:
    return _File("", file_name(base_offset, kind), stands_in=True)


def _completion(ascending: Sequence[Sequence[_File]]) -> list[Step]:
    lowest, *others = ascending
    steps = [file.completed for each in reversed(others) for file in each]
    if others:
        steps.append(Step(Action.SYNC))
    return [*steps, *(file.completed for file in lowest), Step(Action.SYNC)]


def _replacement(
    sources: Mapping[int, Collection[str]], end_offset: int, keeps_sources: bool
) -> Iterator[Step]:
    def gone(name: str) -> Step:
        if keeps_sources:
            return Step(Action.RENAME, name, name + DELETED)
        return Step(Action.REMOVE, name)

    for base, kinds in sources.items():
        if base < end_offset:
            yield from (gone(file_name(base, kind)) for kind in kinds)
    for base, kinds in sources.items():
        if base >= end_offset:
            yield gone(file_name(base, LOG))
            yield Step(Action.SYNC)
            yield from (gone(file_name(base, kind)) for kind in kinds if kind != LOG)


@dataclass(frozen=True, slots=True)
class SwapSettlement:
    """What is to be done, in this order, and what that means for each name."""

    steps: tuple[Step, ...]
    finished: tuple[str, ...]  # names that a complete swap puts in place
    undone: tuple[str, ...]  # of a cleaning or swap that was not complete
    replaced: tuple[str, ...]  # by what a complete swap puts in place
    live: frozenset[str]  # the names that are left


def complete_swaps(names: Iterable[str]) -> list[int]:
    """Base offsets of the `.log.swap` files that no `.cleaned` calls incomplete, rising."""
    found = list(names)
    limit = _lowest(found, CLEANED)
    bases = [number_of(name) for name in found if name.endswith(LOG + SWAP)]
    return sorted(base for base in bases if limit is None or base < limit)


def swap_settlement(
    names: Collection[str], end_offsets: Mapping[int, int], as_kafka: bool
) -> SwapSettlement:
    """Decide about the `.cleaned` and `.swap` files of a partition directory.

    Every name ending so begins with an offset. end_offsets: of each of complete_swaps, its base
    offset where it holds no batch. as_kafka: an empty swap is finished, too, and whatever begins
    with an offset in the range of a swap is replaced by it; else files of segments alone.
    """
    cleaned = [name for name in names if name.endswith(CLEANED)]
    swaps = [name for name in names if name.endswith(SWAP)]
    if not cleaned and not swaps:  # nearly always, and a log may have thousands of segments
        return SwapSettlement((), (), (), (), frozenset(names))
    limit = _lowest(cleaned, CLEANED)
    empty = None if as_kafka else _revocable(names, end_offsets)
    revoked = [] if empty is None else [file_name(empty, LOG)]
    limit = limit if empty is None else empty
    incomplete = [
        name
        for name in swaps
        if limit is not None and number_of(name) >= limit and name.removesuffix(SWAP) not in revoked
    ]
    undone = {*incomplete, *cleaned, *(name + SWAP for name in revoked)}
    cleaned += [name + CLEANED for name in revoked]
    complete = [name for name in swaps if name not in undone]
    others = [name for name in names if not name.endswith((SWAP, CLEANED))]
    could_go = others if as_kafka else [name for name in others if is_regular(name, _REPLACED)]
    replaced = _replaced(could_go, end_offsets, undone)
    finished = [name.removesuffix(SWAP) for name in complete]
    logs = sorted(name for name in complete if name.endswith(LOG + SWAP))
    steps = [
        *_renaming((name + SWAP for name in revoked), CLEANED),
        *_removal(incomplete),
        *_removal(cleaned),
        *_removal(replaced),
        *(step for name in logs for step in _renaming([name])),
        *_renaming(sorted({*complete} - {*logs})),
    ]
    return SwapSettlement(
        (Step(Action.SYNC), *steps) if steps else (),
        tuple(sorted(finished)),
        tuple(sorted(undone)),
        tuple(replaced),
        frozenset(({*names} - {*swaps, *cleaned, *replaced}) | {*finished}),
    )


class StepFiles(Protocol):
    """The operations of `Files` that steps need."""

    def open_to_change(self, path: str, create: bool = False) -> ChangingFile: ...

    def rename(self, source: str, target: str) -> None: ...

    def remove(self, path: str) -> None: ...

    def sync_directory(self, path: str) -> None: ...


def apply_steps(
    files: StepFiles,
    directory: str,
    steps: Iterable[Step],
    remove: Callable[[Sequence[str]], object] | None = None,
) -> None:
    """Do the steps, one after the other.

    remove: Removes the files of REMOVE steps that follow one another, and comes back when their
        names are gone. By default one is removed after the other.
    """
    for action, run in groupby(steps, key=lambda step: step.action):
        if action is Action.REMOVE and remove is not None:
            remove([os.path.join(directory, step.name) for step in run])
            continue
        for _, name, target in run:
            path = os.path.join(directory, name)
            if action is Action.SYNC:
                files.sync_directory(directory)
            elif action is Action.CREATE:
                _create(files, path)
            elif action is Action.REMOVE:
                files.remove(path)
            else:
                files.rename(path, os.path.join(directory, target))


def _create(files: StepFiles, path: str) -> None:
    file = files.open_to_change(path, create=True)
    try:
        file.truncate(0)  # one that a cleaner has left
    finally:
        file.close()


def _revocable(names: Collection[str], end_offsets: Mapping[int, int]) -> int | None:
    """The base offset of an empty .log.swap beside all that it would replace.

    Sources go from that base offset on, a broker's to .deleted first: while that one stands, and
    none is .deleted, all of them do.
    """
    if len(end_offsets) != 1:
        return None
    ((base, end_offset),) = end_offsets.items()
    begun = any(n.endswith(LOG + DELETED) and (offset_of(n) or 0) >= base for n in names)
    return base if end_offset == base and file_name(base, LOG) in names and not begun else None


def _replaced(
    names: Iterable[str], end_offsets: Mapping[int, int], undone: Collection[str]
) -> list[str]:
    bases = [base for base in end_offsets if file_name(base, LOG) + SWAP not in undone]
    if not bases:
        return []
    lowest, end = min(bases), max(end_offsets[base] for base in bases)
    offsets = ((name, offset_of(name)) for name in names)
    return sorted(name for name, at in offsets if at is not None and lowest <= at < end)


def _removal(names: Iterable[str]) -> list[Step]:
    steps = [Step(Action.REMOVE, name) for name in sorted(names)]
    return [*steps, Step(Action.SYNC)] if steps else []


def _renaming(swaps: Iterable[str], suffix: str = "") -> list[Step]:
    """Return the renames to the names in the log, or to another suffix in the place of .swap."""
    steps = [Step(Action.RENAME, name, name.removesuffix(SWAP) + suffix) for name in swaps]
    return [*steps, Step(Action.SYNC)] if steps else []


def _lowest(names: Iterable[str], suffix: str) -> int | None:
    return min((number_of(name) for name in names if name.endswith(suffix)), default=None)


def number_of(name: str) -> int:
    """The offset that a name begins with, which it does."""
    offset = offset_of(name)
    assert offset is not None, name
    return offset


def is_regular(name: str, suffixes: tuple[str, ...]) -> bool:
    """Whether it is a base offset in twenty digits and one of the suffixes, nothing more."""
    return name[OFFSET_DIGITS:] in suffixes and is_offset(name[:OFFSET_DIGITS])
