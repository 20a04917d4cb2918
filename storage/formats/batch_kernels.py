"""Kernels for the bytes of batches: write headers, verify and set checksums, decompress payloads.

Checksums of record batches F-4.2, of legacy messages F-7.1. Headers F-4.1. Source: Kafka,
DefaultRecordBatch.writeHeader.
"""

from typing import (
    Any,
    NamedTuple,
)

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from storage.codecs.payload_kernels import decompress_payload
from storage.formats.batch_columns import (
    ATTRIBUTES,
    CHECKSUM,
    LEGACY,
    POSITION,
    SIZE,
    ByteArray,
    Int64Array,
)
from storage.formats.batch_header import (
    ATTRIBUTES_AT,
    BASE_OFFSET_AT,
    BASE_SEQUENCE_AT,
    BASE_TIMESTAMP_AT,
    BATCH_HEADER_BYTES,
    CHECKED_AT,
    CODEC_MASK,
    CRC_AT,
    LAST_OFFSET_DELTA_AT,
    LEADER_EPOCH_AT,
    LENGTH_AT,
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
)
from storage.kernels.crc_kernels import crc32_between, crc32c_between
from storage.kernels.kernel import inlined, kernel
from storage.kernels.memory_access import store_be_int16, store_be_int32, store_be_int64
from storage.kernels.xxh3_kernel import digest_between


@inlined
def write_new_header(
    out: ByteArray, place: Any, attributes: Any, offsets: Any, times: Any, count: Any
) -> None:
    """Write the header of a batch that has no producer and no leader epoch, all but its checksum.

    place: where the batch begins and ends in out. offsets: of its first and last record. times:
    base and max timestamp.
    """
    at, end = place
    store_be_int64(out, at + BASE_OFFSET_AT, offsets[0])
    store_be_int32(out, at + LENGTH_AT, end - at - LOG_OVERHEAD_BYTES)
    store_be_int32(out, at + LEADER_EPOCH_AT, NO_LEADER_EPOCH)
    out[at + MAGIC_AT] = np.uint8(MAGIC)
    store_be_int16(out, at + ATTRIBUTES_AT, attributes)
    store_be_int32(out, at + LAST_OFFSET_DELTA_AT, offsets[1] - offsets[0])
    store_be_int64(out, at + BASE_TIMESTAMP_AT, times[0])
    store_be_int64(out, at + MAX_TIMESTAMP_AT, times[1])
    store_be_int64(out, at + PRODUCER_ID_AT, NO_PRODUCER_ID)
    store_be_int16(out, at + PRODUCER_EPOCH_AT, NO_PRODUCER_EPOCH)
    store_be_int32(out, at + BASE_SEQUENCE_AT, NO_SEQUENCE)
    store_be_int32(out, at + RECORDS_COUNT_AT, count)


@kernel
def first_wrong_checksum(
    buffer: ByteArray, origin: int, rows: Int64Array, chosen: NDArray[np.bool_]
) -> tuple[int, int]:
    """The first batch with another checksum than the one that it carries, and that checksum.

    buffer: of the batches, whose first byte is at `origin` of their file. chosen: which batches are
    looked at; an empty array: all. Returns -1 and 0 where all of those are as they should be.
    """
    for i in range(rows.shape[0]):
        if chosen.shape[0] != 0 and not chosen[i]:
            continue
        start: Any = rows[i, POSITION] - origin
        end: Any = start + rows[i, SIZE]
        computed: Any = np.int64(0)
        if rows[i, ATTRIBUTES] & LEGACY != 0:
            computed = np.int64(crc32_between(buffer, start + MAGIC_AT, end))
        else:
            computed = np.int64(crc32c_between(buffer, start + CHECKED_AT, end))
        if computed != rows[i, CHECKSUM]:
            return i, computed
    return -1, 0


@kernel
def seal_batches(out: ByteArray, spans: Int64Array) -> None:
    """spans: where each of the batches begins and ends in out."""
    for i in range(spans.shape[0]):
        start, end = spans[i, 0], spans[i, 1]
        store_be_int32(out, start + CRC_AT, crc32c_between(out, start + CHECKED_AT, end))


UInt64Array = npt.NDArray[np.uint64]


class PackedBatches(NamedTuple):
    """Compressed batches in a buffer."""

    buffer: ByteArray
    file_position: int  # of the first byte of the buffer
    rows: Int64Array
    is_read: npt.NDArray[np.bool_]  # of each batch: whether it is decompressed at all


@kernel
def decompress_batches(
    batches: PackedBatches,
    progress: tuple[int, int],
    out: tuple[ByteArray, int],
    results: tuple[Int64Array, UInt64Array],
    tools: Any,
) -> tuple[int, int]:
    """Decompress batches of v2, one after another, until one is not taken by the kernels.

    progress: how many are done already, and the end of what they
    were decompressed to. out: a buffer, and how much of it there is room in. results: filled in for
    each, its bounds in out, and a digest of that, unless no digests are asked for (an empty array).
    tools: see payload_kernels. Returns progress as it is then.
    """
    buffer, file_position, rows, is_read = batches
    done, at = progress
    target, limit = out
    bounds, digests = results
    while done < rows.shape[0]:
        end: Any = np.int64(at)
        if is_read[done]:
            start = rows[done, POSITION] - file_position
            span = (start + BATCH_HEADER_BYTES, start + rows[done, SIZE])
            codec = rows[done, ATTRIBUTES] & CODEC_MASK
            end = np.int64(
                decompress_payload(codec, buffer, span, target, (np.int64(at), limit), tools)
            )
            if end < 0:
                break
        bounds[done, 0] = at
        bounds[done, 1] = end
        if digests.shape[0] > 0:
            digests[done] = digest_between(target, at, end)
        at = end
        done += 1
    return done, at
