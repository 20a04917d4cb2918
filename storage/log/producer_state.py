"""Active producers and open transactions of a log, as a broker that loads the log has them.

The engine's ProducerStateManager does it, on files that are only read: the newest sound snapshot is
taken, what has expired in it left out, and the batches from there to the log end offset replayed,
by their headers. Replayed producers do not expire.

A segment whose `.index` is missing is recovered before: snapshots past its base offset go, those of
the recovery take their place, and its `.txnindex` is what the replay finds. Source: Kafka,
LogLoader, UnifiedLog.rebuildProducerState; spec C-23.4, C-23.5, F-14.3 to F-14.5, F-16.1.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.file_names import INDEX, LOG, Segment, file_name
from storage.files.files import Files
from storage.files.overlay import OverlayFiles
from storage.formats import producer_snapshot
from storage.formats.producer_snapshot import ProducerEntry
from storage.formats.record_batch import BatchHeader
from storage.formats.txn_index import AbortedTxn
from storage.log.batches import Batch
from storage.log.errors import BufferUnderflowError, IllegalArgumentError, LogError
from storage.log.log_dir import PartitionListing
from storage.log.producer_state_entry import CompletedTxn
from storage.log.producer_state_manager import (
    OpenTransaction,
    ProducerStateManager,
    ProducerStateManagerConfig,
    SnapshotFiles,
    rebuild_producers,
    replay_recovered,
)
from storage.log.segment_reader import read_batch_headers


class ExpiryClock(NamedTuple):
    """The time at which producers are loaded, and how long one stays without a write."""

    now_ms: int
    expiration_ms: int = producer_snapshot.EXPIRATION_MS


class ProducerState(NamedTuple):
    """The producers of a log at its end, by producer id."""

    entries: dict[int, ProducerEntry]
    first_unstable_offset: int | None  # of the oldest open transaction, but not below the log start
    open_transactions: tuple[OpenTransaction, ...] = ()  # by first offset
    completed: tuple[CompletedTxn, ...] = ()  # in the replay, in the order of their markers
    # by base offset of each segment without .index: the entries that its recovery finds
    rebuilt_txn_indexes: Mapping[int, tuple[AbortedTxn, ...]] = {}

    def first_unstable_below(self, high_watermark: int) -> int | None:
        """Give the first unstable offset where followers have not got everything yet (C-4.5).

        A transaction whose marker is not below the high watermark is as undecided as an open one.
        """
        offsets = [t.first_offset for t in self.completed if t.last_offset >= high_watermark]
        if self.first_unstable_offset is not None:
            offsets.append(self.first_unstable_offset)
        return min(offsets, default=None)


def load_producer_state(
    log: PartitionListing,
    log_start_offset: int,
    log_end_offset: int,
    clock: ExpiryClock,
    clean_shutdown: bool = True,
) -> ProducerState:
    """Build the state of a log, from its snapshots and segments.

    Raise CorruptFileError where a replayed batch is damaged or contradicts what came before it.
    After a clean shutdown without any snapshot there are no producers, whatever the log holds.
    """
    files = OverlayFiles(log.access)  # for the snapshots that Kafka would write
    try:
        loading = _Loading(log, files, log_start_offset, clock)
        return loading.load(log_end_offset, clean_shutdown)
    finally:
        files.close()


class _Loading:
    """Loads the producers of one log."""

    def __init__(
        self, log: PartitionListing, files: Files, log_start: int, clock: ExpiryClock
    ) -> None:
        self._log, self._files, self._log_start, self._clock = log, files, log_start, clock
        self._settings = ProducerStateManagerConfig(clock.expiration_ms)
        self._snapshots = SnapshotFiles(self._files, log.path, log.snapshot_offsets)

    def load(self, log_end: int, clean_shutdown: bool) -> ProducerState:
        log, rebuilt = self._log, {}
        for number, segment in enumerate(log.segments):
            if segment.index_bytes is None:
                rebuilt[segment.base_offset] = self._recover(number)
        segments = [_ListedSegment(log, segment) for segment in log.segments]
        bases = [segment.base_offset for segment in segments]
        kept = producer_snapshot.kept_on_loading(self._snapshots.offsets, bases)
        manager = self._manager(kept)
        completed = self._rebuild(manager, segments, log_end, clean_shutdown)
        return self._state(manager, completed, rebuilt)

    def _manager(self, offsets: Sequence[int]) -> ProducerStateManager:
        snapshots = SnapshotFiles(self._files, self._log.path, offsets)
        return ProducerStateManager(snapshots, self._settings)

    def _rebuild(
        self,
        manager: ProducerStateManager,
        segments: "Sequence[_ListedSegment]",
        end: int,
        is_clean: bool,
    ) -> list[CompletedTxn]:
        try:
            return rebuild_producers(
                manager, segments, self._log_start, end, self._clock.now_ms, is_clean
            )
        except LogError as error:
            raise _as_corrupt(error, self._log.path) from error

    def _recover(self, number: int) -> tuple[AbortedTxn, ...]:
        """Recover a segment of a log that is loaded as far as that; the entries of its index."""
        log = self._log
        base = log.segments[number].base_offset
        manager = ProducerStateManager(self._snapshots, self._settings)
        before = [_ListedSegment(log, segment) for segment in log.segments[:number]]
        self._rebuild(manager, before, base, False)
        aborted: list[AbortedTxn] = []
        for batch in _ListedSegment(log, log.segments[number]).batches():
            try:
                if batch.has_producer_id:
                    replay_recovered(manager, batch, aborted.append)
            except LogError as error:
                error.place = base, batch.position
                raise _as_corrupt(error, log.path) from error
            manager.map_end_offset = batch.last_offset + 1
        manager.take_snapshot()
        return tuple(aborted)

    def _state(
        self,
        manager: ProducerStateManager,
        completed: list[CompletedTxn],
        rebuilt: Mapping[int, tuple[AbortedTxn, ...]],
    ) -> ProducerState:
        entries = {known.producer_id: known.entry() for known in manager.producers}
        open_txns, start = manager.open_transactions, self._log_start
        return ProducerState(
            entries,
            max(open_txns[0].first_offset, start) if open_txns else None,
            open_txns,
            tuple(txn._replace(first_offset=max(txn.first_offset, start)) for txn in completed),
            rebuilt,
        )


def _as_corrupt(error: LogError, path: str) -> CorruptFileError:
    base, position = error.place or (0, 0)
    is_no_marker = isinstance(error, IllegalArgumentError)
    kind = UnsupportedFormatError if is_no_marker else CorruptFileError
    return kind(os.path.join(path, file_name(base, LOG)), position, str(error))


class _ListedSegment:
    """One segment of a listing, whose batches are read by their headers."""

    def __init__(self, log: PartitionListing, segment: Segment) -> None:
        self._log, self._segment = log, segment
        self.base_offset = segment.base_offset

    def batches_between(self, start: int, end: int | None) -> tuple[int, Iterable[Batch]]:
        position = self._position_of(start)
        return position, self._between(position, start, end)

    def _between(self, position: int, start: int, end: int | None) -> Iterator[Batch]:
        for batch in self.batches(position):
            last_offset = batch.last_offset
            if end is not None and last_offset >= end:
                return
            if last_offset >= start:
                yield batch

    def batches(self, position: int = 0) -> Iterator[Batch]:
        """Yield the batches from a position on, which is the start of one."""
        files = self._log.access
        path = os.path.join(self._log.path, file_name(self.base_offset, LOG))
        source = _LogFile(files, path)
        for at, header in read_batch_headers(path, position, files=files):
            yield _batch(source, at, header)

    def _position_of(self, offset: int) -> int:
        """Give a position at or before the batch that holds offset."""
        segment, log = self._segment, self._log
        if offset <= segment.base_offset or not segment.index_bytes:
            return 0
        from storage.formats import offset_index  # with arrays: most plans replay nothing

        path = os.path.join(log.path, file_name(segment.base_offset, INDEX))
        entries = offset_index.read(path, log.access)
        offset_index.check(entries, segment.log_bytes, path)
        return offset_index.search(entries, segment.base_offset, offset).position


_Replayed = Sequence[_ListedSegment]


class _LogFile:
    """A `.log` from which the few batches are read that are needed whole."""

    def __init__(self, files: Files, path: str) -> None:
        self._files, self._path = files, path

    def read_fully(self, position: int, length: int) -> bytes:
        data = self._files.read_range(self._path, position, length)
        if len(data) < length:
            raise BufferUnderflowError(f"{length} bytes expected, and only {len(data)} left")
        return data


def _batch(source: _LogFile, position: int, header: BatchHeader) -> Batch:
    batch = Batch(source, position, header.base_offset, header.size_bytes, header.magic)
    if not batch.is_legacy:
        batch.header = header
    return batch
