"""What a scan notes of transactional and control batches, a row of words for each."""

from typing import Any

from cleaner_jobs.txn_batch import (
    ABORT,
    BASE_OFFSET_WORD,
    COMMIT,
    COUNT_WORD,
    DATA,
    EMPTY_CONTROL,
    HORIZON_AHEAD,
    HORIZON_PASSED,
    KIND_SHIFT,
    KIND_WORD,
    LAST_OFFSET_WORD,
    NO_HORIZON,
    OTHER_CONTROL,
    POSITION_WORD,
    PRODUCER_ID_WORD,
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
from storage.kernels.kernel import kernel

_ABORT, _COMMIT = int(ControlType.ABORT), int(ControlType.COMMIT)


@kernel
def note_txn_batches(
    rows: Int64Array, segment: int, now_ms: int, first_hashes: UInt64Array, out: Int64Array
) -> int:
    """Put the TXN_BATCH rows of transactional and control batches into out; return how many.

    first_hashes: of all records of the batches, as parse_records leaves them. out: as many rows of
    TXN_WORDS as there are batches.
    """
    count, record = 0, 0
    for i in range(rows.shape[0]):
        attributes, records = rows[i, ATTRIBUTES], rows[i, RECORDS_COUNT]
        if attributes & (TRANSACTIONAL | CONTROL) != 0:
            kind: Any = DATA
            if attributes & CONTROL != 0:
                kind = EMPTY_CONTROL
                if records > 0 and record < first_hashes.shape[0]:
                    control_type = first_hashes[record]
                    kind = OTHER_CONTROL
                    if control_type == _ABORT:
                        kind = ABORT
                    elif control_type == _COMMIT:
                        kind = COMMIT
            horizon: Any = NO_HORIZON
            if attributes & DELETE_HORIZON != 0:
                horizon = HORIZON_PASSED if rows[i, BASE_TIMESTAMP] <= now_ms else HORIZON_AHEAD
            out[count, POSITION_WORD] = rows[i, POSITION]
            out[count, BASE_OFFSET_WORD] = rows[i, BASE_OFFSET]
            out[count, LAST_OFFSET_WORD] = rows[i, LAST_OFFSET]
            out[count, PRODUCER_ID_WORD] = rows[i, PRODUCER_ID]
            out[count, KIND_WORD] = segment | kind << KIND_SHIFT
            out[count, COUNT_WORD] = records | horizon << KIND_SHIFT
            count += 1
        record += records
    return count
