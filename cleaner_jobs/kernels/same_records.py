"""Whether the written records of a batch are those of its source that stay, to the last byte.

It goes over the written bytes as a reader does, and over the source once more, by nothing that the
rebuilding has found: a bit that flips while a batch is rebuilt would get a checksum that fits.
What a batch is to look like: compaction C-11.8 to C-11.13.
"""

from typing import Any

import numpy as np

from cleaner_jobs.kernels.record_form import NO_SUCH_RECORD, record_end, record_time_delta
from storage.formats.batch_columns import LEGACY, REASON_MASK, ByteArray, Int64Array
from storage.formats.batch_header import CONTROL, DELETE_HORIZON, LOG_APPEND_TIME
from storage.kernels.kernel import inlined, kernel
from storage.kernels.memory_access import same_bytes
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


@inlined
def _null_value(payload: ByteArray, at: Any, end: Any) -> bool:
    """Whether the value behind the key that begins at `at` is null; what does not parse has one."""
    length, at = read_varint(payload, at)
    if length > 0:
        at += length
    if at >= end:
        return False
    length, _ = read_varint(payload, at)
    return bool(length < 0)


@kernel
def compare_records(
    source: tuple[ByteArray, int, int],
    header: tuple[int, int, int, int],
    decisions: tuple[ByteArray, int, bool],
    written: tuple[ByteArray, int, int],
    expected: Int64Array,
) -> int:
    """Check written records against those of the source that stay, each from its length on.

    source, written: a buffer with SLACK_BYTES behind the records, and from where to where they
    stand. header: base offset, base timestamp, max timestamp and attributes of the source.
    decisions: a state for each of its records, the horizon that the batch is to be given or -1, and
    whether the round gives any. expected: (EXPECTED_COLUMNS,), filled.
    Returns SAME, or what differs first.
    """
    payload, start, end = source
    out, out_start, out_end = written
    base_offset, base_timestamp, max_timestamp, attributes = header
    states, horizon_ms, gives_horizons = decisions
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
