"""A segment is recovered: every batch checked, both indexes made anew, what is damaged cut off.

Batches without a producer, of a leader epoch that is known, are gone through by a kernel, which
reads them itself where it may. All others are looked at one by one, and so are all of them where
there are no kernels.
Source: Kafka, LogSegment.recover; spec L-11.1, F-12.5.
"""

from contextlib import suppress
from itertools import islice
from types import ModuleType
from typing import NamedTuple, Protocol

import numpy as np

from storage.formats import offset_index, time_index
from storage.formats.batch_header import BATCH_HEADER_BYTES, MAX_LAST_OFFSET, NO_LEADER_EPOCH
from storage.log.batches import Batch
from storage.log.errors import (
    CorruptRecordError,
    InvalidRecordError,
    KafkaError,
    LogError,
    LogSegmentOffsetOverflowError,
)
from storage.log.lazy_kernels import COMPILED
from storage.log.leader_epoch_file_cache import LeaderEpochFileCache
from storage.log.offsets import UNKNOWN
from storage.log.producer_state_manager import ProducerStateManager, replay_recovered
from storage.log.segment import LogSegment

_WINDOW_BYTES = 512 * 1024  # stays in the processor's cache
_MOST_BATCHES = _WINDOW_BYTES // BATCH_HEADER_BYTES + 1
_ENTRIES = 2 * _MOST_BATCHES  # that are written to the indexes at once
_ROOM = (
    _WINDOW_BYTES,
    _ENTRIES * offset_index.ENTRY.itemsize,
    _ENTRIES * time_index.ENTRY.itemsize,
)
_MOST_ONE_BY_ONE = 1024


class Recovery(Protocol):
    """What a recovery brings up to date beside the segment."""

    @property
    def latest_epoch(self) -> int | None:
        """The highest leader epoch so far."""
        ...

    def take(self, batch: Batch) -> None:
        """A sound batch of format v2."""
        ...

    def pass_over(self, end_offset: int) -> None:
        """Sound batches up to an offset that have no producer, and no higher leader epoch."""
        ...


class RecoveredSegment(NamedTuple):
    """What a recovery has found in a segment, and left of it."""

    base_offset: int
    log_bytes: int  # up to the end of its last sound batch
    cut_bytes: int  # behind it
    end_offset: int  # behind its last sound batch
    # of the first batch that begins below the end of one before it, which Kafka does not look at
    out_of_order_at: int | None


def recover_segment(
    segment: LogSegment, manager: ProducerStateManager, epochs: LeaderEpochFileCache
) -> RecoveredSegment:
    """Recover a segment with the producers that stand before it; raise what `recover` raises."""
    return recover(segment, _ProducersAndEpochs(segment, manager, epochs))


class _ProducersAndEpochs:
    """Producers and leader epochs, brought up to date as a segment is recovered."""

    def __init__(
        self, segment: LogSegment, manager: ProducerStateManager, epochs: LeaderEpochFileCache
    ) -> None:
        self._segment, self._manager, self._epochs = segment, manager, epochs

    @property
    def latest_epoch(self) -> int | None:
        return self._epochs.latest

    def take(self, batch: Batch) -> None:
        epoch, latest = batch.leader_epoch, self.latest_epoch
        if epoch >= 0 and (latest is None or epoch > latest):
            self._epochs.assign(epoch, batch.base_offset)
        if batch.has_producer_id:
            replay_recovered(self._manager, batch, self._segment.add_aborted)
        self._manager.map_end_offset = batch.last_offset + 1

    def pass_over(self, end_offset: int) -> None:
        self._manager.map_end_offset = end_offset


def recover(segment: LogSegment, recovery: Recovery) -> RecoveredSegment:
    """Recover a segment. A LogError that ends it says where in the `.log` that was."""
    return _Recovering(segment, recovery).run()


class _Recovering:
    def __init__(self, segment: LogSegment, recovery: Recovery) -> None:
        self._segment, self._recovery = segment, recovery
        self._valid = self._last_indexed = 0  # positions
        self._end = segment.base_offset
        self._out_of_order_at: int | None = None
        self._room = tuple(  # for a window of the log, and for entries of its batches
            np.empty(size, np.uint8) for size in _ROOM
        )

    def run(self) -> RecoveredSegment:
        segment = self._segment
        segment.reset_indexes()
        try:
            with suppress(CorruptRecordError, InvalidRecordError):  # the log ends before it
                self._take_all(COMPILED.kernels_for(segment.size_bytes))
        except LogError as error:
            error.place = segment.base_offset, self._valid
            raise
        truncated = segment.size_bytes - self._valid
        segment.log.truncate_to(self._valid)
        segment.offset_index.file.trim()
        segment.time_index.maybe_append(*segment.largest_so_far, skip_full_check=True)
        segment.time_index.opened().trim()
        return RecoveredSegment(
            segment.base_offset, self._valid, truncated, self._end, self._out_of_order_at
        )

    def _take_all(self, kernels: ModuleType | None) -> None:
        """Up to the end of the log, or to the error that tells that it is damaged."""
        if kernels is None:
            for batch in self._segment.log.batches():
                self._take(batch)
            return
        one_by_one = 1  # more and more of them, as long as the kernel knows none
        while True:
            before = self._valid
            self._take_known(kernels)
            one_by_one = 1 if self._valid > before else min(2 * one_by_one, _MOST_ONE_BY_ONE)
            before = self._valid
            for batch in islice(self._segment.log.batches(before), one_by_one):
                self._take(batch)
            if self._valid == before:
                return

    def _take(self, batch: Batch) -> None:
        segment, position = self._segment, self._valid
        batch.require_valid()
        if batch.last_offset > MAX_LAST_OFFSET:  # Kafka counts on from the lowest offset there is
            raise KafkaError(f"last offset {batch.last_offset}: no offset can follow it")
        first = batch.last_offset if batch.is_legacy else batch.base_offset
        if first < self._end and self._out_of_order_at is None:
            self._out_of_order_at = position
        if not segment.holds(batch.last_offset):
            raise LogSegmentOffsetOverflowError(segment.base_offset, batch.last_offset)
        segment.note_time(batch.max_timestamp, batch.last_offset)
        if position - self._last_indexed > segment.index_interval_bytes:
            segment.put_in_indexes(batch.last_offset, position)
            self._last_indexed = position
        self._valid += batch.size_bytes
        self._end = batch.last_offset + 1
        if not batch.is_legacy:
            self._recovery.take(batch)

    def _take_known(self, kernels: ModuleType) -> None:
        """As far as the kernel knows the batches."""
        segment, log = self._segment, self._segment.log
        offsets, times = segment.offset_index, segment.time_index
        epoch = self._recovery.latest_epoch
        limits = kernels.RecoveryLimits(
            segment.base_offset,
            segment.index_interval_bytes,
            offsets.opened().max_entries,
            times.opened().max_entries - 1,
            NO_LEADER_EPOCH if epoch is None else epoch,
        )
        has_offsets = offsets.entries > 0
        state = np.array(
            [
                *(self._valid, self._last_indexed, *segment.largest_so_far, self._end),
                *(offsets.entries, offsets.last_offset if has_offsets else UNKNOWN),
                *(times.file.entries, *times.last),
            ],
            np.int64,
        )
        window, offset_entries, time_entries = self._room
        held, how = log.file.held(), kernels.MORE
        pread, end = kernels.pread_address(), segment.size_bytes
        while how == kernels.MORE:
            start = self._valid
            if held.descriptor < 0:  # of a file that a kernel may not read
                end = start + self._read_window(start)
            how, offset_bytes, time_bytes = kernels.recover_batches(
                (pread, held.descriptor, end), window, limits, state, offset_entries, time_entries
            )
            self._valid, self._last_indexed, largest_ms, largest_offset, end_offset, *_ = (
                state.tolist()
            )
            segment.note_time(largest_ms, largest_offset)
            if offset_bytes:
                offsets.file.add(offset_entries[:offset_bytes].data)
                times.add(time_entries[:time_bytes].data)
            if self._valid > start:
                self._end = end_offset
                self._recovery.pass_over(end_offset)

    def _read_window(self, position: int) -> int:
        """Fill the window from a position of the log; how many bytes there are."""
        window = self._room[0]
        data = self._segment.log.read(
            position, min(len(window), self._segment.size_bytes - position)
        )
        window[: len(data)] = np.frombuffer(data, np.uint8)
        return len(data)
