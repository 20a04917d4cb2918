"""The states of a part's records: what a verdict makes of them, and what is counted of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.formats.batch_columns import (
    ATTRIBUTES,
    EXPIRED,
    KEEP,
    LEGACY,
    REASON_MASK,
    RECORDS_COUNT,
    SUPERSEDED,
    TOMBSTONE,
    Int64Array,
)
from storage.formats.batch_header import DELETE_HORIZON
from storage.kernels.kernel import kernel

UInt8Array = NDArray[np.uint8]


@kernel
def drop_superseded(states: UInt8Array, ordinals: NDArray[np.uint32]) -> bool:
    """Give the records of these ordinals their reason to go. False where there is no such record;
    then the states are of no use.
    """
    for ordinal in ordinals:
        if ordinal >= states.shape[0]:
            return False
        kept_bits = states[ordinal] & np.uint8(~REASON_MASK & 0xFF)
        states[ordinal] = kept_bits | np.uint8(SUPERSEDED)
    return True


@kernel
def count_in_batches(rows: Int64Array, states: UInt8Array) -> tuple[int, int, int]:
    """How many batches are without records; how many are legacy; and how many tombstones, which may
    stay, are in batches without a delete horizon. states: of all records of the batches.
    """
    empty = legacy = tombstones = 0
    at: Any = 0
    for i in range(rows.shape[0]):
        end: Any = at + rows[i, RECORDS_COUNT]
        empty += at == end
        legacy += rows[i, ATTRIBUTES] & LEGACY != 0
        if rows[i, ATTRIBUTES] & DELETE_HORIZON == 0:
            for j in range(at, end):
                reason = states[j] & np.uint8(REASON_MASK)
                may_stay = reason in (KEEP, SUPERSEDED, EXPIRED)
                tombstones += may_stay and states[j] & np.uint8(TOMBSTONE) != 0
        at = end
    return empty, legacy, tombstones
