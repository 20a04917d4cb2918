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
from storage.kernels.memory_access import bit_length
from storage.kernels.varint_kernel import read_varint, read_varlong


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
    counters[BATCH_SIZES_AT + bit_length(size)] += 1
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
        record = _count_data(
            payloads, bounds[i, 0], rows[i], (offsets, states, record), limits, out
        )


@inlined
def _count_data(
    payloads: ByteArray, at: Any, row: Int64Array, records: Any, limits: Any, out: Any
) -> Any:
    """Count the records of one batch; return the number of the first one behind them."""
    offsets, states, record = records
    sizes, counters = out
    start, end_record = at, record + row[RECORDS_COUNT]
    has_append_time = row[ATTRIBUTES] & LOG_APPEND_TIME != 0
    base_ms: Any = np.int64(row[BASE_TIMESTAMP])
    greatest: Any = np.int64(counters[GREATEST_RECORD])
    least_ms: Any = np.int64(counters[LEAST_TIMESTAMP])
    greatest_ms: Any = np.int64(counters[GREATEST_TIMESTAMP])
    while record < end_record:
        length, body = read_varint(payloads, at)
        size = body + length - at
        delta, _behind = read_varlong(payloads, body + 1)
        timestamp: Any = np.int64(row[MAX_TIMESTAMP] if has_append_time else base_ms + delta)
        at += size
        sizes[record] = size
        counters[RECORD_SIZES_AT + bit_length(size)] += 1
        greatest = max(greatest, size)
        if timestamp >= 0:
            least_ms = min(least_ms, timestamp)
            greatest_ms = max(greatest_ms, timestamp)
        state = states[record]
        if state & np.uint8(REASON_MASK | TOMBSTONE) != 0:
            _count_special(row, (state, offsets[record], size, timestamp), limits, counters)
        record += 1
    counters[RECORD_BYTES] += at - start
    counters[GREATEST_RECORD] = greatest
    counters[LEAST_TIMESTAMP] = least_ms
    counters[GREATEST_TIMESTAMP] = greatest_ms
    return record


@inlined
def _count_special(row: Int64Array, record: Any, limits: Any, counters: Int64Array) -> None:
    """Count a record that is no plain value of a key. record: state, offset, size, timestamp."""
    state, offset, size, timestamp = record
    first_dirty_offset, first_uncleanable_offset, now_ms = limits
    reason = state & np.uint8(REASON_MASK)
    if reason == np.uint8(ABORTED):
        counters[ABORTED_RECORDS] += 1
        return
    if reason == np.uint8(NULL_KEY):
        counters[NULL_KEYS] += 1
        return
    if state & np.uint8(TOMBSTONE) == 0:
        return
    section: Any = np.int64(CLEAN)
    if offset >= first_uncleanable_offset:
        section = np.int64(UNCLEANABLE)
    elif offset >= first_dirty_offset:
        section = np.int64(DIRTY)
    cell = section * HORIZONS + _horizon_of(row, now_ms, counters)
    cell = TOMBSTONES_AT + cell * TOMBSTONE_CELL
    counters[cell] += 1
    counters[cell + 1] += size
    if timestamp >= 0:
        counters[LEAST_TOMBSTONE_TIMESTAMP] = min(counters[LEAST_TOMBSTONE_TIMESTAMP], timestamp)
        counters[GREATEST_TOMBSTONE_TIMESTAMP] = max(
            counters[GREATEST_TOMBSTONE_TIMESTAMP], timestamp
        )
