"""Checks that an offset index belongs to the log beside it.

A broker trusts it below the recovery point, and a reader that seeks by a wrong entry misses
records without an error. Cleaning would rebuild the index. But where the two contradict each
other, nobody knows which is right: one of the files may have been restored from another log.
Rule: log-format F-9.4.
"""

import numpy as np

from cleaner_jobs.messages import Stretch
from storage.errors import CorruptFileError
from storage.file_names import INDEX, LOG
from storage.files.files import Files
from storage.formats import offset_index
from storage.formats.batch_columns import BASE_OFFSET, POSITION, SIZE, Int64Array
from storage.kernels.kernel import kernel

NO_ENTRIES: Int64Array = np.empty((0, 2), np.int64)  # relative offset, position


class IndexCheck:
    """Checks the index entries of a stretch against its batches, a window at a time.

    It raises what it finds at the end: if the log itself is damaged, that is reported instead.
    """

    def __init__(self, stretch: Stretch, files: Files) -> None:
        source = stretch.source
        self._path = source.path.removesuffix(LOG) + INDEX
        self._error: CorruptFileError | None = None
        self._base_offset, self._next = source.base_offset, 0
        self._entries = NO_ENTRIES
        try:
            entries = offset_index.read(self._path, files)
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
        """Return the error of the next entry, which leads into the batch of that row."""
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


RELATIVE_OFFSET, ENTRY_POSITION = range(2)  # columns of an entry


@kernel
def first_unordered(entries: Int64Array, log_bytes: int) -> int:
    """Return the first entry that does not ascend, or leads out of the log; or -1."""
    offset, position = -1, -1
    for i in range(entries.shape[0]):
        if entries[i, RELATIVE_OFFSET] <= offset or entries[i, ENTRY_POSITION] <= position:
            return i
        offset, position = entries[i, RELATIVE_OFFSET], entries[i, ENTRY_POSITION]
        if position >= log_bytes:
            return i
    return -1


@kernel
def first_unfitting(
    entries: Int64Array, base_offset: int, first: int, rows: Int64Array
) -> tuple[int, int]:
    """Return the first entry that does not fit these batches, and the row of the batch.

    The search begins at entry `first`. An entry does not fit if it leads into a batch but not to
    its start, or to a batch that begins after the entry's offset. Where all fit: the first entry
    after these batches, and -1. entries: in order.
    """
    i, row = first, 0
    while i < entries.shape[0] and row < rows.shape[0]:
        position = entries[i, ENTRY_POSITION]
        if position < rows[row, POSITION]:  # of batches before these
            i += 1
        elif position >= rows[row, POSITION] + rows[row, SIZE]:
            row += 1
        elif (
            position != rows[row, POSITION]
            or rows[row, BASE_OFFSET] > base_offset + entries[i, RELATIVE_OFFSET]
        ):
            return i, row
        else:
            i += 1
    return i, -1
