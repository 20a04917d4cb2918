"""What the scan notes of transactional and control batches, for the driver to decide by.

Source: compaction C-8; why a task does not decide it by itself is said in `txn_batches`.
"""

import numpy as np

from cleaner_jobs.kernels.txn_rows import note_txn_batches
from cleaner_jobs.txn_batch import TXN_BATCH, TxnBatches, words_of
from storage.formats.batch_columns import Int64Array, UInt64Array


def txn_batches(
    rows: Int64Array, segment: int, now_ms: int, first_hashes: UInt64Array
) -> TxnBatches:
    """The TXN_BATCH rows of those batches of rows that are transactional or control.

    first_hashes: of all their records, as parse_records leaves them.
    """
    found = np.empty(len(rows), TXN_BATCH)
    count = note_txn_batches(rows, segment, now_ms, first_hashes, words_of(found))
    return found if count == len(rows) else found[:count].copy()
