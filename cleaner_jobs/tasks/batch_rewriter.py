"""Rewrite: a piece of a segment group and its verdicts in; the cleaned batches out.

Whole batches that lose nothing are copied; the others are rebuilt (by kernels, or field by field
where a batch is not in the form in which Kafka writes it), emptied or dropped.
Source: compaction C-10 to C-12.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.kernels.batch_comparison import EXPECTED_COLUMNS
from cleaner_jobs.kernels.kept_batches import (
    DROP,
    EMPTY,
    REBUILD,
    REBUILD_WITH_HORIZON,
    KeptBatches,
    decide_batches,
)
from cleaner_jobs.kernels.rebuild import (
    GROWTH_BYTES_PER_MESSAGE,
    GROWTH_BYTES_PER_RECORD,
    SourceBuffers,
    rewrite_batches,
)
from cleaner_jobs.kernels.rewrite_runs import RunOutput, RunRules, rewrite_plain
from cleaner_jobs.kernels.scan_runs import LEFT
from cleaner_jobs.tasks.packed_batches import rebuild_packed
from cleaner_jobs.tasks.rewrite_check import Decided, WrittenBatches, check_batches, check_upgraded
from cleaner_jobs.tasks.slow_rebuild import rebuild_by_field
from cleaner_jobs.tasks.window_reader import PlainSource, check_checksums, max_records, rows_of_run
from cleaner_jobs.work_file import Sink, write_whole
from storage.formats.batch_columns import (
    ATTRIBUTES,
    LEGACY,
    POSITION,
    RECORDS_COUNT,
    SIZE,
    SLACK_BYTES,
    ByteArray,
    Int64Array,
)
from storage.formats.batch_header import CODEC_MASK, CONTROL
from storage.formats.batch_kernels import seal_batches
from storage.formats.batch_windows import NO_RECORDS, Buffers, Place, Window, next_place

OUTPUT_BYTES = 24 << 20
CHECKED_AT_ONCE_BYTES = 4 << 20  # of the source: while most of it is in the processor's cache


class CleaningRules(NamedTuple):
    """What decides, beside the verdict, what becomes of a batch of one log."""

    kept_batches: KeptBatches
    now_ms: int
    horizon_ms: int  # given by this round; -1: none (C-11.8)


class OutputCounts:
    """How many batches went out, and how; and how many records, of data and of control."""

    def __init__(self) -> None:
        self.kept = self.rebuilt = self.emptied = self.records_kept = self.control_records_kept = 0
        # on these Kafka's cleaner stops (C-11.14): of the emptied, and of the rebuilt
        self.legacy_emptied = self.refused = 0
        self.dropped = self.dropped_fingerprints = 0  # of records, by the verdicts

    def add(self, rows: Int64Array, actions: ByteArray, kept_records: NDArray[np.int32]) -> None:
        of_control = int(kept_records[rows[:, ATTRIBUTES] & CONTROL != 0].sum())
        self.records_kept += int(kept_records.sum()) - of_control
        self.control_records_kept += of_control
        counts = np.bincount(actions, minlength=REBUILD_WITH_HORIZON + 2)
        self.kept += len(actions) - int(counts[DROP])
        self.rebuilt += int(counts[REBUILD] + counts[REBUILD_WITH_HORIZON])
        self.emptied += int(counts[EMPTY])


class _Output:
    """A buffer in front of a sink: many batches, one write. What is not checked is not written."""

    def __init__(self, sink: Sink, buffers: Buffers) -> None:
        self._sink, self._buffers = sink, buffers
        self._filled = self._checked = 0
        self.written_bytes = 0

    def has_room(self, length: int) -> bool:
        return self._filled + length <= len(self._held())

    def room(self, length: int) -> ByteArray:
        """Return where the next `length` bytes go; they count once they are taken."""
        held = self._held()
        if self._filled + length > len(held):
            self.flush()
            held = self._buffers.array("out", length)
        return held[self._filled :]

    def take(self, length: int) -> None:
        self._filled += length

    def unchecked(self) -> tuple[ByteArray, int]:
        """Return a buffer, and how many bytes at its start were taken but not checked."""
        return self._held()[self._checked :], self._filled - self._checked

    def checked(self) -> None:
        self._checked = self._filled

    def flush(self) -> None:
        assert self._checked == self._filled, "what is not checked is not written"
        if self._filled:
            write_whole(self._sink, self._held().data[: self._filled])
            self.written_bytes += self._filled
            self._filled = self._checked = 0

    def _held(self) -> ByteArray:
        return self._buffers.array("out", OUTPUT_BYTES)


class PlainRun(NamedTuple):
    """Plain batches of which what stays was written."""

    rows: Int64Array
    heads: int  # see sum_heads
    why_ended: int
    left: Window | None  # batches to be gone through step by step next


class BatchRewriter:
    """Writes to a sink what becomes of windows of batches, in order."""

    def __init__(self, rules: CleaningRules, sink: Sink, buffers: Buffers) -> None:
        self._rules, self._buffers = rules, buffers
        self._output = _Output(sink, buffers)
        self._checked_batches = 0  # of the window at work, from its first on
        self.counts = OutputCounts()
        self.written = WrittenBatches()

    def finish(self) -> int:
        """Write what is held back; returns the bytes of all that was written."""
        self._output.flush()
        return self._output.written_bytes

    def rewrite(self, window: Window, states: NDArray[np.uint8]) -> None:
        """Write what becomes of a window.

        states: one for each record of the window. Raise CorruptFileError where a batch is no longer
        what was scanned, whatever the checksum says, or MiswrittenError where what would be written
        of a batch is not what stands in the window.
        """
        decided = self._decide(window, states)
        count = len(window.rows)
        packed = decided.rebuilt & (window.rows[:, ATTRIBUTES] & CODEC_MASK != 0)
        # what has become corrupt since the scan is not decompressed
        check_checksums(window, packed)
        legacy = window.rows[:, ATTRIBUTES] & LEGACY != 0
        emptied_legacy = legacy & (decided.actions == EMPTY)
        self.counts.legacy_emptied += int(np.count_nonzero(emptied_legacy))
        start = self._checked_batches = 0
        numbers = np.flatnonzero(packed | emptied_legacy)
        for run in rebuild_packed(window, numbers, decided, self._buffers):
            decided.places[run.numbers] = run.places
            decided.recompressed[run.numbers] = run.is_compressed
            self.counts.refused += run.refused
            self.written.add_digests(run.digests)
            end = int(run.numbers[-1]) + 1
            self._rewrite_up_to(window, (start, end), decided, run.buffer)
            start = end
        self._rewrite_up_to(window, (start, count), decided, NO_RECORDS)
        self._check(window, count, decided)
        if legacy.any():
            check_upgraded(window, self._buffers)

    def rewrite_plain(
        self,
        source: PlainSource,
        at: Place,
        states: NDArray[np.uint8],
        discardable: Int64Array,
    ) -> PlainRun:
        """Write what becomes of the plain batches at a place, as far as there is room.

        states: of the records from there on. discardable: see flag_discardable.
        """
        rows, rules = rows_of_run(self._buffers), self._rules
        actions = self._buffers.array("actions", len(rows))
        kept = self._buffers.array("kept", len(rows), np.int32)
        room = len(source.chunks.buffer) + GROWTH_BYTES_PER_RECORD * max_records()
        count, written, heads, why_ended, left, refused = rewrite_plain(
            source.chunks,
            at,
            states,
            RunRules(rules.kept_batches, rules.now_ms, rules.horizon_ms, discardable),
            RunOutput(
                buffer=self._output.room(room),
                rows=rows,
                actions=actions,
                kept_records=kept,
                spans=self._buffers.array("spans", len(rows), np.int64, 2),
                places=self._buffers.array("places", len(rows), np.int64, 2),
                expected=self._buffers.array("expected", len(rows), np.int64, EXPECTED_COLUMNS),
            ),
        )
        if count:
            self._output.take(written)
            stays = int(np.count_nonzero(actions[:count] != DROP))
            self.written.add(*self._output.unchecked(), np.zeros(stays, np.bool_))
            self._output.checked()
            self.counts.add(rows[:count], actions[:count], kept[:count])
            self.counts.refused += refused
            at = next_place(rows[count - 1])
        window = source.left(rows[count : count + left], at) if why_ended == LEFT else None
        return PlainRun(rows[:count], int(heads), why_ended, window)

    def _decide(self, window: Window, states: NDArray[np.uint8]) -> Decided:
        count = len(window.rows)
        assert len(states) == window.rows[:, RECORDS_COUNT].sum(), "a state for each record"
        actions = self._buffers.array("actions", count)[:count]
        kept = self._buffers.array("kept", count, np.int32)[:count]
        decide_batches(
            window.rows, states, self._rules.kept_batches, self._rules.now_ms, actions, kept
        )
        self.counts.add(window.rows, actions, kept)
        ordinals = np.zeros(count + 1, np.int64)
        np.cumsum(window.rows[:, RECORDS_COUNT], out=ordinals[1:])
        expected = self._buffers.array("expected", count, np.int64, EXPECTED_COLUMNS)[:count]
        expected[:] = 0
        rebuilt = (actions == REBUILD) | (actions == REBUILD_WITH_HORIZON)
        return Decided(
            actions=actions,
            kept_records=kept,
            states=states,
            ordinals=ordinals,
            horizon_ms=self._rules.horizon_ms,
            rebuilt=rebuilt,
            recompressed=np.zeros(count, np.bool_),
            places=np.zeros((count, 2), np.int64),
            expected=expected,
        )

    def _put(self, window: Window, row: int, decided: Decided, batch: bytes) -> None:
        self._room(window, row, decided, len(batch)).data[: len(batch)] = batch
        self._output.take(len(batch))

    def _room(self, window: Window, row: int, decided: Decided, length: int) -> ByteArray:
        """row: the first batch of which nothing was taken yet."""
        if not self._output.has_room(length):
            self._check(window, row, decided)
        return self._output.room(length)

    def _check(self, window: Window, end: int, decided: Decided) -> None:
        """Compare the output with its source batches below end, then verify their checksums.

        In this order, so that what is corrupted during the rebuild gets no checksum that fits.
        """
        start, self._checked_batches = self._checked_batches, end
        out, length = self._output.unchecked()
        written = decided.actions[start:end] != DROP
        self.written.add(out, length, decided.recompressed[start:end][written])
        try:
            check_batches(window, (start, end), decided, (out, length))
        finally:  # where the source is wrong, that is the error
            anew = decided.rebuilt[start:end] | (decided.actions[start:end] == EMPTY)
            check_checksums(window._replace(rows=window.rows[start:end]), anew)
        self._output.checked()

    def _rewrite_up_to(
        self, window: Window, span: tuple[int, int], decided: Decided, packed: ByteArray
    ) -> None:
        """Batches span[0]:span[1], however many of them are rebuilt. packed: holds some of them."""
        start, end = span
        positions = window.rows[:, POSITION]
        while start < end:
            if positions[start] - positions[self._checked_batches] >= CHECKED_AT_ONCE_BYTES:
                self._check(window, start, decided)
            limit = positions[self._checked_batches] + CHECKED_AT_ONCE_BYTES
            stop = start + 1 + int(np.searchsorted(positions[start + 1 : end], limit))
            stopped = self._rewrite_some(window, (start, stop), decided, packed)
            if stopped is not None:
                self._rebuild_by_field(window, stopped, decided)
            start = stop if stopped is None else stopped + 1

    def _rewrite_some(
        self, window: Window, span: tuple[int, int], decided: Decided, packed: ByteArray
    ) -> int | None:
        """Return the batch that is to be rebuilt by field, where this ended; None: all is done."""
        start, end = span
        rows, places = window.rows[start:end], decided.places[start:end]
        first, last = decided.ordinals[start], decided.ordinals[end]
        bound = int(rows[:, SIZE].sum()) + GROWTH_BYTES_PER_RECORD * int(last - first) + SLACK_BYTES
        legacy = np.count_nonzero(rows[:, ATTRIBUTES] & LEGACY)
        bound += GROWTH_BYTES_PER_MESSAGE * int(legacy)
        bound += int((places[:, 1] - places[:, 0]).sum())
        out = self._room(window, start, decided, bound)
        spans = self._buffers.array("spans", len(rows), np.int64, 2)
        written, fresh, stopped, refused = rewrite_batches(
            SourceBuffers(window.buffer, window.file_position, window.upgraded, packed),
            rows,
            places,
            decided.of(start, end),
            self._rules.horizon_ms,
            out,
            spans,
        )
        seal_batches(out, spans[:fresh])
        self._output.take(written)
        self.counts.refused += refused
        return None if stopped < 0 else start + stopped

    def _rebuild_by_field(self, window: Window, row: int, decided: Decided) -> None:
        """Rebuild a batch that the kernels left. Raise CorruptFileError where it does not parse."""
        check_checksums(window._replace(rows=window.rows[row : row + 1]))
        states = decided.states[decided.ordinals[row] : decided.ordinals[row + 1]]
        gives_horizon = decided.actions[row] == REBUILD_WITH_HORIZON
        given_ms = self._rules.horizon_ms if gives_horizon else None
        rebuilt = rebuild_by_field(window, row, states, given_ms)
        self.counts.refused += rebuilt.refused
        decided.expected[row] = rebuilt.expected
        self._put(window, row, decided, rebuilt.batch)
