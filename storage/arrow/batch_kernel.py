"""The kernel that makes batches of v2 of columns: as Kafka's builder makes them of these records.

Keys, values and headers come in Arrow's buffers. What goes into a batch is counted before it is
written, so that nothing is written twice. Offsets begin at 0; leader epoch and producer are none.
Source: Kafka, MemoryRecordsBuilder, DefaultRecordBatch; log-format F-4, F-5.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.arrow.record_kernel import Int32Array
from storage.codecs.payload_kernels import NOT_TAKEN, compress_payload, max_payload_bytes
from storage.formats.batch_columns import ByteArray, Int64Array
from storage.formats.batch_header import BATCH_HEADER_BYTES, CHECKED_AT, CRC_AT, NO_TIMESTAMP
from storage.formats.batch_kernels import write_new_header
from storage.kernels.crc_kernels import crc32c_between
from storage.kernels.kernel import inlined, kernel
from storage.kernels.memory_access import copy_bytes, store_be_int32
from storage.kernels.varint_kernel import varint_bytes, write_varint

BoolArray = NDArray[np.bool_]

# columns of a batch that was made
START, END, FIRST, COUNT, COMPRESSED = range(5)  # COMPRESSED: whether as it was asked for
MADE_COLUMNS = 5
MADE, NO_ROOM = range(2)


class Pieces(NamedTuple):
    """A column of Arrow's: piece i is data[ends[i]:ends[i + 1]], and null where not valid."""

    ends: Int32Array
    data: ByteArray
    valid: BoolArray


class RecordArrays(NamedTuple):
    """Columns of records; those of headers may have none of them."""

    timestamps: Int64Array
    keys: Pieces
    values: Pieces
    header_ends: Int32Array  # of the headers of a record; without any for a table without headers
    header_keys: Pieces
    header_values: Pieces


@inlined
def _length(ends: Int32Array, valid: BoolArray, number: Any) -> Any:
    """The length of a piece, -1 of a null."""
    if not valid[number]:
        return np.int64(-1)
    return np.int64(ends[number + 1]) - np.int64(ends[number])


@inlined
def _nullable_bytes(length: Any) -> Any:
    return varint_bytes(length) + max(np.int64(0), length)


@inlined
def _write_nullable(out: ByteArray, at: Any, data: ByteArray, start: Any, length: Any) -> Any:
    at = write_varint(out, at, length)
    if length > 0:
        copy_bytes(out, at, data, np.int64(start), length)
        at += length
    return at


@kernel
def _header_bytes(records: RecordArrays, number: int) -> int:
    """The room that a record's headers need, after their count."""
    size = np.int64(0)
    for i in range(records.header_ends[number], records.header_ends[number + 1]):
        size += _nullable_bytes(_length(records.header_keys.ends, records.header_keys.valid, i))
        size += _nullable_bytes(_length(records.header_values.ends, records.header_values.valid, i))
    return int(size)


@kernel
def _write_headers(records: RecordArrays, number: int, out: ByteArray, at: int) -> int:
    keys, values = records.header_keys, records.header_values
    for i in range(records.header_ends[number], records.header_ends[number + 1]):
        length = _length(keys.ends, keys.valid, i)
        at = _write_nullable(out, at, keys.data, keys.ends[i], length)
        length = _length(values.ends, values.valid, i)
        at = _write_nullable(out, at, values.data, values.ends[i], length)
    return at


@kernel
def write_records(
    records: RecordArrays, first: int, room: tuple[int, int], out: ByteArray, start: int
) -> tuple[int, int, int]:
    """Write the records of one batch to out from `start` on, one at least.

    room: so many bytes of records, unless there is one alone; and where out ends, for that one too.
    Returns the number after the last record, the position after it, and the largest time; `first`
    again where out has no room for them.
    """
    timestamps = records.timestamps
    key_ends, keys, key_valid = records.keys
    value_ends, values, value_valid = records.values
    with_headers = records.header_ends.shape[0] > 1
    most, limit = room
    at: Any = np.int64(start)
    number = first
    base = timestamps[first]
    largest: Any = np.int64(NO_TIMESTAMP)
    while number < timestamps.shape[0]:
        delta = timestamps[number] - base
        offset_delta: Any = np.int64(number - first)
        key_length = _length(key_ends, key_valid, number)
        value_length = _length(value_ends, value_valid, number)
        headers: Any = np.int64(0)
        size = 1 + varint_bytes(delta) + varint_bytes(offset_delta)
        size += _nullable_bytes(key_length) + _nullable_bytes(value_length)
        if with_headers:
            headers = np.int64(records.header_ends[number + 1] - records.header_ends[number])
        size += varint_bytes(headers)
        if headers:
            size += _header_bytes(records, number)
        whole = size + varint_bytes(np.int64(size))
        if number > first and at + whole - start > most:
            break
        if at + whole > limit:
            return first, start, NO_TIMESTAMP
        at = write_varint(out, at, np.int64(size))
        out[at] = 0  # attributes
        at = write_varint(out, at + 1, delta)
        at = write_varint(out, at, offset_delta)
        at = _write_nullable(out, at, keys, key_ends[number], key_length)
        at = _write_nullable(out, at, values, value_ends[number], value_length)
        at = write_varint(out, at, headers)
        if headers:
            at = np.int64(_write_headers(records, number, out, at))
        largest = max(largest, timestamps[number])
        number += 1
    return number, at, largest


@kernel
def make_batches(
    records: RecordArrays,
    first: int,
    limits: tuple[int, int],
    buffers: tuple[ByteArray, ByteArray],
    made: Int64Array,
    tools: Any,
) -> tuple[int, int, int]:
    """Make batches of the records from `first` on, one after another.

    limits: the codec, and how many bytes a batch has before it is compressed, unless it is a single
    record. buffers: for the batches, and for what is compressed. made: (most, MADE_COLUMNS), filled
    for each batch. tools: see payload_kernels. Where the kernels do not take a payload, its batch
    is left as it is without a codec, and COMPRESSED is 0.

    Returns the number of the first record that is not done, that of batches, and MADE, or NO_ROOM
    where the next batch does not fit: into empty buffers, if there are no batches.
    """
    codec, batch_bytes = limits
    out, scratch = buffers
    most = batch_bytes - BATCH_HEADER_BYTES
    at: Any = np.int64(0)
    count = 0
    while first < records.timestamps.shape[0] and count < made.shape[0]:
        base = records.timestamps[first]
        body: Any = at + BATCH_HEADER_BYTES
        target, start = out, body
        if codec:
            target, start = scratch, np.int64(0)
        number, end, largest = write_records(records, first, (most, target.shape[0]), target, start)
        size: Any = np.int64(end) - start
        room = body + max_payload_bytes(size) if codec else np.int64(end)
        if number == first or room > out.shape[0]:
            return first, count, NO_ROOM
        made[count, COMPRESSED] = 1
        behind: Any = np.int64(end)
        if codec:
            behind = np.int64(compress_payload(codec, scratch, (0, end), out, body, tools))
            if behind == NOT_TAKEN:
                copy_bytes(out, body, scratch, np.int64(0), size)
                behind = body + size
                made[count, COMPRESSED] = 0
        attributes: Any = np.int64(codec if made[count, COMPRESSED] else 0)
        its: Any = np.int64(number - first)
        offsets = (np.int64(0), its - 1)
        write_new_header(out, (at, behind), attributes, offsets, (base, np.int64(largest)), its)
        store_be_int32(out, at + CRC_AT, np.int64(crc32c_between(out, at + CHECKED_AT, behind)))
        made[count, START], made[count, END] = at, behind
        made[count, FIRST], made[count, COUNT] = first, number - first
        at = behind
        first = number
        count += 1
    return first, count, MADE
