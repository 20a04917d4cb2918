"""A row for each transactional or control batch: what the scan notes, and the driver goes through.

Whether such a batch goes depends on the batches before it, back to the start of the log, so tasks
do not decide it (`compactor.cleaning.transactions` does).
"""

import numpy as np
from numpy.typing import NDArray

TXN_BATCH = np.dtype(
    [
        ("position", "<i8"),  # in its segment
        ("base_offset", "<i8"),
        ("last_offset", "<i8"),
        ("producer_id", "<i8"),
        ("segment", "<i4"),  # number in its group
        ("kind", "<i4"),
        ("records", "<i4"),
        ("horizon", "<i4"),
    ]
)
DATA, ABORT, COMMIT, OTHER_CONTROL, EMPTY_CONTROL = range(5)  # kinds
NO_HORIZON, HORIZON_AHEAD, HORIZON_PASSED = range(3)

# Columns of aborted ranges, all int64. Rows ascend by the first two and do not overlap.
RANGE_COLUMNS = 4  # producer id, last offset of the first batch and of the last, flags of a batch

# A row as kernels see it: words of 64 bits, of which the last two hold two numbers each
TXN_WORDS = 6
POSITION_WORD, BASE_OFFSET_WORD, LAST_OFFSET_WORD, PRODUCER_ID_WORD = range(4)
KIND_WORD, COUNT_WORD = 4, 5  # segment and kind; records and horizon
KIND_SHIFT = 32

TxnBatches = NDArray[np.void]
Int64Array = NDArray[np.int64]


def words_of(batches: TxnBatches) -> Int64Array:
    """The same memory, (n, TXN_WORDS) of it."""
    words: Int64Array = batches.view(np.int64).reshape(-1, TXN_WORDS)
    return words
