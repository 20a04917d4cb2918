"""Kernels that rewrite batches: fewer records, another time base, or a header alone.

`rewrite_batches` writes uncompressed batches whole. For compressed and legacy ones
`rebuild_payloads` writes the records, and `pack_batches` makes whole batches of them: header,
payload and checksum. Source: Kafka, MemoryRecords.buildRetainedRecordsInto, MemoryRecordsBuilder,
DefaultRecordBatch.writeEmptyHeader (compaction C-11.9 to C-11.14).
"""

from typing import Any, NamedTuple

import numpy as np

from cleaner_jobs.kernels.kept_batches import COPY, DROP, EMPTY, REBUILD_WITH_HORIZON, Int32Array
from cleaner_jobs.kernels.record_form import (
    MAX_VARINT_BYTES,
    NO_SUCH_RECORD,
    is_canonical,
    record_end,
    record_time_delta,
)
from storage.codecs.payload_kernels import NOT_TAKEN, compress_payload, max_payload_bytes
from storage.formats.batch_columns import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_SEQUENCE,
    BASE_TIMESTAMP,
    LAST_OFFSET,
    LEGACY,
    MAX_TIMESTAMP,
    OK,
    POSITION,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    REASON_MASK,
    RECORDS_COUNT,
    RECORDS_END,
    RECORDS_START,
    SIZE,
    ByteArray,
    Int64Array,
)
from storage.formats.batch_header import (
    ATTRIBUTES_AT,
    ATTRIBUTES_BYTES,
    BASE_TIMESTAMP_AT,
    BATCH_HEADER_BYTES,
    CHECKED_AT,
    CODEC_MASK,
    CONTROL,
    CRC_AT,
    DELETE_HORIZON,
    LENGTH_AT,
    LOG_APPEND_TIME,
    LOG_OVERHEAD_BYTES,
    MAX_TIMESTAMP_AT,
    RECORDS_COUNT_AT,
    TRANSACTIONAL,
)
from storage.formats.batch_kernels import write_new_header
from storage.kernels.crc_kernels import crc32c_between
from storage.kernels.kernel import inlined, kernel
from storage.kernels.memory_access import copy_bytes, store_be_int16, store_be_int32, store_be_int64
from storage.kernels.varint_kernel import read_varint, varint_bytes, write_varint

PRESERVED_ATTRIBUTES = CODEC_MASK | LOG_APPEND_TIME | TRANSACTIONAL | CONTROL
FLAGS_AT = ATTRIBUTES_AT + ATTRIBUTES_BYTES - 1  # the byte that holds all attribute bits
# a batch that is not rebuilt by the kernel: its fields are not in the form that Kafka writes, or it
# does not parse any more, so that it has to be rebuilt slowly, or refused
NOT_CANONICAL = 1

# A record grows by at most nine bytes of timestamp delta and four of length.
GROWTH_BYTES_PER_RECORD = 13
# A legacy message has no such header, and its record a few fields of ten bytes at most each.
GROWTH_BYTES_PER_MESSAGE = BATCH_HEADER_BYTES + 40
# columns of what rebuild_payloads finds of a batch
KEPT_START, KEPT_END, BASE, LATEST, CODE, REFUSED, FIRST_OFFSET, FINAL_OFFSET = range(8)
RESULT_COLUMNS = 8
# why pack_batches stopped
ALL_DONE, NO_ROOM, NO_CODEC = range(3)
NOT_PACKED, NOTHING_READY = -1, -1


class HeaderTimes(NamedTuple):
    """The times in the header of a batch."""

    base_ms: int
    max_ms: int
    has_horizon: bool  # whether the base is a delete horizon


class RecordSpan(NamedTuple):
    """Records, or a batch, in a buffer that has SLACK_BYTES after them."""

    buffer: ByteArray
    start: int
    end: int


class BatchRows(NamedTuple):
    """Framed batches: their bytes, and for each a row of the columns of `batch_columns`."""

    buffer: ByteArray
    file_position: int  # of the first byte of the buffer
    rows: Int64Array


class SourceBuffers(NamedTuple):
    """Where batches stand, whole and in parts."""

    buffer: ByteArray
    file_position: int  # of the first byte of buffer
    upgraded: ByteArray  # records of legacy batches, in format v2
    packed: ByteArray  # batches that are packed already


class Decisions(NamedTuple):
    """What is decided of batches and of their records."""

    actions: ByteArray  # of each batch
    kept_records: Int32Array  # of each batch
    states: ByteArray  # of each record


class HorizonDecisions(NamedTuple):
    """What is decided of batches that are all rebuilt."""

    states: ByteArray  # of records
    first_records: Int64Array  # of each batch: the first of its records among the states
    horizons_ms: Int64Array  # that each batch is to be given, or -1
    gives_horizons: bool  # whether the round gives any


class KeptRecords(NamedTuple):
    """What is kept of batches, uncompressed."""

    plain: ByteArray
    results: Int64Array  # of rebuild_payloads
    kept_records: Int32Array  # how many of each batch; 0: of a legacy one that is emptied
    horizons_ms: Int64Array  # that each batch is given, or -1


class PackProgress(NamedTuple):
    """How far `pack_batches` has come."""

    done: int  # batches
    at: int  # where the next goes
    ready_bytes: int  # of its payload that stand in their place already, or NOTHING_READY


@kernel
def write_header(
    source: ByteArray,
    source_at: int,
    out: ByteArray,
    at: int,
    size: int,
    times: HeaderTimes,
    records_count: int,
) -> None:
    """Write the header of a rebuilt batch, all but its checksum.

    What is not named here is the source batch's, whose header stands at source_at. size: of the
    whole batch.
    """
    base_timestamp, max_timestamp, has_horizon = times
    copy_bytes(out, at, source, source_at, BATCH_HEADER_BYTES)
    store_be_int32(out, at + LENGTH_AT, size - LOG_OVERHEAD_BYTES)
    out[at + ATTRIBUTES_AT] = 0
    out[at + FLAGS_AT] = np.uint8(source[source_at + FLAGS_AT] & np.uint8(PRESERVED_ATTRIBUTES))
    if has_horizon:
        out[at + FLAGS_AT] |= np.uint8(DELETE_HORIZON)
    store_be_int64(out, at + BASE_TIMESTAMP_AT, base_timestamp)
    store_be_int64(out, at + MAX_TIMESTAMP_AT, max_timestamp)
    store_be_int32(out, at + RECORDS_COUNT_AT, records_count)


@inlined
def write_converted_header(
    row: Int64Array, out: ByteArray, at: int, size: int, offsets: Any, times: Any, count: Any
) -> None:
    """Write the header that a legacy message gets (C-11.12). offsets: of its first and last record.

    times: base timestamp, max timestamp, whether the base is a delete horizon.
    """
    base_timestamp, max_timestamp, has_horizon = times
    attributes = row[ATTRIBUTES] & PRESERVED_ATTRIBUTES
    if has_horizon:
        attributes |= DELETE_HORIZON
    new_times = (base_timestamp, max_timestamp)
    write_new_header(out, (at, at + size), attributes, offsets, new_times, count)


@kernel
def write_empty_batch(
    source: ByteArray, source_at: int, max_timestamp: int, out: ByteArray, at: int
) -> None:
    """Write a batch without records in the place of the one at source_at (C-11.9), no checksum."""
    write_header(
        source, source_at, out, at, BATCH_HEADER_BYTES, HeaderTimes(-1, max_timestamp, False), 0
    )
    kept_bits = np.uint8(LOG_APPEND_TIME | TRANSACTIONAL | CONTROL)
    store_be_int16(out, at + ATTRIBUTES_AT, np.int64(source[source_at + FLAGS_AT] & kept_bits))


@kernel
def has_horizon_after(row: Int64Array, new_horizon_ms: int) -> bool:
    """Return whether a rebuilt batch has a delete horizon; a negative one is not kept (E-36)."""
    if new_horizon_ms >= 0:
        return True
    return bool(row[ATTRIBUTES] & DELETE_HORIZON != 0 and row[BASE_TIMESTAMP] >= 0)


@kernel
def lacks_producer_state(row: Int64Array) -> bool:
    """Return whether a batch has a producer id, but no sequence or epoch with it (C-11.14).

    Kafka's builder refuses to write such a batch again; a control batch needs no sequence.
    """
    if row[PRODUCER_ID] < 0:
        return False
    without_sequence = row[BASE_SEQUENCE] < 0 and row[ATTRIBUTES] & CONTROL == 0
    return bool(without_sequence or row[PRODUCER_EPOCH] == -1)


@kernel
def rebuild_records(
    records: RecordSpan,
    row: Int64Array,
    states: ByteArray,
    new_horizon_ms: int,
    offset_shift: int,
    out: ByteArray,
    out_at: int,
) -> tuple[int, int, int, int, int]:
    """Write the kept records of one batch to out, with deltas from the new base timestamp.

    records: of the batch, decompressed. states: uint8, one for each of them. new_horizon_ms: the
    horizon it is to be given, or -1: keep what it has. offset_shift: by how much its base offset
    rises. out: with room for the records and GROWTH_BYTES_PER_RECORD for each, and SLACK_BYTES.
    Returns the position after what was written, base timestamp, max timestamp, OK or
    NOT_CANONICAL, and whether (1 or 0) Kafka's builder refuses what was written here (C-11.14).
    """
    payload, start, stop = records
    at: Any = np.int64(start)
    batch_end: Any = np.int64(stop)
    if states.shape[0] < row[RECORDS_COUNT]:
        return out_at, 0, 0, NOT_CANONICAL, 0
    refused = 1 if lacks_producer_state(row) else 0
    source_base = row[BASE_TIMESTAMP]
    log_append_time = row[ATTRIBUTES] & LOG_APPEND_TIME != 0
    base = new_horizon_ms
    if base < 0 and row[ATTRIBUTES] & DELETE_HORIZON != 0:
        base = source_base
    has_base = base >= 0
    latest: Any = row[MAX_TIMESTAMP] if log_append_time else np.int64(-1)
    for j in range(row[RECORDS_COUNT]):
        body, end = record_end(payload, at, batch_end)
        if body == NO_SUCH_RECORD:
            return out_at, 0, 0, NOT_CANONICAL, 0
        if states[j] & np.uint8(REASON_MASK) == 0:
            delta, rest = record_time_delta(payload, body, end)
            if rest == NO_SUCH_RECORD or not is_canonical(payload, rest, end):
                return out_at, 0, 0, NOT_CANONICAL, 0
            stamped = log_append_time and row[ATTRIBUTES] & LEGACY == 0  # upgraded ones are already
            timestamp = row[MAX_TIMESTAMP] if stamped else source_base + delta
            if timestamp < -1:
                refused = 1
            if not has_base:
                base = timestamp
                has_base = True
            if timestamp > latest:
                latest = timestamp
            new_delta = timestamp - base
            offset_delta: Any = np.int64(0)
            offset_bytes = 0
            if offset_shift != 0:
                offset_delta, rest = read_varint(payload, rest)
                offset_delta -= offset_shift
                offset_bytes = varint_bytes(offset_delta)
            length = 1 + varint_bytes(new_delta) + offset_bytes + end - rest
            if out_at + MAX_VARINT_BYTES + length > out.shape[0]:
                return out_at, 0, 0, NOT_CANONICAL, 0
            out_at = write_varint(out, out_at, length)
            out[out_at] = 0
            out_at = write_varint(out, out_at + 1, new_delta)
            if offset_shift != 0:
                out_at = write_varint(out, out_at, offset_delta)
            copy_bytes(out, out_at, payload, rest, end - rest)
            out_at += end - rest
        at = end
    if at != batch_end:
        return out_at, 0, 0, NOT_CANONICAL, 0
    return out_at, base, latest, OK, refused


@kernel
def kept_span(records: RecordSpan, row: Int64Array, states: ByteArray) -> tuple[int, int]:
    """Return the offsets of the first and the last kept record; if none is kept, the batch's own.

    records, states: see rebuild_records, which reports records that do not parse.
    """
    payload, start, stop = records
    at: Any = np.int64(start)
    batch_end: Any = np.int64(stop)
    first = row[BASE_OFFSET]
    last = row[LAST_OFFSET]
    found = False
    for j in range(min(row[RECORDS_COUNT], states.shape[0])):
        body, end = record_end(payload, at, batch_end)
        if body == NO_SUCH_RECORD:
            break
        if states[j] & np.uint8(REASON_MASK) == 0:
            _, rest = record_time_delta(payload, body, end)
            if rest == NO_SUCH_RECORD:
                break
            delta, rest = read_varint(payload, rest)
            last = row[BASE_OFFSET] + delta
            if not found:
                first = last
                found = True
        at = end
    return first, last


@kernel
def rebuild_payloads(
    payloads: ByteArray,
    bounds: Int64Array,
    rows: Int64Array,
    decisions: HorizonDecisions,
    out: ByteArray,
    results: Int64Array,
) -> None:
    """Rebuild the records of several decompressed batches, one after another.

    payloads: batch i stands in bounds[i, 0]:bounds[i, 1]. results: (batches, RESULT_COLUMNS),
    filled: where the batch begins and ends in out, base timestamp, max timestamp, code and refusal
    as rebuild_records returns them, base offset and last offset. The offsets of a legacy batch
    become those of its first and last kept record (C-11.12).
    """
    states, first_records, horizons_ms, _ = decisions
    at = 0
    for i in range(rows.shape[0]):
        first = first_records[i]
        its_states = states[first : first + rows[i, RECORDS_COUNT]]
        base_offset, last_offset = rows[i, BASE_OFFSET], rows[i, LAST_OFFSET]
        records = RecordSpan(payloads, bounds[i, 0], bounds[i, 1])
        if rows[i, ATTRIBUTES] & LEGACY != 0:
            base_offset, last_offset = kept_span(records, rows[i], its_states)
        end, base, latest, code, refused = rebuild_records(
            records,
            rows[i],
            its_states,
            horizons_ms[i],
            base_offset - rows[i, BASE_OFFSET],
            out,
            at,
        )
        results[i, KEPT_START] = at
        results[i, KEPT_END] = end
        results[i, BASE] = base
        results[i, LATEST] = latest
        results[i, CODE] = code
        results[i, REFUSED] = refused
        results[i, FIRST_OFFSET] = base_offset
        results[i, FINAL_OFFSET] = last_offset
        if code == OK:
            at = end


@kernel
def rewrite_batches(
    source: SourceBuffers,
    rows: Int64Array,
    places: Int64Array,
    decisions: Decisions,
    horizon_ms: int,
    out: ByteArray,
    spans: Int64Array,
) -> tuple[int, int, int, int]:
    """Write to out what becomes of batches: copied, rebuilt, emptied, dropped.

    source: legacy batches are never copied nor emptied here. places: (batches, 2), where each
    stands that is packed; 0 and 0 of one that is not, a negative one where it could not be.
    horizon_ms: of this round. spans: (>= batches, 2), filled with where in out the batches stand
    that need a checksum.
    Returns bytes written, number of spans, the batch at which it stopped since it is NOT_CANONICAL
    or not packed (-1 if none), and how many of those before it, rebuilt here, Kafka's builder
    refuses.
    """
    actions, kept_records, states = decisions
    buffer, file_position, upgraded, packed = source
    at = 0
    span = 0
    record = 0
    refused_batches = 0
    for i in range(rows.shape[0]):
        source_at = rows[i, POSITION] - file_position
        count = rows[i, RECORDS_COUNT]
        if places[i, 1] != 0:
            if places[i, 1] < 0:
                return at, span, i, refused_batches
            copy_bytes(out, at, packed, places[i, 0], places[i, 1] - places[i, 0])
            at += places[i, 1] - places[i, 0]
        elif actions[i] == COPY:
            copy_bytes(out, at, buffer, source_at, rows[i, SIZE])
            at += rows[i, SIZE]
        elif actions[i] == EMPTY:
            write_empty_batch(buffer, source_at, rows[i, MAX_TIMESTAMP], out, at)
            spans[span, 0] = at
            at += BATCH_HEADER_BYTES
            spans[span, 1] = at
            span += 1
        elif actions[i] != DROP:
            new_horizon_ms: Any = horizon_ms if actions[i] == REBUILD_WITH_HORIZON else np.int64(-1)
            its_states = states[record : record + count]
            is_legacy = rows[i, ATTRIBUTES] & LEGACY != 0
            payload = buffer
            first: Any = source_at + BATCH_HEADER_BYTES
            behind: Any = source_at + rows[i, SIZE]
            offsets = (rows[i, BASE_OFFSET], rows[i, LAST_OFFSET])
            offset_shift: Any = np.int64(0)
            if is_legacy:
                payload = upgraded
                first = rows[i, RECORDS_START]
                behind = rows[i, RECORDS_END]
                offsets = kept_span(RecordSpan(payload, first, behind), rows[i], its_states)
                offset_shift = offsets[0] - rows[i, BASE_OFFSET]
            end, base, latest, code, refused = rebuild_records(
                RecordSpan(payload, first, behind),
                rows[i],
                its_states,
                new_horizon_ms,
                offset_shift,
                out,
                at + BATCH_HEADER_BYTES,
            )
            if code != OK:
                return at, span, i, refused_batches
            refused_batches += refused
            times = HeaderTimes(base, latest, has_horizon_after(rows[i], new_horizon_ms))
            if is_legacy:
                size = end - at
                write_converted_header(rows[i], out, at, size, offsets, times, kept_records[i])
            else:
                write_header(buffer, source_at, out, at, end - at, times, kept_records[i])
            spans[span, 0] = at
            spans[span, 1] = end
            span += 1
            at = end
        record += count
    return at, span, -1, refused_batches


@kernel
def pack_batches(
    source: BatchRows,
    records: KeptRecords,
    out: ByteArray,
    places: Int64Array,
    progress: PackProgress,
    tools: Any,
) -> tuple[int, int, int]:
    """Put whole batches into out, one after another, sealed.

    source: the batches as they were. places: (batches, 2), filled in: where each begins and ends in
    out; NOT_PACKED of one that the filter did not take. tools: see payload_kernels.
    Returns how many are done, where the next goes, and why it stopped: ALL_DONE, NO_ROOM for the
    next in whatever codec, or NO_CODEC: it is to be compressed by others.
    """
    buffer, file_position, rows = source
    plain, results, kept_records, horizons_ms = records
    done, at, ready = progress
    while done < rows.shape[0]:
        start, end = results[done, KEPT_START], results[done, KEPT_END]
        if results[done, CODE] != OK:
            places[done, 0] = places[done, 1] = NOT_PACKED
            done += 1
            continue
        payload_at = at + BATCH_HEADER_BYTES
        if payload_at + max_payload_bytes(end - start) > out.shape[0]:
            return done, at, NO_ROOM
        behind: Any = np.int64(payload_at)
        if ready != NOTHING_READY:
            behind += ready
            ready = NOTHING_READY
        elif kept_records[done] > 0:
            codec = rows[done, ATTRIBUTES] & CODEC_MASK
            behind = np.int64(compress_payload(codec, plain, (start, end), out, payload_at, tools))
            if behind == NOT_TAKEN:
                return done, at, NO_CODEC
        source_at = rows[done, POSITION] - file_position
        has_horizon = has_horizon_after(rows[done], horizons_ms[done])
        facts = (kept_records[done], has_horizon)
        _write_header((buffer, source_at), rows[done], results[done], facts, out, (at, behind))
        store_be_int32(out, at + CRC_AT, crc32c_between(out, at + CHECKED_AT, behind))
        places[done, 0] = at
        places[done, 1] = behind
        at = behind
        done += 1
    return done, at, ALL_DONE


@inlined
def _write_header(
    source: Any, row: Int64Array, result: Int64Array, facts: Any, out: ByteArray, place: Any
) -> None:
    """source: a buffer, and where the batch before stands in it. facts: records, a horizon."""
    buffer, source_at = source
    count, has_horizon = facts
    at, behind = place
    size = behind - at
    base, latest = result[BASE], result[LATEST]
    if row[ATTRIBUTES] & LEGACY == 0:
        write_header(
            buffer, source_at, out, at, size, HeaderTimes(base, latest, has_horizon), count
        )
        return
    if count == 0:
        base, latest, has_horizon = np.int64(-1), row[MAX_TIMESTAMP], False
    times = HeaderTimes(base, latest, has_horizon)
    offsets = (result[FIRST_OFFSET], result[FINAL_OFFSET])
    write_converted_header(row, out, at, size, offsets, times, count)
    if count == 0:
        store_be_int16(out, at + ATTRIBUTES_AT, row[ATTRIBUTES] & LOG_APPEND_TIME)
