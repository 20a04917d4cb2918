"""What the driver reads of a log's transactions before its scan, and what it leaves for tasks."""

import os
from collections.abc import Sequence

from cleaner_jobs.messages import LogPlan
from cleaner_jobs.txn_batches import Int64Array, save_array
from compactor.cleaning.aborted_ranges import TxnIndexOfSegment, expected_ranges
from storage.file_names import INDEX, LOG, TXN_INDEX, file_name
from storage.files import filesystem
from storage.formats import offset_index, txn_index_columns


def read_indexes(plan: LogPlan) -> list[TxnIndexOfSegment]:
    """The transaction indexes of a log. Raise CorruptFileError where one is not sound."""
    indexes = [
        TxnIndexOfSegment(base_offset, txn_index_columns.columns_of(entries))
        for base_offset, entries in plan.rebuilt_txn_indexes
    ]
    for base_offset in plan.txn_index_base_offsets:
        path = os.path.join(plan.path, file_name(base_offset, TXN_INDEX))
        entries = txn_index_columns.read_columns(path)
        txn_index_columns.check_columns(entries, base_offset, path)
        indexes.append(TxnIndexOfSegment(base_offset, entries))
    return sorted(indexes, key=lambda index: index.base_offset)


def save_expected(plan: LogPlan, indexes: Sequence[TxnIndexOfSegment], work_dir: str) -> str:
    """Write for the scan what the indexes say is aborted; "" where they say nothing."""
    return saved(plan, work_dir, "expected", expected_ranges(indexes, plan.log_start_offset))


def map_start(plan: LogPlan) -> tuple[int, int]:
    """Number of the segment and position in it where the map of the round begins (C-7.5).

    By the index as it stands on disk, since Kafka goes by it (C-7.11), or as it would rebuild it.
    """
    offset = plan.first_dirty_offset
    segments = [segment for group in plan.groups for segment in group.segments]
    number = max((i for i, s in enumerate(segments) if s.base_offset <= offset), default=0)
    base_offset = segments[number].base_offset
    if base_offset >= offset or not segments[number].index_bytes:
        return number, 0
    path = os.path.join(plan.path, file_name(base_offset, INDEX))
    if filesystem.exists(path):
        entries = offset_index.read(path)
    else:
        # numba and its kernels take half a second, and hardly a log is without an index
        from storage.log.rebuilt_indexes import rebuilt_indexes

        log_path = os.path.join(plan.path, file_name(base_offset, LOG))
        log_bytes, interval_bytes = segments[number].log_bytes, plan.index_interval_bytes
        rebuilt = rebuilt_indexes(log_path, base_offset, log_bytes, interval_bytes)
        entries = offset_index.decode(rebuilt.offset_index, path)
    return number, offset_index.search(entries, base_offset, offset).position


def saved(plan: LogPlan, work_dir: str, kind: str, array: Int64Array) -> str:
    """Write an array for tasks, and return its name; "" where it holds nothing."""
    if not len(array):
        return ""
    path = path_of(plan, work_dir, kind)
    save_array(path, array)
    return path


def path_of(plan: LogPlan, work_dir: str, kind: str) -> str:
    """A partial round decides twice: over the whole range, then up to where its map ends."""
    name = f"{plan.log_id}-{plan.end_offset}-{kind}"
    return os.path.join(work_dir, "transactions", name)
