"""Kernels that count what batches and their records are: formats, sizes, times, tombstones.

They go through records that `parse_records` has found sound, while the cache holds them.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.inspect_values import (
    ABORTED_RECORDS,
    BATCH_CELL,
    BATCH_SIZES_AT,
    BATCHES_AT,
    CLEAN,
    CODECS,
    CONTROL_RECORDS,
    DIRTY,
    EMPTY_BATCHES,
    GREATEST_BATCH,
    GREATEST_HORIZON,
    GREATEST_RECORD,
    GREATEST_TIMESTAMP,
    GREATEST_TOMBSTONE_TIMESTAMP,
    HORIZON_AHEAD,
    HORIZON_PASSED,
    HORIZONS,
    LEAST_HORIZON,
    LEAST_TIMESTAMP,
    LEAST_TOMBSTONE_TIMESTAMP,
    LEGACY_FORMAT,
    NO_HORIZON,
    NULL_KEYS,
    RECORD_BYTES,
    RECORD_SIZES_AT,
    RECORDS,
    TOMBSTONE_CELL,
    TOMBSTONES_AT,
    TRANSACTIONAL_BATCHES,
    UNCLEANABLE,
)
from storage.formats.batch_columns import (
    ABORTED,
    ATTRIBUTES,
    BASE_TIMESTAMP,
    LEGACY,
    MAGIC_ZERO,
    MAX_TIMESTAMP,
    NULL_KEY,
    REASON_MASK,
    RECORDS_COUNT,
    SIZE,
    TOMBSTONE,
    TXN_FLAGS,
    UNREAD,
    ByteArray,
    Int64Array,
)
from storage.formats.batch_header import (
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
)
from storage.kernels.kernel import inlined, kernel
from storage.kernels.varint_kernel import read_varint, read_varlong


@inlined
def _size_class(size: Any) -> Any:
    """How many bits a number has."""
    bits: Any = np.int64(0)
    while size > 0:
        size >>= 1
        bits += 1
    return bits


@inlined
def _count_batch(row: Int64Array, counters: Int64Array) -> None:
    attributes, size = row[ATTRIBUTES], row[SIZE]
    magic: Any = np.int64(2)
    if attributes & LEGACY != 0:
        magic = np.int64(0) if attributes & MAGIC_ZERO != 0 else np.int64(1)
    cell = BATCHES_AT + (magic * CODECS + (attributes & CODEC_MASK)) * BATCH_CELL
    counters[cell] += 1
    counters[cell + 1] += size
    counters[cell + 2] += row[RECORDS_COUNT]
    counters[BATCH_SIZES_AT + _size_class(size)] += 1
    counters[GREATEST_BATCH] = max(counters[GREATEST_BATCH], size)
    if row[RECORDS_COUNT] == 0:
        counters[EMPTY_BATCHES] += 1
    if attributes & (TRANSACTIONAL | CONTROL) == TRANSACTIONAL:
        counters[TRANSACTIONAL_BATCHES] += 1


@inlined
def _horizon_of(row: Int64Array, now_ms: Any, counters: Int64Array) -> Any:
    """What the delete horizon of a batch with a tombstone is."""
    attributes = row[ATTRIBUTES]
    if attributes & LEGACY != 0:
        return np.int64(LEGACY_FORMAT)
    if attributes & DELETE_HORIZON == 0:
        return np.int64(NO_HORIZON)
    horizon_ms = row[BASE_TIMESTAMP]
    counters[LEAST_HORIZON] = min(counters[LEAST_HORIZON], horizon_ms)
    counters[GREATEST_HORIZON] = max(counters[GREATEST_HORIZON], horizon_ms)
    return np.int64(HORIZON_PASSED) if horizon_ms <= now_ms else np.int64(HORIZON_AHEAD)


@kernel
def count_records(
    payloads: ByteArray,
    bounds: Int64Array,
    rows: Int64Array,
    records: tuple[Int64Array, NDArray[np.uint8], int],
    limits: tuple[int, int, int],
    out: tuple[NDArray[np.uint32], Int64Array],
) -> None:
    """Count batches and the records of each.

    payloads, bounds, rows: as of parse_records, which has found nothing wrong with them. records:
    offsets and states that it has filled in, and which of them is the first of these batches.
    limits: first dirty offset, first uncleanable offset, now in ms. out: a size in bytes for each
    record, filled in as the offsets are; counters (COUNTERS,), added to.
    """
    offsets, states, record = records
    first_dirty_offset, first_uncleanable_offset, now_ms = limits
    sizes, counters = out
    for i in range(rows.shape[0]):
        _count_batch(rows[i], counters)
        count, attributes = rows[i, RECORDS_COUNT], rows[i, ATTRIBUTES]
        if attributes & CONTROL != 0:
            counters[CONTROL_RECORDS] += count
            for _ in range(count):
                sizes[record] = 0
                record += 1
            continue
        counters[RECORDS] += count
        if rows[i, TXN_FLAGS] & UNREAD == UNREAD:
            counters[ABORTED_RECORDS] += count
            for _ in range(count):
                sizes[record] = 0
                record += 1
            continue
        has_append_time = attributes & LOG_APPEND_TIME != 0
        at = bounds[i, 0]
        for _ in range(count):
            length, body = read_varint(payloads, at)
            end = body + length
            size = end - at
            sizes[record] = size
            delta, _behind = read_varlong(payloads, body + 1)
            timestamp: Any = rows[i, BASE_TIMESTAMP] + delta
            if has_append_time:
                timestamp = rows[i, MAX_TIMESTAMP]
            at = end
            counters[RECORD_BYTES] += size
            counters[RECORD_SIZES_AT + _size_class(size)] += 1
            counters[GREATEST_RECORD] = max(counters[GREATEST_RECORD], size)
            if timestamp >= 0:
                counters[LEAST_TIMESTAMP] = min(counters[LEAST_TIMESTAMP], timestamp)
                counters[GREATEST_TIMESTAMP] = max(counters[GREATEST_TIMESTAMP], timestamp)
            state = states[record]
            reason = state & np.uint8(REASON_MASK)
            if reason == np.uint8(ABORTED):
                counters[ABORTED_RECORDS] += 1
            elif reason == np.uint8(NULL_KEY):
                counters[NULL_KEYS] += 1
            elif state & np.uint8(TOMBSTONE) != 0:
                section: Any = np.int64(CLEAN)
                if offsets[record] >= first_uncleanable_offset:
                    section = np.int64(UNCLEANABLE)
                elif offsets[record] >= first_dirty_offset:
                    section = np.int64(DIRTY)
                cell = section * HORIZONS + _horizon_of(rows[i], now_ms, counters)
                cell = TOMBSTONES_AT + cell * TOMBSTONE_CELL
                counters[cell] += 1
                counters[cell + 1] += size
                if timestamp >= 0:
                    counters[LEAST_TOMBSTONE_TIMESTAMP] = min(
                        counters[LEAST_TOMBSTONE_TIMESTAMP], timestamp
                    )
                    counters[GREATEST_TOMBSTONE_TIMESTAMP] = max(
                        counters[GREATEST_TOMBSTONE_TIMESTAMP], timestamp
                    )
            record += 1
