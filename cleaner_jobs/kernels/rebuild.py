"""Kernels that write batches anew: fewer records, another time base, or a header alone.

Source: Kafka, MemoryRecords.buildRetainedRecordsInto and MemoryRecordsBuilder (compaction C-11.10
to C-11.14). `headers` writes the headers, `batch_payloads` adds the checksum.
"""

from typing import Any

import numpy as np

from cleaner_jobs.kernels.headers import (
    has_horizon_after,
    write_converted_header,
    write_empty_batch,
    write_header,
)
from cleaner_jobs.kernels.kept_batches import COPY, DROP, EMPTY, REBUILD_WITH_HORIZON, Int32Array
from cleaner_jobs.kernels.record_form import (
    MAX_VARINT_BYTES,
    NO_SUCH_RECORD,
    is_canonical,
    record_end,
    record_time_delta,
)
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
    BATCH_HEADER_BYTES,
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
)
from storage.kernels.kernel import kernel
from storage.kernels.memory_access import copy_bytes
from storage.kernels.varint_kernel import read_varint, varint_bytes, write_varint

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


@kernel
def lacks_producer_state(row: Int64Array) -> bool:
    """Whether a batch has a producer id, but not the sequence or epoch that go with it (C-11.14).

    Kafka's builder refuses to write such a batch again; a control batch needs no sequence.
    """
    if row[PRODUCER_ID] < 0:
        return False
    without_sequence = row[BASE_SEQUENCE] < 0 and row[ATTRIBUTES] & CONTROL == 0
    return bool(without_sequence or row[PRODUCER_EPOCH] == -1)


@kernel
def rebuild_records(
    payload: ByteArray,
    span: tuple[int, int],
    row: Int64Array,
    states: ByteArray,
    new_horizon_ms: int,
    offset_shift: int,
    out: ByteArray,
    out_at: int,
) -> tuple[int, int, int, int, int]:
    """Write the kept records of one batch to out, with deltas from the new base timestamp.

    payload: its (decompressed) records stand in payload[span[0]:span[1]]. states: uint8 of its
    records, one for each. new_horizon_ms: the horizon it is to be given, or -1: keep what it has.
    offset_shift: by how much its base offset rises. out: with room for the records and
    GROWTH_BYTES_PER_RECORD for each, and SLACK_BYTES.
    Returns the position behind what was written, base timestamp, max timestamp, OK or
    NOT_CANONICAL, and whether (1 or 0) Kafka's builder refuses what was written here (C-11.14).
    """
    at: Any = np.int64(span[0])
    batch_end: Any = np.int64(span[1])
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
def kept_span(
    payload: ByteArray, span: tuple[int, int], row: Int64Array, states: ByteArray
) -> tuple[int, int]:
    """The offsets of the first and the last kept record; of the batch itself where none is kept.

    span, states: as of rebuild_records, which finds what does not parse.
    """
    at: Any = np.int64(span[0])
    batch_end: Any = np.int64(span[1])
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
    decisions: tuple[ByteArray, Int64Array, Int64Array],
    out: ByteArray,
    results: Int64Array,
) -> None:
    """Rebuild the records of several decompressed batches, one behind the other.

    payloads: batch i stands in bounds[i, 0]:bounds[i, 1]. decisions: states of records (uint8), the
    first record of each batch among them, the horizon that each is to be given or -1. results:
    (batches, RESULT_COLUMNS), filled: where the batch begins and ends in out, base timestamp, max
    timestamp, code and refusal as rebuild_records returns them, base offset and last offset. The
    offsets of a legacy batch become those of its first and last kept record (C-11.12).
    """
    states, first_records, horizons_ms = decisions
    at = 0
    for i in range(rows.shape[0]):
        first = first_records[i]
        its_states = states[first : first + rows[i, RECORDS_COUNT]]
        base_offset, last_offset = rows[i, BASE_OFFSET], rows[i, LAST_OFFSET]
        if rows[i, ATTRIBUTES] & LEGACY != 0:
            base_offset, last_offset = kept_span(
                payloads, (bounds[i, 0], bounds[i, 1]), rows[i], its_states
            )
        end, base, latest, code, refused = rebuild_records(
            payloads,
            (bounds[i, 0], bounds[i, 1]),
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
    buffers: tuple[ByteArray, ByteArray, ByteArray],
    file_position: int,
    batches: tuple[Int64Array, Int64Array],
    decisions: tuple[ByteArray, Int32Array, ByteArray],
    horizon_ms: int,
    out: ByteArray,
    spans: Int64Array,
) -> tuple[int, int, int, int]:
    """Write to out what becomes of batches: copied, rebuilt, emptied, dropped.

    buffers: of the batches, whose first byte is at file_position; of the upgraded records of
    legacy ones, which are never copied nor emptied here; and of batches that are packed already.
    batches: their rows, and the place of each that is packed; 0 and 0 of one that is not, a
    negative one where it could not be. decisions: actions and kept records of each batch, states
    of each record. horizon_ms: of this round. spans: (>= batches, 2), filled with where in out the
    batches stand that need a checksum.
    Returns bytes written, number of spans, the batch at which it stopped since it is NOT_CANONICAL
    or not packed (-1 if none), and how many of those before it, rebuilt here, Kafka's builder
    refuses.
    """
    actions, kept_records, states = decisions
    rows, places = batches
    buffer, upgraded, packed = buffers
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
            records = (source_at + BATCH_HEADER_BYTES, source_at + rows[i, SIZE])
            offsets = (rows[i, BASE_OFFSET], rows[i, LAST_OFFSET])
            offset_shift: Any = np.int64(0)
            if is_legacy:
                payload = upgraded
                records = (rows[i, RECORDS_START], rows[i, RECORDS_END])
                offsets = kept_span(payload, records, rows[i], its_states)
                offset_shift = offsets[0] - rows[i, BASE_OFFSET]
            end, base, latest, code, refused = rebuild_records(
                payload,
                records,
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
            times = (base, latest, has_horizon_after(rows[i], new_horizon_ms))
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
