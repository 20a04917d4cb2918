"""Read a log's indexes before its scan, for its tasks: where to cut it, and what is aborted.

The scan takes as aborted what the transaction indexes alone say (`expected_ranges`), which is right
for every log that a broker wrote. `transactions` decides afterwards, with the markers of the log.
Source: Kafka, UnifiedLog.collectAbortedTransactions; compaction C-8.2.
"""

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from cleaner_jobs.messages import LogPlan
from cleaner_jobs.txn_batches import RANGE_COLUMNS, Int64Array, save_array
from storage.file_names import INDEX, LOG, TXN_INDEX, file_name
from storage.files.files import Disk, Files, size_of
from storage.files.local import LOCAL
from storage.formats import offset_index, txn_index_columns
from storage.formats.txn_index_columns import Entries, columns_of
from storage.log.segment_reader import read_batch_headers

FOR_MAP, FOR_CLEANING = 1, 2  # flags of an aborted range


class TxnIndexOfSegment(NamedTuple):
    """The entries of one segment's `.txnindex`, by rising last offset."""

    base_offset: int
    entries: Entries


def index_positions(log_path: str, files: Files = LOCAL) -> Sequence[int]:
    """Return the positions that the offset index has, none where no index exists."""
    path = log_path.removesuffix(LOG) + INDEX
    if not files.exists(path):
        return ()
    entries = offset_index.read(path, files)
    offset_index.check(entries, size_of(files, log_path), path)
    positions: Sequence[int] = entries["position"].tolist()
    return positions


def read_indexes(plan: LogPlan, files: Files = LOCAL) -> list[TxnIndexOfSegment]:
    """The transaction indexes of a log. Raise CorruptFileError where one is not sound."""
    indexes = [
        TxnIndexOfSegment(base_offset, txn_index_columns.columns_of(entries))
        for base_offset, entries in plan.rebuilt_txn_indexes
    ]
    for base_offset in plan.txn_index_base_offsets:
        path = os.path.join(plan.path, file_name(base_offset, TXN_INDEX))
        entries = txn_index_columns.read_columns(path, files)
        txn_index_columns.check_columns(entries, base_offset, path)
        indexes.append(TxnIndexOfSegment(base_offset, entries))
    return sorted(indexes, key=lambda index: index.base_offset)


def save_expected(
    plan: LogPlan, indexes: Sequence[TxnIndexOfSegment], work_dir: str, disk: Disk = LOCAL
) -> str:
    """Write for the scan what the indexes say is aborted; "" where they say nothing."""
    ranges = expected_ranges(indexes, plan.log_start_offset)
    return save_for_tasks(plan, work_dir, "expected", ranges, disk)


def expected_ranges(indexes: Iterable[TxnIndexOfSegment], log_start_offset: int) -> Int64Array:
    """Return what is aborted according to the indexes: from an entry's first offset to its marker.

    Rows of RANGE_COLUMNS; overlapping ranges of a producer are joined, and those below the log
    start left out. `decide` checks whether the log agrees.
    """
    entries = all_entries(indexes)
    entries = entries[entries[:, 2] >= log_start_offset]
    if not len(entries):  # so in most logs
        return np.empty((0, RANGE_COLUMNS), np.int64)
    order = np.lexsort((entries[:, 2], entries[:, 1], entries[:, 0]))
    producer_ids, first, last = entries[order, :3].T
    begins = _begins_of_ranges(producer_ids, first, last)
    ranges = np.empty((len(begins), RANGE_COLUMNS), np.int64)
    ranges[:, 0], ranges[:, 1] = producer_ids[begins], first[begins]
    ranges[:, 2] = np.maximum.reduceat(last, begins)
    ranges[:, 3] = FOR_MAP | FOR_CLEANING
    return ranges


def all_entries(indexes: Iterable[TxnIndexOfSegment]) -> Entries:
    """Concatenate the entries of all indexes."""
    found = [index.entries for index in indexes]
    return np.concatenate(found) if found else columns_of(())


def map_start(plan: LogPlan, files: Files = LOCAL) -> tuple[int, int]:
    """Return where the map of the round begins (C-7.5): number of its segment, and position.

    Kafka looks it up in the index on disk (C-7.11), or in the one that it would rebuild.
    """
    offset = plan.first_dirty_offset
    segments = [segment for group in plan.groups for segment in group.segments]
    number = max((i for i, s in enumerate(segments) if s.base_offset <= offset), default=0)
    base_offset = segments[number].base_offset
    if base_offset >= offset or not segments[number].index_bytes:
        return number, 0
    path = os.path.join(plan.path, file_name(base_offset, INDEX))
    if files.exists(path):
        entries = offset_index.read(path, files)
    else:
        # numba and its kernels take half a second, and hardly a log is without an index
        from storage.formats.segment_indexes import rebuild_indexes

        log_path = os.path.join(plan.path, file_name(base_offset, LOG))
        log_bytes, interval_bytes = segments[number].log_bytes, plan.index_interval_bytes
        batches = read_batch_headers(log_path, 0, log_bytes, files)
        headers = (header for _, header in batches)
        rebuilt = rebuild_indexes(headers, base_offset, interval_bytes)
        entries = offset_index.decode(rebuilt.offset_index, path)
    return number, offset_index.search(entries, base_offset, offset).position


def save_for_tasks(
    plan: LogPlan, work_dir: str, kind: str, array: Int64Array, disk: Disk = LOCAL
) -> str:
    """Write an array for tasks, and return its name; "" where it holds nothing."""
    if not len(array):
        return ""
    path = transaction_file(plan, work_dir, kind)
    save_array(path, array, disk)
    return path


def transaction_file(plan: LogPlan, work_dir: str, kind: str) -> str:
    """A partial round decides twice: over the whole range, then up to where its map ends."""
    name = f"{plan.log_id}-{plan.end_offset}-{kind}"
    return os.path.join(work_dir, "transactions", name)


def _begins_of_ranges(producer_ids: Int64Array, first: Int64Array, last: Int64Array) -> Int64Array:
    """Which entries, sorted, overlap none before them of their producer."""
    _, numbers = np.unique(producer_ids, return_inverse=True)
    count = len(numbers)
    _, ranks = np.unique(np.concatenate((first, last)), return_inverse=True)
    # producers far apart, so that the highest end so far is never that of another one
    starts, ends = (numbers * (2 * count) + of_all for of_all in (ranks[:count], ranks[count:]))
    begins = np.ones(count, np.bool_)
    begins[1:] = starts[1:] > np.maximum.accumulate(ends)[:-1]
    return np.flatnonzero(begins)
