"""Runs of batches of a segment, checked and decompressed, for the kernel that fills columns.

A window is read of the file, as many whole batches as fit; a larger batch gets a window of its own.
Of the batches that are wanted the checksums are looked at, and what is compressed is decompressed
into a second buffer, some MiB at a time. The other batches are only framed. No more memory is in
use than both buffers have, and the largest batch needs.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.arrow.record_kernel import Range, choose_batches
from storage.formats.batch_columns import BASE_OFFSET, LAST_OFFSET, SIZE, ByteArray, Int64Array
from storage.formats.batch_kernels import first_wrong_checksum
from storage.formats.batch_windows import (
    Buffers,
    Place,
    Window,
    Windows,
    WindowSource,
    checksum_error,
    payloads_of,
)

BoolArray = NDArray[np.bool_]
ReadRange = Callable[[int, int], bytes]  # position, length; fewer where the file ends


class FileRange(NamedTuple):
    """Batches of one segment file, between two positions."""

    path: str
    start: int
    end: int


class Wanted(NamedTuple):
    """Which batches are read."""

    range: Range
    refused_bits: int  # of attributes
    aborted: Int64Array  # (n, 3): see choose_batches


class BatchRun(NamedTuple):
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

    def runs(self, stretch: FileRange, read: ReadRange) -> Iterator[BatchRun]:
        """Yield the batches of a stretch. Raise CorruptFileError at the first that is not sound.

        That is after all before it have come.
        """

        def read_into(view: memoryview, position: int) -> int:
            data = read(position, len(view))
            view[: len(data)] = data
            return len(data)

        windows = Windows(WindowSource(stretch.path, read_into), self._buffers)
        at = Place(stretch.start, self._previous_offset)
        while at.position < stretch.end and not self.is_done:
            window = windows.window(at, stretch.end)
            yield from self._of_window(window)
            if not self.is_done:
                at = window.next_place()
                self._previous_offset = at.previous_offset

    def _of_window(self, window: Window) -> Iterator[BatchRun]:
        """Yield the runs of a window up to the end of what is wanted, and raise what is wrong."""
        problem = window.problem
        rows = self._within_budget(window.rows)
        chosen = np.empty(len(rows), np.bool_)
        choose_batches(
            rows, self._wanted.aborted, self._wanted.range, self._wanted.refused_bits, chosen
        )
        wrong, computed = first_wrong_checksum(window.buffer, window.file_position, rows, chosen)
        if wrong >= 0:
            problem = checksum_error(window.path, rows[wrong], computed)
            rows, chosen = rows[:wrong], chosen[:wrong]
        if chosen.any():
            yield from self._runs(window._replace(rows=rows), chosen)
        if problem is not None and (wrong >= 0 or not self.is_done):
            raise problem

    def _within_budget(self, rows: Int64Array) -> Int64Array:
        """Return the batches up to the end of what is wanted, and of the bytes that may be read."""
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

    def _runs(self, window: Window, chosen: BoolArray) -> Iterator[BatchRun]:
        for its in payloads_of(window, chosen, self._buffers):
            yield BatchRun(
                path=window.path,
                rows=window.rows[its.first : its.end],
                chosen=chosen[its.first : its.end],
                payloads=its.buffer,
                bounds=its.bounds,
                window=window.buffer,
                window_position=window.file_position,
            )
            if its.problem is not None:
                raise its.problem
