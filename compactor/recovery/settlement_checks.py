"""What is looked at in a partition directory before it is settled. Nothing is changed."""

import os
from collections.abc import Collection

from compactor.broker_start.log_ends import why_start_gone
from compactor.recovery.settling import Settlement, settlement
from storage.errors import CorruptFileError
from storage.file_names import DELETED, INDEX, LOG, SWAP, file_name, offset_of
from storage.files.files import Files, size_of
from storage.formats import checkpoint
from storage.formats.checkpoint import TopicPartition
from storage.log.log_dir import (
    PartitionListing,
    list_partition,
    log_end_offset,
    segment_end_offset,
)
from storage.log.swap import complete_swaps


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
    from compactor.verification import missing_offsets  # with kernels

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


def _require_no_lost_end(
    files: Files, log_dir: str, partition: PartitionListing, deleted: Collection[str]
) -> None:
    """Raise CorruptFileError if one goes on where the log ends, before what a checkpoint says."""
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


def decided_settlement(files: Files, path: str, names: Collection[str]) -> Settlement:
    """Decide what is to be done. CorruptFileError where what is to be swapped in is damaged."""
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
