"""Columns of parsed records: what a part is made of, what a written segment is checked by."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.task_values import RoundSettings
from cleaner_jobs.tasks.worker_buffers import WorkerBuffers
from storage.errors import CorruptFileError
from storage.formats.batch_columns import OK, POSITION, RECORDS_COUNT, parse_records, problem_text
from storage.formats.batch_windows import Payloads, Window

COLUMN_TYPES: dict[str, Any] = {
    "first_hash": np.uint64,
    "second_hash": np.uint64,
    "offset": np.int64,
    "state": np.uint8,
}


class RecordColumns:
    """Key hash (two columns), offset and state of records; they grow as batches ask for room."""

    def __init__(self, settings: RoundSettings, buffers: WorkerBuffers) -> None:
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
        """The columns, with room for so many records more."""
        needed = self.filled + records
        if needed > self._room:
            self._columns = tuple(
                self.buffers.keep(name, needed, self.filled, dtype)
                for name, dtype in COLUMN_TYPES.items()
            )
            self._room = min(map(len, self._columns))
        return self._columns

    def parsing(self, map_offsets: tuple[int, int]) -> tuple[Any, Any]:
        """Limits and secret, as kernels take them. map_offsets: as of parse."""
        return (*map_offsets, self._now_ms), self._secret

    def parse(self, window: Window, run: Payloads, map_offsets: tuple[int, int]) -> None:
        """Append the records of a run of batches; CorruptFileError where one does not parse.

        map_offsets: the first offset that the map covers, and the one behind its last.
        """
        rows = window.rows[run.first : run.end]
        columns = self.room_for(int(rows[:, RECORDS_COUNT].sum()))
        limits, secret = self.parsing(map_offsets)
        self.filled, bad, code, detail = parse_records(
            run.buffer, run.bounds, rows, limits, secret, columns, self.filled
        )
        if code != OK:
            position = int(rows[bad, POSITION])
            raise CorruptFileError(window.path, position, problem_text(code, detail))
