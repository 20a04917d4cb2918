"""What a scan returns about transactional and control batches, and what the driver decides.

Whether such a batch goes depends on the batches before it, back to the start of the log, so tasks
do not decide it: a scan leaves a row of TXN_BATCH for each of them, and the driver goes through
those rows in order (`compactor.cleaning.transactions`). Its answer comes back as two small files
for a log: which ranges of offsets of which producer are aborted, and which control batches may be
discarded. No kernel is loaded here: the driver does without them.
"""

import io

import numpy as np
import xxhash
from numpy.typing import NDArray

from cleaner_jobs.problems import WorkFileError
from cleaner_jobs.task_values import Part
from cleaner_jobs.work_file import read_checked, write_checked
from storage.files.filesystem import naming

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

TxnBatches = NDArray[np.void]
Int64Array = NDArray[np.int64]


def read_txn_batches(part: Part) -> TxnBatches:
    """The transactional and control batches of a part, in order."""
    size = part.txn_batches * TXN_BATCH.itemsize
    with naming(part.file), open(part.file, "rb") as source:
        source.seek(part.txn_at)
        data = source.read(size)
    if len(data) != size or xxhash.xxh3_64_intdigest(data) != part.txn_checksum:
        raise WorkFileError(part.file, part.txn_at, "batches are not what was written")
    return np.frombuffer(data, TXN_BATCH)


def save_array(path: str, array: Int64Array) -> None:
    """Write what `load_array` reads."""
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    write_checked(path, out.getvalue())


def load_array(path: str) -> Int64Array:
    """Raise WorkFileError where it is not what was saved, or OSError."""
    array: Int64Array = np.load(io.BytesIO(read_checked(path)), allow_pickle=False)
    return array
