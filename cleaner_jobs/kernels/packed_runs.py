"""Kernels that go through compressed batches, some at a time, while the cache holds their records.

Each step is a kernel of its own, told there; whatever is not plain to see here is left to be done
step by step, by `tasks.packed_batches`, which tells what is wrong.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.kernels.batch_comparison import SAME, compare_payloads, sum_heads
from cleaner_jobs.kernels.plain_runs import LEFT, NO_MORE, NOT_PLAIN, PART_FULL, frame_chunk
from cleaner_jobs.kernels.rebuild import (
    GROWTH_BYTES_PER_RECORD,
    KEPT_END,
    KEPT_START,
    rebuild_payloads,
)
from cleaner_jobs.kernels.transactions import flag_aborted, mark_read
from storage.formats.batch_columns import (
    ATTRIBUTES,
    BASE_OFFSET,
    LAST_OFFSET,
    LEGACY,
    MIN_RECORD_BYTES,
    OK,
    RECORDS_COUNT,
    SIZE,
    SLACK_BYTES,
    ByteArray,
    Int64Array,
    parse_records,
)
from storage.formats.batch_header import CODEC_MASK
from storage.formats.batch_kernels import decompress_batches, first_wrong_checksum
from storage.kernels.kernel import allocating_kernel, inlined, kernel
from storage.kernels.xxh3_kernel import digest_between

ALL_DONE, NO_ROOM, NOT_TAKEN, DIFFERENT, CHANGED = range(5)


@inlined
def plausible(bounds: Int64Array, rows: Int64Array, is_read: Any, count: Any) -> tuple[Any, Any]:
    """How many batches, from the first on, have room for their records; and how many those are."""
    records: Any = np.int64(0)
    for i in range(count):
        its = rows[i, RECORDS_COUNT]
        if is_read[i] and its > (bounds[i, 1] - bounds[i, 0]) // MIN_RECORD_BYTES:
            return np.int64(i), records
        records += its
    return np.int64(count), records


@kernel
def filter_batches(
    source: tuple[ByteArray, int, Int64Array, NDArray[np.bool_]],
    decisions: tuple[ByteArray, Int64Array, Int64Array, bool],
    scratch: tuple[ByteArray, int, Int64Array, NDArray[np.uint64]],
    out: tuple[ByteArray, Int64Array, NDArray[np.uint64], Int64Array],
    tools: Any,
) -> tuple[int, int, int]:
    """Decompress batches and put what is kept of them into out, checked against them.

    source: as batches of decompress_batches. decisions: as of compare_payloads. scratch: room for
    what some batches hold, how much of it is used at once, and for bounds and a digest of each
    batch. out: a buffer, and of each batch, filled: results as of rebuild_payloads, the digest of
    what is kept, and what is expected as of compare_payloads. tools: as of payload_kernels.
    Returns how many are done, why it ended, and a detail. ALL_DONE; NO_ROOM in out; NOT_TAKEN: the
    next is to be done step by step; DIFFERENT: what was made of the next is not what was to be
    made, in the detail as of compare_payloads; CHANGED: what it was decompressed to has changed.
    """
    buffer, file_position, rows, is_read = source
    states, first_records, horizons_ms, gives_horizons = decisions
    payload, limit, bounds, digests = scratch
    plain, results, kept_digests, expected = out
    done: Any = np.int64(0)
    at: Any = np.int64(0)
    while done < rows.shape[0]:
        its, its_read = rows[done:], is_read[done:]
        taken, _ = decompress_batches(
            (buffer, file_position, its, its_read),
            (0, 0),
            (payload, limit),
            (bounds, digests),
            tools,
        )
        count, records = plausible(bounds, its, its_read, taken)
        if count == 0:
            return done, NOT_TAKEN, 0
        end = done + count
        room = bounds[count - 1, 1] + GROWTH_BYTES_PER_RECORD * records + SLACK_BYTES
        if room > plain.shape[0] - at:
            return done, NO_ROOM, 0
        target, its_results = plain[at:], results[done:end]
        choice = (states, first_records[done:end], horizons_ms[done:end])
        rebuild_payloads(payload, bounds[:count], its[:count], choice, target, its_results)
        behind: Any = np.int64(0)
        for i in range(count):
            start, stop = its_results[i, KEPT_START], its_results[i, KEPT_END]
            kept_digests[done + i] = digest_between(target, start, stop)
            behind = max(behind, stop)
        wrong, difference = compare_payloads(
            (buffer, file_position, its[:count]),
            (payload, bounds[:count]),
            (*choice, gives_horizons),
            (target, its_results),
            expected[done:end],
        )
        if difference != SAME:
            return done + wrong, DIFFERENT, difference
        for i in range(count):
            if digest_between(payload, bounds[i, 0], bounds[i, 1]) != digests[i]:
                return done + i, CHANGED, 0
            its_results[i, KEPT_START] += at
            its_results[i, KEPT_END] += at
        at += behind
        done = end
    return done, ALL_DONE, 0


@kernel
def _frame_packed(
    source: tuple[int, int, int, int, ByteArray], at: tuple[int, int], rows: Int64Array
) -> tuple[int, int, int]:
    """As frame_plain, the compressed batches of v2. How many records they hold, they claim."""
    count = frame_chunk(source, at, rows)
    size: Any = np.int64(0)
    records: Any = np.int64(0)
    for i in range(count):
        attributes = rows[i, ATTRIBUTES]
        if attributes & LEGACY != 0 or attributes & CODEC_MASK == 0:
            return i, size, records
        size += rows[i, SIZE]
        records += rows[i, RECORDS_COUNT]
    return count, size, records


@allocating_kernel
def scan_packed(
    source: tuple[int, int, int, int, ByteArray],
    at: tuple[int, int],
    part: tuple[int, int, int, int],
    parsing: tuple[Any, Any, Int64Array],
    scratch: tuple[ByteArray, Int64Array, NDArray[np.bool_], Any],
    out: tuple[Int64Array, Any],
) -> tuple[int, int, np.uint64, int, int]:
    """As scan_plain, of a run of compressed batches, which are checked before anything else.

    scratch: a buffer for what some of them hold; bounds, and whether it is read, of as many as out
    has rows; tools as of payload_kernels. out: rows and columns. A batch that is not taken by the
    kernels of its codec, or claims more records than it can hold, ends the run as NOT_PLAIN does.
    """
    _, _, end, _, buffer = source
    position, previous_offset = at
    filled, max_records, first_offset, most_offsets = part
    limits, secret, aborted = parsing
    payload, bounds, is_read, tools = scratch
    rows, columns = out
    every, no_digests = np.zeros(0, np.bool_), np.zeros(0, np.uint64)
    heads = np.uint64(0)
    batches = 0
    while position < end and batches < rows.shape[0]:
        count, size, records = _frame_packed(source, (position, previous_offset), rows[batches:])
        if count == 0:
            return batches, filled, heads, NOT_PLAIN, 0
        its = rows[batches : batches + count]
        if first_offset >= 0 and (
            filled + records > max_records or its[-1, LAST_OFFSET] - first_offset >= most_offsets
        ):
            return batches, filled, heads, PART_FULL, 0
        if records > columns[3].shape[0] - filled:
            return batches, filled, heads, NO_MORE if batches else NOT_PLAIN, 0
        if first_offset < 0:
            first_offset = its[0, BASE_OFFSET]
        flag_aborted(its, aborted)
        mark_read(its, is_read)
        wrong, _ = first_wrong_checksum(buffer, position, its, every)
        if wrong >= 0:
            return batches, filled, heads, LEFT, count
        behind: Any = np.int64(filled)
        done: Any = np.int64(0)
        while done < count:
            left, left_is_read = its[done:], is_read[done:count]
            taken, _ = decompress_batches(
                (buffer, position, left, left_is_read),
                (0, 0),
                (payload, payload.shape[0] - SLACK_BYTES),
                (bounds, no_digests),
                tools,
            )
            taken, _ = plausible(bounds, left, left_is_read, taken)
            if taken == 0:
                return batches, filled, heads, NOT_PLAIN, 0
            behind, _, code, _ = parse_records(
                payload, bounds[:taken], left[:taken], limits, secret, columns, behind
            )
            if code != OK:
                return batches, filled, heads, LEFT, count
            done += taken
        filled = behind
        heads += sum_heads(buffer, 0, size)[0]
        batches += count
        position += size
        previous_offset = its[-1, LAST_OFFSET]
    return batches, filled, heads, NO_MORE, 0
