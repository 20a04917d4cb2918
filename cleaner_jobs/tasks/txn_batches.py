"""What a scan returns about transactional and control batches, and what the driver decides.

A scan leaves a row of TXN_BATCH for each of them, and the driver goes through those rows in order
(`compactor.cleaning.transactions`). Its answer comes back as small files: which ranges of offsets
of which producer are aborted, for a log, and which control batches may be discarded, for a group.
No kernel is loaded here: the driver does without them.
"""

import io

import numpy as np
import xxhash

from cleaner_jobs.problems import WorkFileError
from cleaner_jobs.task_values import Part, Stretch
from cleaner_jobs.txn_batch import RANGE_COLUMNS, TXN_BATCH, Int64Array, TxnBatches
from cleaner_jobs.work_file import read_checked, write_checked
from storage.files.filesystem import naming

NO_RANGES: Int64Array = np.empty((0, RANGE_COLUMNS), np.int64)


def read_txn_batches(part: Part) -> TxnBatches:
    """The transactional and control batches of a part, in order."""
    rows = np.empty(part.txn_batches, TXN_BATCH)
    data = rows.view(np.uint8).data
    with naming(part.file), open(part.file, "rb") as source:
        source.seek(part.txn_at)
        count = source.readinto(data)
    if count != len(data) or xxhash.xxh3_64_intdigest(data) != part.txn_checksum:
        raise WorkFileError(part.file, part.txn_at, "batches are not what was written")
    return rows


def save_array(path: str, array: Int64Array) -> None:
    """Write what `load_array` reads."""
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    write_checked(path, out.getvalue())


def load_array(path: str) -> Int64Array:
    """Raise WorkFileError where it is not what was saved, or OSError."""
    array: Int64Array = np.load(io.BytesIO(read_checked(path)), allow_pickle=False)
    return array


class AbortedRanges:
    """What is aborted of a log, which all its stretches go by: read once for all of them."""

    def __init__(self) -> None:
        self._file, self._ranges = "", NO_RANGES

    def of(self, stretch: Stretch) -> Int64Array:
        """Raise WorkFileError or OSError."""
        if stretch.aborted_file != self._file:
            self._ranges = load_array(stretch.aborted_file) if stretch.aborted_file else NO_RANGES
            self._file = stretch.aborted_file
        return self._ranges
