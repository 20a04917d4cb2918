"""Kernels that write the header of a batch that is written anew, all but its checksum.

Source: Kafka, MemoryRecordsBuilder and DefaultRecordBatch.writeEmptyHeader (compaction C-11.9 to
C-11.14).
"""

from typing import Any

import numpy as np

from storage.formats.batch_columns import ATTRIBUTES, BASE_TIMESTAMP, ByteArray, Int64Array
from storage.formats.batch_header import (
    ATTRIBUTES_AT,
    ATTRIBUTES_BYTES,
    BASE_TIMESTAMP_AT,
    BATCH_HEADER_BYTES,
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    LENGTH_AT,
    LOG_APPEND_TIME,
    LOG_OVERHEAD_BYTES,
    MAX_TIMESTAMP_AT,
    RECORDS_COUNT_AT,
    TRANSACTIONAL,
)
from storage.formats.header_kernel import write_new_header
from storage.kernels.kernel import inlined, kernel
from storage.kernels.memory_access import copy_bytes, store_be_int16, store_be_int32, store_be_int64

PRESERVED_ATTRIBUTES = CODEC_MASK | LOG_APPEND_TIME | TRANSACTIONAL | CONTROL
FLAGS_AT = ATTRIBUTES_AT + ATTRIBUTES_BYTES - 1  # the byte that holds all attribute bits


@kernel
def write_header(
    source: ByteArray,
    source_at: int,
    out: ByteArray,
    at: int,
    size: int,
    times: tuple[int, int, bool],
    records_count: int,
) -> None:
    """Write the header of a rebuilt batch, all but its checksum.

    What is not named here is the source batch's, whose header stands at source_at. size: of the
    whole batch. times: base timestamp, max timestamp, whether the base is a delete horizon.
    """
    base_timestamp, max_timestamp, has_horizon = times
    copy_bytes(out, at, source, source_at, BATCH_HEADER_BYTES)
    store_be_int32(out, at + LENGTH_AT, size - LOG_OVERHEAD_BYTES)
    out[at + ATTRIBUTES_AT] = 0
    out[at + FLAGS_AT] = np.uint8(source[source_at + FLAGS_AT] & np.uint8(PRESERVED_ATTRIBUTES))
    if has_horizon:
        out[at + FLAGS_AT] |= np.uint8(DELETE_HORIZON)
    store_be_int64(out, at + BASE_TIMESTAMP_AT, base_timestamp)
    store_be_int64(out, at + MAX_TIMESTAMP_AT, max_timestamp)
    store_be_int32(out, at + RECORDS_COUNT_AT, records_count)


@inlined
def write_converted_header(
    row: Int64Array, out: ByteArray, at: int, size: int, offsets: Any, times: Any, count: Any
) -> None:
    """Write the header that a legacy message gets (C-11.12). offsets: of its first and last record.

    times: base timestamp, max timestamp, whether the base is a delete horizon.
    """
    base_timestamp, max_timestamp, has_horizon = times
    attributes = row[ATTRIBUTES] & PRESERVED_ATTRIBUTES
    if has_horizon:
        attributes |= DELETE_HORIZON
    new_times = (base_timestamp, max_timestamp)
    write_new_header(out, (at, at + size), attributes, offsets, new_times, count)


@kernel
def write_empty_batch(
    source: ByteArray, source_at: int, max_timestamp: int, out: ByteArray, at: int
) -> None:
    """Write a batch without records in the place of the one at source_at (C-11.9), no checksum."""
    write_header(source, source_at, out, at, BATCH_HEADER_BYTES, (-1, max_timestamp, False), 0)
    kept_bits = np.uint8(LOG_APPEND_TIME | TRANSACTIONAL | CONTROL)
    store_be_int16(out, at + ATTRIBUTES_AT, np.int64(source[source_at + FLAGS_AT] & kept_bits))


@kernel
def has_horizon_after(row: Int64Array, new_horizon_ms: int) -> bool:
    """Whether a rebuilt batch carries a delete horizon; a negative one is not kept (E-36)."""
    if new_horizon_ms >= 0:
        return True
    return bool(row[ATTRIBUTES] & DELETE_HORIZON != 0 and row[BASE_TIMESTAMP] >= 0)
