"""What is aborted by the transaction indexes of a log alone: its scan goes by these ranges. Pure.

Source: Kafka, UnifiedLog.collectAbortedTransactions; compaction C-8.2.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from cleaner_jobs.txn_batches import RANGE_COLUMNS, Int64Array
from storage.formats.txn_index_columns import Entries, columns_of

FOR_MAP, FOR_CLEANING = 1, 2  # flags of an aborted range


class TxnIndexOfSegment(NamedTuple):
    """The entries of one segment's `.txnindex`, by rising last offset."""

    base_offset: int
    entries: Entries


def all_entries(indexes: Iterable[TxnIndexOfSegment]) -> Entries:
    """Those of all indexes, one behind the other."""
    found = [index.entries for index in indexes]
    return np.concatenate(found) if found else columns_of(())


def expected_ranges(indexes: Iterable[TxnIndexOfSegment], log_start_offset: int) -> Int64Array:
    """What is aborted by the indexes alone: from an entry's first offset to its marker.

    So it is in every log that a broker wrote. `decide` finds out whether it is so here.
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
