"""The producers of a log as its segments have them, from the newest snapshot on.

Source: Kafka, UnifiedLog.rebuildProducerState, loadProducersFromRecords; spec L-14.15.
"""

from storage.formats.txn_index import AbortedTxn
from storage.log.engine.batches import Batch
from storage.log.engine.epochs import LeaderEpochs
from storage.log.engine.errors import LogError
from storage.log.engine.offsets import OffsetMetadata
from storage.log.engine.producer_append import AppendOrigin, CompletedTxn, ProducerAppend
from storage.log.engine.producer_manager import ProducerManager
from storage.log.engine.recovering import RecoveredSegment, recover
from storage.log.engine.segment import LogSegment
from storage.log.engine.segments import LogSegments

_MAX_INT = 2**31 - 1
_FIRST_VERSION = 0  # of a transaction


def rebuild_producers(
    manager: ProducerManager,
    segments: LogSegments,
    log_start: int,
    end: int,
    now_ms: int,
    after_clean_shutdown: bool,
) -> None:
    """Bring the state of producers to an offset, with snapshots on the way as Kafka takes them.

    After a clean shutdown without any snapshot no segment is read: there were no producers.
    """
    bases = segments.last_bases(2)
    if manager.latest_snapshot is None and after_clean_shutdown:
        for offset in [*bases, end]:
            manager.map_end_offset = offset
            manager.take_snapshot()
        return
    was_empty = manager.is_empty and manager.map_end_offset >= end
    manager.truncate_and_reload(log_start, end, now_ms)
    if end > manager.map_end_offset and not was_empty:
        last = segments.floor(end)
        for segment in segments.values(manager.map_end_offset, end):
            start = max(segment.base_offset, manager.map_end_offset, log_start)
            manager.map_end_offset = start
            if segment.base_offset in (*bases, end):
                manager.take_snapshot()
            _replay(manager, segment, start, end if segment is last else None)
    manager.map_end_offset = end
    manager.take_snapshot()


def _replay(manager: ProducerManager, segment: LogSegment, start: int, end: int | None) -> None:
    """Replay a segment from an offset on, to the batch that holds end, if there is one."""
    appends: dict[int, ProducerAppend] = {}
    completed: list[CompletedTxn] = []
    stop = segment.size_bytes
    position: int | None = None
    try:
        found = None if end is None else segment.translate(end)
        stop = stop if found is None else found.position
        read = segment.read(start, _MAX_INT, stop)
        if read is None or read.records is None:
            return
        position = read.metadata.position
        for batch in read.records.batches():
            position = batch.position
            if batch.has_producer_id:
                txn = update_producer(
                    manager, batch, appends, None, AppendOrigin.REPLICATION, _FIRST_VERSION
                )
                if txn is not None:
                    completed.append(txn)
    except LogError as error:
        met_at = error.position if position is None else position
        error.place = segment.base_offset, met_at or 0
        raise
    update_all(manager, appends)
    for txn in completed:
        manager.complete(txn)


def update_all(manager: ProducerManager, appends: dict[int, ProducerAppend]) -> None:
    """Take over what an append, or a replay, has made of its producers.

    Kafka's table puts the later ones first, and so they come to stand in the next snapshot.
    """
    for append in reversed(appends.values()):
        manager.update(append)


def update_producer(
    manager: ProducerManager,
    batch: Batch,
    appends: dict[int, ProducerAppend],
    first: OffsetMetadata | None,
    origin: AppendOrigin,
    transaction_version: int,
) -> CompletedTxn | None:
    """Let one batch change what an append makes of its producer."""
    producer_id = batch.producer_id
    append = appends.get(producer_id)
    if append is None:
        append = appends[producer_id] = manager.prepare(producer_id, origin)
    completed = append.append(batch, first, transaction_version)
    if batch.is_transactional:
        known = manager.verification(producer_id)
        stays = (
            known is not None
            and batch.is_control
            and known.supports_epoch_bump
            and known.epoch == batch.producer_epoch
        )
        if not stays:
            manager.end_verification(producer_id)
    return completed


def recover_segment(
    segment: LogSegment, manager: ProducerManager, epochs: LeaderEpochs
) -> RecoveredSegment:
    """Recover a segment with the producers that stand before it."""
    return recover(segment, _ProducersAndEpochs(segment, manager, epochs))


class _ProducersAndEpochs:
    """What is recovered beside a segment."""

    def __init__(self, segment: LogSegment, manager: ProducerManager, epochs: LeaderEpochs) -> None:
        self._segment, self._manager, self._epochs = segment, manager, epochs

    @property
    def latest_epoch(self) -> int | None:
        return self._epochs.latest

    def take(self, batch: Batch) -> None:
        epoch, latest = batch.leader_epoch, self.latest_epoch
        if epoch >= 0 and (latest is None or epoch > latest):
            self._epochs.assign(epoch, batch.base_offset)
        if batch.has_producer_id:
            self._apply(batch)
        self._manager.map_end_offset = batch.last_offset + 1

    def _apply(self, batch: Batch) -> None:
        manager = self._manager
        append = manager.prepare(batch.producer_id, AppendOrigin.REPLICATION)
        txn = append.append(batch, None, _FIRST_VERSION)
        manager.update(append)
        if txn is not None:
            index_and_complete(self._segment, manager, txn)

    def pass_over(self, end_offset: int) -> None:
        self._manager.map_end_offset = end_offset


def index_and_complete(segment: LogSegment, manager: ProducerManager, txn: CompletedTxn) -> None:
    """Note an aborted transaction in the segment's index; no transaction of it is open then."""
    last_stable = manager.last_stable_offset(txn)
    if txn.is_aborted:
        segment.add_aborted(
            AbortedTxn(txn.producer_id, txn.first_offset, txn.last_offset, last_stable)
        )
    manager.complete(txn)
