"""Whether an offset index belongs to the log beside it.

A broker believes it blindly below the recovery point, and a reader that seeks by a wrong entry
skips records in silence. Cleaning would make it anew, yet where the two contradict each other
nobody knows which is the right one: another log's file may have been restored. Rule: log-format
F-9.4.
"""

import numpy as np

from cleaner_jobs.task_values import Stretch
from storage import offset_index
from storage.batch_columns import BASE_OFFSET, POSITION, SIZE, Int64Array
from storage.errors import CorruptFileError
from storage.file_names import INDEX, LOG


class IndexCheck:
    """Holds the entries of a stretch against its batches, a window of them at a time."""

    def __init__(self, stretch: Stretch) -> None:
        """Raise CorruptFileError for an index that cannot be one of such a log at all."""
        source = stretch.source
        self._path = source.path.removesuffix(LOG) + INDEX
        self._base_offset = source.base_offset
        try:
            entries = offset_index.read(self._path)
        except FileNotFoundError:  # it will be made
            entries = np.empty(0, offset_index.ENTRY)
        offset_index.check(entries, source.log_bytes, self._path)
        self._positions = entries["position"].astype(np.int64)
        self._offsets = entries["relative_offset"].astype(np.int64) + source.base_offset

    def check(self, rows: Int64Array) -> None:
        """Each entry leads to the start of a batch, and none before that one has its offset."""
        starts, end = rows[:, POSITION], rows[-1, POSITION] + rows[-1, SIZE]
        first, behind = np.searchsorted(self._positions, (starts[0], end))
        batch = np.searchsorted(starts, self._positions[first:behind], side="right") - 1
        is_start = starts[batch] == self._positions[first:behind]
        wrong = ~is_start | (rows[batch, BASE_OFFSET] > self._offsets[first:behind])
        if not wrong.any():
            return
        at = int(first + wrong.argmax())
        batch_at, base_offset = rows[batch[at - first], [POSITION, BASE_OFFSET]]
        problem = (
            f"entry (offset {self._offsets[at]}, position {self._positions[at]}) does not fit its "
            f"log, where the batch at byte {batch_at} begins with offset {base_offset}"
        )
        raise CorruptFileError(self._path, at * offset_index.ENTRY.itemsize, problem)
