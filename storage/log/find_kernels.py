"""Kernels that look for a batch or a record, and in an index.

They know batches of format v2 that are as they should be, and tell where something else is: then
who goes batch by batch decides. Layout: log-format F-4, F-5; rules: engine L-2, L-4.
"""

from typing import Any

import numpy as np

from storage.formats.batch_columns import ByteArray, Int64Array, skip_headers
from storage.formats.batch_header import (
    ATTRIBUTES_AT,
    BASE_OFFSET_AT,
    BASE_TIMESTAMP_AT,
    BATCH_HEADER_BYTES,
    CODEC_MASK,
    FRAME_BYTES,
    LAST_OFFSET_DELTA_AT,
    LENGTH_AT,
    LOG_APPEND_TIME,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    MIN_BATCH_LENGTH,
    PRODUCER_ID_AT,
    RECORDS_COUNT_AT,
)
from storage.kernels.kernel import inlined, kernel
from storage.kernels.memory_access import load_be_int16, load_be_int32, load_be_int64, load_byte
from storage.kernels.native_calls import read_at
from storage.kernels.varint_kernel import read_varint, read_varlong

NO_RECORD = 1 << 60


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
        end, time_delta, offset_delta, _ = read_record(batch, at, size)
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


@inlined
def read_record(buffer: ByteArray, at: Any, size: int) -> tuple[Any, Any, Any, Any]:
    """The record of a batch of v2 that begins there: where it ends, its time and its offset less
    those of the batch, whether it has a key. It ends at NO_RECORD if it is none, or goes beyond
    size.
    """
    none = np.int64(NO_RECORD)
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
