"""What finishes or undoes a swap of segments that was cut short: the decision, and its steps done.

Names in, an ordered list of operations out. It is what Kafka's loader does when a broker starts
(LogLoader.removeTempFilesAndCollectSwapFiles, load; compaction C-15.5 to C-15.9, C-16.5), in an
order in which it may be cut short anywhere, lose what is not synced, and be decided anew from what
it left with the same end:

1. sync the directory                a process that was killed had not always: what is decided on
                                     these names must not lose them to a power cut
2. remove .swap at or above the      until all of them are gone on disk, the .cleaned still says
   lowest .cleaned; sync             that they are not complete: decided again, they go
3. remove .cleaned; sync             likewise; without them the log is the old one
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
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from storage.file_names import (
    CLEANED,
    DELETED,
    LOG,
    OFFSET_DIGITS,
    SEGMENT_SUFFIXES,
    SNAPSHOT,
    SWAP,
    file_name,
    is_offset,
    offset_of,
)
from storage.files.files import Files

_REPLACED = (*SEGMENT_SUFFIXES, SNAPSHOT)


class Action(StrEnum):
    REMOVE = "remove"
    RENAME = "rename"
    SYNC = "sync"


class Step(NamedTuple):
    """One operation on a name of the directory, or on the directory itself."""

    action: Action
    name: str = ""
    target: str = ""


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


def apply_steps(files: Files, directory: str, steps: Iterable[Step]) -> None:
    """Do the steps, one after the other."""
    for action, name, target in steps:
        path = os.path.join(directory, name)
        if action is Action.SYNC:
            files.sync_directory(directory)
        elif action is Action.REMOVE:
            files.remove(path)
        else:
            files.rename(path, os.path.join(directory, target))


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
    """To their names in the log, or with another suffix in the place of .swap."""
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
