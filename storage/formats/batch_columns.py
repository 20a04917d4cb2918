"""Kernels that turn a buffer of record batches into columns, without a Python object per record.

`walk_batches` frames whole batches and fills one row of numbers for each; `parse_records` walks the
records of framed batches and fills one entry per column for each record. Both answer with an error
code and a place instead of raising, so that the caller can name file and position.
Layout and strictness: Kafka, DefaultRecordBatch and DefaultRecord (log-format F-3.4, F-4.1, F-5).
What a cleaning makes of each record is a column, too (`_state`): Kafka, Cleaner.shouldRetainRecord
(compaction C-10).

A message of format v0 or v1 is a batch, too. What only its records show, `legacy_upgrade` adds.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.formats.batch_header import (
    ATTRIBUTES_AT,
    BASE_SEQUENCE_AT,
    BASE_TIMESTAMP_AT,
    BATCH_HEADER_BYTES,
    CODEC_MASK,
    CONTROL,
    CRC_AT,
    DELETE_HORIZON,
    FRAME_BYTES,
    LAST_OFFSET_DELTA_AT,
    LEGACY_ATTRIBUTES_AT,
    LEGACY_CRC_AT,
    LEGACY_TIMESTAMP_AT,
    LENGTH_AT,
    LOG_APPEND_TIME,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_AT,
    MAX_LAST_OFFSET,
    MAX_TIMESTAMP_AT,
    MIN_LEGACY_LENGTH,
    PRODUCER_EPOCH_AT,
    PRODUCER_ID_AT,
    RECORDS_COUNT_AT,
)
from storage.kernels.kernel import allocating_kernel, inlined, kernel
from storage.kernels.key_hash import (
    MAX_LENGTH,
    MAX_WORDS,
    empty_queues,
    hash_key,
    hash_waiting,
    put_key,
)
from storage.kernels.memory_access import load_be_int16, load_be_int32, load_be_int64, load_byte
from storage.kernels.varint_kernel import read_varint, read_varlong

SLACK_BYTES = 64  # readable bytes that every buffer has after its last batch
MIN_MESSAGE_BYTES = 26  # of format v0; v1 has eight more
MIN_RECORD_BYTES = 7  # length, attributes, two deltas, two lengths, count of headers

# columns of a batch row
POSITION, SIZE, BASE_OFFSET, LAST_OFFSET, ATTRIBUTES, BASE_TIMESTAMP, MAX_TIMESTAMP = range(7)
PRODUCER_ID, PRODUCER_EPOCH, BASE_SEQUENCE, RECORDS_COUNT, CHECKSUM, TXN_FLAGS = range(7, 13)
RECORDS_START, RECORDS_END = 13, 14  # of a legacy batch: where its records stand, upgraded
BATCH_COLUMNS = 15

# what the transactions of the log say of a batch; the walk leaves it at 0 (compaction C-8.4, C-8.5)
ABORTED_FOR_MAP = 0x01  # its records are not put in the map
ABORTED_FOR_CLEANING = 0x02  # its records go
DISCARDABLE = 0x04  # a control batch without data of its transaction before it
UNREAD = ABORTED_FOR_MAP | ABORTED_FOR_CLEANING  # with both, nobody looks at the records (C-10.3)

# attributes of a row: those of the batch header, and what their 16 bits have no place for
LEGACY = 1 << 16  # of format v0 or v1
MAGIC_ZERO = 1 << 17  # of format v0
LEGACY_EXPIRED = 1 << 18  # its tombstones are past their horizon (compaction C-6.1)

# state of a record: a reason to drop it, or 0, and what else is known of it
KEEP, SUPERSEDED, NULL_KEY, EXPIRED, ABORTED = range(5)
REASON_MASK = 0x07
TOMBSTONE = 0x08
IN_MAP = 0x10  # put in the map; any other record with a key is only looked up there
CONTROL_RECORD = 0x20  # of a control batch: not data, its key is no key

# what walk_batches and parse_records found wrong
OK, BAD_SIZE, BAD_MAGIC, BAD_MESSAGE, NEGATIVE_COUNT, BAD_CODEC, OFFSETS_NOT_ASCENDING = range(7)
BAD_RECORD, BAD_RECORD_OFFSET, RECORDS_LEFT_OVER, NEGATIVE_OFFSET_DELTA = range(7, 11)
BAD_CONTROL_KEY, NO_NEXT_OFFSET = 11, 12
PROBLEMS = {
    BAD_SIZE: "batch length {} is below the smallest possible",
    BAD_MAGIC: "magic {} is not a known message format",
    BAD_MESSAGE: "message {} of the entry does not parse within its length",
    NEGATIVE_COUNT: "records count {} is negative",
    BAD_CODEC: "codec {} is not known",
    OFFSETS_NOT_ASCENDING: "base offset {} is not above the last offset before it",
    BAD_RECORD: "record {} of the batch does not parse within its length",
    BAD_RECORD_OFFSET: "record {} of the batch has an offset out of order or outside of its batch",
    RECORDS_LEFT_OVER: "{} bytes are left over behind the last record of the batch",
    NEGATIVE_OFFSET_DELTA: "last offset delta {} is negative",
    BAD_CONTROL_KEY: "record {} of the control batch has no version and type for a key",
    NO_NEXT_OFFSET: "base offset {}, last offset above 2^63 - 2: no offset can follow it",
}

ByteArray = NDArray[np.uint8]
Int64Array = NDArray[np.int64]
UInt64Array = NDArray[np.uint64]


def problem_text(code: int, detail: int) -> str:
    return PROBLEMS[code].format(detail)


@kernel
def walk_batches(
    buffer: ByteArray, end: int, file_position: int, previous_offset: int, rows: Int64Array
) -> tuple[int, int, int, int]:
    """Frame the batches in buffer[:end] that are whole; a batch cut by the end is left for later.

    file_position: where buffer[0] stands in its file. previous_offset: the last offset before it.
    rows: (capacity, BATCH_COLUMNS) int64, filled from the top; the walk also ends when it is full.
    Of a legacy wrapper the records, and with them its base offset, are still unknown.
    Returns batches framed, bytes framed, error code (OK if none) and the number it found wrong; an
    error is of the batch after the framed ones.
    """
    count = 0
    at = 0
    while count < rows.shape[0] and at + FRAME_BYTES <= end:
        size = load_be_int32(buffer, at + LENGTH_AT) + LOG_OVERHEAD_BYTES
        magic = load_be_int16(buffer, at + MAGIC_AT) >> 8
        if size < LOG_OVERHEAD_BYTES + MIN_LEGACY_LENGTH:
            return count, at, BAD_SIZE, size - LOG_OVERHEAD_BYTES
        if magic < 0 or magic > MAGIC:
            return count, at, BAD_MAGIC, magic
        if size < (BATCH_HEADER_BYTES if magic == MAGIC else MIN_MESSAGE_BYTES + 8 * magic):
            return count, at, BAD_SIZE, size - LOG_OVERHEAD_BYTES
        if at + size > end:
            break
        row = rows[count]
        base_offset = load_be_int64(buffer, at)
        if magic < MAGIC:
            if base_offset <= previous_offset:
                return count, at, OFFSETS_NOT_ASCENDING, base_offset
            if base_offset > MAX_LAST_OFFSET:
                return count, at, NO_NEXT_OFFSET, base_offset
            codec: Any = np.int64(buffer[at + LEGACY_ATTRIBUTES_AT]) & CODEC_MASK
            if codec > 3:
                return count, at, BAD_CODEC, codec
            _fill_legacy_row(buffer, at, magic, row)
            row[POSITION] = file_position + at
            row[SIZE] = size
            previous_offset = base_offset
            at += size
            count += 1
            continue
        last_offset_delta = load_be_int32(buffer, at + LAST_OFFSET_DELTA_AT)
        attributes = load_be_int16(buffer, at + ATTRIBUTES_AT)
        records_count = load_be_int32(buffer, at + RECORDS_COUNT_AT)
        if base_offset <= previous_offset:
            return count, at, OFFSETS_NOT_ASCENDING, base_offset
        if last_offset_delta < 0:
            return count, at, NEGATIVE_OFFSET_DELTA, last_offset_delta
        if base_offset > MAX_LAST_OFFSET - last_offset_delta:
            return count, at, NO_NEXT_OFFSET, base_offset
        if records_count < 0:
            return count, at, NEGATIVE_COUNT, records_count
        if attributes & CODEC_MASK > 4:
            return count, at, BAD_CODEC, attributes & CODEC_MASK
        row[POSITION] = file_position + at
        row[SIZE] = size
        row[BASE_OFFSET] = base_offset
        row[LAST_OFFSET] = base_offset + last_offset_delta
        row[ATTRIBUTES] = attributes & 0xFFFF
        row[BASE_TIMESTAMP] = load_be_int64(buffer, at + BASE_TIMESTAMP_AT)
        row[MAX_TIMESTAMP] = load_be_int64(buffer, at + MAX_TIMESTAMP_AT)
        row[PRODUCER_ID] = load_be_int64(buffer, at + PRODUCER_ID_AT)
        row[PRODUCER_EPOCH] = load_be_int16(buffer, at + PRODUCER_EPOCH_AT)
        row[BASE_SEQUENCE] = load_be_int32(buffer, at + BASE_SEQUENCE_AT)
        row[RECORDS_COUNT] = records_count
        row[CHECKSUM] = load_be_int32(buffer, at + CRC_AT) & 0xFFFFFFFF
        row[TXN_FLAGS] = 0
        row[RECORDS_START] = row[RECORDS_END] = 0
        previous_offset = row[LAST_OFFSET]
        at += size
        count += 1
    return count, at, OK, 0


@inlined
def _fill_legacy_row(buffer: ByteArray, at: int, magic: Any, row: Int64Array) -> None:
    """What the header of a message says (F-7.1); of a wrapper that is not its first offset."""
    kept_bits = CODEC_MASK | LOG_APPEND_TIME if magic == 1 else CODEC_MASK
    timestamp = load_be_int64(buffer, at + LEGACY_TIMESTAMP_AT) if magic == 1 else np.int64(-1)
    row[BASE_OFFSET] = row[LAST_OFFSET] = load_be_int64(buffer, at)
    row[ATTRIBUTES] = np.int64(buffer[at + LEGACY_ATTRIBUTES_AT]) & kept_bits | LEGACY
    if magic == 0:
        row[ATTRIBUTES] |= MAGIC_ZERO
    row[BASE_TIMESTAMP] = row[MAX_TIMESTAMP] = timestamp
    row[PRODUCER_ID] = row[PRODUCER_EPOCH] = row[BASE_SEQUENCE] = -1
    row[RECORDS_COUNT] = 1 if row[ATTRIBUTES] & CODEC_MASK == 0 else 0
    row[CHECKSUM] = load_be_int32(buffer, at + LEGACY_CRC_AT) & 0xFFFFFFFF
    row[TXN_FLAGS] = row[RECORDS_START] = row[RECORDS_END] = 0


@inlined
def skip_headers(buffer: ByteArray, position: int, end: int) -> Any:
    """Return the position after a record's headers, or one beyond end if they are malformed."""
    malformed = np.int64(1) << np.int64(60)
    count, position = read_varint(buffer, position)
    if count < 0 or position > end or count > end - position:
        return malformed
    for _ in range(count):
        length, position = read_varint(buffer, position)
        if length < 0 or position > end or length > end - position:
            return malformed
        position += length
        length, position = read_varint(buffer, position)
        if position > end or length > end - position:
            return malformed
        if length > 0:
            position += length
    return position


class RecordFields(NamedTuple):
    """The fields of one record, by where they stand in a buffer.

    The flag keeps this from being an array of numbers, which LLVM leaves in memory.
    """

    is_sound: Any  # False: it does not parse, and nothing else counts
    end: Any
    time_delta: Any
    offset_delta: Any
    key_at: Any
    key_length: Any  # below 0: null
    value_at: Any
    value_length: Any  # below 0: null
    headers_at: Any  # of their count


@inlined
def next_record(buffer: ByteArray, at: Any, limit: Any) -> RecordFields:
    """Read the record that begins at `at` and is to end by `limit`, as strictly as parse_records.

    That has the same steps inside, since it hashes keys between them.
    """
    zero = np.int64(0)
    nothing = RecordFields(
        is_sound=False,
        end=zero,
        time_delta=zero,
        offset_delta=zero,
        key_at=zero,
        key_length=zero,
        value_at=zero,
        value_length=zero,
        headers_at=zero,
    )
    length, at = read_varint(buffer, at)
    if at > limit or length < 0 or length > limit - at:
        return nothing
    end = at + length
    time_delta, at = read_varlong(buffer, at + 1)
    if at > end:
        return nothing
    offset_delta, at = read_varint(buffer, at)
    if at > end:
        return nothing
    key_length, key_at = read_varint(buffer, at)
    if key_at > end or key_length > end - key_at:
        return nothing
    value_length, value_at = read_varint(buffer, key_at + max(zero, key_length))
    if value_at > end or value_length > end - value_at:
        return nothing
    headers_at = value_at + max(zero, value_length)
    if headers_at < end and load_byte(buffer, headers_at) == np.uint64(0):
        at = headers_at + 1
    else:
        at = skip_headers(buffer, headers_at, end)
    if at != end:
        return nothing
    return RecordFields(
        is_sound=True,
        end=end,
        time_delta=time_delta,
        offset_delta=offset_delta,
        key_at=key_at,
        key_length=key_length,
        value_at=value_at,
        value_length=value_length,
        headers_at=headers_at,
    )


class RecordLimits(NamedTuple):
    """What decides the states of records, beside their batches."""

    first_dirty_offset: int
    map_end_offset: int  # of the offset map, exclusive
    now_ms: int


@inlined
def _state(row: Int64Array, offset: Any, kind: tuple[bool, bool], limits: Any) -> Any:
    """State of a record of a batch. kind: whether it has a key, whether it is a tombstone."""
    has_key, is_tombstone = kind
    state = np.uint8(TOMBSTONE) if is_tombstone else np.uint8(0)
    if row[ATTRIBUTES] & CONTROL:
        return state | np.uint8(CONTROL_RECORD)
    is_dirty = limits.first_dirty_offset <= offset < limits.map_end_offset
    if has_key and is_dirty and row[TXN_FLAGS] & ABORTED_FOR_MAP == 0:
        state |= np.uint8(IN_MAP)
    if row[TXN_FLAGS] & ABORTED_FOR_CLEANING:
        return state | np.uint8(ABORTED)
    if offset >= limits.map_end_offset:  # kept, even without a key (C-11.2)
        return state
    if not has_key:
        return state | np.uint8(NULL_KEY)
    horizon_passed = row[ATTRIBUTES] & LEGACY_EXPIRED != 0 or (
        row[ATTRIBUTES] & DELETE_HORIZON != 0 and row[BASE_TIMESTAMP] <= limits.now_ms
    )
    if is_tombstone and horizon_passed:
        state |= np.uint8(EXPIRED)
    return state


@allocating_kernel
def parse_records(
    payloads: ByteArray,
    bounds: Int64Array,
    rows: Int64Array,
    limits: RecordLimits,
    secret: tuple[np.uint64, np.uint64],
    columns: Any,
    filled: int,
) -> tuple[int, int, int, int]:
    """Walk the records of the batches in rows and append an entry for each to columns.

    payloads: the (decompressed) records of batch i stand in bounds[i, 0]:bounds[i, 1], with
    SLACK_BYTES readable after the last. secret: the two halves of the hash key. columns:
    first_hash, second_hash (uint64), offset (int64), state (uint8), each with room for all records;
    filled: how many entries they hold already. The first hash of a control record is its type. The
    records of a batch that is UNREAD are not parsed. The hashes are there only where nothing is
    wrong.
    Returns entries held, then the index of the bad batch, error code and detail (or -1, OK, 0).
    """
    return _parse_records((payloads, bounds, rows), limits, secret, columns, filled, empty_queues())


@kernel
def _parse_records(
    batches: tuple[ByteArray, Int64Array, Int64Array],
    limits: RecordLimits,
    secret: tuple[np.uint64, np.uint64],
    columns: Any,
    filled: int,
    queues: UInt64Array,
) -> tuple[int, int, int, int]:
    """Do what parse_records does, with queues that are empty."""
    payloads, bounds, rows = batches
    first_hash, second_hash, offsets, states = columns
    key_low, key_high = secret
    for i in range(rows.shape[0]):
        at = bounds[i, 0]
        end = bounds[i, 1]
        base_offset = rows[i, BASE_OFFSET]
        last_offset = rows[i, LAST_OFFSET]
        is_control = rows[i, ATTRIBUTES] & CONTROL != 0
        if rows[i, TXN_FLAGS] & UNREAD == UNREAD and not is_control:
            for _ in range(rows[i, RECORDS_COUNT]):
                first_hash[filled] = np.uint64(0)
                second_hash[filled] = np.uint64(0)
                offsets[filled] = base_offset
                states[filled] = np.uint8(ABORTED)
                filled += 1
            continue
        # a record's state is its batch's but where a limit lies inside of the batch
        has_limit_inside = (
            base_offset < limits.first_dirty_offset <= last_offset
            or base_offset < limits.map_end_offset <= last_offset
        )
        with_value = _state(rows[i], base_offset, (True, False), limits)
        tombstone = _state(rows[i], base_offset, (True, True), limits)
        without_key = _state(rows[i], base_offset, (False, False), limits)
        previous_offset = base_offset - 1
        for j in range(rows[i, RECORDS_COUNT]):
            length, at = read_varint(payloads, at)
            if at > end or length < 0 or length > end - at:
                return filled, i, BAD_RECORD, j
            record_end = at + length
            _, at = read_varlong(payloads, at + 1)
            if at > record_end:
                return filled, i, BAD_RECORD, j
            offset_delta, at = read_varint(payloads, at)
            if at > record_end:
                return filled, i, BAD_RECORD, j
            key_length, at = read_varint(payloads, at)
            if at > record_end or key_length > record_end - at:
                return filled, i, BAD_RECORD, j
            offset = base_offset + offset_delta
            if offset <= previous_offset or offset > last_offset:
                return filled, i, BAD_RECORD_OFFSET, j
            previous_offset = offset
            offsets[filled] = offset
            if is_control:
                if key_length < 4 or payloads[at] >= np.uint8(0x80):  # F-6: int16 version, not < 0
                    return filled, i, BAD_CONTROL_KEY, j
                first_hash[filled] = np.uint64(load_be_int16(payloads, at + 2) & 0xFFFF)
                second_hash[filled] = np.uint64(0)
                at += key_length
            elif key_length > MAX_LENGTH:
                hashes = hash_key(payloads, at, key_length, key_low, key_high)
                first_hash[filled] = hashes[0]
                second_hash[filled] = hashes[1]
                at += key_length
            elif key_length >= 0:
                words = put_key(queues, payloads, at, key_length, filled)
                if words:
                    hash_waiting(queues, words, secret, first_hash, second_hash)
                at += key_length
            else:
                first_hash[filled] = np.uint64(0)
                second_hash[filled] = np.uint64(0)
            value_length, at = read_varint(payloads, at)
            if at > record_end or value_length > record_end - at:
                return filled, i, BAD_RECORD, j
            is_tombstone = value_length < 0
            if not is_tombstone:
                at += value_length
            if has_limit_inside:
                states[filled] = _state(rows[i], offset, (key_length >= 0, is_tombstone), limits)
            elif key_length < 0:
                states[filled] = without_key | np.uint8(TOMBSTONE if is_tombstone else 0)
            else:
                states[filled] = tombstone if is_tombstone else with_value
            if at < record_end and load_byte(payloads, at) == np.uint64(0):
                at += 1
            else:
                at = skip_headers(payloads, at, record_end)
            if at != record_end:
                return filled, i, BAD_RECORD, j
            at = record_end  # known without waiting for all that was read of the record
            filled += 1
        if at != end and rows[i, RECORDS_COUNT] > 0:  # of an empty batch nothing is read
            return filled, i, RECORDS_LEFT_OVER, end - at
    for words in range(1, MAX_WORDS + 1):
        hash_waiting(queues, words, secret, first_hash, second_hash)
    return filled, -1, OK, 0
