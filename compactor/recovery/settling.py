"""What settles a partition directory that a cleaning or a broker left half-done: the decision.

Pure: names in, an ordered list of operations out. Swaps first, as the storage engine's loading does
it (`storage.log.swap`, steps 1 to 6). Then:

7. remove .deleted, staged files,    of no consequence to the log: what comes back after a power
   indexes without a .log, stale     cut goes the next time
   snapshots, .tmp
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from cleaner_jobs.staging import STAGED_MARKER
from storage.file_names import (
    DELETED,
    INDEX,
    LOG,
    OFFSET_DIGITS,
    SEGMENT_SUFFIXES,
    SNAPSHOT,
    TIME_INDEX,
    TXN_INDEX,
    file_name,
)
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.partition_metadata import PARTITION_METADATA
from storage.formats.producer_snapshot import kept_on_loading
from storage.log.swap import Action, Step, is_regular, number_of, swap_settlement

TEMPORARY = ".tmp"  # filesystem.replace_file, and Kafka's checkpoints
_KRAFT_SNAPSHOT_DELETED = ".checkpoint.deleted"  # a broker leaves these to the metadata log
_INDEX_SUFFIXES = (INDEX, TIME_INDEX, TXN_INDEX)
_REPLACED = (*SEGMENT_SUFFIXES, SNAPSHOT)


@dataclass(frozen=True, slots=True)
class Settlement:
    """What is to be done, in this order, and what that means for each name."""

    steps: tuple[Step, ...] = ()
    finished: tuple[str, ...] = ()  # names that a complete swap puts in place
    undone: tuple[str, ...] = ()  # of a cleaning or swap that was not complete
    removed: tuple[str, ...] = ()  # whatever else nobody needs any more


def settlement(names: Collection[str], end_offsets: Mapping[int, int]) -> Settlement:
    """Decide about the files of a partition directory.

    Every name ending in .cleaned or .swap begins with an offset. end_offsets: of each of
    complete_swaps, its base offset where it holds no batch.
    """
    swaps = swap_settlement(names, end_offsets, as_kafka=False)
    unneeded = _unneeded(swaps.live)
    steps = swaps.steps
    if not steps and any(name.endswith(DELETED) for name in unneeded):
        steps = (Step(Action.SYNC),)
    return Settlement(
        (*steps, *(Step(Action.REMOVE, name) for name in unneeded)),
        swaps.finished,
        swaps.undone,
        tuple(sorted([*swaps.replaced, *unneeded])),
    )


def left_after_loading(names: Collection[str]) -> list[str]:
    """What nobody needs of a directory whose log Kafka's loader has just loaded and closed.

    Which snapshots stay was decided while it was loaded, and another one was written since.
    """
    return sorted(name for name in names if _is_unneeded(name, names))


def _unneeded(live: Collection[str]) -> list[str]:
    """Of the names that are left once swaps are settled: what no broker or run will look at."""
    stale = _stale_snapshots(live)
    return sorted(name for name in live if name in stale or _is_unneeded(name, live))


def _is_unneeded(name: str, live: Collection[str]) -> bool:
    return (
        STAGED_MARKER in name
        or (name.endswith(DELETED) and not name.endswith(_KRAFT_SNAPSHOT_DELETED))
        or (name.endswith(TEMPORARY) and _is_rewritten(name.removesuffix(TEMPORARY)))
        or (
            name[OFFSET_DIGITS:] in _INDEX_SUFFIXES
            and name[:OFFSET_DIGITS] + LOG not in live
            and is_regular(name, _INDEX_SUFFIXES)
        )
    )


def _stale_snapshots(live: Collection[str]) -> Collection[str]:
    snapshots = [number_of(name) for name in live if is_regular(name, (SNAPSHOT,))]
    bases = [number_of(name) for name in live if is_regular(name, (LOG,))] if snapshots else []
    if not bases:
        return ()
    kept = kept_on_loading(snapshots, bases)
    return {file_name(offset, SNAPSHOT) for offset in {*snapshots} - {*kept}}


def _is_rewritten(name: str) -> bool:
    """Whether a file of that name is ever replaced as a whole, by way of a temporary one."""
    known = (LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA)
    return name in known or is_regular(name, _REPLACED)
