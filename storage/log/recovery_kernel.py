"""The kernel of recovery. Layout: log-format F-4, F-9, F-10; rules: engine L-11.1."""

from typing import Any, NamedTuple

import numpy as np

from storage.formats.batch_columns import ByteArray, Int64Array
from storage.formats.batch_header import (
    BATCH_HEADER_BYTES,
    CHECKED_AT,
    CRC_AT,
    LAST_OFFSET_DELTA_AT,
    LEADER_EPOCH_AT,
    LENGTH_AT,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_AT,
    MAX_LAST_OFFSET,
    MAX_TIMESTAMP_AT,
    MIN_BATCH_LENGTH,
    NO_PRODUCER_ID,
    PRODUCER_ID_AT,
)
from storage.formats.segment import MAX_RELATIVE_OFFSET
from storage.kernels.crc_kernels import crc32c_between
from storage.kernels.kernel import inlined, kernel
from storage.kernels.memory_access import (
    load_be_int32,
    load_be_int64,
    store_be_int32,
    store_be_int64,
)
from storage.kernels.native_calls import read_at
from storage.log.find_kernels import (
    ENDED,
    MORE,
    OFFSET_ENTRY_BYTES,
    TIME_ENTRY_BYTES,
    UNKNOWN,
)

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
