"""Segments as the kernels of `plain_runs` and `packed_runs` read them, and what those leave to be
looked at again.
"""

from typing import NamedTuple

import numpy as np

from cleaner_jobs.problems import FAULT, MiswrittenError
from cleaner_jobs.tasks.batch_window import WindowReader
from cleaner_jobs.tasks.worker_buffers import WorkerBuffers
from storage.files import io_limit
from storage.formats.batch_columns import (
    BATCH_COLUMNS,
    MIN_RECORD_BYTES,
    SLACK_BYTES,
    ByteArray,
    Int64Array,
)
from storage.formats.batch_windows import Place, Window
from storage.kernels.native_calls import pread_address

CHUNK_BYTES = 512 << 10  # read at once: it stays in the cache of one core
RUN_BATCHES = 1 << 14
LIMITED_RUN_BATCHES = 1 << 8  # so that what is read at once does not come to seconds of a limit


class PlainSource(NamedTuple):
    """An open segment, up to a position, and a buffer for a chunk of it."""

    path: str
    of_kernel: tuple[int, int, int, int, ByteArray]  # the source of frame_plain

    @classmethod
    def of(cls, reader: WindowReader, end: int, buffers: WorkerBuffers) -> "PlainSource":
        """While the reader is open; the next one overwrites the chunk."""
        length = CHUNK_BYTES + SLACK_BYTES
        chunk = buffers.array("chunk", length)[:length]
        of_kernel = pread_address(), reader.descriptor, end, reader.base_offset, chunk
        return cls(reader.path, of_kernel)

    def read_up_to(self, behind: Place, at: Place) -> Place:
        """behind, once a kernel has read from at to there: how much is known only then."""
        io_limit.take(behind.position - at.position)
        return behind

    def left(self, rows: Int64Array, at: Place) -> Window:
        """Batches in the chunk with which a kernel has found something wrong."""
        return Window(
            path=self.path, buffer=self.of_kernel[-1], file_position=at.position, rows=rows
        )


def most_records() -> int:
    """In one chunk."""
    return CHUNK_BYTES // MIN_RECORD_BYTES


def rows_of_run(buffers: WorkerBuffers) -> Int64Array:
    """Room for a row of each batch of a run."""
    batches = LIMITED_RUN_BATCHES if io_limit.is_limited() else RUN_BATCHES
    rows: Int64Array = buffers.array("run", RUN_BATCHES, np.int64, BATCH_COLUMNS)[:batches]
    return rows


def found_sound(window: Window, at: Place) -> MiswrittenError:
    """The error where nothing is wrong with what a kernel has left: memory that says two things."""
    problem = f"the batches from here to byte {window.behind().position} were found wrong, and "
    problem += f"sound when they were looked at again; {FAULT}"
    return MiswrittenError(window.path, at.position, problem)
