"""A kernel that makes whole batches of records that were filtered: header, payload and checksum.

Source: Kafka, MemoryRecordsBuilder.writeDefaultBatchHeader (compaction C-11.9 to C-11.14).
"""

from typing import Any

import numpy as np

from cleaner_jobs.kernels.headers import (
    has_horizon_after,
    write_converted_header,
    write_header,
)
from cleaner_jobs.kernels.kept_batches import Int32Array
from cleaner_jobs.kernels.rebuild import (
    BASE,
    CODE,
    FINAL_OFFSET,
    FIRST_OFFSET,
    KEPT_END,
    KEPT_START,
    LATEST,
)
from storage.codecs.payload_kernels import NOT_TAKEN, compress_payload, max_payload_bytes
from storage.formats.batch_columns import (
    ATTRIBUTES,
    LEGACY,
    MAX_TIMESTAMP,
    OK,
    POSITION,
    ByteArray,
    Int64Array,
)
from storage.formats.batch_header import (
    ATTRIBUTES_AT,
    BATCH_HEADER_BYTES,
    CHECKED_AT,
    CODEC_MASK,
    CRC_AT,
    LOG_APPEND_TIME,
)
from storage.kernels.crc_kernels import crc32c_between
from storage.kernels.kernel import inlined, kernel
from storage.kernels.memory_access import store_be_int16, store_be_int32

ALL_DONE, NO_ROOM, NO_CODEC = range(3)
NOT_PACKED, NOTHING_READY = -1, -1


@kernel
def pack_batches(
    source: tuple[ByteArray, int, Int64Array],
    records: tuple[ByteArray, Int64Array],
    decisions: tuple[Int32Array, Int64Array],
    out: ByteArray,
    places: Int64Array,
    progress: tuple[int, int, int],
    tools: Any,
) -> tuple[int, int, int]:
    """Put whole batches into out, one behind the other, sealed.

    source: of the batches before, as in a window. records: what is kept of each, uncompressed, and
    the results of rebuild_payloads. decisions: how many records are kept of each (none: of a
    legacy one that is emptied), and the horizon that each is given or -1. places: (batches, 2),
    filled in: where each begins and ends in out; NOT_PACKED of one that the filter did not take.
    progress: how many batches are done, where the next goes, and how many bytes of its payload
    stand in their place already, or NOTHING_READY. tools: as of payload_kernels.
    Returns how many are done, where the next goes, and why it stopped: ALL_DONE, NO_ROOM for the
    next in whatever codec, or NO_CODEC: it is to be compressed by others.
    """
    buffer, file_position, rows = source
    plain, results = records
    kept_records, horizons_ms = decisions
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
    times = (result[BASE], result[LATEST], has_horizon)
    if row[ATTRIBUTES] & LEGACY == 0:
        write_header(buffer, source_at, out, at, size, times, count)
        return
    if count == 0:
        times = (np.int64(-1), row[MAX_TIMESTAMP], False)
    offsets = (result[FIRST_OFFSET], result[FINAL_OFFSET])
    write_converted_header(row, out, at, size, offsets, times, count)
    if count == 0:
        store_be_int16(out, at + ATTRIBUTES_AT, row[ATTRIBUTES] & LOG_APPEND_TIME)
