"""Runs of batches of a segment, checked and decompressed, for the kernel that fills columns.

A window is read of the file, as many whole batches as fit; a larger batch gets a window of its own.
Of the batches that are wanted the checksums are looked at, and what is compressed is decompressed
into a second buffer, some MiB at a time. The other batches are only framed. No more memory is in
use than both buffers have, and the largest batch needs.
"""

from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.arrow.record_kernel import Range, choose_batches
from storage.errors import CorruptFileError
from storage.formats.batch_checksums import first_wrong_checksum
from storage.formats.batch_columns import (
    BASE_OFFSET,
    BATCH_COLUMNS,
    LAST_OFFSET,
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
from storage.formats.batch_header import FRAME_BYTES, entry_bytes
from storage.formats.framed_batches import (
    COMPRESSED,
    PLAIN,
    checksum_error,
    count_error,
    decompress,
    fill_plain_bounds,
    framing_error,
    impossible_counts,
    runs_by_place,
)
from storage.formats.legacy_upgrade import Entries, has_legacy, upgrade
from storage.kernels.buffers import Buffers

WINDOW_BYTES = 4 << 20
WINDOW_BATCHES = 1 << 15
_NO_DIGESTS = np.empty(0, np.uint64)
_NO_BYTES: ByteArray = np.empty(0, np.uint8)

BoolArray = NDArray[np.bool_]
ReadRange = Callable[[int, int], bytes]  # position, length; fewer where the file ends


class Stretch(NamedTuple):
    """Batches of one segment file, between two positions."""

    path: str
    start: int
    end: int


class Wanted(NamedTuple):
    """Which batches are read."""

    range: Range
    refused_bits: int  # of attributes
    aborted: Int64Array  # (n, 3): as of choose_batches


class Run(NamedTuple):
    """Batches of a file, whose records stand in a buffer that the next run overwrites."""

    path: str
    rows: Int64Array
    chosen: BoolArray  # which are read; of the others there is nothing in the buffer
    payloads: ByteArray
    bounds: Int64Array  # (batches, 2)
    window: ByteArray  # their headers
    window_position: int  # of window[0] in the file


class RunReader:
    """Reads stretches of one log, in the order of their offsets."""

    def __init__(self, wanted: Wanted, max_bytes: int | None) -> None:
        self._wanted, self._left_bytes = wanted, max_bytes
        self._previous_offset = -1
        self._buffers, self._has_read = Buffers(), False
        self.is_done = False  # what is wanted was read, or as much of it as may be

    def runs(self, stretch: Stretch, read: ReadRange) -> Iterator[Run]:
        """Yield the batches of a stretch. Raise CorruptFileError at the first that is not sound.

        That is after all before it have come.
        """
        position, window_bytes = stretch.start, WINDOW_BYTES
        rows = np.empty((WINDOW_BATCHES, BATCH_COLUMNS), np.int64)
        while position < stretch.end and not self.is_done:
            size = min(window_bytes, stretch.end - position)
            window = self._buffers.array("window", max(size, WINDOW_BYTES) + SLACK_BYTES)
            _read_into(window, stretch.path, read, position, size)
            count, _, code, detail = walk_batches(
                window, size, position, self._previous_offset, rows
            )
            if code != OK and not count:
                raise framing_error(stretch.path, position, code, detail)
            if not count:
                window_bytes = _larger_window(stretch, window, position, size)
                continue
            entries = Entries(stretch.path, window, position, rows[:count])
            done = yield from self._window(entries)
            position = int(rows[done - 1, POSITION] + rows[done - 1, SIZE])
            window_bytes = WINDOW_BYTES

    def _window(self, entries: Entries) -> Generator[Run, None, int]:
        """Yield the runs of a window; give how many of its batches are done, one at least."""
        upgraded, problem = _NO_BYTES, None
        if has_legacy(entries.rows):
            done, upgraded, problem = upgrade(entries, self._previous_offset, self._buffers.array)
            entries = entries._replace(rows=entries.rows[:done])
        rows = self._within_budget(entries.rows)
        chosen = np.empty(len(rows), np.bool_)
        choose_batches(
            rows, self._wanted.aborted, self._wanted.range, self._wanted.refused_bits, chosen
        )
        wrong, computed = first_wrong_checksum(entries.buffer, entries.file_position, rows, chosen)
        if wrong >= 0:
            problem = checksum_error(entries.path, rows[wrong], computed)
            rows, chosen = rows[:wrong], chosen[:wrong]
        yield from self._of_places(entries._replace(rows=rows), chosen, upgraded)
        if problem is not None and (wrong >= 0 or not self.is_done):
            raise problem
        if len(rows):
            self._previous_offset = int(rows[-1, LAST_OFFSET])
        return max(1, len(rows))

    def _within_budget(self, rows: Int64Array) -> Int64Array:
        """The batches up to the end of what is wanted, and to that of the bytes that may be read"""
        behind = rows[:, BASE_OFFSET] >= self._wanted.range.end_offset
        if behind.any():
            self.is_done, rows = True, rows[: int(behind.argmax())]
        if self._left_bytes is None:
            return rows
        counted = np.where(
            rows[:, LAST_OFFSET] >= self._wanted.range.first_offset, rows[:, SIZE], 0
        ).cumsum()
        room = self._left_bytes
        fitting = int(np.searchsorted(counted, room, side="right"))
        if fitting < len(rows):
            self.is_done = True
            if not self._has_read:
                fitting = max(fitting, int(np.searchsorted(counted, 0, side="right")) + 1)
            rows, counted = rows[:fitting], counted[:fitting]
        if len(counted):
            self._has_read |= bool(counted[-1])
            self._left_bytes -= int(counted[-1])
        return rows

    def _of_places(self, entries: Entries, chosen: BoolArray, upgraded: ByteArray) -> Iterator[Run]:
        """Yield runs of batches whose records are found in one and the same buffer."""
        if not chosen.any():
            return
        for first, end, place in runs_by_place(entries.rows):
            its = entries._replace(rows=entries.rows[first:end])
            if place == COMPRESSED:
                yield from self._decompressed(its, chosen[first:end])
                continue
            payloads = its.buffer if place == PLAIN else upgraded
            bounds = np.ascontiguousarray(its.rows[:, RECORDS_START : RECORDS_END + 1])
            if place == PLAIN:
                fill_plain_bounds(its.rows, its.file_position, bounds)
            yield from _plausible(its, chosen[first:end], payloads, bounds)

    def _decompressed(self, entries: Entries, chosen: BoolArray) -> Iterator[Run]:
        first = 0
        while first < len(entries.rows):
            its = entries._replace(rows=entries.rows[first:])
            bounds = np.empty((len(its.rows), 2), np.int64)
            found = bounds, _NO_DIGESTS
            done, out, problem = decompress(its, chosen[first:], found, self._buffers.array)
            if problem is not None and not done:  # else it is told behind what stands before it
                raise problem
            its = its._replace(rows=its.rows[:done])
            yield from _plausible(its, chosen[first : first + done], out, bounds[:done])
            first += done


def _read_into(window: ByteArray, path: str, read: ReadRange, position: int, size: int) -> None:
    data = read(position, size)
    if len(data) < size:
        problem = f"the file ends here, {size - len(data)} bytes before its listed size"
        raise CorruptFileError(path, position + len(data), problem)
    window.data[:size] = data


def _larger_window(stretch: Stretch, window: ByteArray, position: int, got: int) -> int:
    """The size of the batch at position, which did not fit; an error where it cannot end."""
    left = stretch.end - position
    size = entry_bytes(window) if got >= FRAME_BYTES else FRAME_BYTES
    if size > left:
        problem = f"a batch of {size} bytes or more is cut short, {left} are left"
        raise CorruptFileError(stretch.path, position, problem)
    return size


def _plausible(
    entries: Entries, chosen: BoolArray, payloads: ByteArray, bounds: Int64Array
) -> Iterator[Run]:
    """A run of batches, up to one that claims more records than its bytes can hold: an error."""
    rows = entries.rows
    lies = impossible_counts(rows, bounds) & chosen
    sound = int(lies.argmax()) if lies.any() else len(rows)
    yield Run(
        path=entries.path,
        rows=rows[:sound],
        chosen=chosen[:sound],
        payloads=payloads,
        bounds=bounds[:sound],
        window=entries.buffer,
        window_position=entries.file_position,
    )
    if sound < len(rows):
        raise count_error(entries.path, rows[sound])
