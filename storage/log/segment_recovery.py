"""Recovers a segment: checks every batch, rebuilds both indexes, and cuts off what is damaged.

Batches without a producer, of a leader epoch that is known, are gone through by a kernel, which
reads them itself where it may. All others are looked at one by one, and so are all of them where
there are no kernels.
Source: Kafka, LogSegment.recover (LogLoader.recoverSegment); spec L-11.1, F-12.5.
"""

from contextlib import suppress
from itertools import islice
from types import ModuleType
from typing import NamedTuple

import numpy as np

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
from storage.log.producer_state_manager import ProducerStateManager, replay_recovered
from storage.log.segment import IncomingBytes, LogSegment

_WINDOW_BYTES = 512 * 1024  # stays in the processor's cache
_MOST_ONE_BY_ONE = 1024


class RecoveredSegment(NamedTuple):
    """The outcome of a recovery of a segment."""

    base_offset: int
    log_bytes: int  # up to the end of its last sound batch
    cut_bytes: int  # after it
    end_offset: int  # after its last sound batch
    # of the first batch that begins below the end of one before it, which Kafka does not look at
    out_of_order_at: int | None


def recover_segment(
    segment: LogSegment, manager: ProducerStateManager, epochs: LeaderEpochFileCache
) -> RecoveredSegment:
    """Recover a segment, and bring producers and leader epochs that stand before it up to date.

    A LogError that ends it says where in the `.log` that was.
    """
    return _Recovering(segment, manager, epochs).run()


class _Recovering:
    def __init__(
        self, segment: LogSegment, manager: ProducerStateManager, epochs: LeaderEpochFileCache
    ) -> None:
        self._segment, self._manager, self._epochs = segment, manager, epochs
        self._valid = 0  # the position after the last sound batch
        self._end = segment.base_offset
        self._out_of_order_at: int | None = None
        self._window = np.empty(_WINDOW_BYTES, np.uint8)
        self._batches = np.empty((_WINDOW_BYTES // BATCH_HEADER_BYTES, 3), np.int64)

    def run(self) -> RecoveredSegment:
        segment = self._segment
        segment.reset_indexes()
        since_entry, segment.bytes_since_entry = segment.bytes_since_entry, 0
        try:
            with suppress(CorruptRecordError, InvalidRecordError):  # the log ends before it
                self._take_all(COMPILED.kernels_for(segment.size_bytes))
        except LogError as error:
            error.place = segment.base_offset, self._valid
            raise
        finally:
            segment.bytes_since_entry = since_entry  # as in Kafka, appends know nothing of this
        truncated = segment.size_bytes - self._valid
        segment.log.truncate_to(self._valid)
        segment.offset_index.file.trim()
        segment.time_index.maybe_append(*segment.largest_so_far, skip_full_check=True)
        segment.time_index.file.opened().trim()
        return RecoveredSegment(
            segment.base_offset, self._valid, truncated, self._end, self._out_of_order_at
        )

    def _take_all(self, kernels: ModuleType | None) -> None:
        """Take all batches up to the end of the log, or to an error that says it is damaged."""
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
        incoming = IncomingBytes(batch.size_bytes, batch.max_timestamp, batch.last_offset)
        segment.index(incoming, position)
        self._valid += batch.size_bytes
        self._end = batch.last_offset + 1
        if not batch.is_legacy:
            self._follow(batch)

    def _follow(self, batch: Batch) -> None:
        """Bring leader epochs and producers past a sound batch of format v2."""
        epoch, latest = batch.leader_epoch, self._epochs.latest
        if epoch >= 0 and (latest is None or epoch > latest):
            self._epochs.assign(epoch, batch.base_offset)
        if batch.has_producer_id:
            replay_recovered(self._manager, batch, self._segment.add_aborted)
        self._manager.map_end_offset = batch.last_offset + 1

    def _take_known(self, kernels: ModuleType) -> None:
        """Take batches as far as the kernel knows them, and the indexes take their entries."""
        segment, log = self._segment, self._segment.log
        epoch = self._epochs.latest
        limits = kernels.RecoveryLimits(
            base_offset=segment.base_offset, epoch=NO_LEADER_EPOCH if epoch is None else epoch
        )
        state = np.array([self._valid, self._end], np.int64)
        held, how = log.file.held(), kernels.MORE
        pread, end = kernels.pread_address(), segment.size_bytes
        while how == kernels.MORE and segment.is_indexed_in_order(self._end):
            if held.descriptor < 0:  # of a file that a kernel may not read
                end = self._valid + self._read_window()
            how, count = kernels.recover_batches(
                (pread, held.descriptor, end), self._window, limits, state, self._batches
            )
            taken = 0
            if count:
                taken = segment.index_batches(kernels, self._valid, self._batches[:count])
            if taken:
                self._valid += int(self._batches[:taken, 0].sum())
                self._end = int(self._batches[taken - 1, 1]) + 1
                self._manager.map_end_offset = self._end
            if taken < count:  # the next one is refused, and says why by itself
                return

    def _read_window(self) -> int:
        """Fill the window from the next batch on; return how many bytes there are."""
        length = min(len(self._window), self._segment.size_bytes - self._valid)
        data = self._segment.log.read(self._valid, length)
        self._window[: len(data)] = np.frombuffer(data, np.uint8)
        return len(data)
