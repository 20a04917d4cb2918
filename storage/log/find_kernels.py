"""Kernels that look for a batch or a record, and in an index.

They know batches of format v2 that are as they should be, and tell where something else is: then
who goes batch by batch decides. Layout: log-format F-4, F-5; rules: engine L-2, L-4.
"""

from typing import Any, NamedTuple

import numpy as np

from storage.file_names import MAX_RELATIVE_OFFSET
from storage.formats.batch_columns import ByteArray, Int64Array, next_record
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
    MAX_LAST_OFFSET,
    MAX_TIMESTAMP_AT,
    MIN_BATCH_LENGTH,
    NO_PRODUCER_ID,
    PRODUCER_ID_AT,
    RECORDS_COUNT_AT,
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
from storage.kernels.native_calls import read_at


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
    last are searched by themselves.
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
def find_place(
    index: ByteArray,
    entries: int,
    base_offset: int,
    file: tuple[int, int, int],
    target: int,
    window: ByteArray,
    before: Int64Array,
) -> tuple[int, int, int, int]:
    """As find_offset, from where the offset index of a segment says on, in a file that is read
    here.

    index: with so many entries in use, above base_offset. file: the address of pread, descriptor,
    and how many bytes are in use. window: room to read to, FIRST_WINDOW_BYTES at least.
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
    """As find_offset, for the first batch that has a time not below target. Returns how it ended,
    and position and size of the batch that it ended at.
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
    """Go through the batches of data[:size] up to one that is cut short. Returns how it ended,
    ENDED or UNKNOWN, and the last offset of the last whole one; -1 if there is none.
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


# what a recovery knows between two calls: the position of what comes next, that of the batch with
# the last index entry, the largest time and its offset, the end of the offsets; the number of
# entries and the last one in each index
NEXT, INDEXED, LARGEST_MS, LARGEST_OFFSET, END_OFFSET = range(5)
OFFSETS, LAST_OFFSET, TIMES, LAST_MS, LAST_MS_OFFSET = range(5, 10)


class RecoveryLimits(NamedTuple):
    """What does not change while a segment is recovered, and the latest leader epoch."""

    base_offset: int
    interval_bytes: int
    offsets: int  # entries that there is room for, in the offset index
    times: int  # likewise in the time index, but for the one that is kept for the end
    epoch: int


@kernel
def recover_batches(
    file: tuple[int, int, int],
    window: ByteArray,
    limits: RecoveryLimits,
    state: Int64Array,
    offset_index: ByteArray,
    time_index: ByteArray,
) -> tuple[int, int, int]:
    """Check the batches of a file from the position state[NEXT] on, and make their index entries.

    file: the address of pread, descriptor, and how many bytes are in use. window: what is read at
    once. Without a descriptor (-1) the caller has read it, up to that many bytes: the call ends
    with it, and MORE asks for what follows. offset_index, time_index: take the entries of this call
    from the beginning on; each has room for one of every batch that a window can hold.
    Returns how it ended, and the bytes put into the indexes. MORE: the entries have no more room.
    ENDED: no whole batch that fits a window comes next, as far as can be read. UNKNOWN: a batch
    that is damaged or out of order, whose producer or leader epoch is to be noted, or which an
    index refuses; nothing has come of it yet.
    """
    read, descriptor, end = file
    offset_bytes: Any = np.int64(0)
    time_bytes: Any = np.int64(0)
    most = window.shape[0] // BATCH_HEADER_BYTES + 1
    while True:
        if (
            offset_index.shape[0] - offset_bytes < most * OFFSET_ENTRY_BYTES
            or time_index.shape[0] - time_bytes < most * TIME_ENTRY_BYTES
        ):
            return MORE, offset_bytes, time_bytes
        start = state[NEXT]
        size = min(window.shape[0], end - start)
        if descriptor >= 0:
            size = read_at(read, descriptor, start, window, size)
        how, offset_bytes, time_bytes = _recover_window(
            window, size, start, limits, state, offset_index, time_index, offset_bytes, time_bytes
        )
        if how == UNKNOWN:
            return UNKNOWN, offset_bytes, time_bytes
        if state[NEXT] == start:
            return ENDED, offset_bytes, time_bytes
        if descriptor < 0:
            return MORE, offset_bytes, time_bytes


@inlined
def _recover_window(
    window: ByteArray,
    size: Any,
    start: Any,
    limits: RecoveryLimits,
    state: Int64Array,
    offset_index: ByteArray,
    time_index: ByteArray,
    offset_bytes: Any,
    time_bytes: Any,
) -> tuple[Any, Any, Any]:
    """As recover_batches, of window[:size], which begins at a position of the file."""
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
        first_offset = load_be_int64(window, at)
        last_offset = first_offset + load_be_int32(window, at + LAST_OFFSET_DELTA_AT)
        if (
            first_offset < state[END_OFFSET]
            or load_be_int64(window, at + PRODUCER_ID_AT) > NO_PRODUCER_ID
            or load_be_int32(window, at + LEADER_EPOCH_AT) > limits.epoch
            or last_offset < base_offset
            or last_offset > MAX_LAST_OFFSET
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
            offset_bytes += OFFSET_ENTRY_BYTES
            state[OFFSETS] += 1
            state[LAST_OFFSET] = last_offset
            if largest_ms > state[LAST_MS]:
                store_be_int64(time_index, time_bytes, largest_ms)
                store_be_int32(time_index, time_bytes + 8, largest_offset - base_offset)
                time_bytes += TIME_ENTRY_BYTES
                state[TIMES] += 1
                state[LAST_MS] = largest_ms
                state[LAST_MS_OFFSET] = largest_offset
            state[INDEXED] = state[NEXT]
        state[LARGEST_MS] = largest_ms
        state[LARGEST_OFFSET] = largest_offset
        state[END_OFFSET] = last_offset + 1
        state[NEXT] = start + end
