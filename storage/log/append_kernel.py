"""The kernel of the appends that are made nearly always: checks, offsets, log and indexes.

One batch, or as many as there are one behind the other: they are written at once. Their index
entries are put where the log has them in memory. Layout: log-format F-4; rules: engine L-13.
"""

from typing import Any, NamedTuple

import numpy as np

from storage.codecs.compression import Codec
from storage.file_names import MAX_RELATIVE_OFFSET
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
    LAST_OFFSET_DELTA_AT,
    LEADER_EPOCH_AT,
    LENGTH_AT,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_AT,
    MAX_LAST_OFFSET,
    MAX_TIMESTAMP_AT,
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
from storage.kernels.native_calls import write_at
from storage.log.find_kernels import OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES

MAX_BYTES = 2**31 - 1  # in a segment
_MAX_SEQUENCE = 2**31 - 1
_MOST_CODEC = int(max(Codec))

# how far an append got: nothing was changed; the batches have their offsets, and nothing is
# written; they are in the log, and their index entries in memory
NOT_PLAIN, READY, DONE = range(3)


class PlainAppend(NamedTuple):
    """What a kernel has to know of an append, and of the end of a log. Positions, sizes, bytes."""

    # of one append
    start: int  # of the first batch in the buffer
    end: int  # of what is in the buffer
    producers: int  # how many
    now_ms: int
    log: int  # a descriptor; -1: nothing is to be written
    # of how it is done, and of the log
    write: int  # the address of pwrite
    before_ms: int  # how much earlier than now a record may be
    after_ms: int  # likewise later
    is_alone: int  # there has to be one batch, and nothing behind it
    is_made: int  # for the log: its records are what the log takes, and may be compressed
    leader_epoch: int
    needs_keys: int
    most_batch_bytes: int
    stops_at: int  # an offset: no batch is taken behind one that reaches it
    base_offset: int
    most_bytes: int  # in a segment
    waits_from_ms: int  # the time of the first batch
    most_waited_ms: int  # until a segment is rolled
    interval: int  # bytes between entries
    most_offsets: int  # entries in the offset index
    most_times: int  # likewise in the time index
    # what follows is as before the append, and after it once all is done
    next_offset: int
    position: int  # the end of the log
    since_entry: int  # bytes since the last index entry
    largest_ms: int  # so far
    largest_offset: int
    offsets: int  # entries in the offset index
    times: int  # likewise in the time index


(
    _START,
    _END,
    _PRODUCERS,
    _NOW_MS,
    _LOG,
    _WRITE,
    _BEFORE_MS,
    _AFTER_MS,
    _IS_ALONE,
    _IS_MADE,
    _LEADER_EPOCH,
    _NEEDS_KEYS,
    _MOST_BATCH_BYTES,
    _STOPS_AT,
    _BASE_OFFSET,
    _MOST_BYTES,
    _WAITS_FROM_MS,
    _MOST_WAITED_MS,
    _INTERVAL,
    _MOST_OFFSETS,
    _MOST_TIMES,
    _NEXT_OFFSET,
    _POSITION,
    _SINCE_ENTRY,
    _LARGEST_MS,
    _LARGEST_OFFSET,
    _OFFSETS,
    _TIMES,
) = range(len(PlainAppend._fields))


class PlainProducer(NamedTuple):
    """A producer whose next batch is plain."""

    producer_id: int
    epoch: int
    sequence: int  # of its next record
    in_transaction: int


_ID, _EPOCH, _SEQUENCE, _IN_TRANSACTION = range(len(PlainProducer._fields))


class TakenBatch(NamedTuple):
    """A batch that has got its offsets."""

    start: int  # in the buffer
    end: int  # likewise, behind it
    last_offset: int
    max_timestamp: int
    records: int
    producer: int  # its number among those that are given; -1: none
    last_sequence: int
    codec: int


@kernel
def append_plain(
    buffer: ByteArray,
    given: Int64Array,
    offset_index: ByteArray,
    time_index: ByteArray,
    producers: Int64Array,
    taken: Int64Array,
) -> tuple[int, int]:
    """Give batches in buffer their offsets, as far as they are plain, and put them at the end of a
    log.

    buffer: with batch_columns.SLACK_BYTES readable behind the batches. given: the fields of
    PlainAppend. offset_index, time_index: the entries in memory, and room for more, which are put
    there. producers: rows of PlainProducer. taken: room for rows of TakenBatch, one at least.
    Returns how far it got, and with how many batches.
    """
    at: Any = given[_START]
    count: Any = np.int64(0)
    must_write: Any = False
    next_offset, position = given[_NEXT_OFFSET], given[_POSITION]
    since, offsets, times = given[_SINCE_ENTRY], given[_OFFSETS], given[_TIMES]
    largest_ms, largest_offset = given[_LARGEST_MS], given[_LARGEST_OFFSET]
    while at < given[_END] and count < taken.shape[0]:
        size, records, batch_ms, producer = _look_at(buffer, at, given, producers)
        if not records or next_offset > MAX_LAST_OFFSET - records + 1:
            break
        last_offset = next_offset + records - 1
        relative = last_offset - given[_BASE_OFFSET]
        fits = (
            given[_LOG] >= 0
            and position <= given[_MOST_BYTES] - size
            and position + size <= MAX_BYTES
            and not (position > 0 and batch_ms - given[_WAITS_FROM_MS] > given[_MOST_WAITED_MS])
            and offsets < given[_MOST_OFFSETS]
            and times < given[_MOST_TIMES] - 1
            and 0 <= relative <= MAX_RELATIVE_OFFSET
        )
        time_ms, time_offset = largest_ms, largest_offset
        if batch_ms > time_ms:
            time_ms, time_offset = batch_ms, last_offset
        added: Any = np.int64(0)
        if fits and since > given[_INTERVAL]:
            added = _put_entries(
                offset_index,
                offsets,
                relative,
                position,
                time_index,
                times,
                time_ms,
                time_offset - given[_BASE_OFFSET],
            )
            fits = added > 0
        if not fits and count:
            break
        store_be_int64(buffer, at + BASE_OFFSET_AT, next_offset)
        store_be_int32(buffer, at + LEADER_EPOCH_AT, given[_LEADER_EPOCH])
        at += size
        last_sequence: Any = np.int64(-1)
        if producer >= 0:
            producers[producer, _SEQUENCE] += records
            last_sequence = producers[producer, _SEQUENCE] - 1
        row = taken[count]
        row[0], row[1] = at - size, at
        row[2], row[3], row[4] = last_offset, batch_ms, records
        row[5], row[6] = producer, last_sequence
        row[7] = load_be_int16(buffer, at - size + ATTRIBUTES_AT) & CODEC_MASK
        count += 1
        if not fits:
            must_write = True
            break
        largest_ms, largest_offset = time_ms, time_offset
        if added:
            offsets, times, since = offsets + 1, times + added - 1, np.int64(0)
        since += size
        position += size
        next_offset = last_offset + 1
        if next_offset >= given[_STOPS_AT]:
            break
    if not count:
        return NOT_PLAIN, 0
    start, write = given[_START], given[_WRITE]
    if must_write or not write_at(write, given[_LOG], given[_POSITION], buffer, start, at - start):
        return READY, count
    given[_NEXT_OFFSET], given[_POSITION] = next_offset, position
    given[_SINCE_ENTRY], given[_OFFSETS], given[_TIMES] = since, offsets, times
    given[_LARGEST_MS], given[_LARGEST_OFFSET] = largest_ms, largest_offset
    return DONE, count


@inlined
def _put_entries(
    offset_index: ByteArray,
    offsets: Any,
    relative: Any,
    position: Any,
    time_index: ByteArray,
    times: Any,
    time_ms: Any,
    time_relative: Any,
) -> Any:
    """An entry for the batch at a position, and one of the largest time, in memory. Returns how
    many were made: 1 of the offset index alone, 2 of both. 0: something is not as it is nearly
    always.
    """
    offset_at, time_at = offsets * OFFSET_ENTRY_BYTES, times * TIME_ENTRY_BYTES
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
    store_be_int32(offset_index, offset_at + 4, position)
    if time_ms <= last_ms:
        return 1
    store_be_int64(time_index, time_at, time_ms)
    store_be_int32(time_index, time_at + 8, time_relative)
    return 2


@inlined
def _look_at(
    buffer: ByteArray, at: Any, given: Int64Array, producers: Int64Array
) -> tuple[Any, Any, Any, Any]:
    """Size, number of records, largest time and producer's number of the batch at `at`, if it is
    plain: of a client, uncompressed, with records that the log takes as they are, without a
    producer or as the next one of one that is given. The number of records is 0 where it is not.
    """
    left = given[_END] - at
    if left < BATCH_HEADER_BYTES:
        return 0, 0, 0, -1
    size = load_be_int32(buffer, at + LENGTH_AT) + LOG_OVERHEAD_BYTES
    count = load_be_int32(buffer, at + RECORDS_COUNT_AT)
    attributes = load_be_int16(buffer, at + ATTRIBUTES_AT)
    codecs = np.int64(CODEC_MASK) if given[_IS_MADE] else np.int64(0)
    if (
        size < BATCH_HEADER_BYTES
        or size > left
        or (given[_IS_ALONE] and size != left)
        or size > given[_MOST_BATCH_BYTES]
        or load_be_int64(buffer, at + BASE_OFFSET_AT) != 0
        or load_be_int32(buffer, at + LEADER_EPOCH_AT) != NO_LEADER_EPOCH
        or buffer[at + MAGIC_AT] != MAGIC
        or attributes & ~(codecs | TRANSACTIONAL) != 0
        or attributes & CODEC_MASK > _MOST_CODEC
        or count <= 0
        or load_be_int32(buffer, at + LAST_OFFSET_DELTA_AT) != count - 1
    ):
        return 0, 0, 0, -1
    producer = _producer_of(buffer, at, count, attributes, given[_PRODUCERS], producers)
    stored = load_be_int32(buffer, at + CRC_AT) & np.int64(0xFFFFFFFF)
    if producer < -1 or crc32c_between(buffer, at + CHECKED_AT, at + size) != stored:
        return 0, 0, 0, -1
    max_timestamp = load_be_int64(buffer, at + MAX_TIMESTAMP_AT)
    if given[_IS_MADE]:
        return size, count, max_timestamp, producer
    end = at + size
    largest = _largest_time(buffer, at, end, count, given)
    if largest < NO_TIMESTAMP or largest != max_timestamp:
        return 0, 0, 0, -1
    return size, count, largest, producer


@inlined
def _producer_of(
    buffer: ByteArray, at: Any, count: Any, attributes: Any, known: Any, producers: Int64Array
) -> Any:
    """The number of the producer that a batch is the next one of; -1 for none, -2 where there is
    more to be looked at.
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
def _largest_time(buffer: ByteArray, at: Any, end: Any, count: Any, given: Int64Array) -> Any:
    """The largest time of the records of a batch; less than any where the log may not take them."""
    none = np.int64(NO_TIMESTAMP - 1)
    earliest_ms = given[_NOW_MS] - given[_BEFORE_MS]
    latest_ms, needs_keys = given[_NOW_MS] + given[_AFTER_MS], given[_NEEDS_KEYS]
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
