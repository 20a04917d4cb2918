"""Kernels of the engine: batches to append, to look through, to recover; look-ups in an index.

They know batches of format v2 that are as they should be. Whatever else there may be in a log, and
whatever may be wrong, they only say that they do not know it: then the modules that go batch by
batch decide. Other kernels that the engine uses come with the import of this module, so that one
import loads them all. Layout: log-format F-4, F-5; rules: engine L-2, L-4, L-13.
"""

from typing import Any, NamedTuple

import numpy as np

from storage.codecs.compression import Codec
from storage.file_names import MAX_RELATIVE_OFFSET
from storage.formats import segment_indexes as segment_indexes
from storage.formats.batch_columns import ByteArray, Int64Array, next_record
from storage.formats.batch_header import (
    ATTRIBUTES_AT,
    BASE_OFFSET_AT,
    BASE_SEQUENCE_AT,
    BASE_TIMESTAMP_AT,
    BATCH_HEADER_BYTES,
    CHECKED_AT,
    CODEC_MASK,
    CRC_AT,
    FRAME_BYTES,
    LAST_OFFSET_DELTA_AT,
    LEADER_EPOCH_AT,
    LENGTH_AT,
    LOG_APPEND_TIME,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_AT,
    MAX_LAST_OFFSET,
    MAX_TIMESTAMP_AT,
    MIN_BATCH_LENGTH,
    NO_LEADER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    PRODUCER_EPOCH_AT,
    PRODUCER_ID_AT,
    RECORDS_COUNT_AT,
    TRANSACTIONAL,
)
from storage.kernels.crc_kernels import crc32c_between
from storage.kernels.kernel import inlined, kernel
from storage.kernels.memory_access import (
    load_be_int16,
    load_be_int32,
    load_be_int64,
    store_be_int32,
    store_be_int64,
)
from storage.kernels.native_calls import pread_address as pread_address
from storage.kernels.native_calls import read_at

# ---- look-up


@inlined
def last_not_above(
    index: ByteArray,
    entry_bytes: int,
    field_at: int,
    field_bytes: int,
    first: int,
    last: int,
    target: int,
) -> int:
    """Return the number of the last entry not above target, which the first one is not.

    This is Kafka's binary search among the entries first to last of an index, by a big-endian field
    of 4 or 8 bytes; in an index whose entries do not rise its answer is Kafka's, too.
    """
    low, high = first, last
    while low < high:
        middle = (low + high + 1) // 2
        at = middle * entry_bytes + field_at
        found = load_be_int64(index, at) if field_bytes == 8 else load_be_int32(index, at)
        if found > target:
            high = middle - 1
        elif found < target:
            low = middle
        else:
            return middle
    return low


@kernel
def lower_bound(
    index: ByteArray,
    entry_bytes: int,
    field_at: int,
    field_bytes: int,
    entries: int,
    warm: int,
    target: int,
) -> int:
    """Return the number of the last entry not above target, -1 for none.

    warm: how many entries before the last are searched by themselves.
    """
    if entries == 0:
        return -1
    first_warm = max(0, entries - 1 - warm)
    at = first_warm * entry_bytes + field_at
    key = load_be_int64(index, at) if field_bytes == 8 else load_be_int32(index, at)
    first, last = first_warm, entries - 1
    if key >= target:
        key = load_be_int64(index, field_at) if field_bytes == 8 else load_be_int32(index, field_at)
        if key > target:
            return -1
        first, last = 0, first_warm
    return int(last_not_above(index, entry_bytes, field_at, field_bytes, first, last, target))


OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES = 8, 12
WARM_BYTES = 8192  # at the end of an index, which look-ups go to most
FIRST_WINDOW_BYTES = 256  # headers of large batches stand alone

# what a walk over batches ends with: it found what it looks for; the log ends; the window has no
# more of the batch it is at; something is there that it does not know
FOUND, ENDED, MORE, UNKNOWN = range(4)


@inlined
def find_offset(
    window: ByteArray, size: int, start: int, end: int, target: int, before: Int64Array
) -> tuple[int, int, int, int]:
    """Look for the batch that holds an offset, or the next one, in window[:size].

    start: the position of the window in its file, of which bytes up to `end` are in use. before:
    position, base offset, size and last offset of the batch before the window, whose size is 0
    where there is none; brought up to date.

    Returns how it ended, and position, base offset and size of what was FOUND; where there is MORE,
    the position to go on at.
    """
    at: Any = np.int64(0)
    while at + BASE_TIMESTAMP_AT <= size:
        base_offset = load_be_int64(window, at)
        length = load_be_int32(window, at + LENGTH_AT)
        if window[at + MAGIC_AT] != MAGIC or length < MIN_BATCH_LENGTH:
            return UNKNOWN, 0, 0, 0
        if start + at + length + LOG_OVERHEAD_BYTES > end:
            at = end - start
            break
        if base_offset >= target:
            if before[2] and base_offset > target and before[3] >= target:
                return FOUND, before[0], before[1], before[2]
            return FOUND, start + at, base_offset, length + LOG_OVERHEAD_BYTES
        before[0] = start + at
        before[1] = base_offset
        before[2] = length + LOG_OVERHEAD_BYTES
        before[3] = base_offset + load_be_int32(window, at + LAST_OFFSET_DELTA_AT)
        at += length + LOG_OVERHEAD_BYTES
    if start + at < end - FRAME_BYTES:
        return MORE, start + at, 0, 0
    if before[2] and before[3] >= target:
        return FOUND, before[0], before[1], before[2]
    return ENDED, 0, 0, 0


@kernel
def find_place(
    index: ByteArray,
    entries: int,
    base_offset: int,
    file: tuple[int, int, int],
    target: int,
    window: ByteArray,
    before: Int64Array,
) -> tuple[int, int, int, int]:
    """Look for an offset as find_offset does, from where the offset index of a segment says on.

    index: with so many entries in use, above base_offset. file: the address of pread, descriptor,
    and how many bytes are in use. window: what is read at once, FIRST_WINDOW_BYTES at least.
    before: four numbers.
    """
    read, descriptor, end = file
    if entries * OFFSET_ENTRY_BYTES > index.shape[0]:
        return UNKNOWN, 0, 0, 0
    warm = WARM_BYTES // OFFSET_ENTRY_BYTES
    number = lower_bound(index, OFFSET_ENTRY_BYTES, 0, 4, entries, warm, target - base_offset)
    start: Any = np.int64(0)
    if number >= 0:
        start = load_be_int32(index, number * OFFSET_ENTRY_BYTES + 4)
    before[2] = 0
    length: Any = np.int64(FIRST_WINDOW_BYTES)
    while True:
        got = read_at(read, descriptor, start, window, min(length, end - start))
        if got < 0:
            return UNKNOWN, 0, 0, 0
        how, at, base, size = find_offset(window, got, start, end, target, before)
        if how != MORE:
            return how, at, base, size
        if at == start:
            return UNKNOWN, 0, 0, 0
        if at < start + got:  # several batches in a window
            length = min(4 * length, np.int64(window.shape[0]))
        start = at


@kernel
def find_time(
    window: ByteArray, size: int, start: int, end: int, target_ms: int
) -> tuple[int, int, int]:
    """Look for the first batch that has a time not below target, as find_offset does.

    Returns how it ended, and position and size of the batch that it ended at.
    """
    at: Any = np.int64(0)
    while at + PRODUCER_ID_AT <= size:
        length = load_be_int32(window, at + LENGTH_AT)
        if window[at + MAGIC_AT] != MAGIC or length < MIN_BATCH_LENGTH:
            return UNKNOWN, 0, 0
        if start + at + length + LOG_OVERHEAD_BYTES > end:
            return ENDED, 0, 0
        if load_be_int64(window, at + MAX_TIMESTAMP_AT) >= target_ms:
            return FOUND, start + at, length + LOG_OVERHEAD_BYTES
        at += length + LOG_OVERHEAD_BYTES
    return (MORE if start + at < end - FRAME_BYTES else ENDED), start + at, 0


@kernel
def find_record(
    batch: ByteArray, size: int, target_ms: int, from_offset: int
) -> tuple[int, int, int]:
    """Look in an uncompressed batch for the first record with a time not below target.

    Nor is its offset below from_offset. batch has batch_columns.SLACK_BYTES readable at its end.
    Returns how it ended, time and offset.
    """
    attributes = load_be_int16(batch, ATTRIBUTES_AT)
    if attributes & (CODEC_MASK | LOG_APPEND_TIME):
        return UNKNOWN, 0, 0
    base_offset = load_be_int64(batch, BASE_OFFSET_AT)
    base_time = load_be_int64(batch, BASE_TIMESTAMP_AT)
    count = load_be_int32(batch, RECORDS_COUNT_AT)
    at: Any = np.int64(BATCH_HEADER_BYTES)
    for number in range(count):
        record = next_record(batch, at, size)
        if not record.is_sound:
            return UNKNOWN, 0, 0
        time, offset = base_time + record.time_delta, base_offset + record.offset_delta
        fits = number < count - 1 or record.end == size
        if time >= target_ms and offset >= from_offset and fits:
            return FOUND, time, offset
        at = record.end
    return (ENDED if at == size and count > 0 else UNKNOWN), 0, 0


@kernel
def last_batch(data: ByteArray, size: int) -> tuple[int, int]:
    """Go through the batches of data[:size] up to one that is cut short.

    Returns how it ended, ENDED or UNKNOWN, and the last offset of the last whole one; -1 if there
    is none.
    """
    at: Any = np.int64(0)
    last_offset: Any = np.int64(-1)
    while size - at >= LOG_OVERHEAD_BYTES:
        length = load_be_int32(data, at + LENGTH_AT)
        if length < MIN_BATCH_LENGTH:
            return UNKNOWN, last_offset
        if size - at < FRAME_BYTES:
            return ENDED, last_offset
        if data[at + MAGIC_AT] != MAGIC:
            return UNKNOWN, last_offset
        if length + LOG_OVERHEAD_BYTES > size - at:
            return ENDED, last_offset
        last_offset = load_be_int64(data, at) + load_be_int32(data, at + LAST_OFFSET_DELTA_AT)
        at += length + LOG_OVERHEAD_BYTES
    return ENDED, last_offset


# ---- append

_MAX_SEQUENCE = 2**31 - 1
_MAX_CODEC = int(max(Codec))


class BatchCheck(NamedTuple):
    """The arguments of `check_batches`, as numbers."""

    start: int  # of the first batch in the buffer
    end: int  # of what is in the buffer
    producers: int  # how many
    now_ms: int
    before_ms: int  # how much earlier than now a record may be
    after_ms: int  # how much later
    is_made: int  # for the log: its records are what the log takes, and may be compressed
    leader_epoch: int
    needs_keys: int
    max_batch_bytes: int
    stops_at: int  # an offset: no batch is taken after one that reaches it
    next_offset: int


(
    _START,
    _END,
    _PRODUCERS,
    _NOW_MS,
    _BEFORE_MS,
    _AFTER_MS,
    _IS_MADE,
    _LEADER_EPOCH,
    _NEEDS_KEYS,
    _MAX_BATCH_BYTES,
    _STOPS_AT,
    _NEXT_OFFSET,
) = range(len(BatchCheck._fields))


class PlainProducer(NamedTuple):
    """A producer whose next batch is plain."""

    producer_id: int
    epoch: int
    sequence: int  # of its next record
    in_transaction: int


_ID, _EPOCH, _SEQUENCE, _IN_TRANSACTION = range(len(PlainProducer._fields))


class TakenBatch(NamedTuple):
    """A batch that has got its offsets. The first three fields are what an index asks for."""

    size_bytes: int
    last_offset: int
    max_timestamp: int
    start: int  # in the buffer
    records: int
    producer: int  # its number among those that the kernel knows; -1: none
    last_sequence: int
    codec: int


@kernel
def check_batches(
    buffer: ByteArray, check: Int64Array, producers: Int64Array, taken: Int64Array
) -> int:
    """Give batches in buffer their offsets, as far as they are plain; return how many they are.

    buffer: with batch_columns.SLACK_BYTES readable past the batches. check: the fields of
    BatchCheck. producers: rows of PlainProducer, whose sequences go on. taken: takes rows of
    TakenBatch.
    """
    at: Any = check[_START]
    next_offset: Any = check[_NEXT_OFFSET]
    count = 0
    while at < check[_END] and count < taken.shape[0]:
        size, records, max_timestamp, producer = _look_at(buffer, at, check, producers)
        if not records or next_offset > MAX_LAST_OFFSET - records + 1:
            break
        store_be_int64(buffer, at + BASE_OFFSET_AT, next_offset)
        store_be_int32(buffer, at + LEADER_EPOCH_AT, check[_LEADER_EPOCH])
        last_sequence: Any = np.int64(-1)
        if producer >= 0:
            producers[producer, _SEQUENCE] += records
            last_sequence = producers[producer, _SEQUENCE] - 1
        next_offset += records
        row = taken[count]
        row[0], row[1], row[2] = size, next_offset - 1, max_timestamp
        row[3], row[4], row[5], row[6] = at, records, producer, last_sequence
        row[7] = load_be_int16(buffer, at + ATTRIBUTES_AT) & CODEC_MASK
        at += size
        count += 1
        if next_offset >= check[_STOPS_AT]:
            break
    return count


@inlined
def _look_at(
    buffer: ByteArray, at: Any, check: Int64Array, producers: Int64Array
) -> tuple[Any, Any, Any, Any]:
    """Return size, number of records, largest time and producer's number of the batch at `at`.

    That is if it is plain: of a client, uncompressed, with records that the log takes as they are,
    without a producer or as the next one of one that is known. Else the number of records is 0.
    """
    left = check[_END] - at
    if left < BATCH_HEADER_BYTES:
        return 0, 0, 0, -1
    size = load_be_int32(buffer, at + LENGTH_AT) + LOG_OVERHEAD_BYTES
    count = load_be_int32(buffer, at + RECORDS_COUNT_AT)
    attributes = load_be_int16(buffer, at + ATTRIBUTES_AT)
    codecs = np.int64(CODEC_MASK) if check[_IS_MADE] else np.int64(0)
    if (
        size < BATCH_HEADER_BYTES
        or size > left
        or size > check[_MAX_BATCH_BYTES]
        or load_be_int64(buffer, at + BASE_OFFSET_AT) != 0
        or load_be_int32(buffer, at + LEADER_EPOCH_AT) != NO_LEADER_EPOCH
        or buffer[at + MAGIC_AT] != MAGIC
        or attributes & ~(codecs | TRANSACTIONAL) != 0
        or attributes & CODEC_MASK > _MAX_CODEC
        or count <= 0
        or load_be_int32(buffer, at + LAST_OFFSET_DELTA_AT) != count - 1
    ):
        return 0, 0, 0, -1
    producer = _producer_of(buffer, at, count, attributes, check[_PRODUCERS], producers)
    stored = load_be_int32(buffer, at + CRC_AT) & np.int64(0xFFFFFFFF)
    if producer < -1 or crc32c_between(buffer, at + CHECKED_AT, at + size) != stored:
        return 0, 0, 0, -1
    max_timestamp = load_be_int64(buffer, at + MAX_TIMESTAMP_AT)
    if check[_IS_MADE]:
        return size, count, max_timestamp, producer
    end = at + size
    largest = _largest_time(buffer, at, end, count, check)
    if largest < NO_TIMESTAMP or largest != max_timestamp:
        return 0, 0, 0, -1
    return size, count, largest, producer


@inlined
def _producer_of(
    buffer: ByteArray, at: Any, count: Any, attributes: Any, known: Any, producers: Int64Array
) -> Any:
    """Return the number of the producer that a batch is the next one of; -1 for none.

    -2 says that there is more to be looked at.
    """
    producer_id = load_be_int64(buffer, at + PRODUCER_ID_AT)
    in_transaction = np.int64(attributes & TRANSACTIONAL != 0)
    if producer_id == NO_PRODUCER_ID:
        return np.int64(-2) if in_transaction else np.int64(-1)
    sequence = load_be_int32(buffer, at + BASE_SEQUENCE_AT)
    for number in range(known):
        if producers[number, _ID] == producer_id:
            is_next = (
                producers[number, _EPOCH] == load_be_int16(buffer, at + PRODUCER_EPOCH_AT)
                and producers[number, _SEQUENCE] == sequence
                and producers[number, _IN_TRANSACTION] == in_transaction
                and sequence <= _MAX_SEQUENCE - count
            )
            return np.int64(number) if is_next else np.int64(-2)
    return np.int64(-2)


@inlined
def _largest_time(buffer: ByteArray, at: Any, end: Any, count: Any, check: Int64Array) -> Any:
    """Return the largest time of the records of a batch; below any if the log may not take them."""
    none = np.int64(NO_TIMESTAMP - 1)
    earliest_ms = check[_NOW_MS] - check[_BEFORE_MS]
    latest_ms, needs_keys = check[_NOW_MS] + check[_AFTER_MS], check[_NEEDS_KEYS]
    base_time = load_be_int64(buffer, at + BASE_TIMESTAMP_AT)
    largest: Any = np.int64(NO_TIMESTAMP)
    at += BATCH_HEADER_BYTES
    for _ in range(count):
        record = next_record(buffer, at, end)
        time = base_time + record.time_delta
        lacks_key = needs_keys and record.key_length < 0
        if not record.is_sound or time < earliest_ms or time > latest_ms or lacks_key:
            return none
        largest = max(largest, time)
        at = record.end
    return largest if at == end else none


# ---- recovery

# what a recovery knows between two calls: the position of what comes next, the end of the offsets
NEXT, END_OFFSET = range(2)


class RecoveryLimits(NamedTuple):
    """What a batch of a segment that is recovered is held against."""

    base_offset: int
    epoch: int  # the latest leader epoch


@kernel
def recover_batches(
    file: tuple[int, int, int],
    window: ByteArray,
    limits: RecoveryLimits,
    state: Int64Array,
    batches: Int64Array,
) -> tuple[int, int]:
    """Check the batches of a file from the position state[NEXT] on, as far as one window goes.

    file: the address of pread, descriptor, and how many bytes are in use. Without a descriptor (-1)
    the caller has read the window, up to that many bytes. batches: takes size, last offset and
    largest time of each, with a row for every batch that a window can hold.
    Returns how it ended, and how many batches there are. MORE: with the window. ENDED: no whole
    batch that fits a window comes next, as far as can be read. UNKNOWN: a batch that is damaged or
    out of order, or whose producer or leader epoch is to be noted.
    """
    read, descriptor, end = file
    start = state[NEXT]
    size: Any = min(window.shape[0], end - start)
    if descriptor >= 0:
        size = read_at(read, descriptor, start, window, size)
    at: Any = np.int64(0)
    count: Any = np.int64(0)
    while at + BATCH_HEADER_BYTES <= size:
        length = load_be_int32(window, at + LENGTH_AT)
        if window[at + MAGIC_AT] != MAGIC or length < MIN_BATCH_LENGTH:
            return UNKNOWN, count
        end_at = at + length + LOG_OVERHEAD_BYTES
        if end_at > size:
            break
        first_offset = load_be_int64(window, at)
        last_offset = first_offset + load_be_int32(window, at + LAST_OFFSET_DELTA_AT)
        if (
            first_offset < state[END_OFFSET]
            or last_offset < first_offset
            or load_be_int64(window, at + PRODUCER_ID_AT) > NO_PRODUCER_ID
            or load_be_int32(window, at + LEADER_EPOCH_AT) > limits.epoch
            or last_offset < limits.base_offset
            or last_offset > MAX_LAST_OFFSET
            or last_offset - limits.base_offset > MAX_RELATIVE_OFFSET
        ):
            return UNKNOWN, count
        stored = load_be_int32(window, at + CRC_AT) & np.int64(0xFFFFFFFF)
        if crc32c_between(window, at + CHECKED_AT, end_at) != stored:
            return UNKNOWN, count
        batches[count, 0], batches[count, 1] = end_at - at, last_offset
        batches[count, 2] = load_be_int64(window, at + MAX_TIMESTAMP_AT)
        count += 1
        at = end_at
        state[NEXT], state[END_OFFSET] = start + at, last_offset + 1
    return (MORE if count else ENDED), count
