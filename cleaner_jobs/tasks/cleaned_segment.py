"""What a rewrite task leaves on disk for a segment group, checked before it is reported.

The file is read back: every checksum, ascending offsets, every record parsed and its key hashed
again; the indexes are made of what was read, not of what was meant to be written.
Source: compaction C-13, C-14.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import xxhash

from cleaner_jobs.kernels.offset_map import sum_fingerprints
from cleaner_jobs.messages import FINGERPRINT_RANGE
from cleaner_jobs.tasks.rewrite_check import ReadBackCheck, WrittenBatches
from cleaner_jobs.tasks.segment_facts import BATCH_FACTS, BatchFacts
from cleaner_jobs.tasks.window_reader import RecordColumns, WindowReader, check_checksums, payloads
from storage.files.files import Disk, size_of
from storage.files.local import LOCAL
from storage.formats.batch_columns import BASE_OFFSET, LAST_OFFSET, MAX_TIMESTAMP, SIZE
from storage.formats.batch_windows import Window


class WrittenLogFile(NamedTuple):
    """What stands in a `.log` file that was written: enough for the proof."""

    log_bytes: int
    log_checksum: int
    records: int  # of data
    control_records: int
    fingerprints: int


def batch_facts(window: Window) -> BatchFacts:
    """Return what indexes are made of, and where a segment can be cut, for each batch."""
    facts = np.empty(len(window.rows), BATCH_FACTS)
    facts["size"] = window.rows[:, SIZE]
    facts["last_offset"] = window.rows[:, LAST_OFFSET]
    facts["max_timestamp"] = window.rows[:, MAX_TIMESTAMP]
    facts["base_offset"] = window.rows[:, BASE_OFFSET]
    return facts


def read_back(
    path: str,
    base_offset: int,
    columns: RecordColumns,
    written: WrittenBatches,
    take_facts: Callable[[BatchFacts], None],
    disk: Disk = LOCAL,
) -> WrittenLogFile:
    """Check a written `.log` from end to end. Raise CorruptFileError where it is not sound.

    written: the batches that it was made of; MiswrittenError where it holds others. take_facts is
    given the facts of all its batches, in file order.
    """
    buffers = columns.buffers
    check, digest = ReadBackCheck(path, written), xxhash.xxh3_64()
    records = control_records = fingerprints = 0
    log_bytes = size_of(disk, path)
    with WindowReader(path, base_offset, buffers, disk) as reader:
        for window in reader.windows(0, log_bytes):
            check_checksums(window)
            check.take(window)
            digest.update(window.batches())
            take_facts(batch_facts(window))
            for run in payloads(window, buffers):
                check.take_payloads(run)
                columns.filled = 0
                columns.parse(window, run, map_offsets=(0, 0))
                count, checksum = sum_fingerprints(columns.room_for(0), columns.filled)
                records += count
                control_records += columns.filled - count
                fingerprints += int(checksum)
    check.finish()
    return WrittenLogFile(
        log_bytes, digest.intdigest(), records, control_records, fingerprints % FINGERPRINT_RANGE
    )
