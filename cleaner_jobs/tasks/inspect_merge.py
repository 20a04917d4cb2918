"""The second stage of an inspection: the keys of a log, a hash partition at a time."""

from collections.abc import Sequence

import numpy as np

from cleaner_jobs.inspect_values import (
    BYTES,
    HEAVY_COLUMNS,
    HEAVY_KEYS,
    KEY_SUMS,
    VERSIONS,
    CountedKeys,
    CountedRun,
    Int64Array,
)
from cleaner_jobs.kernels.key_counts import KEY_COLUMNS, merge_keys, sum_keys
from cleaner_jobs.kernels.offset_map import table_slots
from cleaner_jobs.tasks.resolve import PartFiles, entries_of
from cleaner_jobs.tasks.worker_buffers import WorkerBuffers


def count_hash_partition(
    runs: Sequence[CountedRun],
    hash_partition: int,
    files: PartFiles,
    spill_path: str,
    buffers: WorkerBuffers,
) -> CountedKeys:
    """Merge one hash partition of a log. runs: all of the log, in order.

    spill_path: what the files begin with that hold what there is no room for in memory.
    """
    first_offsets = np.array([run.first_record_offset for run in runs], np.int64)
    sums = np.zeros(KEY_SUMS, np.int64)
    by_versions, by_bytes = np.zeros((2, HEAVY_KEYS, HEAVY_COLUMNS), np.int64)
    for entries in entries_of(runs, hash_partition, files, spill_path, buffers):
        count = len(entries.rows)
        slots = table_slots(count)
        table = buffers.array("merge table", slots, np.uint64)[:slots]
        keys = buffers.array("merge keys", max(1, count), np.int64, KEY_COLUMNS)
        found = merge_keys(entries.rows, count, table, keys)
        edges = np.concatenate(([0], np.cumsum(entries.counts))).astype(np.int64)
        sum_keys(entries.rows, (keys, found), (edges, first_offsets), sums, (by_versions, by_bytes))
    return CountedKeys(
        log_id=runs[0].log_id,
        hash_partition=hash_partition,
        sums=tuple(sums.tolist()),
        most_versions=_held(by_versions, VERSIONS),
        most_bytes=_held(by_bytes, BYTES),
    )


def _held(heavy: Int64Array, column: int) -> tuple[tuple[int, int, int], ...]:
    return tuple(tuple(row) for row in heavy[heavy[:, column] > 0].tolist())
