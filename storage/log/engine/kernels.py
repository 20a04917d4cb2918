"""Kernels of the engine: a batch to append, batches to look through, all of them at once.

They know batches of format v2 that are as they should be. Whatever else there may be in a log, and
whatever may be wrong, they only tell that they do not know it: then the modules that go batch by
batch decide. Layout: log-format F-4, F-5; rules: engine L-2, L-13.
"""

from typing import Any, NamedTuple

import numpy as np

from storage.formats.batch_columns import ByteArray, Int64Array, skip_headers
from storage.formats.batch_header import (
    ATTRIBUTES_AT,
    BASE_OFFSET_AT,
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
    MAX_TIMESTAMP_AT,
    MIN_BATCH_LENGTH,
    NO_LEADER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    PRODUCER_ID_AT,
    RECORDS_COUNT_AT,
)
from storage.formats.segment import MAX_RELATIVE_OFFSET
from storage.kernels.crc32c_kernel import crc32c_between
from storage.kernels.kernel import inlined, kernel
from storage.kernels.memory_access import (
    load_be_int16,
    load_be_int32,
    load_be_int64,
    load_byte,
    store_be_int32,
    store_be_int64,
)
from storage.kernels.varint_kernel import read_varint, read_varlong

NOT_PLAIN = 0
_NO_RECORD = 1 << 60


@inlined
def _record(buffer: ByteArray, at: Any, size: int) -> tuple[Any, Any, Any, Any]:
    """The record of a batch of v2 that begins there: where it ends, its time and its offset less
    those of the batch, whether it has a key. It ends at _NO_RECORD if it is none, or goes beyond
    size."""
    none = np.int64(_NO_RECORD)
    length, at = read_varint(buffer, at)
    if at > size or length < 0 or length > size - at:
        return none, np.int64(0), np.int64(0), False
    end = at + length
    time_delta, at = read_varlong(buffer, at + 1)
    if at > end:
        return none, np.int64(0), np.int64(0), False
    offset_delta, at = read_varint(buffer, at)
    if at > end:
        return none, np.int64(0), np.int64(0), False
    key_length, at = read_varint(buffer, at)
    if at > end or key_length > end - at:
        return none, np.int64(0), np.int64(0), False
    at += max(np.int64(0), key_length)
    value_length, at = read_varint(buffer, at)
    if at > end or value_length > end - at:
        return none, np.int64(0), np.int64(0), False
    at += max(np.int64(0), value_length)
    if at < end and load_byte(buffer, at) == np.uint64(0):
        at += 1
    else:
        at = skip_headers(buffer, at, end)
    if at != end:
        return none, np.int64(0), np.int64(0), False
    return end, time_delta, offset_delta, key_length >= 0


@kernel
def give_plain_offsets(
    buffer: ByteArray,
    size: int,
    first_offset: int,
    leader_epoch: int,
    earliest_ms: int,
    latest_ms: int,
    needs_keys: bool,
) -> tuple[int, int]:
    """Give the batch in buffer[:size] its first offset and its leader epoch, if it is plain: of a
    client without a producer id, uncompressed, with records that the log takes as they are.

    buffer has batch_columns.SLACK_BYTES readable behind the batch. A record's time is from
    earliest_ms to latest_ms, both inclusive.
    Returns the number of records, and the largest time; NOT_PLAIN where the batch is not, and then
    nothing is changed.
    """
    if size < BATCH_HEADER_BYTES or load_be_int32(buffer, LENGTH_AT) != size - LOG_OVERHEAD_BYTES:
        return NOT_PLAIN, 0
    count = load_be_int32(buffer, RECORDS_COUNT_AT)
    if (
        load_be_int64(buffer, BASE_OFFSET_AT) != 0
        or load_be_int32(buffer, LEADER_EPOCH_AT) != NO_LEADER_EPOCH
        or buffer[MAGIC_AT] != MAGIC
        or load_be_int16(buffer, ATTRIBUTES_AT) != 0
        or load_be_int64(buffer, PRODUCER_ID_AT) != NO_PRODUCER_ID
        or count <= 0
        or load_be_int32(buffer, LAST_OFFSET_DELTA_AT) != count - 1
    ):
        return NOT_PLAIN, 0
    stored = load_be_int32(buffer, CRC_AT) & np.int64(0xFFFFFFFF)
    if crc32c_between(buffer, CHECKED_AT, size) != stored:
        return NOT_PLAIN, 0
    base_time = load_be_int64(buffer, BASE_TIMESTAMP_AT)
    largest: Any = np.int64(NO_TIMESTAMP)
    at: Any = np.int64(BATCH_HEADER_BYTES)
    for _ in range(count):
        end, time_delta, _, has_key = _record(buffer, at, size)
        time = base_time + time_delta
        if end > size or time < earliest_ms or time > latest_ms or (needs_keys and not has_key):
            return NOT_PLAIN, 0
        largest = max(largest, time)
        at = end
    if at != size or largest != load_be_int64(buffer, MAX_TIMESTAMP_AT):
        return NOT_PLAIN, 0
    store_be_int64(buffer, BASE_OFFSET_AT, first_offset)
    store_be_int32(buffer, LEADER_EPOCH_AT, leader_epoch)
    return count, largest


# ---- look-ups --------------------------------------------------------------------------------


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
    """Kafka's binary search among the entries first to last of an index, by a big-endian field of
    4 or 8 bytes.

    Returns the number of the last entry not above target, which the first one is not. In an index
    whose entries do not rise it is as Kafka's, too.
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
    """The number of the last entry not above target, -1 for none. warm: how many entries before the
    last are searched by themselves."""
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


# what a walk over batches ends with: it found what it looks for; the log ends; the window has no
# more of the batch it is at; something is there that it does not know
FOUND, ENDED, MORE, UNKNOWN = range(4)


@kernel
def find_offset(
    window: ByteArray, size: int, start: int, end: int, target: int, before: Int64Array
) -> tuple[int, int, int, int]:
    """Look for the batch that holds an offset, or the next one, among those that window[:size]
    begins with.

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
def find_time(
    window: ByteArray, size: int, start: int, end: int, target_ms: int
) -> tuple[int, int, int]:
    """As find_offset, for the first batch that has a time not below target. Returns how it ended,
    and position and size of the batch that it ended at."""
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
    """Look in an uncompressed batch for the first record whose time is not below target, and whose
    offset not below another.

    batch has batch_columns.SLACK_BYTES readable behind it. Returns how it ended, time and offset.
    """
    attributes = load_be_int16(batch, ATTRIBUTES_AT)
    if attributes & (CODEC_MASK | LOG_APPEND_TIME):
        return UNKNOWN, 0, 0
    base_offset = load_be_int64(batch, BASE_OFFSET_AT)
    base_time = load_be_int64(batch, BASE_TIMESTAMP_AT)
    count = load_be_int32(batch, RECORDS_COUNT_AT)
    at: Any = np.int64(BATCH_HEADER_BYTES)
    for number in range(count):
        end, time_delta, offset_delta, _ = _record(batch, at, size)
        if end > size:
            return UNKNOWN, 0, 0
        time, offset = base_time + time_delta, base_offset + offset_delta
        if time >= target_ms and offset >= from_offset and (number < count - 1 or end == size):
            return FOUND, time, offset
        at = end
    return (ENDED if at == size and count > 0 else UNKNOWN), 0, 0


@kernel
def last_batch(data: ByteArray, size: int) -> tuple[int, int]:
    """Go through the batches of data[:size] up to one that is cut short. Returns how it ended,
    ENDED or UNKNOWN, and the last offset of the last whole one; -1 if there is none."""
    at: Any = np.int64(0)
    last_offset: Any = np.int64(-1)
    while size - at >= FRAME_BYTES:
        length = load_be_int32(data, at + LENGTH_AT)
        if data[at + MAGIC_AT] != MAGIC or length < MIN_BATCH_LENGTH:
            return UNKNOWN, last_offset
        if length + LOG_OVERHEAD_BYTES > size - at:
            return ENDED, last_offset
        last_offset = load_be_int64(data, at) + load_be_int32(data, at + LAST_OFFSET_DELTA_AT)
        at += length + LOG_OVERHEAD_BYTES
    return ENDED, last_offset


# ---- recovery --------------------------------------------------------------------------------

# what a recovery knows between two calls: the position of what comes next, that of the batch with
# the last index entry, the largest time and its offset, the end of the offsets; the number of
# entries and the last one in each index
NEXT, INDEXED, LARGEST_MS, LARGEST_OFFSET, END_OFFSET = range(5)
OFFSETS, LAST_OFFSET, TIMES, LAST_MS, LAST_MS_OFFSET = range(5, 10)
RECOVERY_FIELDS = 10


class RecoveryLimits(NamedTuple):
    """What does not change while a segment is recovered, and the latest leader epoch."""

    base_offset: int
    interval_bytes: int
    offsets: int  # entries that there is room for, in the offset index
    times: int  # likewise in the time index, but for the one that is kept for the end
    epoch: int


@kernel
def recover_batches(
    window: ByteArray,
    size: int,
    start: int,
    limits: RecoveryLimits,
    state: Int64Array,
    offset_index: ByteArray,
    time_index: ByteArray,
) -> tuple[int, int, int]:
    """Check the batches in window[:size], from the position state[NEXT] on, and put their entries
    into the indexes.

    start: the position of the window in its file. offset_index, time_index: take the entries of
    this call from the beginning on; each has room for one of every batch there can be.
    Returns how it ended, MORE or UNKNOWN, and the bytes put into the indexes. UNKNOWN is a batch
    that is damaged, whose producer or leader epoch is to be noted, or which an index refuses:
    nothing has come of it yet.
    """
    offset_bytes = time_bytes = 0
    base_offset = limits.base_offset
    while True:
        at = state[NEXT] - start
        if at + BATCH_HEADER_BYTES > size:
            return MORE, offset_bytes, time_bytes
        length = load_be_int32(window, at + LENGTH_AT)
        if window[at + MAGIC_AT] != MAGIC or length < MIN_BATCH_LENGTH:
            return UNKNOWN, offset_bytes, time_bytes
        end = at + length + LOG_OVERHEAD_BYTES
        if end > size:
            return MORE, offset_bytes, time_bytes
        last_offset = load_be_int64(window, at) + load_be_int32(window, at + LAST_OFFSET_DELTA_AT)
        if (
            load_be_int64(window, at + PRODUCER_ID_AT) > NO_PRODUCER_ID
            or load_be_int32(window, at + LEADER_EPOCH_AT) > limits.epoch
            or last_offset < base_offset
            or last_offset - base_offset > MAX_RELATIVE_OFFSET
        ):
            return UNKNOWN, offset_bytes, time_bytes
        stored = load_be_int32(window, at + CRC_AT) & np.int64(0xFFFFFFFF)
        if crc32c_between(window, at + CHECKED_AT, end) != stored:
            return UNKNOWN, offset_bytes, time_bytes
        largest_ms, largest_offset = state[LARGEST_MS], state[LARGEST_OFFSET]
        time = load_be_int64(window, at + MAX_TIMESTAMP_AT)
        if time > largest_ms:
            largest_ms, largest_offset = time, last_offset
        if state[NEXT] - state[INDEXED] > limits.interval_bytes:
            has_offsets, has_times = state[OFFSETS] > 0, state[TIMES] > 0
            if (
                state[OFFSETS] >= limits.offsets
                or state[TIMES] >= limits.times
                or (has_offsets and last_offset <= state[LAST_OFFSET])
                or (has_times and largest_offset < state[LAST_MS_OFFSET])
            ):
                return UNKNOWN, offset_bytes, time_bytes
            store_be_int32(offset_index, offset_bytes, last_offset - base_offset)
            store_be_int32(offset_index, offset_bytes + 4, state[NEXT])
            offset_bytes += 8
            state[OFFSETS] += 1
            state[LAST_OFFSET] = last_offset
            if largest_ms > state[LAST_MS]:
                store_be_int64(time_index, time_bytes, largest_ms)
                store_be_int32(time_index, time_bytes + 8, largest_offset - base_offset)
                time_bytes += 12
                state[TIMES] += 1
                state[LAST_MS] = largest_ms
                state[LAST_MS_OFFSET] = largest_offset
            state[INDEXED] = state[NEXT]
        state[LARGEST_MS] = largest_ms
        state[LARGEST_OFFSET] = largest_offset
        state[END_OFFSET] = last_offset + 1
        state[NEXT] = start + end
