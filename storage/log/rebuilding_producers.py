"""Rebuild the producers of a log from its newest snapshot and the batches behind it.

Nothing here needs arrays: a plan of many logs loads their producers, too.
Source: Kafka, UnifiedLog.rebuildProducerState, loadProducersFromRecords; spec L-14.15.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Protocol

from storage.formats.txn_index import AbortedTxn
from storage.log.batches import Batch
from storage.log.errors import LogError
from storage.log.offsets import OffsetMetadata
from storage.log.producer_append_info import AppendOrigin, CompletedTxn, ProducerAppendInfo
from storage.log.producer_state_manager import ProducerStateManager

NoteAborted = Callable[[AbortedTxn], object]

FIRST_VERSION = 0  # of a transaction


class ReplayedSegment(Protocol):
    """A segment whose batches can be replayed."""

    base_offset: int

    def batches_between(self, start: int, end: int | None) -> tuple[int, Iterable[Batch]]:
        """Return the position of the batch that holds offset `start`, and the batches from there.

        end: stop before the batch that holds this offset; None: go on to the last batch.
        """
        ...


class ReplayedSegments(Protocol):
    """The segments of a log, by base offset."""

    def last_bases(self, count: int) -> list[int]:
        """Return the base offsets of the last segments."""
        ...

    def floor(self, offset: int) -> ReplayedSegment | None:
        """Return the segment with the greatest base offset that is not above offset."""
        ...

    def values(self, start: int, end: int) -> Sequence[ReplayedSegment]:
        """Return the segments of a range of offsets, from the one that holds start on."""
        ...


def rebuild_producers(
    manager: ProducerStateManager,
    segments: ReplayedSegments,
    log_start: int,
    end: int,
    now_ms: int,
    after_clean_shutdown: bool,
) -> list[CompletedTxn]:
    """Bring the state of producers to an offset, with snapshots on the way as Kafka takes them.

    After a clean shutdown without any snapshot no segment is read: there were no producers.
    Return the transactions that the replay completed, in the order of their markers.
    """
    completed: list[CompletedTxn] = []
    bases = segments.last_bases(2)
    if manager.latest_snapshot is None and after_clean_shutdown:
        for offset in [*bases, end]:
            manager.map_end_offset = offset
            manager.take_snapshot()
        return completed
    was_empty = manager.is_empty and manager.map_end_offset >= end
    manager.truncate_and_reload(log_start, end, now_ms)
    if end > manager.map_end_offset and not was_empty:
        last = segments.floor(end)
        for segment in segments.values(manager.map_end_offset, end):
            start = max(segment.base_offset, manager.map_end_offset, log_start)
            manager.map_end_offset = start
            if segment.base_offset in (*bases, end):
                manager.take_snapshot()
            completed += _replay(manager, segment, start, end if segment is last else None)
    manager.map_end_offset = end
    manager.take_snapshot()
    return completed


def _replay(
    manager: ProducerStateManager, segment: ReplayedSegment, start: int, end: int | None
) -> list[CompletedTxn]:
    """Replay a segment from an offset on, up to the batch that holds end, if there is one."""
    appends: dict[int, ProducerAppendInfo] = {}
    completed: list[CompletedTxn] = []
    position: int | None = None
    try:
        position, batches = segment.batches_between(start, end)
        for batch in batches:
            position = batch.position
            if batch.has_producer_id:
                txn = update_producer(
                    manager, batch, appends, None, AppendOrigin.REPLICATION, FIRST_VERSION
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
    return completed


def update_all(manager: ProducerStateManager, appends: dict[int, ProducerAppendInfo]) -> None:
    """Take over what an append, or a replay, has made of its producers.

    Kafka's table puts the later ones first, and so they come to stand in the next snapshot.
    """
    for append in reversed(appends.values()):
        manager.update(append)


def update_producer(
    manager: ProducerStateManager,
    batch: Batch,
    appends: dict[int, ProducerAppendInfo],
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


def replay_recovered(manager: ProducerStateManager, batch: Batch, note: NoteAborted) -> None:
    """Replay one batch of a producer in a segment that is being recovered."""
    append = manager.prepare(batch.producer_id, AppendOrigin.REPLICATION)
    txn = append.append(batch, None, FIRST_VERSION)
    manager.update(append)
    if txn is not None:
        index_and_complete(manager, txn, note)


def aborted_in(manager: ProducerStateManager, batches: Iterable[Batch]) -> list[AbortedTxn]:
    """Find the aborted transactions whose markers are among the next batches.

    What is behind a damaged batch is not looked at.
    """
    found: list[AbortedTxn] = []
    with suppress(LogError):
        for batch in batches:
            batch.require_valid()
            if batch.has_producer_id:
                replay_recovered(manager, batch, found.append)
    return found


def index_and_complete(manager: ProducerStateManager, txn: CompletedTxn, note: NoteAborted) -> None:
    """Note the index entry of a transaction if it is aborted, and complete the transaction."""
    last_stable = manager.last_stable_offset(txn)
    if txn.is_aborted:
        note(AbortedTxn(txn.producer_id, txn.first_offset, txn.last_offset, last_stable))
    manager.complete(txn)
