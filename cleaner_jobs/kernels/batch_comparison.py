"""Kernels that compare written batches with what was to be made of their sources.

They read the written bytes as a reader does, and the source once more, and use nothing that the
rebuilding has found: a bit that flips while a batch is rebuilt would get a checksum that fits.
A batch that was copied has its source's checksum, which is checked when the batch is read back;
what stands before that checksum is compared here. What a batch is to look like: compaction C-11.8
to C-11.13.
"""

from typing import Any, NamedTuple

import numpy as np

from cleaner_jobs.kernels.kept_batches import COPY, DROP, EMPTY, REBUILD_WITH_HORIZON
from cleaner_jobs.kernels.offset_map import fingerprint
from cleaner_jobs.kernels.rebuild import (
    CODE,
    KEPT_END,
    KEPT_START,
    PRESERVED_ATTRIBUTES,
    BatchRows,
    Decisions,
    HorizonDecisions,
    RecordSpan,
    SourceBuffers,
)
from cleaner_jobs.kernels.record_form import NO_SUCH_RECORD, record_end, record_time_delta
from storage.formats.batch_columns import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    LAST_OFFSET,
    LEGACY,
    MAX_TIMESTAMP,
    OK,
    POSITION,
    REASON_MASK,
    RECORDS_COUNT,
    RECORDS_END,
    RECORDS_START,
    SIZE,
    TXN_FLAGS,
    ByteArray,
    Int64Array,
)
from storage.formats.batch_header import (
    ATTRIBUTES_AT,
    BASE_OFFSET_BYTES,
    BASE_SEQUENCE_AT,
    BASE_TIMESTAMP_AT,
    BATCH_HEADER_BYTES,
    CHECKED_AT,
    CONTROL,
    CRC_AT,
    DELETE_HORIZON,
    LAST_OFFSET_DELTA_AT,
    LAST_OFFSET_DELTA_BYTES,
    LEADER_EPOCH_AT,
    LENGTH_AT,
    LOG_APPEND_TIME,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    PRODUCER_EPOCH_AT,
    PRODUCER_ID_AT,
    RECORDS_COUNT_AT,
    TRANSACTIONAL,
)
from storage.kernels.kernel import inlined, kernel
from storage.kernels.memory_access import (
    load_be_int16,
    load_be_int32,
    load_be_int64,
    load_le_uint64,
    same_bytes,
)
from storage.kernels.varint_kernel import read_varint

# what of a batch is not as it should be
SAME, ITS_SIZE, ITS_HEADER, ITS_RECORDS, A_TIMESTAMP, AN_OFFSET, A_CONTENT, ITS_HORIZON = range(8)
DIFFERENCES = {
    ITS_SIZE: "its size",
    ITS_HEADER: "its header",
    ITS_RECORDS: "the number or the form of its records",
    A_TIMESTAMP: "the timestamp of a record",
    AN_OFFSET: "the offset of a record",
    A_CONTENT: "key, value or headers of a record",
    ITS_HORIZON: "its delete horizon",
}

# columns of what is expected in the header of a rebuilt batch: how many records, base and latest
# timestamp, first and last offset of the records; and whether the records were compared
KEPT, BASE, LATEST, FIRST, LAST, COMPARED = range(6)
EXPECTED_COLUMNS = 6


class SourceHeader(NamedTuple):
    """What the header of a source batch says of its records."""

    base_offset: int
    base_ms: int
    max_ms: int
    attributes: int


@inlined
def _null_value(payload: ByteArray, at: Any, end: Any) -> bool:
    """Return whether the value after the key that begins at `at` is null.

    A value that does not parse counts as not null.
    """
    length, at = read_varint(payload, at)
    if length > 0:
        at += length
    if at >= end:
        return False
    length, _ = read_varint(payload, at)
    return bool(length < 0)


@kernel
def compare_records(
    source: RecordSpan,
    header: SourceHeader,
    states: ByteArray,
    horizon_ms: int,
    gives_horizons: bool,
    written: RecordSpan,
    expected: Int64Array,
) -> int:
    """Check written records against those of the source that stay, each from its length on.

    states: one for each record of the source. horizon_ms: that the batch is to be given, or -1.
    gives_horizons: whether the round gives any. expected: (EXPECTED_COLUMNS,), filled.
    Returns SAME, or what differs first.
    """
    payload, start, end = source
    out, out_start, out_end = written
    base_offset, base_timestamp, max_timestamp, attributes = header
    is_legacy = attributes & LEGACY != 0
    log_append_time = attributes & LOG_APPEND_TIME != 0
    had_horizon = attributes & DELETE_HORIZON != 0
    base = horizon_ms
    if base < 0 and had_horizon:
        base = base_timestamp
    latest: Any = max_timestamp if log_append_time else np.int64(-1)
    kept = 0
    tombstones = 0
    new_base_offset = base_offset
    offset = base_offset
    at: Any = np.int64(start)
    out_at: Any = np.int64(out_start)
    for j in range(states.shape[0]):
        body, stop = record_end(payload, at, end)
        if body == NO_SUCH_RECORD:
            return ITS_RECORDS
        at = stop
        if states[j] & np.uint8(REASON_MASK) != 0:
            continue
        delta, rest = record_time_delta(payload, body, stop)
        new_body, new_stop = record_end(out, out_at, out_end)
        if rest == NO_SUCH_RECORD or new_body == NO_SUCH_RECORD or out[new_body] != 0:
            return ITS_RECORDS
        new_delta, new_rest = record_time_delta(out, new_body, new_stop)
        if new_rest == NO_SUCH_RECORD:
            return ITS_RECORDS
        timestamp = max_timestamp if log_append_time and not is_legacy else base_timestamp + delta
        offset_delta, rest = read_varint(payload, rest)
        new_offset_delta, new_rest = read_varint(out, new_rest)
        offset = base_offset + offset_delta
        if kept == 0:
            if base < 0:
                base = timestamp
            if is_legacy:
                new_base_offset = offset
            expected[FIRST] = offset
        if base + new_delta != timestamp:
            return A_TIMESTAMP
        if new_base_offset + new_offset_delta != offset:
            return AN_OFFSET
        if rest > stop or stop - rest != new_stop - new_rest:
            return ITS_RECORDS
        if not same_bytes(payload, rest, out, new_rest, stop - rest):
            return A_CONTENT
        latest = max(latest, timestamp)
        kept += 1
        tombstones += int(_null_value(payload, rest, stop))
        out_at = new_stop
    if at != end or out_at != out_end:
        return ITS_RECORDS
    needs_horizon = tombstones > 0 and not had_horizon and gives_horizons
    if attributes & CONTROL == 0 and needs_horizon != (horizon_ms >= 0):
        return ITS_HORIZON
    expected[KEPT] = kept
    expected[BASE] = base
    expected[LATEST] = latest
    expected[LAST] = offset
    expected[COMPARED] = 1
    return SAME


EPOCH_TO_MAGIC = CRC_AT - LEADER_EPOCH_AT  # bytes that stand together, as do the
PRODUCER_BYTES = RECORDS_COUNT_AT - PRODUCER_ID_AT  # id, epoch and sequence
# a batch begins with what its checksum does not cover, offset and leader epoch for two; then the
# checksum itself
HEAD_BYTES = CHECKED_AT


@kernel
def sum_heads(buffer: ByteArray, start: int, end: int) -> tuple[np.uint64, int, int]:
    """Sum up, modulo 2^64, what each batch in buffer[start:end] begins with, up to its checksum.

    Two runs of batches with equal sums have the same offsets, sizes, leader epochs and checksums.
    Returns how many batches there are, too, and where the last whole one ends.
    """
    total = np.uint64(0)
    batches = 0
    at: Any = np.int64(start)
    while at + HEAD_BYTES <= end:
        size = load_be_int32(buffer, at + LENGTH_AT) + LOG_OVERHEAD_BYTES
        if size < HEAD_BYTES or size > end - at:
            break
        first, second = load_le_uint64(buffer, at), load_le_uint64(buffer, at + 8)
        total += fingerprint(first, second, load_le_uint64(buffer, at + (HEAD_BYTES - 8)))
        batches += 1
        at += size
    return total, batches, at


@kernel
def first_other_row(rows: Int64Array, again: Int64Array) -> int:
    """Return the first row in which two framings of the same bytes differ; -1: none does.

    TXN_FLAGS are not compared: they do not come from the file.
    """
    for i in range(rows.shape[0]):
        for column in range(rows.shape[1]):
            if rows[i, column] != again[i, column] and column != TXN_FLAGS:
                return i
    return -1


@kernel
def have_same_bytes(first: ByteArray, second: ByteArray, length: int) -> bool:
    """Return whether both begin with the same bytes, of that number."""
    return bool(same_bytes(first, np.int64(0), second, np.int64(0), np.int64(length)))


@inlined
def _source_header(buffer: ByteArray, at: Any, row: Int64Array) -> SourceHeader:
    """Base offset, base timestamp, max timestamp and attributes: as they stand, or as upgraded."""
    if row[ATTRIBUTES] & LEGACY != 0:
        return SourceHeader(
            row[BASE_OFFSET], row[BASE_TIMESTAMP], row[MAX_TIMESTAMP], row[ATTRIBUTES]
        )
    return SourceHeader(
        load_be_int64(buffer, at),
        load_be_int64(buffer, at + BASE_TIMESTAMP_AT),
        load_be_int64(buffer, at + MAX_TIMESTAMP_AT),
        load_be_int16(buffer, at + ATTRIBUTES_AT) & 0xFFFF,
    )


@inlined
def _has_identity(buffer: ByteArray, at: Any, out: ByteArray, out_at: Any) -> bool:
    """Return whether a batch has offsets, leader epoch, format and producer of its source."""
    delta_at, producer_at = LAST_OFFSET_DELTA_AT, PRODUCER_ID_AT
    return bool(
        same_bytes(buffer, at, out, out_at, BASE_OFFSET_BYTES)
        and same_bytes(buffer, at + LEADER_EPOCH_AT, out, out_at + LEADER_EPOCH_AT, EPOCH_TO_MAGIC)
        and same_bytes(buffer, at + delta_at, out, out_at + delta_at, LAST_OFFSET_DELTA_BYTES)
        and same_bytes(buffer, at + producer_at, out, out_at + producer_at, PRODUCER_BYTES)
    )


@inlined
def _has_converted_identity(expected: Int64Array, out: ByteArray, at: Any) -> bool:
    """Return whether a batch has the identity that a legacy message gets (C-11.12)."""
    return bool(
        load_be_int64(out, at) == expected[FIRST]
        and load_be_int32(out, at + LEADER_EPOCH_AT) == NO_LEADER_EPOCH
        and out[at + MAGIC_AT] == np.uint8(MAGIC)
        and load_be_int32(out, at + LAST_OFFSET_DELTA_AT) == expected[LAST] - expected[FIRST]
        and load_be_int64(out, at + PRODUCER_ID_AT) == NO_PRODUCER_ID
        and load_be_int16(out, at + PRODUCER_EPOCH_AT) == NO_PRODUCER_EPOCH
        and load_be_int32(out, at + BASE_SEQUENCE_AT) == NO_SEQUENCE
    )


@inlined
def _attributes(header: Any, row: Int64Array, is_emptied: bool, horizon_ms: Any) -> Any:
    """Return those of a batch that is emptied (C-11.9) or rebuilt (C-11.13)."""
    _, base_timestamp, _, attributes = header
    if is_emptied:
        if row[ATTRIBUTES] & LEGACY != 0:
            return attributes & LOG_APPEND_TIME
        return attributes & (LOG_APPEND_TIME | TRANSACTIONAL | CONTROL)
    kept = attributes & PRESERVED_ATTRIBUTES
    if horizon_ms >= 0 or (attributes & DELETE_HORIZON != 0 and base_timestamp >= 0):  # E-36
        kept |= DELETE_HORIZON
    return kept


@inlined
def _has_facts(expected: Int64Array, out: ByteArray, at: Any) -> Any:
    """Return whether times and count in the header at `at` follow from the records."""
    return (
        load_be_int64(out, at + BASE_TIMESTAMP_AT) == expected[BASE]
        and load_be_int64(out, at + MAX_TIMESTAMP_AT) == expected[LATEST]
        and load_be_int32(out, at + RECORDS_COUNT_AT) == expected[KEPT]
    )


@kernel
def compare_payloads(
    source: BatchRows,
    payloads: tuple[ByteArray, Int64Array],
    decisions: HorizonDecisions,
    written: tuple[ByteArray, Int64Array],
    expected: Int64Array,
) -> tuple[int, int]:
    """Check rebuilt payloads, before they are compressed, against those of their sources.

    payloads: a buffer, and bounds: batch i stands in bounds[i, 0]:bounds[i, 1]. written: a buffer,
    and results as in rebuild_payloads; a batch that it has not rebuilt is skipped. expected:
    (batches, EXPECTED_COLUMNS), filled.
    Returns the batch that differs, and in what; -1 and SAME if none does.
    """
    buffer, file_position, rows = source
    payload, bounds = payloads
    states, first_records, horizons_ms, gives_horizons = decisions
    out, results = written
    for i in range(rows.shape[0]):
        if results[i, CODE] != OK:
            continue
        first = first_records[i]
        found = compare_records(
            RecordSpan(payload, bounds[i, 0], bounds[i, 1]),
            _source_header(buffer, rows[i, POSITION] - file_position, rows[i]),
            states[first : first + rows[i, RECORDS_COUNT]],
            horizons_ms[i],
            gives_horizons,
            RecordSpan(out, results[i, KEPT_START], results[i, KEPT_END]),
            expected[i],
        )
        if found != SAME:
            return i, found
    return -1, SAME


@kernel
def _compare_rebuilt(
    source: SourceBuffers,
    row: Int64Array,
    action: int,
    states: ByteArray,
    horizon_ms: int,
    written: RecordSpan,
    expected: Int64Array,
) -> int:
    """Check one batch that was rebuilt or emptied. written: the whole batch."""
    buffer, file_position, upgraded, _ = source
    source_at = row[POSITION] - file_position
    out, at, end = written
    size = end - at
    header = _source_header(buffer, source_at, row)
    is_legacy = row[ATTRIBUTES] & LEGACY != 0
    given_ms: Any = horizon_ms if action == REBUILD_WITH_HORIZON else np.int64(-1)
    if action == EMPTY:
        if size != BATCH_HEADER_BYTES:
            return ITS_SIZE
        expected[KEPT] = 0
        expected[BASE] = -1
        expected[LATEST] = header.max_ms
        expected[FIRST] = row[BASE_OFFSET]
        expected[LAST] = row[LAST_OFFSET]
    elif expected[COMPARED] == 0:
        payload = buffer
        start = source_at + BATCH_HEADER_BYTES
        stop = source_at + row[SIZE]
        if is_legacy:
            payload = upgraded
            start = row[RECORDS_START]
            stop = row[RECORDS_END]
        found = compare_records(
            RecordSpan(payload, start, stop),
            header,
            states,
            given_ms,
            horizon_ms >= 0,
            RecordSpan(out, at + BATCH_HEADER_BYTES, end),
            expected,
        )
        if found != SAME:
            return found
    if is_legacy:
        fits = _has_converted_identity(expected, out, at)
    else:
        fits = _has_identity(buffer, source_at, out, at)
    attributes = _attributes(header, row, action == EMPTY, given_ms)
    fits = fits and load_be_int16(out, at + ATTRIBUTES_AT) & 0xFFFF == attributes
    return SAME if fits and _has_facts(expected, out, at) else ITS_HEADER


@kernel
def compare_batches(
    source: SourceBuffers,
    rows: Int64Array,
    decisions: Decisions,
    horizon_ms: int,
    written: tuple[ByteArray, int],
    expected: Int64Array,
) -> tuple[int, int]:
    """Check whole written batches, sealed, against their sources.

    horizon_ms: of this round. written: a buffer, the batches from its start on, and where they end.
    expected: (batches, EXPECTED_COLUMNS), filled but for those batches whose records were compared
    before.
    Returns the batch that differs, and in what; -1 and SAME if none does.
    """
    buffer, file_position, _, _ = source
    actions, _, states = decisions
    out, end = written
    at: Any = np.int64(0)
    record = 0
    for i in range(rows.shape[0]):
        first_record = record
        record += rows[i, RECORDS_COUNT]
        if actions[i] == DROP:
            continue
        if end - at < BATCH_HEADER_BYTES:
            return i, ITS_SIZE
        size = load_be_int32(out, at + LENGTH_AT) + LOG_OVERHEAD_BYTES
        if size < BATCH_HEADER_BYTES or size > end - at:
            return i, ITS_SIZE
        source_at = rows[i, POSITION] - file_position
        found = SAME
        if actions[i] == COPY:
            if size != rows[i, SIZE] or not same_bytes(buffer, source_at, out, at, HEAD_BYTES):
                found = ITS_HEADER
        else:
            found = _compare_rebuilt(
                source,
                rows[i],
                int(actions[i]),
                states[first_record:record],
                horizon_ms,
                RecordSpan(out, at, at + size),
                expected[i],
            )
        if found != SAME:
            return i, found
        at += size
    return (-1, SAME) if at == end else (rows.shape[0] - 1, ITS_SIZE)
