"""Windows of a log file: whole batches in a buffer, checked, with what their records are read from.

The one reader of batches for rounds, tables and the inspection. A window is as many whole batches
as fit a buffer of some MiB; a batch larger than that gets a window of its own. Compressed batches
are decompressed into a second buffer, a run of batches at a time; the records of legacy messages
are upgraded into a third one, and a window ends where that is full. Source of the framing:
log-format F-3; of the growth: compaction C-12.6.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.codecs.compression import MAX_DECOMPRESSED_BYTES, DecompressionError, decompress_into
from storage.codecs.payload_kernels import CODECS_OF_KERNELS, tools_of_thread
from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.formats.batch_columns import (
    ATTRIBUTES,
    BAD_CODEC,
    BAD_MAGIC,
    BATCH_COLUMNS,
    CHECKSUM,
    LAST_OFFSET,
    LEGACY,
    MIN_RECORD_BYTES,
    OK,
    POSITION,
    RECORDS_COUNT,
    RECORDS_END,
    RECORDS_START,
    SIZE,
    SLACK_BYTES,
    ByteArray,
    Int64Array,
    UInt64Array,
    problem_text,
    walk_batches,
)
from storage.formats.batch_header import BATCH_HEADER_BYTES, CODEC_MASK, FRAME_BYTES, entry_bytes
from storage.formats.batch_kernels import (
    PackedBatches,
    decompress_batches,
)
from storage.formats.legacy_upgrade import FramedEntries, TakeArray, has_legacy, upgrade
from storage.kernels.xxh3_kernel import digest_between

WINDOW_BYTES = 4 << 20  # more would not stay in the cache between reading and checking
LEGACY_WINDOW_BYTES = 1 << 20  # after legacy messages: a row for each takes as much as it does
WINDOW_BATCHES = 1 << 16
PAYLOAD_BYTES = 4 << 20  # decompressed at once, unless a single batch holds more
PLAIN, COMPRESSED, UPGRADED = range(3)  # where the records of a batch are found

NO_RECORDS: ByteArray = np.empty(0, np.uint8)
NO_DIGESTS: UInt64Array = np.empty(0, np.uint64)

BoolArray = NDArray[np.bool_]


class Buffers:
    """Arrays by name, kept from one use to the next, since fresh pages cost as much as the work.

    They only ever grow; their sizes are bounded by what is worked on at once, not by the size of a
    log. What an array holds is lost when it is asked for again in a larger size.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[Any]] = {}

    def array(self, name: str, length: int, dtype: Any = np.uint8, width: int = 0) -> NDArray[Any]:
        """Return at least `length` elements, or rows of that width, for the owner alone."""
        held = self._arrays.get(name)
        if held is None or held.shape[0] < length:
            room = self._room(length, 0 if held is None else held.shape[0])
            self._arrays.pop(name, None)  # before the new one is made, so that both never stand
            held = np.empty((room, width) if width else room, dtype)
            self._arrays[name] = held
        return held

    def keep(
        self, name: str, length: int, used: int, dtype: Any = np.uint8, width: int = 0
    ) -> NDArray[Any]:
        """Return an array as `array` does, with its first `used` elements where it has to grow."""
        held = self._arrays.get(name)
        if held is None or held.shape[0] >= length or not used:
            return self.array(name, length, dtype, width)
        room = self._room(length, held.shape[0])
        grown = np.empty((room, width) if width else room, dtype)
        grown[:used] = held[:used]
        self._arrays[name] = grown
        return grown

    def _room(self, length: int, held: int) -> int:
        """How long an array is made where one of length `held` is too short: growth is rare."""
        return max(length, held * 5 // 4)


class Place(NamedTuple):
    """The position at which the next batch of a segment begins."""

    position: int
    previous_offset: int  # the last one before it


def next_place(row: Int64Array) -> Place:
    """Return where the batch after that of a row begins."""
    return Place(int(row[POSITION] + row[SIZE]), int(row[LAST_OFFSET]))


class Window(NamedTuple):
    """Batches in a buffer that the next window overwrites."""

    path: str
    buffer: ByteArray
    file_position: int  # of buffer[0]
    rows: Int64Array  # (batches, BATCH_COLUMNS)
    upgraded: ByteArray = NO_RECORDS  # the records of legacy batches
    problem: CorruptFileError | None = None  # what is wrong with the legacy batch after them

    def entries(self, first: int, end: int) -> FramedEntries:
        """Return some of its batches, as what decompresses and upgrades takes them."""
        return FramedEntries(self.path, self.buffer, self.file_position, self.rows[first:end])

    def batches(self) -> memoryview:
        """The bytes of all batches of the window."""
        end = int(self.rows[-1, POSITION] + self.rows[-1, SIZE]) - self.file_position
        return self.buffer.data[:end]

    def ends_plain(self) -> bool:
        """Whether its last batch is v2 and not compressed, and so perhaps the next one."""
        return not self.rows[-1, ATTRIBUTES] & (CODEC_MASK | LEGACY)

    def ends_packed(self) -> bool:
        """Whether its last batch is compressed by a codec of which kernels take most batches."""
        attributes = int(self.rows[-1, ATTRIBUTES])
        return not attributes & LEGACY and attributes & CODEC_MASK in CODECS_OF_KERNELS

    def next_place(self) -> Place:
        """Return where the next batch begins."""
        return next_place(self.rows[-1])


class WindowSource(NamedTuple):
    """A file as windows are read of it."""

    path: str
    read_into: Callable[[memoryview, int], int]  # from a position; how many, fewer at its end
    size_bytes: Callable[[], int] | None = None  # None: it ends where the windows are to end


class Windows:
    """Reads windows of a file, one after the other, all into the same buffers."""

    def __init__(self, source: WindowSource, buffers: Buffers) -> None:
        self._source, self._buffers = source, buffers
        self._window_bytes = WINDOW_BYTES

    def window(self, at: Place, end: int) -> Window:
        """Return the batches from a place on, which is below end.

        Raise CorruptFileError where the first of them is damaged, or where end cuts it. A legacy
        batch is damaged in a second way that is found late: then it is the problem of the window.
        """
        position, previous_offset = at
        rows = self._buffers.array("rows", WINDOW_BATCHES, np.int64, BATCH_COLUMNS)[:WINDOW_BATCHES]
        window_bytes = self._window_bytes
        while True:
            wanted = min(window_bytes, end - position)
            buffer = self._buffers.array("window", max(wanted, WINDOW_BYTES) + SLACK_BYTES)
            self._read(buffer, position, wanted)
            count, _, code, detail = walk_batches(buffer, wanted, position, previous_offset, rows)
            if count:
                break
            if code != OK:
                raise framing_error(self._source.path, position, code, detail)
            window_bytes = self._larger_window(buffer, position, wanted, end)
        window = Window(
            path=self._source.path, buffer=buffer, file_position=position, rows=rows[:count]
        )
        if has_legacy(window.rows):
            entries = window.entries(0, count)
            done, records, problem = upgrade(entries, previous_offset, self._buffers.array)
            window = window._replace(rows=window.rows[:done], upgraded=records, problem=problem)
            self._window_bytes = min(WINDOW_BYTES, LEGACY_WINDOW_BYTES)
        return window

    def _read(self, buffer: ByteArray, position: int, wanted: int) -> None:
        got = self._source.read_into(buffer.data[:wanted], position)
        if got < wanted:
            problem = f"the file ends here, {wanted - got} bytes before its listed size"
            raise CorruptFileError(self._source.path, position + got, problem)

    def _larger_window(self, buffer: ByteArray, position: int, got: int, end: int) -> int:
        """The size of the batch at position, which did not fit; an error where it cannot end."""
        left = end - position
        size = entry_bytes(buffer) if got >= FRAME_BYTES else FRAME_BYTES
        if size > left:
            size_bytes = self._source.size_bytes
            if size_bytes is not None and end < size_bytes():
                problem = f"the offset index puts the start of a batch inside this one, at {end}"
            else:
                problem = f"a batch of {size} bytes or more is cut short, {left} are left"
            raise CorruptFileError(self._source.path, position, problem)
        return size


class Payloads(NamedTuple):
    """The records of batches first:end of a window, decompressed if need be."""

    first: int
    end: int
    buffer: ByteArray
    bounds: Int64Array  # (end - first, 2): where each batch's records stand in buffer
    digests: UInt64Array = NO_DIGESTS  # of what was decompressed, at once, if they are asked for
    problem: CorruptFileError | None = None  # what is wrong with batch `end`, the last that is seen


def payloads_of(
    window: Window, is_read: BoolArray, buffers: Buffers, digested: bool = False
) -> Iterator[Payloads]:
    """Yield the records of the batches of a window, in runs that share a buffer.

    The last run ends at a damaged batch, which is its problem. is_read: of which batches records
    are decompressed and their counts are checked.
    """
    for first, end, place in runs_by_place(window.rows):
        while first < end:
            run = _payloads(window, (first, end, place), is_read, buffers, digested)
            yield run
            if run.problem is not None:
                return
            first = run.end


def _payloads(
    window: Window, span: tuple[int, int, int], is_read: BoolArray, buffers: Buffers, digested: bool
) -> Payloads:
    """Return the records of batches from the first of a span on: one at least, unless damaged."""
    first, end, place = span
    rows, digests, problem = window.rows[first:end], NO_DIGESTS, None
    bounds = buffers.array("bounds", WINDOW_BATCHES, np.int64, 2)[: end - first]
    if place == UPGRADED:
        buffer = window.upgraded
        bounds[:] = rows[:, RECORDS_START : RECORDS_END + 1]
    elif place == PLAIN:
        buffer = window.buffer
        fill_plain_bounds(rows, window.file_position, bounds)
    else:
        if digested:
            digests = buffers.array("digests", WINDOW_BATCHES, np.uint64)
        entries, found = window.entries(first, end), (bounds, digests)
        done, buffer, problem = decompress_entries(
            entries, is_read[first:end], found, buffers.array
        )
        rows, bounds = rows[:done], bounds[:done]
    lies = impossible_counts(rows, bounds) & is_read[first : first + len(rows)]
    if lies.any():
        sound = int(lies.argmax())
        problem, bounds = count_error(window.path, rows[sound]), bounds[:sound]
    count = len(bounds)
    return Payloads(
        first=first,
        end=first + count,
        buffer=buffer,
        bounds=bounds,
        digests=digests[:count],
        problem=problem,
    )


def framing_error(path: str, position: int, code: int, detail: int) -> CorruptFileError:
    """What walk_batches found wrong with the batch at a position."""
    unsupported = code in (BAD_MAGIC, BAD_CODEC)
    kind = UnsupportedFormatError if unsupported else CorruptFileError
    return kind(path, position, problem_text(code, detail))


def checksum_error(path: str, row: Int64Array, computed: int) -> CorruptFileError:
    """The error of a batch that carries another checksum than the computed one."""
    problem = f"checksum {row[CHECKSUM]:08x} is stored, {computed:08x} computed"
    return CorruptFileError(path, int(row[POSITION]), problem)


def impossible_counts(rows: Int64Array, bounds: Int64Array) -> NDArray[np.bool_]:
    """Which batches claim more records than their bytes, between bounds, can hold."""
    found: NDArray[np.bool_] = (
        rows[:, RECORDS_COUNT] > (bounds[:, 1] - bounds[:, 0]) // MIN_RECORD_BYTES
    )
    return found


def count_error(path: str, row: Int64Array) -> CorruptFileError:
    """The error of a batch that claims more records than its bytes can hold."""
    problem = f"records count {row[RECORDS_COUNT]} is more than the batch has room for"
    return CorruptFileError(path, int(row[POSITION]), problem)


def runs_by_place(rows: Int64Array) -> Iterator[tuple[int, int, int]]:
    """Yield runs of batches whose records are in the same buffer: first, end, place.

    The place is PLAIN, COMPRESSED or UPGRADED.
    """
    attributes = rows[:, ATTRIBUTES]
    places = np.where(attributes & CODEC_MASK != 0, COMPRESSED, PLAIN)
    places[attributes & LEGACY != 0] = UPGRADED
    changes = np.flatnonzero(places[1:] != places[:-1]) + 1
    edges = [0, *changes.tolist(), len(places)] if len(places) else []
    for first, end in pairwise(edges):
        yield first, end, int(places[first])


def fill_plain_bounds(rows: Int64Array, file_position: int, bounds: Int64Array) -> None:
    """Fill in where the records of plain batches stand in a buffer. bounds: (batches, 2)."""
    bounds[:, 1] = rows[:, POSITION] - file_position
    bounds[:, 0] = bounds[:, 1] + BATCH_HEADER_BYTES
    bounds[:, 1] += rows[:, SIZE]


class Decompressed(NamedTuple):
    """How far batches were decompressed, and where their records stand."""

    done: int  # from the first batch on
    buffer: ByteArray
    problem: CorruptFileError | None  # what is wrong with batch `done`


def decompress_entries(
    entries: FramedEntries,
    is_read: NDArray[np.bool_],
    results: tuple[Int64Array, UInt64Array],
    take: TakeArray,
) -> Decompressed:
    """Decompress consecutive batches as long as there is room: one at least, unless it is damaged.

    Of a batch that is not read nothing is decompressed.

    results: filled in, where the records of each stand, and, unless it is empty, a digest of each,
    taken while nothing else has happened to it. take: gives the buffer `payload`, which grows where
    one batch is larger.
    """
    room = PAYLOAD_BYTES
    while True:
        out = take("payload", room + SLACK_BYTES)
        room = len(out) - SLACK_BYTES
        done, problem = _fill(entries, is_read, results, out)
        if done or problem is not None:
            return Decompressed(done, out, problem)
        if room >= MAX_DECOMPRESSED_BYTES:
            text = f"the batch decompresses to more than {MAX_DECOMPRESSED_BYTES} bytes"
            position = int(entries.rows[0, POSITION])
            return Decompressed(0, out, CorruptFileError(entries.path, position, text))
        room = min(2 * room, MAX_DECOMPRESSED_BYTES)


def _fill(
    entries: FramedEntries,
    is_read: NDArray[np.bool_],
    results: tuple[Int64Array, UInt64Array],
    out: ByteArray,
) -> tuple[int, CorruptFileError | None]:
    """How many found room, and what is wrong with the next."""
    bounds, digests = results
    limit, done, at = len(out) - SLACK_BYTES, 0, 0
    while True:
        done, at = decompress_batches(
            PackedBatches(entries.buffer, entries.file_position, entries.rows, is_read),
            (done, at),
            (out, limit),
            results,
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


def _decompress_one(entries: FramedEntries, number: int, room: ByteArray, at: int) -> int | None:
    position, size, attributes = entries.rows[number, [POSITION, SIZE, ATTRIBUTES]].tolist()
    start = position - entries.file_position
    payload = entries.buffer.data[start + BATCH_HEADER_BYTES : start + size]
    try:
        return decompress_into(attributes & CODEC_MASK, payload, room, at)
    except DecompressionError as error:
        raise CorruptFileError(entries.path, position, str(error)) from error
