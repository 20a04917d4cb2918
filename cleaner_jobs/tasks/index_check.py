"""Whether an offset index belongs to the log beside it.

A broker believes it blindly below the recovery point, and a reader that seeks by a wrong entry
skips records in silence. Cleaning would make it anew, yet where the two contradict each other
nobody knows which is the right one: another log's file may have been restored. Rule: log-format
F-9.4.
"""

import numpy as np

from cleaner_jobs.task_values import Stretch
from storage.errors import CorruptFileError
from storage.file_names import INDEX, LOG
from storage.files.local import LOCAL
from storage.formats import offset_index
from storage.formats.batch_columns import BASE_OFFSET, POSITION, SIZE, Int64Array


class IndexCheck:
    """Checks the index entries of a stretch against its batches, a window at a time.

    It raises what it finds at the end: if the log itself is damaged, that is reported instead.
    """

    def __init__(self, stretch: Stretch) -> None:
        source = stretch.source
        self._path = source.path.removesuffix(LOG) + INDEX
        self._error: CorruptFileError | None = None
        entries = np.empty(0, offset_index.ENTRY)
        try:
            entries = offset_index.read(self._path, LOCAL)
            offset_index.check(entries, source.log_bytes, self._path)
        except FileNotFoundError:  # it will be made
            pass
        except CorruptFileError as error:
            self._error = error
        self._positions = entries["position"].astype(np.int64)
        self._offsets = entries["relative_offset"].astype(np.int64) + source.base_offset

    def check(self, rows: Int64Array) -> None:
        """Each entry leads to the start of a batch, and no batch before it has that offset."""
        if self._error is not None:
            return
        starts, end = rows[:, POSITION], rows[-1, POSITION] + rows[-1, SIZE]
        first, behind = np.searchsorted(self._positions, (starts[0], end))
        batch = np.searchsorted(starts, self._positions[first:behind], side="right") - 1
        is_start = starts[batch] == self._positions[first:behind]
        wrong = ~is_start | (rows[batch, BASE_OFFSET] > self._offsets[first:behind])
        if wrong.any():
            at = int(first + wrong.argmax())
            batch_at, base_offset = rows[batch[at - first], [POSITION, BASE_OFFSET]]
            problem = (
                f"entry (offset {self._offsets[at]}, position {self._positions[at]}) does not fit "
                f"its log, where the batch at byte {batch_at} begins with offset {base_offset}"
            )
            position = at * offset_index.ENTRY.itemsize
            self._error = CorruptFileError(self._path, position, problem)

    def finish(self) -> None:
        """Raise CorruptFileError at the first entry that is wrong."""
        if self._error is not None:
            raise self._error
