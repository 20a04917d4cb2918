"""The kernel of the append that is made nearly always: checks, offsets, log and indexes.

Layout: log-format F-4; rules: engine L-13.
"""

from typing import Any, NamedTuple

import numpy as np

from storage.formats.batch_columns import ByteArray, Int64Array
from storage.formats.batch_header import (
    ATTRIBUTES_AT,
    BASE_OFFSET_AT,
    BASE_TIMESTAMP_AT,
    BATCH_HEADER_BYTES,
    CHECKED_AT,
    CRC_AT,
    LAST_OFFSET_DELTA_AT,
    LEADER_EPOCH_AT,
    LENGTH_AT,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
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
    store_be_int32,
    store_be_int64,
)
from storage.kernels.positional_write import write_at
from storage.log.engine.find_kernels import OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES
from storage.log.engine.plain_records import read_record

MAX_BYTES = 2**31 - 1  # in a segment

# how far an append got: nothing was changed; the batch has its offsets, and nothing is written; it
# is in the log; its index entries are made, too
NOT_PLAIN, READY, WRITTEN, DONE = range(4)


class PlainAppend(NamedTuple):
    """What a kernel has to know of an append, and of the end of a log. Positions, sizes, bytes."""

    size: int
    first_offset: int
    leader_epoch: int
    earliest_ms: int  # of a record, inclusive
    latest_ms: int  # likewise
    needs_keys: int
    log: int  # a descriptor, as those of the indexes; -1: nothing is to be written
    offset_index: int
    time_index: int
    position: int  # the end of the log
    base_offset: int
    most_bytes: int  # in a segment
    waits_from_ms: int  # the time of the first batch
    most_waited_ms: int  # until a segment is rolled
    since_entry: int  # bytes since the last index entry
    interval: int  # bytes between entries
    largest_ms: int  # so far
    largest_offset: int
    offsets: int  # entries in the offset index
    most_offsets: int
    times: int  # likewise in the time index
    most_times: int


(
    _SIZE,
    _FIRST_OFFSET,
    _LEADER_EPOCH,
    _EARLIEST_MS,
    _LATEST_MS,
    _NEEDS_KEYS,
    _LOG,
    _OFFSET_INDEX,
    _TIME_INDEX,
    _POSITION,
    _BASE_OFFSET,
    _MOST_BYTES,
    _WAITS_FROM_MS,
    _MOST_WAITED_MS,
    _SINCE_ENTRY,
    _INTERVAL,
    _LARGEST_MS,
    _LARGEST_OFFSET,
    _OFFSETS,
    _MOST_OFFSETS,
    _TIMES,
    _MOST_TIMES,
) = range(len(PlainAppend._fields))


@kernel
def append_plain(
    write: int,
    buffer: ByteArray,
    given: Int64Array,
    offset_index: ByteArray,
    time_index: ByteArray,
) -> tuple[int, int, int, int]:
    """Give the batch in buffer its offsets, if it is plain, and put it at the end of a log.

    write: the address of pwrite. given: the fields of PlainAppend. offset_index, time_index: the
    entries in memory, and room for one more, which is put there, too.
    Returns how far it got, the number of records, their largest time, and the number of entries: 1
    of the offset index alone, 2 of both.
    """
    size = given[_SIZE]
    count, largest = _give_offsets(
        buffer,
        size,
        given[_FIRST_OFFSET],
        given[_LEADER_EPOCH],
        given[_EARLIEST_MS],
        given[_LATEST_MS],
        given[_NEEDS_KEYS],
    )
    if not count:
        return NOT_PLAIN, 0, 0, 0
    position, last_offset = given[_POSITION], given[_FIRST_OFFSET] + count - 1
    relative = last_offset - given[_BASE_OFFSET]
    offsets, times = given[_OFFSETS], given[_TIMES]
    if (
        position > given[_MOST_BYTES] - size
        or position + size > MAX_BYTES
        or (position > 0 and largest - given[_WAITS_FROM_MS] > given[_MOST_WAITED_MS])
        or offsets >= given[_MOST_OFFSETS]
        or times >= given[_MOST_TIMES] - 1
        or not 0 <= relative <= MAX_RELATIVE_OFFSET
        or given[_LOG] < 0
        or not write_at(write, given[_LOG], position, buffer, 0, size)
    ):
        return READY, count, largest, 0
    if given[_SINCE_ENTRY] <= given[_INTERVAL]:
        return DONE, count, largest, 0
    largest_ms, largest_offset = given[_LARGEST_MS], given[_LARGEST_OFFSET]
    if largest > largest_ms:
        largest_ms, largest_offset = largest, last_offset
    entries = _put_entries(
        write,
        given,
        offset_index,
        time_index,
        relative,
        largest_ms,
        largest_offset - given[_BASE_OFFSET],
    )
    return (DONE if entries else WRITTEN), count, largest, entries


@inlined
def _put_entries(
    write: Any,
    given: Int64Array,
    offset_index: ByteArray,
    time_index: ByteArray,
    relative: Any,
    time_ms: Any,
    time_relative: Any,
) -> Any:
    """An entry for the batch that was put at the end, and one of the largest time; how many were
    made. 0: something is not as it is nearly always."""
    offset_at = given[_OFFSETS] * OFFSET_ENTRY_BYTES
    time_at = given[_TIMES] * TIME_ENTRY_BYTES
    if (
        offset_at + OFFSET_ENTRY_BYTES > offset_index.shape[0]
        or time_at + TIME_ENTRY_BYTES > time_index.shape[0]
        or not 0 <= time_relative <= MAX_RELATIVE_OFFSET
    ):
        return 0
    if offset_at and relative <= load_be_int32(offset_index, offset_at - OFFSET_ENTRY_BYTES):
        return 0
    last_ms: Any = np.int64(NO_TIMESTAMP)
    if time_at:
        last_ms = load_be_int64(time_index, time_at - TIME_ENTRY_BYTES)
        if time_relative < load_be_int32(time_index, time_at - 4) or time_ms < last_ms:
            return 0
    store_be_int32(offset_index, offset_at, relative)
    store_be_int32(offset_index, offset_at + 4, given[_POSITION])
    if not write_at(
        write, given[_OFFSET_INDEX], offset_at, offset_index, offset_at, OFFSET_ENTRY_BYTES
    ):
        return 0
    if time_ms <= last_ms:
        return 1
    store_be_int64(time_index, time_at, time_ms)
    store_be_int32(time_index, time_at + 8, time_relative)
    is_written = write_at(write, given[_TIME_INDEX], time_at, time_index, time_at, TIME_ENTRY_BYTES)
    return 2 if is_written else 0


@inlined
def _give_offsets(
    buffer: ByteArray,
    size: Any,
    first_offset: Any,
    leader_epoch: Any,
    earliest_ms: Any,
    latest_ms: Any,
    needs_keys: Any,
) -> tuple[Any, Any]:
    """Give the batch in buffer[:size] its first offset and its leader epoch, if it is plain: of a
    client without a producer id, uncompressed, with records that the log takes as they are.

    buffer has batch_columns.SLACK_BYTES readable behind the batch. A record's time is from
    earliest_ms to latest_ms, both inclusive.
    Returns the number of records, and the largest time; 0 where the batch is not plain, and then
    nothing is changed.
    """
    if size < BATCH_HEADER_BYTES or load_be_int32(buffer, LENGTH_AT) != size - LOG_OVERHEAD_BYTES:
        return 0, 0
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
        return 0, 0
    stored = load_be_int32(buffer, CRC_AT) & np.int64(0xFFFFFFFF)
    if crc32c_between(buffer, CHECKED_AT, size) != stored:
        return 0, 0
    base_time = load_be_int64(buffer, BASE_TIMESTAMP_AT)
    largest: Any = np.int64(NO_TIMESTAMP)
    at: Any = np.int64(BATCH_HEADER_BYTES)
    for _ in range(count):
        end, time_delta, _, has_key = read_record(buffer, at, size)
        time = base_time + time_delta
        if end > size or time < earliest_ms or time > latest_ms or (needs_keys and not has_key):
            return 0, 0
        largest = max(largest, time)
        at = end
    if at != size or largest != load_be_int64(buffer, MAX_TIMESTAMP_AT):
        return 0, 0
    store_be_int64(buffer, BASE_OFFSET_AT, first_offset)
    store_be_int32(buffer, LEADER_EPOCH_AT, leader_epoch)
    return count, largest
