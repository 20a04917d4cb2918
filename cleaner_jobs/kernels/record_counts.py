"""Kernels that count what batches and their records are: formats, sizes, times, tombstones.

`count_records` counts records that `parse_records` has found sound. `count_run` does all steps of
an inspection for a chunk of a file at a time, while the cache holds it. It leaves batches that it
does not know, or finds anything wrong with, to the general way in Python.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.inspection_counters import (
    ABORTED_RECORDS,
    BATCH_CELL,
    BATCH_SIZES_AT,
    BATCHES_AT,
    BY_KEY,
    CLEAN,
    CODECS,
    CONTROL_RECORDS,
    DIRTY,
    EMPTY_BATCHES,
    GREATEST_BATCH,
    GREATEST_HORIZON,
    GREATEST_RECORD,
    GREATEST_TIMESTAMP,
    GREATEST_TOMBSTONE_TIMESTAMP,
    HORIZON_AHEAD,
    HORIZON_PASSED,
    HORIZONS,
    LEAST_HORIZON,
    LEAST_TIMESTAMP,
    LEAST_TOMBSTONE_TIMESTAMP,
    LEGACY_FORMAT,
    NO_HORIZON,
    NULL_KEYS,
    RECORD_BYTES,
    RECORD_SIZES_AT,
    RECORDS,
    TOMBSTONE_CELL,
    TOMBSTONES_AT,
    TRANSACTIONAL_BATCHES,
    UNCLEANABLE,
)
from cleaner_jobs.kernels.key_counts import hash_key_parts
from cleaner_jobs.kernels.scan_runs import (
    LEFT,
    NO_MORE,
    NOT_TAKEN,
    PART_FULL,
    Chunks,
    Parsing,
    PartSoFar,
    Scratch,
    bound_plain,
    frame_chunk,
    plausible,
)
from cleaner_jobs.kernels.transaction_kernels import flag_aborted, mark_read
from storage.formats.batch_columns import (
    ABORTED,
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    LAST_OFFSET,
    LEGACY,
    MAGIC_ZERO,
    MAX_TIMESTAMP,
    NULL_KEY,
    OK,
    POSITION,
    REASON_MASK,
    RECORDS_COUNT,
    SIZE,
    SLACK_BYTES,
    TOMBSTONE,
    TXN_FLAGS,
    UNREAD,
    ByteArray,
    Int64Array,
    parse_records,
)
from storage.formats.batch_header import (
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
)
from storage.formats.batch_kernels import (
    PackedBatches,
    decompress_batches,
    first_wrong_checksum,
)
from storage.formats.batch_windows import Place
from storage.kernels.kernel import allocating_kernel, inlined, kernel
from storage.kernels.memory_access import bit_length
from storage.kernels.varint_kernel import read_varint, read_varlong


class ParsedRecords(NamedTuple):
    """Records as parse_records has filled them in."""

    offsets: Int64Array
    states: NDArray[np.uint8]
    first: int  # which of them is the first of the batches at work


class CountLimits(NamedTuple):
    """Offsets and the time that separate the sections of a log and its tombstones."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    now_ms: int


class Counting(NamedTuple):
    """The bounds of the offsets that are counted, and the part of a key to count by."""

    limits: CountLimits
    key_part: int  # BY_KEY, or what else of a key is counted by


class CountOutput(NamedTuple):
    """What `count_run` fills in."""

    rows: Int64Array  # of batches, from the top
    columns: Any  # see scan_run
    sizes: NDArray[np.uint32]  # see count_records
    counters: Int64Array  # see count_records


@inlined
def _count_batch(row: Int64Array, counters: Int64Array) -> None:
    attributes, size = row[ATTRIBUTES], row[SIZE]
    magic: Any = np.int64(2)
    if attributes & LEGACY != 0:
        magic = np.int64(0) if attributes & MAGIC_ZERO != 0 else np.int64(1)
    cell = BATCHES_AT + (magic * CODECS + (attributes & CODEC_MASK)) * BATCH_CELL
    counters[cell] += 1
    counters[cell + 1] += size
    counters[cell + 2] += row[RECORDS_COUNT]
    counters[BATCH_SIZES_AT + bit_length(size)] += 1
    counters[GREATEST_BATCH] = max(counters[GREATEST_BATCH], size)
    if row[RECORDS_COUNT] == 0:
        counters[EMPTY_BATCHES] += 1
    if attributes & (TRANSACTIONAL | CONTROL) == TRANSACTIONAL:
        counters[TRANSACTIONAL_BATCHES] += 1


@inlined
def _horizon_of(row: Int64Array, now_ms: Any, counters: Int64Array) -> Any:
    """Return what the delete horizon of a batch with a tombstone is."""
    attributes = row[ATTRIBUTES]
    if attributes & LEGACY != 0:
        return np.int64(LEGACY_FORMAT)
    if attributes & DELETE_HORIZON == 0:
        return np.int64(NO_HORIZON)
    horizon_ms = row[BASE_TIMESTAMP]
    counters[LEAST_HORIZON] = min(counters[LEAST_HORIZON], horizon_ms)
    counters[GREATEST_HORIZON] = max(counters[GREATEST_HORIZON], horizon_ms)
    return np.int64(HORIZON_PASSED) if horizon_ms <= now_ms else np.int64(HORIZON_AHEAD)


@kernel
def count_records(
    payloads: ByteArray,
    bounds: Int64Array,
    rows: Int64Array,
    records: ParsedRecords,
    limits: CountLimits,
    out: tuple[NDArray[np.uint32], Int64Array],
) -> None:
    """Count batches and the records of each.

    payloads, bounds, rows: see parse_records, which has found nothing wrong with them. out: a
    size in bytes for each record, filled in as the offsets are; counters (COUNTERS,), added to.
    """
    offsets, states, record = records
    sizes, counters = out
    for i in range(rows.shape[0]):
        _count_batch(rows[i], counters)
        count, attributes = rows[i, RECORDS_COUNT], rows[i, ATTRIBUTES]
        if attributes & CONTROL != 0:
            counters[CONTROL_RECORDS] += count
            for _ in range(count):
                sizes[record] = 0
                record += 1
            continue
        counters[RECORDS] += count
        if rows[i, TXN_FLAGS] & UNREAD == UNREAD:
            counters[ABORTED_RECORDS] += count
            for _ in range(count):
                sizes[record] = 0
                record += 1
            continue
        record = _count_data(
            payloads, bounds[i, 0], rows[i], (offsets, states, record), limits, out
        )


@inlined
def _count_data(
    payloads: ByteArray, at: Any, row: Int64Array, records: Any, limits: Any, out: Any
) -> Any:
    """Count the records of one batch; return the number of the first one after them."""
    offsets, states, record = records
    sizes, counters = out
    start, end_record = at, record + row[RECORDS_COUNT]
    has_append_time = row[ATTRIBUTES] & LOG_APPEND_TIME != 0
    base_ms: Any = np.int64(row[BASE_TIMESTAMP])
    greatest: Any = np.int64(counters[GREATEST_RECORD])
    least_ms: Any = np.int64(counters[LEAST_TIMESTAMP])
    greatest_ms: Any = np.int64(counters[GREATEST_TIMESTAMP])
    while record < end_record:
        length, body = read_varint(payloads, at)
        size = body + length - at
        delta, _behind = read_varlong(payloads, body + 1)
        timestamp: Any = np.int64(row[MAX_TIMESTAMP] if has_append_time else base_ms + delta)
        at += size
        sizes[record] = size
        counters[RECORD_SIZES_AT + bit_length(size)] += 1
        greatest = max(greatest, size)
        if timestamp >= 0:
            least_ms = min(least_ms, timestamp)
            greatest_ms = max(greatest_ms, timestamp)
        state = states[record]
        if state & np.uint8(REASON_MASK | TOMBSTONE) != 0:
            _count_special(row, (state, offsets[record], size, timestamp), limits, counters)
        record += 1
    counters[RECORD_BYTES] += at - start
    counters[GREATEST_RECORD] = greatest
    counters[LEAST_TIMESTAMP] = least_ms
    counters[GREATEST_TIMESTAMP] = greatest_ms
    return record


@inlined
def _count_special(row: Int64Array, record: Any, limits: Any, counters: Int64Array) -> None:
    """Count a record that is no plain value of a key. record: state, offset, size, timestamp."""
    state, offset, size, timestamp = record
    first_dirty_offset, first_uncleanable_offset, now_ms = limits
    reason = state & np.uint8(REASON_MASK)
    if reason == np.uint8(ABORTED):
        counters[ABORTED_RECORDS] += 1
        return
    if reason == np.uint8(NULL_KEY):
        counters[NULL_KEYS] += 1
        return
    if state & np.uint8(TOMBSTONE) == 0:
        return
    section: Any = np.int64(CLEAN)
    if offset >= first_uncleanable_offset:
        section = np.int64(UNCLEANABLE)
    elif offset >= first_dirty_offset:
        section = np.int64(DIRTY)
    cell = section * HORIZONS + _horizon_of(row, now_ms, counters)
    cell = TOMBSTONES_AT + cell * TOMBSTONE_CELL
    counters[cell] += 1
    counters[cell + 1] += size
    if timestamp >= 0:
        counters[LEAST_TOMBSTONE_TIMESTAMP] = min(counters[LEAST_TOMBSTONE_TIMESTAMP], timestamp)
        counters[GREATEST_TOMBSTONE_TIMESTAMP] = max(
            counters[GREATEST_TOMBSTONE_TIMESTAMP], timestamp
        )


@inlined
def _of_one_kind(rows: Int64Array, count: Any) -> tuple[Any, Any]:
    """Return how many first batches are all plain or all compressed, and their records."""
    records: Any = np.int64(0)
    is_packed = rows[0, ATTRIBUTES] & CODEC_MASK != 0
    for i in range(count):
        attributes = rows[i, ATTRIBUTES]
        if attributes & LEGACY != 0 or (attributes & CODEC_MASK != 0) != is_packed:
            return np.int64(i), records
        records += rows[i, RECORDS_COUNT]
    return np.int64(count), records


@allocating_kernel
def count_run(
    source: Chunks,
    at: Place,
    run: PartSoFar,
    max_bytes: int,
    parsing: Parsing,
    scratch: Scratch,
    out: CountOutput,
    counting: Counting,
) -> tuple[int, int, int, int]:
    """Parse and count the records of a run of batches of format v2.

    at: the place of the next batch. run: what was counted so far. max_bytes: how many bytes of
    records the run may still take. Returns how many batches are done, how many records the run
    holds then, the bytes of its new records, and why the run ended: NO_MORE (the chunk or the
    room is used up), PART_FULL, or LEFT and NOT_TAKEN: the caller takes the next batch by itself.
    """
    _, _, end, _, buffer = source
    position, previous_offset = at
    filled, max_records, first_offset, max_offsets = run
    limits, secret, aborted = parsing
    count_limits, part = counting
    payload, bounds, is_read, tools = scratch
    rows, columns, sizes, counters = out
    offsets, states = columns[2], columns[3]
    every, no_digests = np.zeros(0, np.bool_), np.zeros(0, np.uint64)
    batches: Any = np.int64(0)
    behind: Any = np.int64(filled)
    payload_bytes: Any = np.int64(0)
    while position < end and batches < rows.shape[0]:
        framed = frame_chunk(source, Place(position, previous_offset), rows[batches:])
        if framed == 0:
            return batches, behind, payload_bytes, NOT_TAKEN
        count, records = _of_one_kind(rows[batches:], framed)
        if count == 0:
            return batches, behind, payload_bytes, NOT_TAKEN
        its = rows[batches : batches + count]
        if first_offset >= 0 and (
            behind + records > max_records or its[-1, LAST_OFFSET] - first_offset >= max_offsets
        ):
            return batches, behind, payload_bytes, PART_FULL
        if records > states.shape[0] - behind:
            return batches, behind, payload_bytes, NO_MORE if batches else NOT_TAKEN
        if first_offset < 0:
            first_offset = its[0, BASE_OFFSET]
        flag_aborted(its, aborted)
        mark_read(its, is_read)
        wrong, _ = first_wrong_checksum(buffer, position, its, every)
        if wrong >= 0:
            return batches, behind, payload_bytes, LEFT
        is_packed = its[0, ATTRIBUTES] & CODEC_MASK != 0
        done: Any = np.int64(0)
        while done < count:
            left, left_is_read = its[done:], is_read[done:count]
            taken: Any = np.int64(count - done)
            data = buffer
            if is_packed:
                taken, _ = decompress_batches(
                    PackedBatches(buffer, position, left, left_is_read),
                    (0, 0),
                    (payload, payload.shape[0] - SLACK_BYTES),
                    (bounds, no_digests),
                    tools,
                )
                data = payload
            else:
                bound_plain(left, position, taken, bounds)
            taken, _ = plausible(bounds, left, left_is_read, taken)
            if taken == 0:
                return batches, behind, payload_bytes, NOT_TAKEN
            size: Any = np.int64(0)
            for i in range(taken):
                size += bounds[i, 1] - bounds[i, 0]
            if payload_bytes + size > max_bytes:
                return batches, behind, payload_bytes, PART_FULL
            parsed, _, code, _ = parse_records(
                data, bounds[:taken], left[:taken], limits, secret, columns, behind
            )
            if code != OK:
                return batches, behind, payload_bytes, LEFT
            parsed_records = ParsedRecords(offsets, states, behind)
            out_of_count = (sizes, counters)
            count_records(
                data, bounds[:taken], left[:taken], parsed_records, count_limits, out_of_count
            )
            if part != BY_KEY:
                by = (part, secret)
                hash_key_parts(data, bounds[:taken], left[:taken], by, columns, behind)
            behind = np.int64(parsed)
            payload_bytes += size
            done += taken
            batches += taken
        position = its[-1, POSITION] + its[-1, SIZE]
        previous_offset = its[-1, LAST_OFFSET]
    return batches, behind, payload_bytes, NO_MORE
