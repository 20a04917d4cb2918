"""Decide how to settle a partition directory that a cleaning or a broker left half-done.

`require_no_use` and `decide_settlement` read the directory and change nothing; `settlement` is
pure: names in, an ordered list of operations out. Swaps come first, as in the storage engine's
loading (`storage.log.swap`, steps 1 to 6). Then:

7. remove .deleted, staged files,    of no consequence to the log: what comes back after a power
   indexes without a .log, stale     cut goes the next time
   snapshots, .tmp
"""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from cleaner_jobs.staging import STAGED_MARKER
from compactor.log_checks import missing_offsets
from compactor.log_dirs.missing_logs import why_start_gone
from storage.errors import CorruptFileError
from storage.file_names import (
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
    offset_of,
)
from storage.files.files import Files, size_of
from storage.formats import checkpoint
from storage.formats.checkpoint import TopicPartition
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.partition_metadata import PARTITION_METADATA
from storage.formats.producer_snapshot import kept_on_loading
from storage.log.log_dir import (
    PartitionListing,
    list_partition,
    log_end_offset,
    segment_end_offset,
)
from storage.log.swap import Action, Step, complete_swaps, is_regular, number_of, swap_settlement

TEMPORARY = ".tmp"  # Files.replace_file, and Kafka's checkpoints
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


def require_no_use(files: Files, log_dir: str, key: TopicPartition, names: Collection[str]) -> None:
    """Raise CorruptFileError if a `.log.deleted` may be the last copy of a missing segment."""
    deleted = [name.removesuffix(DELETED) for name in names if name.endswith(LOG + DELETED)]
    if not any(name not in names for name in deleted) or complete_swaps(names):
        return
    path = os.path.join(log_dir, f"{key[0]}-{key[1]}")
    partition = list_partition(path, *key, files)
    if not partition.segments:
        return
    _require_no_lost_end(files, log_dir, partition, deleted)
    gone = why_start_gone(
        partition, checkpoint.read(os.path.join(log_dir, checkpoint.LOG_START), files)
    )
    if gone is not None:
        raise CorruptFileError(partition.path, 0, gone)
    stays = f"; a {LOG}{DELETED} in {path} may be what is missing, and stays"
    try:
        first_dirty = missing_offsets.first_dirty_offsets(log_dir, files)
        # a torn log does not have its end
        first_dirty_offset = first_dirty(partition, missing_offsets.END_OF_OFFSETS)
        found = missing_offsets.missing_segment(partition, first_dirty_offset)
    except CorruptFileError as error:
        raise CorruptFileError(error.path, error.position, f"{error.problem}{stays}") from error
    if found is not None:
        raise CorruptFileError(found.path, found.position, f"{found.problem}{stays}")


def decide_settlement(files: Files, path: str, names: Collection[str]) -> Settlement:
    """Decide how the cleaning that was cut short in a partition directory is finished or undone.

    Reads the ends of files that `settlement` needs. path: of the directory. names: all in it.
    Raise CorruptFileError where a file that is to be swapped in is damaged.
    """
    end_offsets = {base: _end_offset(files, path, base, SWAP) for base in complete_swaps(names)}
    for base_offset, end_offset in end_offsets.items():
        if end_offset == base_offset:
            _require_empty_index(files, path, base_offset)
    decided = settlement(names, end_offsets)
    for name in decided.finished:
        base_offset = offset_of(name) or 0
        log_name = file_name(base_offset, LOG)
        if name.endswith(INDEX) and base_offset not in end_offsets and log_name in names:
            _end_offset(files, path, base_offset, "")  # its log is in place: do they fit?
    return decided


def settlement(names: Collection[str], end_offsets: Mapping[int, int]) -> Settlement:
    """Decide how the cleaning that was cut short is finished or undone, from names alone.

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


def _require_no_lost_end(
    files: Files, log_dir: str, partition: PartitionListing, deleted: Collection[str]
) -> None:
    """Raise CorruptFileError if the log ends where a `.log.deleted` begins, below a checkpoint."""
    try:
        end_offset = log_end_offset(partition)
    except CorruptFileError:  # a torn end, which has to be settled first
        return
    name = file_name(end_offset, LOG)
    if name not in deleted or name in {file_name(s.base_offset, LOG) for s in partition.segments}:
        return
    for of_file in (checkpoint.RECOVERY_POINT, checkpoint.REPLICATION):
        known = checkpoint.read(os.path.join(log_dir, of_file), files)
        offset = known.get((partition.topic, partition.partition), 0)
        if offset > end_offset:
            problem = (
                f"the log ends at offset {end_offset}, and {of_file} has {offset} for it: this may "
                "be what follows, and stays. If it is, rename it back before a broker starts here"
            )
            raise CorruptFileError(os.path.join(partition.path, name + DELETED), 0, problem)


def _end_offset(files: Files, path: str, base_offset: int, log_suffix: str) -> int:
    """The end of a log by its index in `.swap`; CorruptFileError where one of them is damaged."""
    log_path = os.path.join(path, file_name(base_offset, LOG) + log_suffix)
    index_path = os.path.join(path, file_name(base_offset, INDEX) + SWAP)
    return segment_end_offset(log_path, index_path, base_offset, files)


def _require_empty_index(files: Files, path: str, base_offset: int) -> None:
    """A `.log.swap` that lost its bytes stands beside an index with entries."""
    index_path = os.path.join(path, file_name(base_offset, INDEX) + SWAP)
    if files.exists(index_path) and size_of(files, index_path):
        problem = "has entries, but its .log.swap has no batch"
        raise CorruptFileError(index_path, 0, problem)


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
    """Whether a file of that name may be replaced as a whole, by way of a temporary one."""
    known = (LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA)
    return name in known or is_regular(name, _REPLACED)
