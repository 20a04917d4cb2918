"""Transactional and control batches: what a scan notes of each, and what the driver decides.

A scan leaves one TXN_BATCH row for each of them. Whether such a batch goes depends on the batches
before it, back to the start of the log, so the driver decides it: it goes through the rows in order
(`compactor.cleaning.transactions`). Its answer comes back as small files: for a log, which ranges
of offsets of which producer are aborted; for a group, which control batches may be discarded.
No kernel is loaded here: the driver does without them.
"""

import io

import numpy as np
import xxhash
from numpy.typing import NDArray

from cleaner_jobs.messages import Part, Stretch
from cleaner_jobs.problems import WorkFileError
from cleaner_jobs.work_file import WorkFiles, read_checked, write_checked
from storage.files.files import Disk, Files
from storage.files.local import LOCAL

TXN_BATCH = np.dtype(
    [
        ("position", "<i8"),  # in its segment
        ("base_offset", "<i8"),
        ("last_offset", "<i8"),
        ("producer_id", "<i8"),
        ("segment", "<i4"),  # number in its group
        ("kind", "<i4"),
        ("records", "<i4"),
        ("horizon", "<i4"),
    ]
)
DATA, ABORT, COMMIT, OTHER_CONTROL, EMPTY_CONTROL = range(5)  # kinds
NO_HORIZON, HORIZON_AHEAD, HORIZON_PASSED = range(3)

# Columns of aborted ranges, all int64. Rows ascend by the first two and do not overlap.
RANGE_COLUMNS = 4  # producer id, last offset of the first batch and of the last, flags of a batch

# A row as kernels see it: words of 64 bits, of which the last two hold two numbers each
TXN_WORDS = 6
POSITION_WORD, BASE_OFFSET_WORD, LAST_OFFSET_WORD, PRODUCER_ID_WORD = range(4)
KIND_WORD, COUNT_WORD = 4, 5  # segment and kind; records and horizon
KIND_SHIFT = 32

TxnBatches = NDArray[np.void]
Int64Array = NDArray[np.int64]


def words_of(batches: TxnBatches) -> Int64Array:
    """Return the same memory, (n, TXN_WORDS) of it."""
    words: Int64Array = batches.view(np.int64).reshape(-1, TXN_WORDS)
    return words


NO_RANGES: Int64Array = np.empty((0, RANGE_COLUMNS), np.int64)


_OTHER_BATCHES = "batches are not what was written"


def read_txn_batches(part: Part, disk: Disk = LOCAL) -> TxnBatches:
    """Return the transactional and control batches of a part, in order."""
    rows = np.empty(part.txn_batches, TXN_BATCH)
    data = rows.view(np.uint8).data
    with WorkFiles(disk) as files:
        files.fill(part.file, part.txn_at, data, _OTHER_BATCHES)
    if xxhash.xxh3_64_intdigest(data) != part.txn_checksum:
        raise WorkFileError(part.file, part.txn_at, _OTHER_BATCHES)
    return rows


def save_array(path: str, array: Int64Array, disk: Disk = LOCAL) -> None:
    """Write what `load_array` reads."""
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    write_checked(path, out.getvalue(), disk)


def load_array(path: str, files: Files = LOCAL) -> Int64Array:
    """Raise WorkFileError where it is not what was saved, or OSError."""
    array: Int64Array = np.load(io.BytesIO(read_checked(path, files)), allow_pickle=False)
    return array


class AbortedRanges:
    """What is aborted of a log, which all its stretches go by: read once for all of them."""

    def __init__(self, files: Files = LOCAL) -> None:
        self._files = files
        self._file, self._ranges = "", NO_RANGES

    def of(self, stretch: Stretch) -> Int64Array:
        """Raise WorkFileError or OSError."""
        if stretch.aborted_file != self._file:
            self._ranges, self._file = NO_RANGES, stretch.aborted_file
            if self._file:
                self._ranges = load_array(self._file, self._files)
        return self._ranges
