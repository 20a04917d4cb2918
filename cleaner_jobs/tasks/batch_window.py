"""Windows of whole batches of a segment that a task works on (`storage.formats.batch_windows`)."""

import os
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.kernels.batch_flags import mark_read
from cleaner_jobs.task_values import Source
from cleaner_jobs.tasks.worker_buffers import WorkerBuffers
from cleaner_jobs.unchanged import check_open, check_opened
from storage.errors import UnsupportedFormatError
from storage.file_names import MAX_RELATIVE_OFFSET
from storage.files import io_limit
from storage.files.filesystem import look_at, naming, open_known
from storage.formats.batch_columns import (
    BASE_OFFSET,
    LAST_OFFSET,
    POSITION,
    ByteArray,
    Int64Array,
)
from storage.formats.batch_payloads import UInt64Array, first_wrong_checksum
from storage.formats.batch_windows import (
    Payloads,
    Place,
    Window,
    Windows,
    WindowSource,
    checksum_error,
    payloads_of,
)
from storage.kernels.xxh3_kernel import digests_between

ALL: NDArray[np.bool_] = np.empty(0, np.bool_)  # of batches


class WindowReader:
    """Reads runs of whole batches from one open segment file."""

    def __init__(self, path: str, base_offset: int, buffers: WorkerBuffers) -> None:
        self.path = path
        self.base_offset = base_offset
        self.descriptor, self._opened = open_known(path)
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


def digests_of(buffer: ByteArray, bounds: Int64Array) -> UInt64Array:
    """Of each of the stretches of a buffer."""
    digests = np.empty(len(bounds), np.uint64)
    digests_between(buffer, np.ascontiguousarray(bounds), digests)
    return digests


def payloads(window: Window, buffers: WorkerBuffers, digested: bool = False) -> Iterator[Payloads]:
    """Yield the records of all batches of the window, in runs that share a buffer.

    Raise CorruptFileError at the first batch that does not decompress, or that claims more records
    than its bytes can hold.
    """
    for run in payloads_of(window, is_read(window.rows), buffers, digested):
        if run.problem is not None:
            raise run.problem
        yield run


def is_read(rows: Int64Array) -> NDArray[np.bool_]:
    """Of which batches records are looked at."""
    found = np.empty(len(rows), np.bool_)
    mark_read(rows, found)
    return found
