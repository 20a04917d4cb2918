"""What the transactions of a log say of batches, set as flags of their rows (compaction C-8); and
whose records are looked at.
"""

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.kernels.transactions import flags_at
from storage.formats.batch_columns import (
    ATTRIBUTES,
    BASE_OFFSET,
    DISCARDABLE,
    LAST_OFFSET,
    PRODUCER_ID,
    RECORDS_COUNT,
    SIZE,
    TXN_FLAGS,
    UNREAD,
    Int64Array,
)
from storage.formats.batch_header import CONTROL, TRANSACTIONAL
from storage.kernels.kernel import kernel


@kernel
def flag_aborted(rows: Int64Array, ranges: Int64Array) -> None:
    """Set the flags of the transactional data batches whose last offset lies in a range.

    rows: (n, BATCH_COLUMNS). ranges: (m, 4), as tasks.txn_batches lays them out.
    """
    if ranges.shape[0] == 0:
        return
    for i in range(rows.shape[0]):
        if rows[i, ATTRIBUTES] & (TRANSACTIONAL | CONTROL) != TRANSACTIONAL:
            continue
        rows[i, TXN_FLAGS] |= flags_at(ranges, rows[i, PRODUCER_ID], rows[i, LAST_OFFSET])


@kernel
def flag_discardable(rows: Int64Array, base_offsets: Int64Array) -> None:
    """Set the flag of the control batches whose base offsets are among these, which ascend."""
    if base_offsets.shape[0] == 0:
        return
    for i in range(rows.shape[0]):
        if rows[i, ATTRIBUTES] & CONTROL == 0:
            continue
        at = np.searchsorted(base_offsets, rows[i, BASE_OFFSET])
        if at < base_offsets.shape[0] and base_offsets[at] == rows[i, BASE_OFFSET]:
            rows[i, TXN_FLAGS] |= DISCARDABLE


@kernel
def mark_read(rows: Int64Array, is_read: NDArray[np.bool_]) -> None:
    """Fill in whether there are records in each batch, and somebody looks at them.

    More records than bytes are not believed of an aborted batch either before they are seen.
    """
    for i in range(rows.shape[0]):
        count = rows[i, RECORDS_COUNT]
        is_unread = rows[i, TXN_FLAGS] & UNREAD == UNREAD and count <= rows[i, SIZE]
        is_read[i] = count > 0 and not is_unread
