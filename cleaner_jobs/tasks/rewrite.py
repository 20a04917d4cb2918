"""Rewrite: a piece of a segment group and its verdicts in; a cleaned stretch of log out.

Whole batches that lose nothing are copied; the others are rebuilt (by kernels, or field by field
where a batch is not in the form in which Kafka writes it), emptied or dropped.
Source: compaction C-10 to C-12.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    lacks_producer_state,
    rewrite_batches,
)
from cleaner_jobs.tasks.batch_window import Window, check_checksums
from cleaner_jobs.tasks.packed_batches import Chosen, RebuiltBatch, rebuild_packed
from cleaner_jobs.tasks.sink import Sink, write_whole
from cleaner_jobs.tasks.worker_buffers import WorkerBuffers
from storage.errors import CorruptFileError
from storage.formats.batch_columns import (
    ATTRIBUTES,
    LEGACY,
    POSITION,
    REASON_MASK,
    RECORDS_COUNT,
    SIZE,
    SLACK_BYTES,
    ByteArray,
    Int64Array,
)
from storage.formats.batch_header import CHECKED_AT, CODEC_MASK, CONTROL, CRC_AT, DELETE_HORIZON
from storage.formats.java_text import through_java
from storage.formats.record_batch import (
    CRC,
    BatchOptions,
    decode_header,
    decode_records,
    encode_batch,
)
from storage.kernels.crc32c import crc32c

OUTPUT_BYTES = 24 << 20


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
    """A buffer in front of a sink: many batches, one write."""

    def __init__(self, sink: Sink, buffers: WorkerBuffers) -> None:
        self._sink, self._buffers = sink, buffers
        self._filled = 0
        self.written_bytes = 0

    def room(self, length: int) -> ByteArray:
        """Where the next `length` bytes go; they count once they are taken."""
        held = self._buffers.array("out", OUTPUT_BYTES)
        if self._filled + length > len(held):
            self.flush()
            held = self._buffers.array("out", length)
        return held[self._filled :]

    def take(self, length: int) -> None:
        self._filled += length

    def flush(self) -> None:
        if self._filled:
            held = self._buffers.array("out", OUTPUT_BYTES)
            write_whole(self._sink, held.data[: self._filled])
            self.written_bytes += self._filled
            self._filled = 0


class BatchRewriter:
    """Writes to a sink what becomes of windows of batches, in order."""

    def __init__(self, rules: CleaningRules, sink: Sink, buffers: WorkerBuffers) -> None:
        self._rules, self._buffers = rules, buffers
        self._output = _Output(sink, buffers)
        self.counts = OutputCounts()

    def finish(self) -> int:
        """Write what is held back; returns the bytes of all that was written."""
        self._output.flush()
        return self._output.written_bytes

    def rewrite(self, window: Window, states: NDArray[np.uint8]) -> None:
        """states: one for each record of the window. Raise CorruptFileError where one is no more
        what was scanned, whatever the checksum says.
        """
        count = len(window.rows)
        assert len(states) == window.rows[:, RECORDS_COUNT].sum(), "a state for each record"
        actions = self._buffers.array("actions", count)[:count]
        kept = self._buffers.array("kept", count, np.int32)[:count]
        decide_batches(
            window.rows, states, self._rules.kept_batches, self._rules.now_ms, actions, kept
        )
        self.counts.add(window.rows, actions, kept)
        rebuilt = (actions == REBUILD) | (actions == REBUILD_WITH_HORIZON)
        # what has become corrupt since the scan gets no fresh checksum
        check_checksums(window._replace(rows=window.rows[rebuilt | (actions == EMPTY)]))
        legacy = window.rows[:, ATTRIBUTES] & LEGACY != 0
        emptied_legacy = legacy & (actions == EMPTY)
        self.counts.legacy_emptied += int(np.count_nonzero(emptied_legacy))
        packed = rebuilt & (window.rows[:, ATTRIBUTES] & CODEC_MASK != 0)
        packed |= emptied_legacy
        ordinals = np.zeros(count + 1, np.int64)
        np.cumsum(window.rows[:, RECORDS_COUNT], out=ordinals[1:])
        start = 0
        for i, batch in self._rebuilt_packed(window, packed, (actions, kept, states), ordinals):
            if start < i:
                self._rewrite_plain(window, (start, i), (actions, kept, states), ordinals)
            self.counts.refused += batch.refused
            if batch.batch is None:
                its_states = states[ordinals[i] : ordinals[i + 1]]
                self._rebuild_by_field(window, i, (int(actions[i]), its_states))
            else:
                self._put(batch.batch)
            start = i + 1
        self._rewrite_plain(window, (start, count), (actions, kept, states), ordinals)

    def _rebuilt_packed(
        self,
        window: Window,
        packed: NDArray[np.bool_],
        verdict: tuple[ByteArray, NDArray[np.int32], NDArray[np.uint8]],
        ordinals: Int64Array,
    ) -> Iterator[tuple[int, RebuiltBatch]]:
        """The compressed batches that are rebuilt, and legacy ones emptied, with their numbers."""
        actions, kept, states = verdict
        numbers = np.flatnonzero(packed)
        given = actions[numbers] == REBUILD_WITH_HORIZON
        horizons_ms = np.where(given, self._rules.horizon_ms, -1).astype(np.int64)
        chosen = Chosen(numbers, kept[numbers], horizons_ms, ordinals[numbers], states)
        return zip(numbers.tolist(), rebuild_packed(window, chosen, self._buffers), strict=True)

    def _put(self, batch: bytes) -> None:
        self._output.room(len(batch)).data[: len(batch)] = batch
        self._output.take(len(batch))

    def _rewrite_plain(
        self,
        window: Window,
        span: tuple[int, int],
        verdict: tuple[ByteArray, NDArray[np.int32], NDArray[np.uint8]],
        ordinals: Int64Array,
    ) -> None:
        """Batches span[0]:span[1], which need no codec, however many of them are rebuilt."""
        start, end = span
        actions, kept, states = verdict
        while start < end:
            rows = window.rows[start:end]
            records = int(ordinals[end] - ordinals[start])
            bound = int(rows[:, SIZE].sum()) + GROWTH_BYTES_PER_RECORD * records + SLACK_BYTES
            legacy = np.count_nonzero(rows[:, ATTRIBUTES] & LEGACY)
            bound += GROWTH_BYTES_PER_MESSAGE * int(legacy)
            out = self._output.room(bound)
            spans = self._buffers.array("spans", len(rows), np.int64, 2)
            written, fresh, stopped, refused = rewrite_batches(
                (window.buffer, window.upgraded),
                window.file_position,
                rows,
                (actions[start:end], kept[start:end], states[ordinals[start] : ordinals[end]]),
                self._rules.horizon_ms,
                out,
                spans,
            )
            _seal_batches(out, spans[:fresh])
            self._output.take(written)
            self.counts.refused += refused
            if stopped < 0:
                return
            i = start + stopped
            its_states = states[ordinals[i] : ordinals[i + 1]]
            self._rebuild_by_field(window, i, (int(actions[i]), its_states))
            start = i + 1

    def _rebuild_by_field(
        self,
        window: Window,
        i: int,
        verdict: tuple[int, NDArray[np.uint8]],
    ) -> None:
        """A batch with over-long varints, odd lengths or header keys beyond ASCII.

        Raise CorruptFileError for what the kernels left, since it does not parse.
        """
        action, states = verdict
        row = window.rows[i]
        position = int(row[POSITION])
        if row[ATTRIBUTES] & LEGACY:  # upgraded by us, so all else is as Kafka writes it
            problem = "the offsets of its messages do not ascend"
            raise CorruptFileError(window.path, position, problem)
        at = position - window.file_position
        batch = window.buffer.data[at : at + int(row[SIZE])]
        header = decode_header(batch, position, window.path)
        records = decode_records(batch, header, window.path, position)
        kept = [
            record._replace(headers=tuple((through_java(key), v) for key, v in record.headers))
            for record, state in zip(records, states, strict=True)
            if not state & REASON_MASK
        ]
        predates = any(record.timestamp < -1 for record in kept)
        self.counts.refused += predates or lacks_producer_state(row)
        horizon_ms: int | None = None
        if action == REBUILD_WITH_HORIZON:
            horizon_ms = self._rules.horizon_ms
        elif header.attributes & DELETE_HORIZON:
            horizon_ms = header.base_timestamp
        options = BatchOptions(
            base_offset=header.base_offset,
            last_offset=header.last_offset,
            partition_leader_epoch=header.partition_leader_epoch,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            is_transactional=header.is_transactional,
            is_control=header.is_control,
            log_append_time_ms=header.max_timestamp if header.is_log_append_time else None,
            delete_horizon_ms=horizon_ms if horizon_ms is not None and horizon_ms >= 0 else None,
        )
        self._put(encode_batch(kept, header.codec, options))


def _seal_batches(out: ByteArray, spans: Int64Array) -> None:
    view = out.data
    for start, end in spans.tolist():
        _seal_batch(view, start, end)


def _seal_batch(view: memoryview, start: int, end: int) -> None:
    """Give the batch at start:end the checksum of what it holds (F-4.2)."""
    CRC.pack_into(view, start + CRC_AT, crc32c(view[start + CHECKED_AT : end]))
