"""How a task reads a segment: in windows of whole batches, or in chunks that kernels read.

`WindowReader` is the general way (`storage.formats.batch_windows`). `PlainSource` lets the kernels
of `scan_runs` and `rewrite_runs` read the same file in chunks. `RecordColumns` holds what is parsed
of records: what a part is made of, and what a written segment is checked by.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.kernels.scan_runs import Chunks, Parsing, Scratch
from cleaner_jobs.kernels.transaction_kernels import mark_read
from cleaner_jobs.messages import RoundSettings, Source
from cleaner_jobs.problems import FAULT, MiswrittenError
from cleaner_jobs.source_identity import check_open, check_opened
from cleaner_jobs.txn_batches import NO_RANGES
from storage.codecs.payload_kernels import tools_of_thread
from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.file_names import MAX_RELATIVE_OFFSET
from storage.files import io_limit
from storage.files.descriptors import look_at, naming
from storage.files.files import Disk
from storage.files.local import LOCAL
from storage.formats.batch_columns import (
    ATTRIBUTES,
    BASE_OFFSET,
    BATCH_COLUMNS,
    LAST_OFFSET,
    LEGACY,
    MIN_RECORD_BYTES,
    OK,
    POSITION,
    RECORDS_COUNT,
    SLACK_BYTES,
    ByteArray,
    Int64Array,
    RecordLimits,
    parse_records,
    problem_text,
)
from storage.formats.batch_header import CODEC_MASK
from storage.formats.batch_kernels import UInt64Array, first_wrong_checksum
from storage.formats.batch_windows import (
    Buffers,
    Payloads,
    Place,
    Window,
    Windows,
    WindowSource,
    checksum_error,
    payloads_of,
)
from storage.kernels.native_calls import pread_address
from storage.kernels.xxh3_kernel import digests_between

ALL: NDArray[np.bool_] = np.empty(0, np.bool_)  # of batches


class WindowReader:
    """Reads runs of whole batches from one open segment file."""

    def __init__(self, path: str, base_offset: int, buffers: Buffers, disk: Disk = LOCAL) -> None:
        self.path = path
        self.base_offset = base_offset
        self.descriptor, self._opened = disk.open_to_read(path)
        source = WindowSource(path, self._read_into, self._size_bytes)
        self._windows = Windows(source, buffers)

    def __enter__(self) -> "WindowReader":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)

    def check_planned(self, source: Source) -> None:
        """Raise LogChangedError where the file that was opened is not what was planned for."""
        check_opened(source, self._opened)

    def check_unchanged(self, source: Source) -> None:
        """Raise LogChangedError if the file was changed while it was read."""
        check_open(source, look_at(self.descriptor, self.path))

    def start(self, position: int) -> Place:
        """Return where to begin at a position; no batch from there on is below the base offset."""
        return Place(position, self.base_offset - 1)

    def windows(self, start: int, end: int) -> Iterator[Window]:
        """Yield the batches in start:end. Raise CorruptFileError where end cuts one."""
        at = self.start(start)
        while at.position < end:
            window = self.window(at, end)
            yield window
            at = window.next_place()

    def window(self, at: Place, end: int) -> Window:
        """Return the batches from a place on, which is below end. Raise as `windows` does."""
        window = self._windows.window(at, end)
        if window.problem is not None:
            raise window.problem
        self._check_offsets(window)
        return window

    def _read_into(self, view: memoryview, position: int) -> int:
        got = 0
        io_limit.take(len(view))
        while got < len(view):
            with naming(self.path):
                count = os.preadv(self.descriptor, [view[got:]], position + got)
            if not count:
                break
            got += count
        return got

    def _size_bytes(self) -> int:
        return look_at(self.descriptor, self.path).size_bytes

    def _check_offsets(self, window: Window) -> None:
        last_offsets = window.rows[:, LAST_OFFSET]  # ascending, but for legacy batches
        if not len(window.upgraded) and last_offsets[-1] - self.base_offset <= MAX_RELATIVE_OFFSET:
            return
        outside = last_offsets - self.base_offset > MAX_RELATIVE_OFFSET
        outside |= last_offsets < window.rows[:, BASE_OFFSET]  # it has outgrown 64 bits
        if outside.any():
            row = window.rows[int(outside.argmax())]
            problem = (
                f"offset {row[LAST_OFFSET]} is too far from the segment's base offset "
                f"{self.base_offset}"
            )
            raise UnsupportedFormatError(self.path, int(row[POSITION]), problem)


def check_checksums(window: Window, chosen: NDArray[np.bool_] | None = None) -> None:
    """Raise CorruptFileError at the first batch whose CRC is not the one it carries.

    That is a CRC-32C (F-4.2), of a legacy message a CRC-32 (F-7.1). chosen: which are looked at;
    None: all.
    """
    rows = window.rows
    its = ALL if chosen is None else chosen
    wrong, computed = first_wrong_checksum(window.buffer, window.file_position, rows, its)
    if wrong >= 0:
        raise checksum_error(window.path, rows[wrong], computed)


@contextmanager
def checking_checksums(window: Window) -> Iterator[None]:
    """Check the checksums of a window whose keys are hashed in the block.

    Of compressed and legacy batches before: nothing that is damaged is decompressed. Of plain ones
    after: a bit that flips before its key is hashed is noticed, too. What is wrong by its checksum
    is reported as that, whatever else the block finds wrong.
    """
    is_packed = window.rows[:, ATTRIBUTES] & (CODEC_MASK | LEGACY) != 0
    check_checksums(window, is_packed)
    try:
        yield
    except CorruptFileError:
        check_checksums(window)
        raise
    check_checksums(window, ~is_packed)


def digests_of(buffer: ByteArray, bounds: Int64Array) -> UInt64Array:
    """Return the digest of each of the stretches of a buffer."""
    digests = np.empty(len(bounds), np.uint64)
    digests_between(buffer, np.ascontiguousarray(bounds), digests)
    return digests


def payloads(window: Window, buffers: Buffers, digested: bool = False) -> Iterator[Payloads]:
    """Yield the records of all batches of the window, in runs that share a buffer.

    Raise CorruptFileError at the first batch that does not decompress, or that claims more records
    than its bytes can hold.
    """
    for run in payloads_of(window, is_read(window.rows), buffers, digested):
        if run.problem is not None:
            raise run.problem
        yield run


def is_read(rows: Int64Array) -> NDArray[np.bool_]:
    """Return of which batches records are looked at."""
    found = np.empty(len(rows), np.bool_)
    mark_read(rows, found)
    return found


CHUNK_BYTES = 512 << 10  # read at once: it stays in the cache of one core
CHUNK_PAYLOAD_BYTES = 512 << 10  # decompressed at once
RUN_BATCHES = 1 << 14
LIMITED_RUN_BATCHES = 1 << 8  # so that what is read at once does not come to seconds of a limit


class PlainSource(NamedTuple):
    """An open segment, up to a position, and a buffer for a chunk of it."""

    path: str
    chunks: Chunks  # as kernels read them

    @classmethod
    def of(cls, reader: WindowReader, end: int, buffers: Buffers) -> "PlainSource":
        """While the reader is open; the next one overwrites the chunk."""
        length = CHUNK_BYTES + SLACK_BYTES
        chunk = buffers.array("chunk", length)[:length]
        chunks = Chunks(pread_address(), reader.descriptor, end, reader.base_offset, chunk)
        return cls(reader.path, chunks)

    def read_up_to(self, reached: Place, at: Place) -> Place:
        """Note that a kernel has read from `at` to `behind`: how much is known only then."""
        io_limit.take(reached.position - at.position)
        return reached

    def left(self, rows: Int64Array, at: Place) -> Window:
        """Batches in the chunk with which a kernel has found something wrong."""
        return Window(
            path=self.path, buffer=self.chunks.buffer, file_position=at.position, rows=rows
        )


def max_records() -> int:
    """Return how many records one chunk can hold."""
    return CHUNK_BYTES // MIN_RECORD_BYTES


def rows_of_run(buffers: Buffers) -> Int64Array:
    """Room for a row of each batch of a run."""
    batches = LIMITED_RUN_BATCHES if io_limit.is_limited() else RUN_BATCHES
    rows: Int64Array = buffers.array("run", RUN_BATCHES, np.int64, BATCH_COLUMNS)[:batches]
    return rows


def scratch_for(rows: Int64Array, buffers: Buffers) -> Scratch:
    """Return memory for a kernel that parses a run of as many batches."""
    return Scratch(
        payload=buffers.array("payload of a chunk", CHUNK_PAYLOAD_BYTES + SLACK_BYTES),
        bounds=buffers.array("bounds", len(rows), np.int64, 2),
        is_read=buffers.array("is read", len(rows), np.bool_),
        tools=tools_of_thread(),
    )


def contradictory_read_error(window: Window, at: Place) -> MiswrittenError:
    """Return the error for a chunk that a kernel found wrong, and a second reading sound."""
    problem = f"the batches from here to byte {window.next_place().position} were found wrong, and "
    problem += f"sound when they were looked at again; {FAULT}"
    return MiswrittenError(window.path, at.position, problem)


COLUMN_TYPES: dict[str, Any] = {
    "first_hash": np.uint64,
    "second_hash": np.uint64,
    "offset": np.int64,
    "state": np.uint8,
}


class RecordColumns:
    """Key hash (two columns), offset and state of records; they grow as batches ask for room."""

    def __init__(self, settings: RoundSettings, buffers: Buffers) -> None:
        self._now_ms = settings.now_ms
        self._secret = (
            np.uint64(settings.hash_key_low),
            np.uint64(settings.hash_key_high),
        )
        self.buffers = buffers
        self.filled = 0
        self._columns: tuple[NDArray[Any], ...] = ()
        self._room = -1  # how many records have room in them

    def room_for(self, records: int) -> tuple[NDArray[Any], ...]:
        """Return the columns, with room for so many records more."""
        needed = self.filled + records
        if needed > self._room:
            self._columns = tuple(
                self.buffers.keep(name, needed, self.filled, dtype)
                for name, dtype in COLUMN_TYPES.items()
            )
            self._room = min(map(len, self._columns))
        return self._columns

    def parsing(self, map_offsets: tuple[int, int], aborted: Int64Array = NO_RANGES) -> Parsing:
        """Return what kernels parse records by. map_offsets: see parse."""
        return Parsing(RecordLimits(*map_offsets, self._now_ms), self._secret, aborted)

    def parse(self, window: Window, run: Payloads, map_offsets: tuple[int, int]) -> None:
        """Append the records of a run of batches; CorruptFileError where one does not parse.

        map_offsets: the first offset that the map covers, and the one after its last.
        """
        rows = window.rows[run.first : run.end]
        columns = self.room_for(int(rows[:, RECORDS_COUNT].sum()))
        limits, secret, _ = self.parsing(map_offsets)
        self.filled, bad, code, detail = parse_records(
            run.buffer, run.bounds, rows, limits, secret, columns, self.filled
        )
        if code != OK:
            position = int(rows[bad, POSITION])
            raise CorruptFileError(window.path, position, problem_text(code, detail))
