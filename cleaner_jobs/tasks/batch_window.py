"""Whole batches of a segment, a window at a time, checked and ready for the record kernels.

A window is as many whole batches as fit a buffer of some MiB; a batch larger than that gets a
window of its own. Compressed batches are decompressed into a second buffer, a run of batches at a
time; of legacy messages the records are upgraded into a third one, and a window ends where that is
full. Source of the framing: log-format F-3; of the growth: compaction C-12.6.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.kernels.batch_flags import mark_read
from cleaner_jobs.task_values import Source
from cleaner_jobs.tasks.worker_buffers import WorkerBuffers
from cleaner_jobs.unchanged import check_open, check_opened
from storage.codecs.payload_kernels import CODECS_OF_KERNELS
from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.files import io_limit
from storage.files.filesystem import look_at, naming, open_known
from storage.formats.batch_checksums import first_wrong_checksum
from storage.formats.batch_columns import (
    ATTRIBUTES,
    BASE_OFFSET,
    BATCH_COLUMNS,
    LAST_OFFSET,
    LEGACY,
    OK,
    POSITION,
    RECORDS_END,
    RECORDS_START,
    SIZE,
    SLACK_BYTES,
    ByteArray,
    Int64Array,
    walk_batches,
)
from storage.formats.batch_header import (
    CODEC_MASK,
    FRAME_BYTES,
    entry_bytes,
)
from storage.formats.batch_payloads import UInt64Array
from storage.formats.framed_batches import (
    PLAIN,
    UPGRADED,
    checksum_error,
    count_error,
    decompress,
    fill_plain_bounds,
    framing_error,
    impossible_counts,
    runs_by_place,
)
from storage.formats.legacy_upgrade import Entries, has_legacy, upgrade
from storage.formats.segment import MAX_RELATIVE_OFFSET
from storage.kernels.xxh3_kernel import digests_between

WINDOW_BYTES = 4 << 20  # more would not stay in the cache between reading and checking
LEGACY_WINDOW_BYTES = 1 << 20  # behind legacy messages: a row for each takes as much as it does
WINDOW_BATCHES = 1 << 16
NO_RECORDS: ByteArray = np.empty(0, np.uint8)
ALL: NDArray[np.bool_] = np.empty(0, np.bool_)  # of batches
NO_DIGESTS: UInt64Array = np.empty(0, np.uint64)


class Place(NamedTuple):
    """Where the next batch of a segment begins."""

    position: int
    previous_offset: int  # the last one before it


def place_behind(row: Int64Array) -> Place:
    """Where the batch behind that of a row begins."""
    return Place(int(row[POSITION] + row[SIZE]), int(row[LAST_OFFSET]))


class Window(NamedTuple):
    """Batches in a buffer that the next window overwrites."""

    path: str
    buffer: ByteArray
    file_position: int  # of buffer[0]
    rows: Int64Array  # (batches, BATCH_COLUMNS)
    upgraded: ByteArray = NO_RECORDS  # the records of legacy batches

    def batches(self) -> memoryview:
        """The bytes of all batches of the window."""
        end = int(self.rows[-1, POSITION] + self.rows[-1, SIZE]) - self.file_position
        return self.buffer.data[:end]

    def ends_plain(self) -> bool:
        """Whether its last batch is v2 and not compressed, and so perhaps the next one."""
        return not self.rows[-1, ATTRIBUTES] & (CODEC_MASK | LEGACY)

    def ends_packed(self) -> bool:
        """Likewise, compressed by a codec of which kernels take most batches."""
        attributes = int(self.rows[-1, ATTRIBUTES])
        return not attributes & LEGACY and attributes & CODEC_MASK in CODECS_OF_KERNELS

    def behind(self) -> Place:
        """Where the next batch begins."""
        return place_behind(self.rows[-1])


class Payloads(NamedTuple):
    """The records of batches first:end of a window, decompressed if need be."""

    first: int
    end: int
    buffer: ByteArray
    bounds: Int64Array  # (end - first, 2): where each batch's records stand in buffer
    digests: UInt64Array = NO_DIGESTS  # of what was decompressed, at once, if they are asked for


class WindowReader:
    """Reads runs of whole batches from one open segment file."""

    def __init__(self, path: str, base_offset: int, buffers: WorkerBuffers) -> None:
        self.path = path
        self.base_offset = base_offset
        self._buffers = buffers
        self.descriptor, self._opened = open_known(path)
        self._window_bytes = WINDOW_BYTES

    def __enter__(self) -> "WindowReader":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)

    def check_planned(self, source: Source) -> None:
        """Raise LogChangedError where the file that was opened is not what was planned for."""
        check_opened(source, self._opened)

    def check_unchanged(self, source: Source) -> None:
        """Raise LogChangedError where it is no longer what was planned for."""
        check_open(source, look_at(self.descriptor, self.path))

    def start(self, position: int) -> Place:
        """Where to begin at a position; no batch from there on is below the base offset."""
        return Place(position, self.base_offset - 1)

    def windows(self, start: int, end: int) -> Iterator[Window]:
        """Yield the batches in start:end. Raise CorruptFileError where end cuts one."""
        at = self.start(start)
        while at.position < end:
            window = self.window(at, end)
            yield window
            at = window.behind()

    def window(self, at: Place, end: int) -> Window:
        """The batches from a place on, which is below end. Raise CorruptFileError as `windows`."""
        position, previous_offset = at
        rows = self._buffers.array("rows", WINDOW_BATCHES, np.int64, BATCH_COLUMNS)
        window_bytes = self._window_bytes
        while True:
            wanted = min(window_bytes, end - position)
            buffer = self._buffers.array("window", max(wanted, WINDOW_BYTES) + SLACK_BYTES)
            got = self._read(buffer, position, wanted)
            count, _, code, detail = walk_batches(buffer, got, position, previous_offset, rows)
            if count:
                break
            if code != OK:
                raise framing_error(self.path, position, code, detail)
            window_bytes = self._larger_window(buffer, position, got, end)
        window = Window(self.path, buffer, position, rows[:count])
        if has_legacy(window.rows):
            window = self._upgraded(window, previous_offset)
            self._window_bytes = min(WINDOW_BYTES, LEGACY_WINDOW_BYTES)
        self._check_offsets(window)
        return window

    def _upgraded(self, window: Window, previous_offset: int) -> Window:
        """The window, or its first part, with the records of legacy batches."""
        entries = Entries(self.path, window.buffer, window.file_position, window.rows)
        done, records, problem = upgrade(entries, previous_offset, self._buffers.array)
        if problem is not None:
            raise problem
        return window._replace(rows=window.rows[:done], upgraded=records)

    def _read(self, buffer: ByteArray, position: int, wanted: int) -> int:
        view, got = buffer.data[:wanted], 0
        io_limit.take(wanted)
        while got < wanted:
            with naming(self.path):
                count = os.preadv(self.descriptor, [view[got:]], position + got)
            if not count:
                problem = f"the file ends here, {wanted - got} bytes before its listed size"
                raise CorruptFileError(self.path, position + got, problem)
            got += count
        return got

    def _larger_window(self, buffer: ByteArray, position: int, got: int, end: int) -> int:
        """The size of the batch at position, which did not fit; an error where it cannot end."""
        left = end - position
        size = entry_bytes(buffer) if got >= FRAME_BYTES else FRAME_BYTES
        if size > left:
            file_bytes = look_at(self.descriptor, self.path).size_bytes
            if end < file_bytes:
                problem = f"the offset index puts the start of a batch inside this one, at {end}"
            else:
                problem = f"a batch of {size} bytes or more is cut short, {left} are left"
            raise CorruptFileError(self.path, position, problem)
        return size

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


def digests_of(buffer: ByteArray, bounds: Int64Array) -> UInt64Array:
    """Of each of the stretches of a buffer."""
    digests = np.empty(len(bounds), np.uint64)
    digests_between(buffer, np.ascontiguousarray(bounds), digests)
    return digests


def payloads(window: Window, buffers: WorkerBuffers, digested: bool = False) -> Iterator[Payloads]:
    """Yield the records of all batches of the window, in runs that share a buffer."""
    for first, end, place in runs_by_place(window.rows):
        if place == UPGRADED:
            bounds = np.ascontiguousarray(window.rows[first:end, RECORDS_START : RECORDS_END + 1])
            yield Payloads(first, end, window.upgraded, bounds)
        elif place == PLAIN:
            bounds = buffers.array("bounds", WINDOW_BATCHES, np.int64, 2)[: end - first]
            fill_plain_bounds(window.rows[first:end], window.file_position, bounds)
            run = Payloads(first, end, window.buffer, bounds)
            check_counts(window, run)
            yield run
        else:
            yield from _decompressed(window, (first, end), buffers, digested)


def _decompressed(
    window: Window, span: tuple[int, int], buffers: WorkerBuffers, digested: bool
) -> Iterator[Payloads]:
    start, end = span
    bounds = buffers.array("bounds", WINDOW_BATCHES, np.int64, 2)
    digests = buffers.array("digests", WINDOW_BATCHES, np.uint64) if digested else NO_DIGESTS
    while start < end:
        rows = window.rows[start:end]
        entries = Entries(window.path, window.buffer, window.file_position, rows)
        done, buffer, problem = decompress(entries, is_read(rows), (bounds, digests), buffers.array)
        if problem is not None:
            raise problem
        run = Payloads(start, start + done, buffer, bounds[:done], digests[:done])
        check_counts(window, run)
        yield run
        start += done


def is_read(rows: Int64Array) -> NDArray[np.bool_]:
    """Of which batches records are looked at."""
    found = np.empty(len(rows), np.bool_)
    mark_read(rows, found)
    return found


def check_counts(window: Window, run: Payloads) -> None:
    """Raise CorruptFileError where a batch claims more records than its bytes can hold."""
    rows = window.rows[run.first : run.end]
    lies = impossible_counts(rows, run.bounds) & is_read(rows)
    if lies.any():
        raise count_error(window.path, rows[int(lies.argmax())])
