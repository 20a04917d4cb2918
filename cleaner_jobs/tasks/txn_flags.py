"""What the transactions of a log say of batches: noted by the scan, and set as flags of theirs.

Source: compaction C-8; why a task does not decide it by itself is said in `txn_batches`.
"""

import numpy as np

from cleaner_jobs.txn_batch import (
    ABORT,
    COMMIT,
    DATA,
    EMPTY_CONTROL,
    HORIZON_AHEAD,
    HORIZON_PASSED,
    OTHER_CONTROL,
    TXN_BATCH,
    TxnBatches,
)
from storage.formats.batch_columns import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    LAST_OFFSET,
    POSITION,
    PRODUCER_ID,
    RECORDS_COUNT,
    Int64Array,
    UInt64Array,
)
from storage.formats.batch_header import CONTROL, DELETE_HORIZON, TRANSACTIONAL
from storage.formats.control_record import ControlType


def txn_batches(
    rows: Int64Array, segment: int, now_ms: int, first_hashes: UInt64Array
) -> TxnBatches:
    """The TXN_BATCH rows of those batches of rows that are transactional or control.

    first_hashes: of all their records, as parse_records leaves them.
    """
    wanted = rows[:, ATTRIBUTES] & (TRANSACTIONAL | CONTROL) != 0
    found = np.empty(int(wanted.sum()), TXN_BATCH)
    if not len(found):
        return found
    first_records = (np.cumsum(rows[:, RECORDS_COUNT]) - rows[:, RECORDS_COUNT])[wanted]
    rows = rows[wanted]
    found["position"] = rows[:, POSITION]
    found["base_offset"] = rows[:, BASE_OFFSET]
    found["last_offset"] = rows[:, LAST_OFFSET]
    found["producer_id"] = rows[:, PRODUCER_ID]
    found["segment"] = segment
    found["records"] = rows[:, RECORDS_COUNT]
    has_horizon = rows[:, ATTRIBUTES] & DELETE_HORIZON != 0
    has_passed = rows[:, BASE_TIMESTAMP] <= now_ms
    found["horizon"] = has_horizon * np.where(has_passed, HORIZON_PASSED, HORIZON_AHEAD)
    is_control = rows[:, ATTRIBUTES] & CONTROL != 0
    is_empty = rows[:, RECORDS_COUNT] == 0
    found["kind"] = np.where(is_control, np.where(is_empty, EMPTY_CONTROL, OTHER_CONTROL), DATA)
    with_type = np.flatnonzero(is_control & ~is_empty)
    types = first_hashes[first_records[with_type]]
    found["kind"][with_type[types == ControlType.ABORT]] = ABORT
    found["kind"][with_type[types == ControlType.COMMIT]] = COMMIT
    return found
