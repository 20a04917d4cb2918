"""What is done with batches in a buffer once they are framed: where their records are found, what
is decompressed of them, and the errors that say what is wrong with one.

For the readers of windows: that of the rounds, and that of the tables.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.codecs.compression import MAX_DECOMPRESSED_BYTES, DecompressionError, decompress_into
from storage.codecs.payload_kernels import tools_of_thread
from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.formats.batch_columns import (
    ATTRIBUTES,
    BAD_CODEC,
    BAD_MAGIC,
    CHECKSUM,
    LEGACY,
    MIN_RECORD_BYTES,
    POSITION,
    RECORDS_COUNT,
    SIZE,
    SLACK_BYTES,
    ByteArray,
    Int64Array,
    UInt64Array,
    problem_text,
)
from storage.formats.batch_header import BATCH_HEADER_BYTES, CODEC_MASK
from storage.formats.batch_payloads import decompress_batches
from storage.formats.legacy_upgrade import Entries, TakeArray
from storage.kernels.xxh3_kernel import digest_between

PAYLOAD_BYTES = 4 << 20  # decompressed at once, unless a single batch holds more
PLAIN, COMPRESSED, UPGRADED = range(3)  # where the records of a batch are found


def framing_error(path: str, position: int, code: int, detail: int) -> CorruptFileError:
    """What walk_batches found wrong with the batch at a position."""
    unsupported = code in (BAD_MAGIC, BAD_CODEC)
    kind = UnsupportedFormatError if unsupported else CorruptFileError
    return kind(path, position, problem_text(code, detail))


def checksum_error(path: str, row: Int64Array, computed: int) -> CorruptFileError:
    """Of a batch that carries another checksum than the computed one."""
    problem = f"checksum {row[CHECKSUM]:08x} is stored, {computed:08x} computed"
    return CorruptFileError(path, int(row[POSITION]), problem)


def impossible_counts(rows: Int64Array, bounds: Int64Array) -> NDArray[np.bool_]:
    """Which batches claim more records than their bytes, between bounds, can hold."""
    found: NDArray[np.bool_] = (
        rows[:, RECORDS_COUNT] > (bounds[:, 1] - bounds[:, 0]) // MIN_RECORD_BYTES
    )
    return found


def count_error(path: str, row: Int64Array) -> CorruptFileError:
    """Of one of them."""
    problem = f"records count {row[RECORDS_COUNT]} is more than the batch has room for"
    return CorruptFileError(path, int(row[POSITION]), problem)


def runs_by_place(rows: Int64Array) -> Iterator[tuple[int, int, int]]:
    """Runs of batches whose records are found in one and the same buffer: first, end, and whether
    it is PLAIN, COMPRESSED or UPGRADED."""
    attributes = rows[:, ATTRIBUTES]
    places = np.where(attributes & CODEC_MASK != 0, COMPRESSED, PLAIN)
    places[attributes & LEGACY != 0] = UPGRADED
    changes = np.flatnonzero(places[1:] != places[:-1]) + 1
    edges = [0, *changes.tolist(), len(places)] if len(places) else []
    for first, end in pairwise(edges):
        yield first, end, int(places[first])


def fill_plain_bounds(rows: Int64Array, file_position: int, bounds: Int64Array) -> None:
    """Where the records of plain batches stand in a buffer. bounds: (batches, 2)."""
    bounds[:, 1] = rows[:, POSITION] - file_position
    bounds[:, 0] = bounds[:, 1] + BATCH_HEADER_BYTES
    bounds[:, 1] += rows[:, SIZE]


class Decompressed(NamedTuple):
    """How far batches were decompressed, and where their records stand."""

    done: int  # from the first batch on
    buffer: ByteArray
    problem: CorruptFileError | None  # what is wrong with batch `done`


def decompress(
    entries: Entries,
    is_read: NDArray[np.bool_],
    found: tuple[Int64Array, UInt64Array],
    take: TakeArray,
) -> Decompressed:
    """Decompress one batch behind the other, as long as there is room: one at least, unless it is
    damaged. Of a batch that is not read nothing is decompressed.

    found: filled in, where the records of each stand, and, unless it is empty, a digest of each,
    taken while nothing else has happened to it. take: gives the buffer `payload`, which grows where
    one batch is larger.
    """
    room = PAYLOAD_BYTES
    while True:
        out = take("payload", room + SLACK_BYTES)
        room = len(out) - SLACK_BYTES
        done, problem = _fill(entries, is_read, found, out)
        if done or problem is not None:
            return Decompressed(done, out, problem)
        if room >= MAX_DECOMPRESSED_BYTES:
            text = f"the batch decompresses to more than {MAX_DECOMPRESSED_BYTES} bytes"
            position = int(entries.rows[0, POSITION])
            return Decompressed(0, out, CorruptFileError(entries.path, position, text))
        room = min(2 * room, MAX_DECOMPRESSED_BYTES)


def _fill(
    entries: Entries,
    is_read: NDArray[np.bool_],
    found: tuple[Int64Array, UInt64Array],
    out: ByteArray,
) -> tuple[int, CorruptFileError | None]:
    """How many found room, and what is wrong with the next."""
    bounds, digests = found
    limit, done, at = len(out) - SLACK_BYTES, 0, 0
    while True:
        done, at = decompress_batches(
            (entries.buffer, entries.file_position, entries.rows, is_read),
            (done, at),
            (out, limit),
            found,
            tools_of_thread(),
        )
        if done == len(entries.rows):
            return done, None
        try:  # what the kernels do not take
            end = _decompress_one(entries, done, out[:limit], at)
        except CorruptFileError as error:
            return done, error
        if end is None:
            return done, None
        bounds[done] = at, end
        if len(digests):
            digests[done] = digest_between(out, at, end)
        done, at = done + 1, end


def _decompress_one(entries: Entries, number: int, room: ByteArray, at: int) -> int | None:
    position, size, attributes = entries.rows[number, [POSITION, SIZE, ATTRIBUTES]].tolist()
    start = position - entries.file_position
    payload = entries.buffer.data[start + BATCH_HEADER_BYTES : start + size]
    try:
        return decompress_into(attributes & CODEC_MASK, payload, room, at)
    except DecompressionError as error:
        raise CorruptFileError(entries.path, position, str(error)) from error
