"""Whether an offset index belongs to the log beside it.

A broker believes it blindly below the recovery point, and a reader that seeks by a wrong entry
skips records in silence. Cleaning would make it anew, yet where the two contradict each other
nobody knows which is the right one: another log's file may have been restored. Rule: log-format
F-9.4.
"""

import numpy as np

from cleaner_jobs.kernels.index_entries import first_unfitting, first_unordered
from cleaner_jobs.task_values import Stretch
from storage.errors import CorruptFileError
from storage.file_names import INDEX, LOG
from storage.files.local import LOCAL
from storage.formats import offset_index
from storage.formats.batch_columns import BASE_OFFSET, POSITION, Int64Array

NO_ENTRIES: Int64Array = np.empty((0, 2), np.int64)  # relative offset, position


class IndexCheck:
    """Checks the index entries of a stretch against its batches, a window at a time.

    It raises what it finds at the end: if the log itself is damaged, that is reported instead.
    """

    def __init__(self, stretch: Stretch) -> None:
        source = stretch.source
        self._path = source.path.removesuffix(LOG) + INDEX
        self._error: CorruptFileError | None = None
        self._base_offset, self._next = source.base_offset, 0
        self._entries = NO_ENTRIES
        try:
            entries = offset_index.read(self._path, LOCAL)
            self._entries = entries.view(">i4").reshape(-1, 2).astype(np.int64)
            if first_unordered(self._entries, source.log_bytes) >= 0:
                offset_index.check(entries, source.log_bytes, self._path)
        except FileNotFoundError:  # it will be made
            pass
        except CorruptFileError as error:
            self._error = error

    def check(self, rows: Int64Array) -> None:
        """Each entry leads to the start of a batch, and no batch before it has that offset."""
        if self._error is not None:
            return
        self._next, batch = first_unfitting(self._entries, self._base_offset, self._next, rows)
        if batch >= 0:
            self._error = self._wrong_entry(rows[batch])

    def _wrong_entry(self, row: Int64Array) -> CorruptFileError:
        """Of the next entry, which leads into the batch of that row."""
        relative_offset, entry_position = self._entries[self._next].tolist()
        batch_at, base_offset = row[[POSITION, BASE_OFFSET]].tolist()
        problem = (
            f"entry (offset {self._base_offset + relative_offset}, position {entry_position}) does "
            f"not fit its log, where the batch at byte {batch_at} begins with offset {base_offset}"
        )
        position = self._next * offset_index.ENTRY.itemsize
        return CorruptFileError(self._path, position, problem)

    def finish(self) -> None:
        """Raise CorruptFileError at the first entry that is wrong."""
        if self._error is not None:
            raise self._error
