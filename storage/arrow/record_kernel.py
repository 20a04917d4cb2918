"""The kernel that fills Arrow's buffers with the records of decompressed batches.

Of each record that is wanted its offset, its time and the number of its batch go into columns of
numbers; key, value and headers are put after those of the record before, with where they end and
a bit for those that are no null. What a batch says of all its records is looked up by its number
afterwards. Layout: log-format F-5; as strict as `batch_columns.parse_records`.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.formats.batch_columns import (
    ATTRIBUTES,
    BAD_RECORD,
    BAD_RECORD_OFFSET,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    LAST_OFFSET,
    LEGACY,
    MAX_TIMESTAMP,
    OK,
    PRODUCER_ID,
    RECORDS_COUNT,
    RECORDS_LEFT_OVER,
    ByteArray,
    Int64Array,
    next_record,
)
from storage.formats.batch_header import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL
from storage.kernels.kernel import inlined, kernel
from storage.kernels.memory_access import copy_bytes
from storage.kernels.varint_kernel import read_varint

Int32Array = NDArray[np.int32]


class Parts(NamedTuple):
    """Nullable pieces of bytes, one after another; without any room where nobody wants them."""

    ends: Int32Array  # of piece i at i + 1; 0 before the first
    data: ByteArray
    validity: ByteArray  # a bit for each, zeros before


class Columns(NamedTuple):
    """Buffers of one Arrow batch, with room for all records there are."""

    offsets: Int64Array
    timestamps: Int64Array
    batches: Int32Array  # the number of the batch of each record
    keys: Parts
    values: Parts
    header_ends: Int32Array  # of the headers of a record
    header_keys: Parts
    header_values: Parts


class Range(NamedTuple):
    """Which records are wanted; `end_` is exclusive, `last_` inclusive: any time is legal."""

    first_offset: int
    end_offset: int
    first_ms: int
    last_ms: int


@kernel
def _put_headers(columns: Columns, count: int, payloads: ByteArray, at: int) -> int:
    """Append a record's headers, of which there are `count` before; how many there are then.

    The caller has seen by next_record that they are well formed. A header has two bytes at least,
    so that there is room for all.
    """
    key_end: Any = np.int64(columns.header_keys.ends[count])
    value_end: Any = np.int64(columns.header_values.ends[count])
    its, at = read_varint(payloads, at)
    for _ in range(its):
        length, at = read_varint(payloads, at)
        columns.header_keys.validity[count >> 3] |= np.uint8(1 << (count & 7))
        copy_bytes(columns.header_keys.data, key_end, payloads, at, length)
        key_end += length
        length, at = read_varint(payloads, at + length)
        if length >= 0:
            columns.header_values.validity[count >> 3] |= np.uint8(1 << (count & 7))
            copy_bytes(columns.header_values.data, value_end, payloads, at, length)
            value_end += length
            at += length
        count += 1
        columns.header_keys.ends[count] = key_end
        columns.header_values.ends[count] = value_end
    return count


@kernel
def fill_columns(
    payloads: ByteArray,
    bounds: Int64Array,
    rows: Int64Array,
    chosen: NDArray[np.bool_],
    wanted: Range,
    columns: Columns,
) -> tuple[int, int, int, int, int]:
    """Walk the records of the chosen batches, and append those that are wanted to columns.

    payloads: the (decompressed) records of batch i stand in bounds[i, 0]:bounds[i, 1], with
    SLACK_BYTES readable after the last. columns: a part with a single end is not filled; one that
    is has room for all bytes of the payloads.
    Returns records and headers appended, then the index of the bad batch, error code and detail (or
    -1, OK, 0).
    """
    offsets, timestamps, batches = columns.offsets, columns.timestamps, columns.batches
    key_ends, keys, key_validity = columns.keys
    value_ends, values, value_validity = columns.values
    header_ends = columns.header_ends
    with_keys = key_ends.shape[0] > 1
    with_values = value_ends.shape[0] > 1
    with_headers = header_ends.shape[0] > 1
    first_offset, end_offset, first_ms, last_ms = wanted
    filled = headers = 0
    key_end: Any = np.int64(0)
    value_end: Any = np.int64(0)
    for i in range(rows.shape[0]):
        if not chosen[i]:
            continue
        at = bounds[i, 0]
        end = bounds[i, 1]
        base_offset = rows[i, BASE_OFFSET]
        last_offset = rows[i, LAST_OFFSET]
        # upgraded records of a legacy batch have got their time already
        is_stamped = (
            rows[i, ATTRIBUTES] & LOG_APPEND_TIME != 0 and rows[i, ATTRIBUTES] & LEGACY == 0
        )
        previous_offset = base_offset - 1
        for j in range(rows[i, RECORDS_COUNT]):
            record = next_record(payloads, at, end)
            if not record.is_sound:
                return filled, headers, i, BAD_RECORD, j
            at = record.end
            offset = base_offset + record.offset_delta
            if offset <= previous_offset or offset > last_offset:
                return filled, headers, i, BAD_RECORD_OFFSET, j
            previous_offset = offset
            timestamp = rows[i, MAX_TIMESTAMP] if is_stamped else rows[i, BASE_TIMESTAMP]
            if not is_stamped:
                timestamp += record.time_delta
            if offset < first_offset or offset >= end_offset:
                continue
            if timestamp < first_ms or timestamp > last_ms:
                continue
            offsets[filled] = offset
            timestamps[filled] = timestamp
            batches[filled] = i
            if with_keys:
                if record.key_length >= 0:
                    key_validity[filled >> 3] |= np.uint8(1 << (filled & 7))
                    copy_bytes(keys, key_end, payloads, record.key_at, record.key_length)
                    key_end += record.key_length
                key_ends[filled + 1] = key_end
            if with_values:
                if record.value_length >= 0:
                    value_validity[filled >> 3] |= np.uint8(1 << (filled & 7))
                    copy_bytes(values, value_end, payloads, record.value_at, record.value_length)
                    value_end += record.value_length
                value_ends[filled + 1] = value_end
            if with_headers:
                if record.headers_at + 1 < record.end:
                    headers = _put_headers(columns, headers, payloads, record.headers_at)
                header_ends[filled + 1] = headers
            filled += 1
        if at != end and rows[i, RECORDS_COUNT] > 0:  # of an empty batch nothing is read
            return filled, headers, i, RECORDS_LEFT_OVER, end - at
    return filled, headers, -1, OK, 0


@kernel
def choose_batches(
    rows: Int64Array,
    aborted: Int64Array,
    wanted: Range,
    refused_bits: int,
    chosen: NDArray[np.bool_],
) -> None:
    """Note which batches may hold records that are wanted.

    aborted: (n, 3) producer id, first and last offset of aborted transactions, by producer and last
    offset. refused_bits: attributes of batches that are left out.
    """
    for i in range(rows.shape[0]):
        chosen[i] = (
            rows[i, RECORDS_COUNT] > 0
            and rows[i, LAST_OFFSET] >= wanted.first_offset
            and rows[i, BASE_OFFSET] < wanted.end_offset
            and rows[i, MAX_TIMESTAMP] >= wanted.first_ms
            and rows[i, ATTRIBUTES] & refused_bits == 0
            and not _is_aborted(rows[i], aborted)
        )


@inlined
def _is_aborted(row: Int64Array, aborted: Int64Array) -> bool:
    """Whether a batch is data of an aborted transaction.

    Only the first transaction of its producer that does not end before the batch can be that one:
    it has to begin by the last record of the batch.
    """
    if row[ATTRIBUTES] & TRANSACTIONAL == 0 or row[ATTRIBUTES] & CONTROL != 0:
        return False
    low = 0
    high = aborted.shape[0]
    while low < high:
        middle = (low + high) >> 1
        producer_id = aborted[middle, 0]
        is_before = producer_id == row[PRODUCER_ID] and aborted[middle, 2] < row[LAST_OFFSET]
        if producer_id < row[PRODUCER_ID] or is_before:
            low = middle + 1
        else:
            high = middle
    if low == aborted.shape[0] or aborted[low, 0] != row[PRODUCER_ID]:
        return False
    return bool(aborted[low, 1] <= row[LAST_OFFSET])
