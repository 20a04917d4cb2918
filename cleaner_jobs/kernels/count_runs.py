"""A kernel that counts a run of batches, a chunk of a file at a time, while the cache holds it.

As `plain_runs` and `packed_runs` do for a scan: what it does not know, or finds anything wrong
with, is left to be gone through step by step, from Python.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.inspect_values import BY_KEY
from cleaner_jobs.kernels.batch_flags import flag_aborted, mark_read
from cleaner_jobs.kernels.key_parts import hash_key_parts
from cleaner_jobs.kernels.packed_runs import plausible
from cleaner_jobs.kernels.plain_runs import LEFT, NO_MORE, NOT_PLAIN, PART_FULL, frame_chunk
from cleaner_jobs.kernels.record_counts import count_records
from storage.formats.batch_columns import (
    ATTRIBUTES,
    BASE_OFFSET,
    LAST_OFFSET,
    LEGACY,
    OK,
    POSITION,
    RECORDS_COUNT,
    SIZE,
    SLACK_BYTES,
    ByteArray,
    Int64Array,
    parse_records,
)
from storage.formats.batch_header import BATCH_HEADER_BYTES, CODEC_MASK
from storage.formats.batch_payloads import decompress_batches, first_wrong_checksum
from storage.kernels.kernel import allocating_kernel, inlined


@inlined
def _of_one_kind(rows: Int64Array, count: Any) -> tuple[Any, Any]:
    """How many batches, from the first on, are all plain or all compressed; and their records."""
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
    source: tuple[int, int, int, int, ByteArray],
    at: tuple[int, int],
    run: tuple[int, int, int, int, int],
    parsing: tuple[Any, Any, Int64Array, int],
    scratch: tuple[ByteArray, Int64Array, NDArray[np.bool_], Any],
    out: tuple[Int64Array, Any, tuple[int, int, int], NDArray[np.uint32], Int64Array],
) -> tuple[int, int, int, int]:
    """Parse and count the records of a run of batches of format v2.

    source, at: as of frame_plain. run: how many records the run at work holds, and how many at
    most; its first offset (-1: it holds no batch), and how many offsets at most; how many bytes of
    records more it may hold. parsing: limits and secret as of parse_records, ranges as of
    flag_aborted, and BY_KEY, or what else of a key is counted by. scratch: a buffer for what some
    batches hold; bounds, and whether it is read, of as many as there are rows; tools as of
    payload_kernels. out: rows and columns as of scan_plain, then limits, sizes and counters as of
    count_records.
    Returns how many batches are done, how many records the run holds then, the bytes of its new
    records, and why the run ended: LEFT and NOT_PLAIN mean that the next batch goes step by step.
    """
    _, _, end, _, buffer = source
    position, previous_offset = at
    filled, most_records, first_offset, most_offsets, most_bytes = run
    limits, secret, aborted, part = parsing
    payload, bounds, is_read, tools = scratch
    rows, columns, counting, sizes, counters = out
    offsets, states = columns[2], columns[3]
    every, no_digests = np.zeros(0, np.bool_), np.zeros(0, np.uint64)
    batches: Any = np.int64(0)
    behind: Any = np.int64(filled)
    payload_bytes: Any = np.int64(0)
    while position < end and batches < rows.shape[0]:
        framed = frame_chunk(source, (position, previous_offset), rows[batches:])
        if framed == 0:
            return batches, behind, payload_bytes, NOT_PLAIN
        count, records = _of_one_kind(rows[batches:], framed)
        if count == 0:
            return batches, behind, payload_bytes, NOT_PLAIN
        its = rows[batches : batches + count]
        if first_offset >= 0 and (
            behind + records > most_records or its[-1, LAST_OFFSET] - first_offset >= most_offsets
        ):
            return batches, behind, payload_bytes, PART_FULL
        if records > states.shape[0] - behind:
            return batches, behind, payload_bytes, NO_MORE if batches else NOT_PLAIN
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
                    (buffer, position, left, left_is_read),
                    (0, 0),
                    (payload, payload.shape[0] - SLACK_BYTES),
                    (bounds, no_digests),
                    tools,
                )
                data = payload
            else:
                for i in range(taken):
                    start = left[i, POSITION] - position
                    bounds[i, 0] = start + BATCH_HEADER_BYTES
                    bounds[i, 1] = start + left[i, SIZE]
            taken, _ = plausible(bounds, left, left_is_read, taken)
            if taken == 0:
                return batches, behind, payload_bytes, NOT_PLAIN
            size: Any = np.int64(0)
            for i in range(taken):
                size += bounds[i, 1] - bounds[i, 0]
            if payload_bytes + size > most_bytes:
                return batches, behind, payload_bytes, PART_FULL
            parsed, _, code, _ = parse_records(
                data, bounds[:taken], left[:taken], limits, secret, columns, behind
            )
            if code != OK:
                return batches, behind, payload_bytes, LEFT
            records_of = (offsets, states, behind)
            count_records(
                data, bounds[:taken], left[:taken], records_of, counting, (sizes, counters)
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
