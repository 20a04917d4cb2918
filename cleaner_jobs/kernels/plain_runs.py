"""Kernels that go through runs of plain batches (v2, not compressed), a chunk of a file at a time.

A chunk is read, worked on and checked while the processor's cache holds it. What happens to each is
what the kernels of single steps do, called here one after another; where one of them finds anything
wrong, or anything but plain batches, nothing of the chunk counts. Then it is gone through once more
step by step, from Python, which is also where every problem gets its words.
"""

from typing import Any

import numpy as np

from cleaner_jobs.kernels.batch_comparison import SAME, compare_batches, sum_heads
from cleaner_jobs.kernels.kept_batches import COPY, DROP, decide_batches
from cleaner_jobs.kernels.rebuild import GROWTH_BYTES_PER_RECORD, rewrite_batches
from cleaner_jobs.kernels.transactions import flag_aborted, flag_discardable
from storage.file_names import MAX_RELATIVE_OFFSET
from storage.formats.batch_columns import (
    ATTRIBUTES,
    BASE_OFFSET,
    LAST_OFFSET,
    LEGACY,
    MAGIC_ZERO,
    MIN_RECORD_BYTES,
    OK,
    POSITION,
    RECORDS_COUNT,
    SIZE,
    SLACK_BYTES,
    TXN_FLAGS,
    UNREAD,
    ByteArray,
    Int64Array,
    parse_records,
    walk_batches,
)
from storage.formats.batch_header import BATCH_HEADER_BYTES, CODEC_MASK, CONTROL
from storage.formats.batch_kernels import first_wrong_checksum, seal_batches
from storage.kernels.kernel import allocating_kernel, inlined, kernel
from storage.kernels.native_calls import read_at
from storage.kernels.varint_kernel import read_varint, read_varlong

# why a run ended: there is no more, or no room for more; a part is full; the next batch is not
# plain; the batches read last are to be gone through step by step, from the same memory
NO_MORE, PART_FULL, NOT_PLAIN, LEFT = range(4)


@kernel
def frame_plain(
    source: tuple[int, int, int, int, ByteArray], at: tuple[int, int], rows: Int64Array
) -> tuple[int, int, int]:
    """Read the next chunk of a segment and frame the plain batches at its start.

    source: the address of pread, a file descriptor, where to stop in the file, the segment's base
    offset, a buffer with SLACK_BYTES behind the chunk. at: a position, and the last offset before
    it. rows: filled from the top. Returns how many batches, their bytes, and their records.
    """
    count = frame_chunk(source, at, rows)
    size: Any = np.int64(0)
    records: Any = np.int64(0)
    for i in range(count):
        if rows[i, ATTRIBUTES] & (CODEC_MASK | LEGACY) != 0:
            return i, size, records
        if rows[i, RECORDS_COUNT] > (rows[i, SIZE] - BATCH_HEADER_BYTES) // MIN_RECORD_BYTES:
            return i, size, records
        size += rows[i, SIZE]
        records += rows[i, RECORDS_COUNT]
    return count, size, records


@kernel
def frame_chunk(
    source: tuple[int, int, int, int, ByteArray], at: tuple[int, int], rows: Int64Array
) -> int:
    """As frame_plain, batches of any kind: how many there are that a segment can hold."""
    read, descriptor, end, base_offset, buffer = source
    position, previous_offset = at
    wanted = min(np.int64(buffer.shape[0] - SLACK_BYTES), np.int64(end - position))
    got = read_at(read, np.int64(descriptor), np.int64(position), buffer, wanted)
    if got <= 0 or got > wanted:
        return 0
    count, _, _, _ = walk_batches(buffer, got, position, previous_offset, rows)
    for i in range(count):
        if rows[i, LAST_OFFSET] - base_offset > MAX_RELATIVE_OFFSET:
            return i
    return int(count)


@allocating_kernel
def scan_plain(
    source: tuple[int, int, int, int, ByteArray],
    at: tuple[int, int],
    part: tuple[int, int, int, int],
    parsing: tuple[Any, Any, Int64Array],
    out: tuple[Int64Array, Int64Array, Any],
) -> tuple[int, int, np.uint64, int, int]:
    """Parse the records of a run of plain batches, and check the checksums after that.

    source, at: as of frame_plain. part: how many records the part at work holds, and how many at
    most; its first offset (-1: it holds no batch), and how many offsets at most. parsing: limits
    and secret as of parse_records, ranges as of flag_aborted. out: rows and bounds (as many) of
    batches, filled from the top, and columns as of parse_records, filled behind the records that
    the part holds; with room for the records of one chunk at least.
    Returns how many batches are done, how many records the part holds then, the batches' sum as of
    sum_heads, why the run ended, and of how many batches more there are rows, if it is LEFT.
    """
    _, _, end, _, buffer = source
    position, previous_offset = at
    filled, max_records, first_offset, most_offsets = part
    limits, secret, aborted = parsing
    rows, bounds, columns = out
    every = np.zeros(0, np.bool_)
    heads = np.uint64(0)
    batches = 0
    while position < end and batches < rows.shape[0]:
        count, size, records = frame_plain(source, (position, previous_offset), rows[batches:])
        if count == 0:
            return batches, filled, heads, NOT_PLAIN, 0
        its = rows[batches : batches + count]
        if first_offset >= 0 and (
            filled + records > max_records or its[-1, LAST_OFFSET] - first_offset >= most_offsets
        ):
            return batches, filled, heads, PART_FULL, 0
        if records > columns[3].shape[0] - filled:
            return batches, filled, heads, NO_MORE, 0
        if first_offset < 0:
            first_offset = its[0, BASE_OFFSET]
        flag_aborted(its, aborted)
        its_bounds = bounds[batches : batches + count]
        for i in range(count):
            its_bounds[i, 1] = its[i, POSITION] - position + its[i, SIZE]
            its_bounds[i, 0] = its[i, POSITION] - position + BATCH_HEADER_BYTES
        behind, _, code, _ = parse_records(buffer, its_bounds, its, limits, secret, columns, filled)
        if code != OK:
            return batches, filled, heads, LEFT, count
        # after the keys were hashed: a bit that flips before that is noticed, too
        wrong, _ = first_wrong_checksum(buffer, position, its, every)
        if wrong >= 0:
            return batches, filled, heads, LEFT, count
        filled = behind
        heads += sum_heads(buffer, 0, size)[0]
        batches += count
        position += size
        previous_offset = its[-1, LAST_OFFSET]
    return batches, filled, heads, NO_MORE, 0


@allocating_kernel
def rewrite_plain(
    source: tuple[int, int, int, int, ByteArray],
    at: tuple[int, int],
    states: ByteArray,
    rules: tuple[Any, int, int, Int64Array],
    out: tuple[ByteArray, Any, Any],
) -> tuple[int, int, np.uint64, int, int, int]:
    """Write what becomes of a run of plain batches, and check it against them meanwhile.

    source, at: as of frame_plain. states: of the records from there on, perhaps more. rules: kept
    batches as of decide_batches, the time now, the horizon of this round, base offsets as of
    flag_discardable. out: a buffer, written from its start; of batches, filled from the top: rows,
    actions and kept records; and room for as many to work with: spans, places, expectations.
    Returns how many batches are done, the bytes written, the source's sum as of sum_heads, why the
    run ended, of how many batches more there are rows, if it is LEFT, and how many of those that
    were rebuilt Kafka's builder refuses.
    """
    _, _, end, _, buffer = source
    position, previous_offset = at
    kept_batches, now_ms, horizon_ms, discardable = rules
    target, (rows, actions, kept), (spans, places, expected) = out
    first: Any = np.int64(0)  # record of the next batch, among the states
    written = 0
    heads = np.uint64(0)
    refused = 0
    batches = 0
    while position < end and batches < rows.shape[0]:
        count, size, held = frame_plain(source, (position, previous_offset), rows[batches:])
        if count == 0 or held > states.shape[0] - first:
            return batches, written, heads, NOT_PLAIN, 0, refused
        if target.shape[0] - written < size + GROWTH_BYTES_PER_RECORD * held + SLACK_BYTES:
            return batches, written, heads, NO_MORE, 0, refused
        its = rows[batches : batches + count]
        flag_discardable(its, discardable)
        its_actions = actions[batches : batches + count]
        its_states = states[first : first + held]
        decided = (its_actions, kept[batches : batches + count], its_states)
        decide_batches(its, its_states, kept_batches, now_ms, its_actions, decided[1])
        places[:count] = 0
        its_out = target[written:]
        length, fresh, stopped, refused_here = rewrite_batches(
            (buffer, buffer[:0], buffer[:0]),
            position,
            (its, places[:count]),
            decided,
            horizon_ms,
            its_out,
            spans,
        )
        if stopped >= 0:
            return batches, written, heads, NOT_PLAIN, 0, refused
        seal_batches(its_out, spans[:fresh])
        expected[:count] = 0
        _, difference = compare_batches(
            (buffer, buffer[:0], position, its),
            (its_actions, its_states, horizon_ms),
            (its_out, length),
            expected[:count],
        )
        anew = (its_actions != DROP) & (its_actions != COPY)
        wrong, _ = first_wrong_checksum(buffer, position, its, anew)
        if difference != SAME or wrong >= 0:
            return batches, written, heads, LEFT, count, refused
        heads += sum_heads(buffer, 0, size)[0]
        written += length
        refused += refused_here
        first += held
        batches += count
        position += size
        previous_offset = its[-1, LAST_OFFSET]
    return batches, written, heads, NO_MORE, 0, refused


V0_OVERHEAD_BYTES = 14  # of a message: checksum, magic, attributes, two lengths
V1_OVERHEAD_BYTES = 22  # a timestamp more


@inlined
def _message_bytes(payloads: ByteArray, at: int, attributes: int) -> int:
    """Give the size of the message of v0 or v1 that an upgraded record was made of."""
    _, at = read_varlong(payloads, at + 1)  # behind the attributes: the timestamp
    _, at = read_varint(payloads, at)  # the offset
    key_length, at = read_varint(payloads, at)
    key_length = max(key_length, 0)
    value_length, _ = read_varint(payloads, at + key_length)
    overhead = V0_OVERHEAD_BYTES if attributes & MAGIC_ZERO != 0 else V1_OVERHEAD_BYTES
    return int(overhead + key_length + max(value_length, 0))


@kernel
def first_above(
    payloads: ByteArray, bounds: Int64Array, rows: Int64Array, limit: int
) -> tuple[int, int, int]:
    """Return batch, number and size of the first record that is above the limit; (-1, 0, 0): none.

    payloads, bounds, rows: as of `parse_records`, which has found nothing wrong. Records of batches
    that are not compressed have no limit, nor those that nobody reads (C-10.3).
    """
    for i in range(rows.shape[0]):
        attributes = rows[i, ATTRIBUTES]
        is_unread = rows[i, TXN_FLAGS] & UNREAD == UNREAD and attributes & CONTROL == 0
        if attributes & CODEC_MASK == 0 or is_unread:
            continue
        at = bounds[i, 0]
        for j in range(rows[i, RECORDS_COUNT]):
            length, at = read_varint(payloads, at)
            size = length
            if attributes & LEGACY != 0:
                size = _message_bytes(payloads, at, attributes)
            if size > limit:
                return i, j, size
            at += length
    return -1, 0, 0
