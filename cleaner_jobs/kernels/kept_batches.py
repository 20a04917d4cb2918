"""Keep or drop: what becomes of each batch, once it is known which of its records go.

Which records go is decided in `storage.formats.batch_columns` (Cleaner.shouldRetainRecord).
Source: Kafka, Cleaner.cleanInto, MemoryRecords.filterTo, shouldDiscardBatch (compaction C-10,
C-11.6), for batches of any format. A legacy batch never stays as it is: it becomes one of format
v2 (C-11.12).
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.messages import ActiveProducer
from storage.formats.batch_columns import (
    ATTRIBUTES,
    BASE_TIMESTAMP,
    DISCARDABLE,
    LAST_OFFSET,
    LEGACY,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    REASON_MASK,
    RECORDS_COUNT,
    TOMBSTONE,
    TXN_FLAGS,
    ByteArray,
    Int64Array,
)
from storage.formats.batch_header import CONTROL, DELETE_HORIZON
from storage.kernels.kernel import inlined, kernel

DROP, COPY, REBUILD, REBUILD_WITH_HORIZON, EMPTY = range(5)
MAX_INT64 = 2**63 - 1

Int32Array = NDArray[np.int32]


class KeptBatches(NamedTuple):
    """Which batches stay, at least as an empty header, though none of their records does."""

    kept_end_offset: int  # C-10.5: the batch that ends there, exclusive
    producer_ids: Int64Array  # C-10.4: ascending, of the active producers
    last_data_offsets: Int64Array  # -1: no data in the epoch
    epochs: Int64Array

    @classmethod
    def of(cls, kept_end_offset: int, producers: Iterable[ActiveProducer]) -> "KeptBatches":
        known = sorted(
            (
                p.producer_id,
                p.last_data_offset if p.last_data_offset is not None else -1,
                p.producer_epoch,
            )
            for p in producers
        )
        columns = np.array(known, np.int64).reshape(-1, 3).T
        return cls(kept_end_offset, *(np.ascontiguousarray(c) for c in columns))


def delete_horizon(now_ms: int, delete_retention_ms: int) -> int:
    """Return the horizon that a round gives, or -1 where it does not fit 64 bits (C-11.8)."""
    horizon_ms = now_ms + delete_retention_ms
    return horizon_ms if horizon_ms <= MAX_INT64 else -1


@inlined
def _is_kept_empty(row: Int64Array, kept_batches: Any) -> bool:
    kept_end_offset, producer_ids, last_data_offsets, epochs = kept_batches
    if row[LAST_OFFSET] + 1 == kept_end_offset:
        return True
    if row[PRODUCER_ID] < 0 or producer_ids.shape[0] == 0:
        return False
    i = np.searchsorted(producer_ids, row[PRODUCER_ID])
    if i == producer_ids.shape[0] or producer_ids[i] != row[PRODUCER_ID]:
        return False
    if last_data_offsets[i] >= 0:
        return bool(last_data_offsets[i] == row[LAST_OFFSET])
    return bool(row[ATTRIBUTES] & CONTROL != 0 and epochs[i] == row[PRODUCER_EPOCH])


@kernel
def decide_batches(
    rows: Int64Array,
    states: ByteArray,
    kept_batches: KeptBatches,
    now_ms: int,
    actions: ByteArray,
    kept_records: Int32Array,
) -> None:
    """Fill what is to be done with each batch, and how many of its records stay.

    rows: (n, BATCH_COLUMNS). states: one uint8 per record of those batches, in order. actions,
    kept_records: (>= n,), filled. A control batch that may be discarded is given a horizon first,
    and goes once that has passed (C-8.7, C-10.2).
    """
    record = 0
    for i in range(rows.shape[0]):
        kept = 0
        has_tombstone = False
        for _ in range(rows[i, RECORDS_COUNT]):
            state = states[record]
            record += 1
            if state & np.uint8(REASON_MASK) == 0:
                kept += 1
                if state & np.uint8(TOMBSTONE):
                    has_tombstone = True
        has_horizon = rows[i, ATTRIBUTES] & DELETE_HORIZON != 0
        may_go = rows[i, ATTRIBUTES] & CONTROL != 0 and rows[i, TXN_FLAGS] & DISCARDABLE != 0
        if may_go and has_horizon and rows[i, BASE_TIMESTAMP] <= now_ms:
            kept = 0
        kept_records[i] = kept
        needs_horizon = (has_tombstone or may_go) and not has_horizon
        if kept == 0:
            actions[i] = EMPTY if _is_kept_empty(rows[i], kept_batches) else DROP
        elif needs_horizon:
            actions[i] = REBUILD_WITH_HORIZON
        elif kept < rows[i, RECORDS_COUNT] or rows[i, ATTRIBUTES] & LEGACY != 0:
            actions[i] = REBUILD
        else:
            actions[i] = COPY
