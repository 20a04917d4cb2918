"""Kernels that scan runs of batches of format v2, a chunk of a file at a time.

A chunk is read, checked and parsed while the processor's cache holds it, by the kernels of single
steps, called here one after another. Where one of them finds anything wrong, or batches of another
kind, nothing of the chunk counts. Then Python goes through the same batches step by step, which is
also where every problem gets its words. Any other reader of chunks uses `frame_run`, too.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.kernels.batch_comparison import sum_heads
from cleaner_jobs.kernels.transaction_kernels import flag_aborted, mark_read
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
    RecordLimits,
    parse_records,
    walk_batches,
)
from storage.formats.batch_header import BATCH_HEADER_BYTES, CODEC_MASK, CONTROL
from storage.formats.batch_kernels import (
    PackedBatches,
    decompress_batches,
    first_wrong_checksum,
)
from storage.formats.batch_windows import Place
from storage.kernels.kernel import allocating_kernel, inlined, kernel
from storage.kernels.native_calls import read_at
from storage.kernels.varint_kernel import read_varint, read_varlong

# Why a run ended: there are no more batches, or no room for more; a part is full; the next batch is
# of another kind; the batches read last are to be gone through step by step, from the same memory.
NO_MORE, PART_FULL, NOT_TAKEN, LEFT = range(4)

V0_OVERHEAD_BYTES = 14  # of a message: checksum, magic, attributes, two lengths
V1_OVERHEAD_BYTES = 22  # a timestamp more


class Chunks(NamedTuple):
    """An open segment that kernels read in chunks."""

    pread: int  # the address of the C function
    descriptor: int  # of the segment
    end: int  # position in the file, exclusive
    base_offset: int  # of the segment
    buffer: ByteArray  # for a chunk, with SLACK_BYTES after it


class PartSoFar(NamedTuple):
    """What the part at work holds, and may hold."""

    records: int
    max_records: int
    first_offset: int  # -1: it holds no batch
    max_offsets: int


class Parsing(NamedTuple):
    """What records are parsed by."""

    limits: RecordLimits
    secret: Any  # see parse_records
    aborted: Int64Array  # ranges as in flag_aborted


class Scratch(NamedTuple):
    """Memory that a kernel works in, with room for as many batches as a run may have."""

    payload: ByteArray  # for what some batches hold, decompressed
    bounds: Int64Array  # (batches, 2)
    is_read: NDArray[np.bool_]
    tools: Any  # see payload_kernels


@kernel
def frame_chunk(source: Chunks, at: Place, rows: Int64Array) -> int:
    """Read the next chunk of a segment and frame its batches, of any kind.

    rows: filled from the top. Returns how many batches there are that a segment can hold.
    """
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


@kernel
def frame_run(source: Chunks, at: Place, rows: Int64Array, is_packed: bool) -> tuple[int, int, int]:
    """Read the next chunk and frame the batches of one kind at its start.

    is_packed: compressed ones, which claim a number of records; else plain ones, which have room
    for theirs. Returns how many batches, their bytes, and their records.
    """
    count = frame_chunk(source, at, rows)
    size: Any = np.int64(0)
    records: Any = np.int64(0)
    for i in range(count):
        attributes = rows[i, ATTRIBUTES]
        if attributes & LEGACY != 0 or (attributes & CODEC_MASK != 0) != is_packed:
            return i, size, records
        held = rows[i, RECORDS_COUNT]
        if not is_packed and held > (rows[i, SIZE] - BATCH_HEADER_BYTES) // MIN_RECORD_BYTES:
            return i, size, records
        size += rows[i, SIZE]
        records += held
    return count, size, records


@inlined
def plausible(bounds: Int64Array, rows: Int64Array, is_read: Any, count: Any) -> tuple[Any, Any]:
    """Return how many first batches have room for their records, and how many records."""
    records: Any = np.int64(0)
    for i in range(count):
        its = rows[i, RECORDS_COUNT]
        if is_read[i] and its > (bounds[i, 1] - bounds[i, 0]) // MIN_RECORD_BYTES:
            return np.int64(i), records
        records += its
    return np.int64(count), records


@inlined
def bound_plain(rows: Int64Array, position: Any, count: Any, bounds: Int64Array) -> None:
    """Fill in where the records of plain batches stand in a chunk that begins at position."""
    for i in range(count):
        start = rows[i, POSITION] - position
        bounds[i, 0] = start + BATCH_HEADER_BYTES
        bounds[i, 1] = start + rows[i, SIZE]


@allocating_kernel
def scan_run(
    source: Chunks,
    at: Place,
    part: PartSoFar,
    parsing: Parsing,
    scratch: Scratch,
    rows: Int64Array,
    columns: Any,
    is_packed: bool,
) -> tuple[int, int, np.uint64, int, int]:
    """Parse the records of a run of batches of one kind, and check the checksums.

    Compressed batches are checked before anything is decompressed; plain ones after their keys were
    hashed: a bit that flips before that is noticed, too. rows: of the batches, filled from the top.
    columns: see parse_records, filled after the records that the part holds; with room for those
    of one chunk at least.
    Returns how many batches are done, how many records the part holds then, the batches' sum as of
    sum_heads, why the run ended, and of how many batches more there are rows, if it is LEFT. A
    compressed batch that the kernels of its codec do not take, or that claims more records than it
    can hold, ends the run as NOT_TAKEN.
    """
    _, _, end, _, buffer = source
    position, previous_offset = at
    filled, max_records, first_offset, max_offsets = part
    limits, secret, aborted = parsing
    payload, bounds, is_read, tools = scratch
    every, no_digests = np.zeros(0, np.bool_), np.zeros(0, np.uint64)
    heads = np.uint64(0)
    batches = 0
    while position < end and batches < rows.shape[0]:
        place = Place(position, previous_offset)
        count, size, records = frame_run(source, place, rows[batches:], is_packed)
        if count == 0:
            return batches, filled, heads, NOT_TAKEN, 0
        its = rows[batches : batches + count]
        if first_offset >= 0 and (
            filled + records > max_records or its[-1, LAST_OFFSET] - first_offset >= max_offsets
        ):
            return batches, filled, heads, PART_FULL, 0
        if records > columns[3].shape[0] - filled:
            return batches, filled, heads, NO_MORE if batches else NOT_TAKEN, 0
        if first_offset < 0:
            first_offset = its[0, BASE_OFFSET]
        flag_aborted(its, aborted)
        behind: Any = np.int64(filled)
        code: Any = np.int64(OK)
        if is_packed:
            wrong, _ = first_wrong_checksum(buffer, position, its, every)
            if wrong >= 0:
                return batches, filled, heads, LEFT, count
            mark_read(its, is_read)
            done: Any = np.int64(0)
            while done < count:
                left, left_is_read = its[done:], is_read[done:count]
                taken, _ = decompress_batches(
                    PackedBatches(buffer, position, left, left_is_read),
                    (0, 0),
                    (payload, payload.shape[0] - SLACK_BYTES),
                    (bounds, no_digests),
                    tools,
                )
                taken, _ = plausible(bounds, left, left_is_read, taken)
                if taken == 0:
                    return batches, filled, heads, NOT_TAKEN, 0
                behind, _, code, _ = parse_records(
                    payload, bounds[:taken], left[:taken], limits, secret, columns, behind
                )
                if code != OK:
                    return batches, filled, heads, LEFT, count
                done += taken
        else:
            bound_plain(its, position, count, bounds)
            behind, _, code, _ = parse_records(
                buffer, bounds[:count], its, limits, secret, columns, filled
            )
            if code != OK:
                return batches, filled, heads, LEFT, count
            wrong, _ = first_wrong_checksum(buffer, position, its, every)
            if wrong >= 0:
                return batches, filled, heads, LEFT, count
        filled = behind
        heads += sum_heads(buffer, 0, size)[0]
        batches += count
        position += size
        previous_offset = its[-1, LAST_OFFSET]
    return batches, filled, heads, NO_MORE, 0


@inlined
def _message_bytes(payloads: ByteArray, at: int, attributes: int) -> int:
    """Give the size of the message of v0 or v1 that an upgraded record was made of."""
    _, at = read_varlong(payloads, at + 1)  # after the attributes: the timestamp
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

    payloads, bounds, rows: see `parse_records`, which has found nothing wrong. Records of batches
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
