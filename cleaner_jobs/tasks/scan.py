"""Scan: read stretches of logs, check every checksum, hash every key; leave parts of the map.

What a part is, and when one ends: at the end of its segment group, when a million records are in
it, or when its offsets would no longer fit 32 bits. Source: compaction C-7.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import BinaryIO, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from cleaner_jobs.kernels.offset_map import (
    ENTRY_WORDS,
    count_in_batches,
    keep_latest,
    pack_part,
    table_slots,
)
from cleaner_jobs.kernels.scan_runs import (
    LEFT,
    NO_MORE,
    PART_FULL,
    PartSoFar,
    first_above,
    scan_run,
)
from cleaner_jobs.kernels.transaction_kernels import flag_aborted, note_txn_batches
from cleaner_jobs.messages import FINGERPRINT_RANGE, Part, PartSection, RoundSettings, Stretch
from cleaner_jobs.problems import OversizedRecordError
from cleaner_jobs.source_identity import LogChangedError
from cleaner_jobs.tasks.entry_files import write_entries
from cleaner_jobs.tasks.index_check import IndexCheck
from cleaner_jobs.tasks.rewrite_check import heads_of
from cleaner_jobs.tasks.window_reader import (
    PlainSource,
    RecordColumns,
    WindowReader,
    checking_checksums,
    contradictory_read_error,
    max_records,
    payloads,
    rows_of_run,
    scratch_for,
)
from cleaner_jobs.txn_batches import TXN_BATCH, AbortedRanges, TxnBatches, words_of
from cleaner_jobs.work_file import write_whole
from storage.codecs.compression import installed_builds
from storage.errors import CorruptFileError
from storage.files.descriptors import naming
from storage.files.files import Disk
from storage.files.local import LOCAL
from storage.formats.batch_columns import (
    ABORTED,
    ATTRIBUTES,
    BASE_OFFSET,
    CONTROL_RECORD,
    EXPIRED,
    LAST_OFFSET,
    LEGACY,
    LEGACY_EXPIRED,
    NULL_KEY,
    POSITION,
    REASON_MASK,
    RECORDS_COUNT,
    SIZE,
    Int64Array,
    UInt64Array,
)
from storage.formats.batch_header import CODEC_MASK, CONTROL, TRANSACTIONAL
from storage.formats.batch_windows import (
    COMPRESSED,
    PLAIN,
    Buffers,
    Payloads,
    Place,
    Window,
    next_place,
)

PART_RECORDS = 1 << 20
MAX_PART_OFFSETS = 1 << 32


class ScannedRun(NamedTuple):
    """Batches that a part was given by a kernel."""

    rows: Int64Array
    why_ended: int
    left: Window | None  # batches to be gone through step by step next


class PartBuilder:
    """Collects the records of consecutive stretches of one group, and writes parts of them."""

    def __init__(
        self, settings: RoundSettings, out: BinaryIO, out_path: str, buffers: Buffers
    ) -> None:
        self._settings, self._out, self._out_path = settings, out, out_path
        self._buffers = buffers
        self._columns = RecordColumns(settings, buffers)
        self._start()

    def _start(self) -> None:
        self._stretch: Stretch | None = None
        self._columns.filled = 0
        self._first_offset = -1
        self._sections: list[PartSection] = []
        self._txn_batches: list[TxnBatches] = []
        self._log_bytes = self._batches = self._empty = self._tombstones = self._legacy = 0
        self._codecs = 0  # a bit for each

    def open_for(self, stretch: Stretch) -> Iterator[Part]:
        """Yield the part at work if nothing of this stretch belongs to it."""
        held = self._stretch
        if held is not None and (held.log_id, held.group) != (stretch.log_id, stretch.group):
            yield from self.finish()

    def add(self, stretch: Stretch, window: Window, run: Payloads) -> Iterator[Part]:
        """Take in batches of a stretch; yield the parts that are complete before them."""
        rows = window.rows[run.first : run.end]
        if self._batches and (
            self._columns.filled + int(rows[:, RECORDS_COUNT].sum()) > PART_RECORDS
            or int(rows[-1, LAST_OFFSET]) - self._first_offset >= MAX_PART_OFFSETS
        ):
            yield from self.finish()
        before = self._columns.filled
        map_offsets = stretch.first_dirty_offset, stretch.map_end_offset
        self._columns.parse(window, run, map_offsets)
        start, end = int(rows[0, POSITION]), int(rows[-1, POSITION] + rows[-1, SIZE])
        origin = window.file_position
        heads, _ = heads_of(window.buffer, start - origin, end - origin)
        self._take(stretch, rows, before, heads)

    def add_run(
        self, stretch: Stretch, source: PlainSource, at: Place, aborted: Int64Array, kind: int
    ) -> ScannedRun:
        """Take in the batches of a kind at a place, as many as belong to the part and have room.

        kind: PLAIN or COMPRESSED.
        """
        rows = rows_of_run(self._buffers)
        before, is_packed = self._columns.filled, kind == COMPRESSED
        room = max(max_records(), PART_RECORDS - before) if is_packed else max_records()
        first_offset = self._first_offset if self._batches else -1
        count, filled, heads, why_ended, left = scan_run(
            source.chunks,
            at,
            PartSoFar(before, PART_RECORDS, first_offset, MAX_PART_OFFSETS),
            self._columns.parsing((stretch.first_dirty_offset, stretch.map_end_offset), aborted),
            scratch_for(rows, self._buffers),
            rows,
            self._columns.room_for(room),
            is_packed,
        )
        if count:
            self._columns.filled = filled
            self._take(stretch, rows[:count], before, int(heads))
            at = next_place(rows[count - 1])
        window = source.left(rows[count : count + left], at) if why_ended == LEFT else None
        return ScannedRun(rows[:count], why_ended, window)

    def _take(self, stretch: Stretch, rows: Int64Array, before: int, heads: int) -> None:
        """Note batches whose records are in the columns. before: how many records were."""
        if not self._batches:
            self._first_offset = int(rows[0, BASE_OFFSET])
        self._stretch = stretch
        columns = self._columns.room_for(0)
        hashes = columns[0][before : self._columns.filled]
        if (rows[:, ATTRIBUTES] & (TRANSACTIONAL | CONTROL)).any():
            found = txn_batches(rows, stretch.segment, self._settings.now_ms, hashes)
            self._txn_batches.append(found)
        start, end = int(rows[0, POSITION]), int(rows[-1, POSITION] + rows[-1, SIZE])
        first_offset, last_offset = int(rows[0, BASE_OFFSET]), int(rows[-1, LAST_OFFSET])
        last = self._sections[-1] if self._sections else None
        if last is not None and last.segment == stretch.segment and last.end == start:
            heads = (last.heads + heads) % FINGERPRINT_RANGE
            self._sections[-1] = last._replace(end=end, last_offset=last_offset, heads=heads)
        else:
            self._sections.append(
                PartSection(
                    segment=stretch.segment,
                    start=start,
                    end=end,
                    first_ordinal=before,
                    first_offset=first_offset,
                    last_offset=last_offset,
                    heads=heads,
                )
            )
        self._codecs |= int(np.bitwise_or.reduce(1 << (rows[:, ATTRIBUTES] & CODEC_MASK)))
        self._log_bytes += end - start
        self._batches += len(rows)
        states = columns[3][before : self._columns.filled]
        empty, legacy, tombstones = count_in_batches(rows, states)
        self._empty += empty
        self._legacy += legacy
        self._tombstones += tombstones

    def finish(self) -> Iterator[Part]:
        """Yield the part that is being collected, if it has a batch."""
        if not self._batches:
            return
        stretch, count = self._stretch, self._columns.filled
        assert stretch is not None
        columns = tuple(column[:count] for column in self._columns.room_for(0))
        entries = self._buffers.array("entries", count, np.uint64, ENTRY_WORDS)
        starts = np.zeros((1 << stretch.hash_partition_bits) + 1, np.uint64)
        first_offset, states = self._first_offset, columns[3]
        largest = pack_part(columns, first_offset, stretch.hash_partition_bits, entries, starts)
        table = self._buffers.array("table", table_slots(largest), np.uint64)
        superseded, survivors, fingerprints = keep_latest(
            states, first_offset, entries, starts, table
        )
        kept = int(starts[-1])
        block_at = self._out.tell()
        block_checksum = self._write(entries[:kept], starts, states)
        txn_at = self._out.tell()
        txn_count, txn_checksum = self._write_txn_batches()
        reasons = states & REASON_MASK
        yield Part(
            log_id=stretch.log_id,
            group=stretch.group,
            file=self._out_path,
            block_at=block_at,
            block_checksum=block_checksum,
            entries=kept,
            survivors=survivors,
            hash_partition_bits=stretch.hash_partition_bits,
            first_record_offset=first_offset,
            log_bytes=self._log_bytes,
            batches=self._batches,
            records=count,
            superseded=superseded,
            null_keys=int(np.count_nonzero(reasons == NULL_KEY)),
            expired=int(np.count_nonzero(reasons == EXPIRED)),
            aborted=int(np.count_nonzero(reasons == ABORTED)),
            control_records=int(np.count_nonzero(states & CONTROL_RECORD)),
            txn_batches=txn_count,
            txn_at=txn_at,
            txn_checksum=txn_checksum,
            survivor_fingerprints=int(fingerprints),
            tombstones_without_horizon=self._tombstones,
            empty_batches=self._empty,
            sections=tuple(self._sections),
            legacy_batches=self._legacy,
            codecs=self._codecs,
            builds=installed_builds(),
        )
        self._start()

    def _write(
        self,
        entries: NDArray[np.uint64],
        starts: NDArray[np.uint64],
        states: NDArray[np.uint8],
    ) -> int:
        digest = xxhash.xxh3_64()
        with naming(self._out_path):
            checksums = write_entries(self._out, entries, starts)
            write_whole(self._out, states.data)
        for array in (starts.data, checksums.data, states.data):
            digest.update(array)
        return digest.intdigest()

    def _write_txn_batches(self) -> tuple[int, int]:
        """Write those of the part; return their number and checksum."""
        digest, count = xxhash.xxh3_64(), 0
        with naming(self._out_path):
            for found in self._txn_batches:
                data = found.view(np.uint8).data
                write_whole(self._out, data)
                digest.update(data)
                count += len(found)
        return count, digest.intdigest()


def scan_stretches(
    stretches: list[Stretch],
    settings: RoundSettings,
    out_path: str,
    buffers: Buffers,
    disk: Disk = LOCAL,
) -> Iterator[Part | tuple[int, Exception]]:
    """Scan stretches in order; yield parts, or a log's id and the error that sets it aside.

    stretches: those of a log stand together. After an error the rest of a log's are skipped: its
    parts are of no use.
    """
    ranges = AbortedRanges(disk)
    with naming(out_path), disk.open_raw(out_path, "wb") as out:
        for log_id, of_log in groupby(stretches, key=lambda stretch: stretch.log_id):
            builder = PartBuilder(settings, out, out_path, buffers)
            try:
                for stretch in of_log:
                    yield from _scan_stretch(stretch, builder, ranges, buffers, disk)
                    if stretch.ends_part:
                        yield from builder.finish()
                yield from builder.finish()
            except (CorruptFileError, LogChangedError, OSError) as error:
                yield log_id, error


def _scan_stretch(
    stretch: Stretch, builder: PartBuilder, ranges: AbortedRanges, buffers: Buffers, disk: Disk
) -> Iterator[Part]:
    yield from builder.open_for(stretch)
    with WindowReader(stretch.source.path, stretch.source.base_offset, buffers, disk) as reader:
        reader.check_planned(stretch.source)
        index = IndexCheck(stretch, disk)
        aborted = ranges.of(stretch)
        source = PlainSource.of(reader, stretch.end, buffers)
        at = reader.start(stretch.start)
        # of the batches that may come next; with a limit all are gone through step by step
        every: tuple[int, ...] = () if stretch.max_record_bytes is not None else (PLAIN, COMPRESSED)
        kinds = every
        while at.position < stretch.end:
            left, goes_on = None, False
            for kind in kinds:
                run = builder.add_run(stretch, source, at, aborted, kind)
                if len(run.rows):
                    index.check(run.rows)
                    at = source.read_up_to(next_place(run.rows[-1]), at)
                if run.why_ended == PART_FULL:
                    yield from builder.finish()
                left, goes_on = run.left, run.why_ended in (NO_MORE, PART_FULL)
                if goes_on or left is not None or len(run.rows):
                    kinds = (kind,)
                    break
            if goes_on:
                continue
            window = left or reader.window(at, stretch.end)
            index.check(window.rows)
            flag_aborted(window.rows, aborted)
            yield from _scan_window(stretch, window, builder, buffers)
            if left is not None:
                raise contradictory_read_error(left, at)
            if every:
                kinds = (PLAIN,) * window.ends_plain() + (COMPRESSED,) * window.ends_packed()
            at = window.next_place()
        reader.check_unchanged(stretch.source)
        index.finish()


def _check_records(window: Window, run: Payloads, limit: int) -> None:
    """Raise RecordTooLargeError at the first record that is larger than its topic allows."""
    rows = window.rows[run.first : run.end]
    batch, number, size_bytes = first_above(run.buffer, run.bounds, rows, limit)
    if batch >= 0:
        problem = (
            f"record {number} of the batch has {size_bytes} bytes, more than "
            f"max.decompressed.message.bytes of its topic ({limit}): Kafka's cleaner stops there"
        )
        raise OversizedRecordError(window.path, int(rows[batch, POSITION]), problem)


def _scan_window(
    stretch: Stretch, window: Window, builder: PartBuilder, buffers: Buffers
) -> Iterator[Part]:
    with checking_checksums(window):
        if stretch.legacy_expired:
            is_legacy = window.rows[:, ATTRIBUTES] & LEGACY != 0
            window.rows[is_legacy, ATTRIBUTES] |= LEGACY_EXPIRED
        for run in payloads(window, buffers):
            yield from builder.add(stretch, window, run)
            if stretch.max_record_bytes is not None:
                _check_records(window, run, stretch.max_record_bytes)


def txn_batches(
    rows: Int64Array, segment: int, now_ms: int, first_hashes: UInt64Array
) -> TxnBatches:
    """Return the TXN_BATCH rows of those batches of rows that are transactional or control.

    first_hashes: of all their records, as parse_records leaves them.
    """
    found = np.empty(len(rows), TXN_BATCH)
    count = note_txn_batches(rows, segment, now_ms, first_hashes, words_of(found))
    return found if count == len(rows) else found[:count].copy()
