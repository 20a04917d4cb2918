"""The two stages of an inspection: count records and keys, then merge the keys of each log.

1. Read stretches of logs, check every checksum, count records and the versions of each key, and
   leave the keys by hash partition (`count_stretches`).
2. Merge the keys of a log, one hash partition at a time (`count_hash_partition`).
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from cleaner_jobs.inspection_counters import (
    BY_KEY,
    BYTES,
    HEAVY_COLUMNS,
    HEAVY_KEYS,
    KEY_SUMS,
    VERSIONS,
    CountedKeys,
    CountedRun,
    new_counters,
)
from cleaner_jobs.kernels.key_counts import (
    BUCKET_BITS,
    KEY_COLUMNS,
    MAX_RUN_BYTES,
    fold_keys,
    fold_slots,
    hash_key_parts,
    merge_keys,
    spread_keys,
    sum_keys,
)
from cleaner_jobs.kernels.offset_map import ENTRY_WORDS, table_slots
from cleaner_jobs.kernels.record_counts import (
    Counting,
    CountLimits,
    CountOutput,
    ParsedRecords,
    count_records,
    count_run,
)
from cleaner_jobs.kernels.scan_runs import NO_MORE, PART_FULL, PartSoFar
from cleaner_jobs.kernels.transaction_kernels import flag_aborted
from cleaner_jobs.messages import RoundSettings, Stretch
from cleaner_jobs.source_identity import LogChangedError
from cleaner_jobs.tasks.entry_files import write_entries
from cleaner_jobs.tasks.resolve import entries_of
from cleaner_jobs.tasks.window_reader import (
    PlainSource,
    RecordColumns,
    WindowReader,
    checking_checksums,
    max_records,
    payloads,
    rows_of_run,
    scratch_for,
)
from cleaner_jobs.txn_batches import AbortedRanges
from cleaner_jobs.work_file import WorkFiles
from storage.errors import CorruptFileError
from storage.files.descriptors import naming
from storage.files.files import Disk
from storage.files.local import LOCAL
from storage.formats.batch_columns import (
    BASE_OFFSET,
    LAST_OFFSET,
    POSITION,
    RECORDS_COUNT,
    SIZE,
    Int64Array,
)
from storage.formats.batch_windows import Buffers, Payloads, Place, Window, next_place

RUN_RECORDS = 1 << 20
MAX_RUN_OFFSETS = 1 << 32
EVERY_OFFSET = 0, 2**63 - 1  # keys are counted wherever they stand


class Choices(NamedTuple):
    """What is done with some logs otherwise than with most."""

    # segments that may be longer by now than they were; of any other one no byte may have changed
    growing: Collection[str] = ()
    parts: Sequence[Sequence[int]] = ()  # log id, and what of its keys is counted by

    def part_of(self, log_id: int) -> int:
        return next((part for of, part in self.parts if of == log_id), BY_KEY)


NO_CHOICES = Choices()


class _Counting:
    """A run of batches that is being counted."""

    def __init__(self, settings: RoundSettings, out: BinaryIO, buffers: Buffers, part: int) -> None:
        """part: BY_KEY, or what else of keys is counted by."""
        self._part = part
        self._settings, self._out, self.buffers = settings, out, buffers
        self._columns = RecordColumns(settings, buffers)
        self._start()

    def _start(self) -> None:
        self._stretch: Stretch | None = None
        self._columns.filled = 0
        self._counters = new_counters()
        self._first_offset = -1
        self._payload_bytes = self._log_bytes = 0

    def add(self, stretch: Stretch, window: Window, run: Payloads) -> Iterator[CountedRun]:
        """Take in batches; yield what is complete before them."""
        rows = window.rows[run.first : run.end]
        payload_bytes = int((run.bounds[:, 1] - run.bounds[:, 0]).sum())
        if self._stretch is not None and (
            self._columns.filled + int(rows[:, RECORDS_COUNT].sum()) > RUN_RECORDS
            or int(rows[-1, LAST_OFFSET]) - self._first_offset >= MAX_RUN_OFFSETS
            or self._payload_bytes + payload_bytes > MAX_RUN_BYTES
        ):
            yield from self.finish()
        if self._stretch is None:
            self._stretch, self._first_offset = stretch, int(rows[0, BASE_OFFSET])
        before = self._columns.filled
        self._columns.parse(window, run, EVERY_OFFSET)
        *_, offsets, states = self._columns.room_for(0)
        parsed, out = ParsedRecords(offsets, states, before), (self._sizes(before), self._counters)
        limits = self._limits(stretch)
        count_records(run.buffer, run.bounds, rows, parsed, limits, out)
        if self._part != BY_KEY:
            secret = self._columns.parsing(EVERY_OFFSET).secret
            columns = self._columns.room_for(0)
            by = self._part, secret
            hash_key_parts(run.buffer, run.bounds, rows, by, columns, before)
        self._payload_bytes += payload_bytes
        self._log_bytes += int(rows[-1, POSITION] + rows[-1, SIZE] - rows[0, POSITION])

    def add_run(
        self, stretch: Stretch, source: PlainSource, at: Place, aborted: Int64Array
    ) -> tuple[Int64Array, int]:
        """Take in the batches at a place, as many as a kernel takes and there is room for.

        Returns their rows, and why it stopped.
        """
        rows, buffers = rows_of_run(self.buffers), self.buffers
        before = self._columns.filled
        columns = self._columns.room_for(max(max_records(), RUN_RECORDS - before))
        sizes = buffers.keep("sizes", len(columns[3]), before, np.uint32)
        first_offset = -1 if self._stretch is None else self._first_offset
        count, filled, payload_bytes, why_ended = count_run(
            source.chunks,
            at,
            PartSoFar(before, RUN_RECORDS, first_offset, MAX_RUN_OFFSETS),
            MAX_RUN_BYTES - self._payload_bytes,
            self._columns.parsing(EVERY_OFFSET, aborted),
            scratch_for(rows, buffers),
            CountOutput(rows, columns, sizes, self._counters),
            Counting(self._limits(stretch), self._part),
        )
        rows = rows[:count]
        if count:
            if self._stretch is None:
                self._stretch, self._first_offset = stretch, int(rows[0, BASE_OFFSET])
            self._columns.filled = filled
            self._payload_bytes += payload_bytes
            self._log_bytes += int(rows[-1, POSITION] + rows[-1, SIZE] - rows[0, POSITION])
        return rows, why_ended

    def _limits(self, stretch: Stretch) -> CountLimits:
        now_ms = self._settings.now_ms
        return CountLimits(stretch.first_dirty_offset, stretch.map_end_offset, now_ms)

    def _sizes(self, kept: int) -> Any:
        return self.buffers.keep("sizes", self._columns.filled, kept, np.uint32)

    def finish(self) -> Iterator[CountedRun]:
        """Yield what is being counted, if there is a batch."""
        stretch, count = self._stretch, self._columns.filled
        if stretch is None:
            return
        columns, sizes, buffers = self._columns.room_for(0), self._sizes(count), self.buffers
        entries = buffers.array("entries", count, np.uint64, ENTRY_WORDS)
        bits = stretch.hash_partition_bits
        edges = np.zeros((1 << max(bits, BUCKET_BITS)) + 1, np.int64)
        largest = spread_keys(columns, sizes, (count, self._first_offset), entries, edges)
        table = buffers.array("slots", fold_slots(largest), np.uint64)
        starts = np.zeros((1 << bits) + 1, np.uint64)
        kept = fold_keys(entries, edges, table, starts)
        block_at = self._out.tell()
        write_entries(self._out, entries[:kept], starts)
        yield CountedRun(
            log_id=stretch.log_id,
            file=str(self._out.name),
            block_at=block_at,
            entries=kept,
            hash_partition_bits=bits,
            first_record_offset=self._first_offset,
            log_bytes=self._log_bytes,
            counters=tuple(self._counters.tolist()),
        )
        self._start()


def count_stretches(
    stretches: list[Stretch],
    settings: RoundSettings,
    out_path: str,
    buffers: Buffers,
    choices: Choices = NO_CHOICES,
    disk: Disk = LOCAL,
) -> Iterator[CountedRun | tuple[int, Exception]]:
    """Count stretches in order; yield runs, or a log's id and the error that ends its inspection.

    stretches: those of a log stand together; the first offset of the dirty and of the uncleanable
    section of its log stand in each as the bounds of its map. choices: what is
    not as of most logs.
    """
    ranges = AbortedRanges(disk)
    with naming(out_path), disk.open_raw(out_path, "wb") as out:
        for log_id, of_log in groupby(stretches, key=lambda stretch: stretch.log_id):
            counting = _Counting(settings, out, buffers, choices.part_of(log_id))
            try:
                for stretch in of_log:
                    is_growing = stretch.source.path in choices.growing
                    yield from _count_stretch(stretch, counting, ranges, is_growing, disk)
                yield from counting.finish()
            except (CorruptFileError, LogChangedError, OSError) as error:
                yield log_id, error


def _count_stretch(
    stretch: Stretch, counting: _Counting, ranges: AbortedRanges, is_growing: bool, disk: Disk
) -> Iterator[CountedRun]:
    buffers = counting.buffers
    with WindowReader(stretch.source.path, stretch.source.base_offset, buffers, disk) as reader:
        if not is_growing:
            reader.check_planned(stretch.source)
        aborted = ranges.of(stretch)
        source = PlainSource.of(reader, stretch.end, buffers)
        at = reader.start(stretch.start)
        while at.position < stretch.end:
            rows, why_ended = counting.add_run(stretch, source, at, aborted)
            if len(rows):
                at = source.read_up_to(next_place(rows[-1]), at)
            if why_ended == PART_FULL:
                yield from counting.finish()
            elif why_ended != NO_MORE and at.position < stretch.end:
                window = reader.window(at, stretch.end)
                flag_aborted(window.rows, aborted)
                with checking_checksums(window):
                    for run in payloads(window, buffers):
                        yield from counting.add(stretch, window, run)
                at = window.next_place()
        if not is_growing:
            reader.check_unchanged(stretch.source)


def count_hash_partition(
    runs: Sequence[CountedRun],
    hash_partition: int,
    files: WorkFiles,
    spill_path: str,
    buffers: Buffers,
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
