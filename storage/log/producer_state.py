"""Active producers and open transactions of a log, as a broker that loads it has them.

The newest sound snapshot is taken, what has expired in it left out, and the batches from there to
the log end offset replayed, by their headers. Replayed producers do not expire.

A segment whose `.index` is missing is recovered before: snapshots past its base offset go, those of
the recovery take their place, and its `.txnindex` is what the replay finds. Source: Kafka,
ProducerStateManager, ProducerAppendInfo, UnifiedLog.rebuildProducerState, LogLoader.recoverSegment,
LogSegment.updateProducerState; spec C-23.4, C-23.5, F-14.3 to F-14.5, F-16.1.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.file_names import INDEX, LOG, SNAPSHOT, file_name
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats import producer_snapshot, record_batch
from storage.formats.batch_header import NO_PRODUCER_EPOCH, NO_TIMESTAMP
from storage.formats.control_record import ControlType, decode_coordinator_epoch, decode_type
from storage.formats.producer_snapshot import ProducerEntry
from storage.formats.record import MalformedRecordError
from storage.formats.record_batch import BatchHeader
from storage.formats.segment import Segment
from storage.log import segment_reader
from storage.log.log_dir import PartitionListing

if TYPE_CHECKING:  # with arrays, which a plan does without
    from storage.formats.txn_index import AbortedTxn


class CompletedTxn(NamedTuple):
    """A transaction with data whose marker was met in the replay."""

    producer_id: int
    first_offset: int
    marker_offset: int
    is_aborted: bool


class ProducerState(NamedTuple):
    """The producers of a log at its end, by producer id."""

    entries: dict[int, ProducerEntry]
    first_unstable_offset: int | None  # of the oldest open transaction, but not below the log start
    completed: tuple[CompletedTxn, ...] = ()  # in the order of their markers
    unreadable: tuple[str, ...] = ()  # snapshots that could not be read, and why
    # by base offset of each segment without .index: the entries that its recovery finds
    rebuilt_txn_indexes: Mapping[int, tuple["AbortedTxn", ...]] = {}

    def first_unstable_below(self, high_watermark: int) -> int | None:
        """Give the first unstable offset where followers have not got everything yet (C-4.5).

        A transaction whose marker is not below the high watermark is as undecided as an open one.
        """
        offsets = [t.first_offset for t in self.completed if t.marker_offset >= high_watermark]
        if self.first_unstable_offset is not None:
            offsets.append(self.first_unstable_offset)
        return min(offsets, default=None)


def load_producer_state(
    log: PartitionListing,
    log_start_offset: int,
    log_end_offset: int,
    clock: "ExpiryClock",
    clean_shutdown: bool = True,
) -> ProducerState:
    """Build the state of a log, from its snapshots and segments.

    Raise CorruptFileError where a replayed batch is damaged or contradicts what came before it.
    After a clean shutdown without any snapshot there are no producers, whatever the log holds.
    """
    recovered = _Recovered(list(log.snapshot_offsets))
    for number, segment in enumerate(log.segments):
        if segment.index_bytes is None:
            loaded = log._replace(segments=log.segments[: number + 1])
            _recover(loaded, log_start_offset, clock, recovered)
    bases = [segment.base_offset for segment in log.segments]
    kept = producer_snapshot.kept_on_loading(recovered.snapshot_offsets, bases)
    if not kept and clean_shutdown:
        return ProducerState({}, None, rebuilt_txn_indexes=recovered.txn_indexes)
    usable = [offset for offset in kept if log_start_offset < offset <= log_end_offset]
    replay = Replay(log.access)
    start = replay.load_newest(log.path, usable, clock, recovered.snapshots)
    if start is None:
        start = log_start_offset
    for log_path, position, header in _batches(log, start, log_end_offset):
        replay.apply(header, log_path, position)
    return replay.state(log_start_offset)._replace(rebuilt_txn_indexes=recovered.txn_indexes)


class ExpiryClock(NamedTuple):
    now_ms: int
    expiration_ms: int = producer_snapshot.EXPIRATION_MS

    def is_expired(self, entry: ProducerEntry) -> bool:
        is_open = entry.current_txn_first_offset is not None
        return not is_open and self.now_ms - entry.timestamp >= self.expiration_ms


@dataclass(slots=True)
class _Recovered:
    """What the recovery of segments without an index has left; of snapshots no file is made."""

    snapshot_offsets: list[int]  # of those in files that are left, and of those below
    snapshots: dict[int, dict[int, ProducerEntry]] = field(default_factory=dict)
    txn_indexes: dict[int, tuple["AbortedTxn", ...]] = field(default_factory=dict)

    def snapshot(self, offset: int, entries: Mapping[int, ProducerEntry]) -> None:
        self.snapshots[offset] = dict(entries)
        self.snapshot_offsets.append(offset)


def _recover(
    log: PartitionListing, log_start_offset: int, clock: ExpiryClock, recovered: _Recovered
) -> None:
    """Recover the last segment of a log that is loaded as far as that."""
    base_offset = log.segments[-1].base_offset
    recovered.snapshot_offsets = [
        offset for offset in recovered.snapshot_offsets if log_start_offset < offset <= base_offset
    ]
    replay = Replay(log.access)
    start = replay.load_newest(log.path, recovered.snapshot_offsets, clock, recovered.snapshots)
    end_offset = log_start_offset if start is None else start
    before = log._replace(segments=log.segments[:-1])
    for log_path, position, header in _batches(before, end_offset, base_offset):
        replay.apply(header, log_path, position)
    if base_offset > end_offset:
        recovered.snapshot(base_offset, replay.entries)
        end_offset = base_offset
    aborted = []
    log_path = os.path.join(log.path, file_name(base_offset, LOG))
    for position, header in segment_reader.read_batch_headers(log_path, files=log.access):
        if header.producer_id >= 0:
            completed = replay.apply(header, log_path, position)
            if completed is not None and completed.is_aborted:
                aborted.append(replay.aborted(completed))
        end_offset = header.next_offset
    recovered.txn_indexes[base_offset] = tuple(aborted)
    if end_offset > base_offset:
        recovered.snapshot(end_offset, replay.entries)


class Replay:
    """Producers by id, brought forward batch by batch. At most one transaction of each is open."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.entries: dict[int, ProducerEntry] = {}
        self.completed: list[CompletedTxn] = []
        self.unreadable: list[str] = []

    def load_newest(
        self,
        path: str,
        offsets: Sequence[int],
        clock: ExpiryClock,
        made: Mapping[int, Mapping[int, ProducerEntry]],
    ) -> int | None:
        """Take the newest snapshot that can be read, and give its offset. made: those in no file"""
        for offset in sorted(offsets, reverse=True):
            try:
                entries = (
                    list(made[offset].values())
                    if offset in made
                    else producer_snapshot.read(_snapshot_path(path, offset), self._files)
                )
            except (CorruptFileError, FileNotFoundError) as error:  # as Kafka: the next older one
                self.unreadable.append(str(error))
                continue
            self.entries = {
                entry.producer_id: entry for entry in entries if not clock.is_expired(entry)
            }
            return offset
        return None

    def apply(self, header: BatchHeader, log_path: str, position: int) -> CompletedTxn | None:
        """Let one batch of an idempotent or transactional producer change the state (C-23.5).

        Return the transaction that it completes, if it does.
        """
        completed = None
        known = self.entries.get(header.producer_id) or _unknown(header.producer_id)
        if not header.is_control:
            if known.current_txn_first_offset is not None and not header.is_transactional:
                problem = f"a batch outside the open transaction of producer {header.producer_id}"
                raise CorruptFileError(log_path, position, problem)
            self.entries[header.producer_id] = _after_data(known, header)
        elif not header.records_count:
            self.entries[header.producer_id] = known
        else:
            marker = read_marker(header, log_path, position, self._files)
            kind, coordinator_epoch, timestamp = marker
            if known.current_txn_first_offset is not None:
                completed = CompletedTxn(
                    known.producer_id,
                    known.current_txn_first_offset,
                    header.base_offset,
                    kind is ControlType.ABORT,
                )
                self.completed.append(completed)
            self.entries[header.producer_id] = _after_marker(
                known, header, coordinator_epoch, timestamp
            )
        return completed

    def aborted(self, completed: CompletedTxn) -> "AbortedTxn":
        """The index entry of a transaction that the latest batch has completed."""
        from storage.formats.txn_index import AbortedTxn

        open_since = (
            entry.current_txn_first_offset
            for entry in self.entries.values()
            if entry.current_txn_first_offset is not None
        )
        last_stable_offset = min(open_since, default=completed.marker_offset + 1)
        return AbortedTxn(*completed[:3], last_stable_offset)

    def state(self, log_start_offset: int) -> ProducerState:
        open_since = [
            entry.current_txn_first_offset
            for entry in self.entries.values()
            if entry.current_txn_first_offset is not None
        ]
        first_unstable = max(min(open_since), log_start_offset) if open_since else None
        completed = tuple(
            txn._replace(first_offset=max(txn.first_offset, log_start_offset))
            for txn in self.completed
        )
        return ProducerState(self.entries, first_unstable, completed, tuple(self.unreadable))


def _snapshot_path(path: str, offset: int) -> str:
    return f"{path}/{file_name(offset, SNAPSHOT)}"


def _batches(log: PartitionListing, start: int, end: int) -> Iterator[tuple[str, int, BatchHeader]]:
    """Yield the batches of producers from offset start to offset end: log, position, header."""
    segments = log.segments
    for number, segment in enumerate(segments):
        is_last = number + 1 == len(segments)
        if segment.base_offset >= end or not (is_last or segments[number + 1].base_offset > start):
            continue
        log_path = os.path.join(log.path, file_name(segment.base_offset, LOG))
        first = _position_of(log, segment, start)
        headers = segment_reader.read_batch_headers(log_path, first, files=log.access)
        for position, header in headers:
            if header.base_offset >= end:
                break
            if header.last_offset >= start and header.producer_id >= 0:
                yield log_path, position, header


def _position_of(log: PartitionListing, segment: Segment, offset: int) -> int:
    """Give a position at or before the batch that holds offset."""
    if offset <= segment.base_offset or not segment.index_bytes:
        return 0
    from storage.formats import offset_index  # with arrays: most plans replay nothing

    index_path = os.path.join(log.path, file_name(segment.base_offset, INDEX))
    entries = offset_index.read(index_path, log.access)
    offset_index.check(entries, segment.log_bytes, index_path)
    return offset_index.search(entries, segment.base_offset, offset).position


def _unknown(producer_id: int) -> ProducerEntry:
    return ProducerEntry(
        producer_id=producer_id,
        producer_epoch=NO_PRODUCER_EPOCH,
        last_sequence=None,
        last_offset=None,
        offset_delta=0,
        timestamp=NO_TIMESTAMP,
        coordinator_epoch=None,
        current_txn_first_offset=None,
    )


def _after_data(known: ProducerEntry, header: BatchHeader) -> ProducerEntry:
    txn_first_offset = known.current_txn_first_offset
    if header.is_transactional and txn_first_offset is None:
        txn_first_offset = header.base_offset
    return ProducerEntry(
        producer_id=known.producer_id,
        producer_epoch=header.producer_epoch,
        last_sequence=header.last_sequence,
        last_offset=header.last_offset,
        offset_delta=header.last_offset_delta,
        timestamp=header.max_timestamp,
        coordinator_epoch=known.coordinator_epoch,
        current_txn_first_offset=txn_first_offset,
    )


def _after_marker(
    known: ProducerEntry, header: BatchHeader, coordinator_epoch: int, timestamp: int
) -> ProducerEntry:
    if known.producer_epoch != header.producer_epoch:  # a new epoch starts without data
        known = _unknown(known.producer_id)
    return known._replace(
        producer_epoch=header.producer_epoch,
        timestamp=timestamp,
        coordinator_epoch=coordinator_epoch,
        current_txn_first_offset=None,
    )


def read_marker(
    header: BatchHeader, log_path: str, position: int, files: Files = LOCAL
) -> tuple[ControlType, int, int]:
    """Give kind, coordinator epoch and timestamp of the marker in a control batch with a record.

    Raise CorruptFileError where it does not parse or is no marker.
    """
    batch = files.read_range(log_path, position, header.size_bytes)
    record = record_batch.decode_records(batch, header, log_path, position)[0]
    try:
        kind = decode_type(record.key)
        if kind.is_marker:
            return kind, decode_coordinator_epoch(record.value), record.timestamp
    except MalformedRecordError as error:
        raise CorruptFileError(log_path, position, str(error)) from error
    problem = f"control record {kind.name} of producer {header.producer_id}, expected a marker"
    raise UnsupportedFormatError(log_path, position, problem)
