"""The counters of an inspection: what its tasks count of batches, records and keys.

The counters of a run are one array of int64, which kernels fill and the driver adds up: sums first,
then least and greatest values. No kernel is loaded here.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Int64Array = NDArray[np.int64]

FORMATS, CODECS = 3, 5  # v0, v1, v2; none, gzip, snappy, lz4, zstd
SIZE_CLASSES = 33  # class n holds sizes of n bits: 0, 1, 2 to 3, 4 to 7, ...

# sums: cells of three numbers (batches, their bytes, their records) by format and codec
BATCHES_AT, BATCH_CELL = 0, 3
BATCH_SIZES_AT = BATCHES_AT + FORMATS * CODECS * BATCH_CELL  # how many batches of each size class
RECORD_SIZES_AT = BATCH_SIZES_AT + SIZE_CLASSES  # likewise records of data
# cells of two numbers (tombstones, their bytes) by section of the log and by delete horizon
TOMBSTONES_AT, TOMBSTONE_CELL = RECORD_SIZES_AT + SIZE_CLASSES, 2
CLEAN, DIRTY, UNCLEANABLE, SECTIONS = range(4)  # before the first dirty offset; after the bound
NO_HORIZON, HORIZON_AHEAD, HORIZON_PASSED, LEGACY_FORMAT, HORIZONS = range(5)
_AFTER_TOMBSTONES = TOMBSTONES_AT + SECTIONS * HORIZONS * TOMBSTONE_CELL
(
    RECORDS,  # of data, those of aborted transactions among them
    RECORD_BYTES,  # of those that are looked at, not compressed, as format v2 has them
    NULL_KEYS,
    CONTROL_RECORDS,
    ABORTED_RECORDS,
    EMPTY_BATCHES,
    TRANSACTIONAL_BATCHES,
    LEAST_AT,
) = range(_AFTER_TOMBSTONES, _AFTER_TOMBSTONES + 8)
# least values, MAX_INT64 where there is none
LEAST_TIMESTAMP, LEAST_TOMBSTONE_TIMESTAMP, LEAST_HORIZON, GREATEST_AT = range(
    LEAST_AT, LEAST_AT + 4
)
# greatest values, -1 where there is none
GREATEST_TIMESTAMP, GREATEST_TOMBSTONE_TIMESTAMP, GREATEST_HORIZON = range(
    GREATEST_AT, GREATEST_AT + 3
)
GREATEST_BATCH, GREATEST_RECORD, COUNTERS = range(GREATEST_AT + 3, GREATEST_AT + 6)
MAX_INT64 = 2**63 - 1

# sums of a hash partition's keys, then how many keys have a number of versions of each class
KEYS, LIVE_KEYS, KEYED_RECORDS, KEYED_BYTES, LIVE_BYTES, VERSION_CLASSES_AT = range(6)
VERSION_CLASSES = 64  # class n holds numbers of n bits
KEY_SUMS = VERSION_CLASSES_AT + VERSION_CLASSES

BY_KEY, BY_GROUP, BY_TOPIC = range(3)  # what of a key records are counted by

HEAVY_KEYS = 20  # of each hash partition, by versions and by bytes
HEAVY_COLUMNS = 3
VERSIONS, BYTES, OFFSET = range(HEAVY_COLUMNS)  # of a heavy key; OFFSET: of its latest record


class CountedRun(NamedTuple):
    """What a task counted of consecutive batches of one log, and where it left their keys.

    In file at block_at: an entry or two for each key, where each hash partition starts in them, and
    a checksum for each hash partition's entries.
    """

    log_id: int
    file: str
    block_at: int
    entries: int
    hash_partition_bits: int
    first_record_offset: int  # entries are relative to it
    log_bytes: int
    counters: tuple[int, ...]


class CountedKeys(NamedTuple):
    """What a task counted of the keys of one hash partition of one log."""

    log_id: int
    hash_partition: int
    sums: tuple[int, ...]
    most_versions: tuple[tuple[int, int, int], ...]  # HEAVY_COLUMNS of each, the most first
    most_bytes: tuple[tuple[int, int, int], ...]


def new_counters() -> Int64Array:
    """Counters of nothing."""
    counters = np.zeros(COUNTERS, np.int64)
    counters[LEAST_AT:GREATEST_AT] = MAX_INT64
    counters[GREATEST_AT:] = -1
    return counters


def added(all_counters: Sequence[Sequence[int]]) -> Int64Array:
    """Counters of several runs as one."""
    rows = np.array([new_counters().tolist(), *all_counters], np.int64)
    total: Int64Array = rows.sum(axis=0)
    total[LEAST_AT:GREATEST_AT] = rows[:, LEAST_AT:GREATEST_AT].min(axis=0)
    total[GREATEST_AT:] = rows[:, GREATEST_AT:].max(axis=0)
    return total
