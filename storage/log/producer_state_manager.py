"""The producers of a log, its open transactions, the snapshots of both, and their rebuilding.

Rebuilding begins with the newest snapshot and goes on with the batches after it. The snapshots are
those of the last listing, and what was done since: so loading a log of many segments lists its
directory once. No function needs arrays: a plan of many logs loads their producers, too.

Source: Kafka, ProducerStateManager, UnifiedLog.rebuildProducerState, loadProducersFromRecords; spec
L-14, L-15.
"""

import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from storage.errors import CorruptFileError
from storage.file_names import DELETED, SNAPSHOT, file_name, offset_of
from storage.files.files import Files, remove_if_exists
from storage.formats import producer_snapshot
from storage.formats.batch_header import NO_TIMESTAMP
from storage.formats.producer_snapshot import ProducerEntry
from storage.formats.record import or_none
from storage.formats.txn_index import AbortedTxn
from storage.log.batches import Batch
from storage.log.errors import (
    IllegalArgumentError,
    InvalidProducerEpochError,
    LogError,
    NumberFormatError,
)
from storage.log.offsets import OffsetMetadata
from storage.log.producer_state_entry import (
    SENTINEL,
    AppendOrigin,
    CompletedTxn,
    ProducerAppendInfo,
    ProducerMap,
    ProducerStateEntry,
    VerificationGuard,
    VerificationStateEntry,
)


def required_offset(name: str) -> int:
    """Return the offset before the first dot. Raise NumberFormatError where there is none."""
    offset = offset_of(name)
    if offset is None:
        raise NumberFormatError(f"{name} does not begin with an offset")
    return offset


class SnapshotFiles:
    """The snapshot files of a log. Who calls holds the log's lock."""

    def __init__(self, files: Files, directory: str, offsets: Iterable[int] | None = None) -> None:
        """offsets: of the files, where they are known; None: the directory is listed."""
        self._files, self._directory = files, directory
        self._offsets = set(offsets or ())
        self._may_be_gone = offsets is not None
        if offsets is None:
            self.look()

    def move_to(self, directory: str) -> None:
        """The directory of the log has got another name."""
        self._directory = directory

    def look(self) -> None:
        """List the files. Raise NumberFormatError for one without an offset."""
        names = self._files.list_names(self._directory)[1]
        self._offsets = {required_offset(name) for name in names if name.endswith(SNAPSHOT)}

    def path(self, offset: int) -> str:
        return os.path.join(self._directory, file_name(offset, SNAPSHOT))

    @property
    def offsets(self) -> tuple[int, ...]:
        """Rising."""
        return tuple(sorted(self._offsets))

    @property
    def latest(self) -> int | None:
        return max(self._offsets, default=None)

    def outside(self, start: int, end: int) -> list[int]:
        """Those that are not above start, or are above end."""
        return [offset for offset in self.offsets if not start < offset <= end]

    def read(self, offset: int) -> list[ProducerEntry]:
        """Return what one holds; CorruptFileError where it is damaged.

        One that is gone since others listed it counts as damaged. In a log that is in use that is
        a FileNotFoundError, as in Kafka: its directory is gone.
        """
        path = self.path(offset)
        try:
            return producer_snapshot.read(path, self._files)
        except FileNotFoundError as error:
            if not self._may_be_gone:
                raise
            raise CorruptFileError(path, 0, "the file is gone") from error

    def write(self, offset: int, data: bytes, sync: bool) -> str:
        """Make one, over one of the same offset; give its path."""
        path = self.path(offset)
        file = self._files.open_to_change(path, create=True)
        try:
            file.write(0, data)
            if sync:
                file.sync()
        finally:
            file.close()
        self._offsets.add(offset)
        return path

    def flush(self, path: str) -> None:
        """Sync one; it is no error if it is gone."""
        with suppress(FileNotFoundError):
            self._files.sync_file(path)

    def remove(self, offset: int) -> None:
        """It is no error if it is gone."""
        self._offsets.discard(offset)
        remove_if_exists(self._files, self.path(offset))

    def mark_deleted(self, offset: int) -> str | None:
        """Rename one, and give the path by which it is to be removed later; None without one."""
        if offset not in self._offsets:
            return None
        self._offsets.remove(offset)
        path = self.path(offset)
        try:
            self._files.rename(path, path + DELETED)
        except FileNotFoundError:
            return None
        return path + DELETED


LATE_BUFFER_MS = 5 * 60 * 1000


@dataclass(slots=True)
class ProducerStateManagerConfig:
    """Settings of the broker about producers; may change while logs are open."""

    expiration_ms: int = producer_snapshot.EXPIRATION_MS
    verifies_transactions: bool = False
    max_transaction_ms: int = 900_000


class TxnMetadata(NamedTuple):
    """A transaction by its first offset, and its marker where that is known."""

    producer_id: int
    first: OffsetMetadata
    last_offset: int | None = None


class OpenTransaction(NamedTuple):
    """A transaction without a marker."""

    producer_id: int
    producer_epoch: int
    first_offset: int
    last_timestamp_ms: int | None  # of the producer's last batch; None: it has no time


class ProducerStateManager:
    """The producers of one log; who calls holds the log's lock."""

    def __init__(self, snapshots: SnapshotFiles, settings: ProducerStateManagerConfig) -> None:
        """Without any state."""
        self.snapshots, self.settings = snapshots, settings
        self.producers = ProducerMap()
        self._verifications: dict[int, VerificationStateEntry] = {}
        self._ongoing: dict[int, TxnMetadata] = {}  # by first offset
        self._unreplicated: dict[int, TxnMetadata] = {}  # the same
        self.map_end_offset = self._last_snapshot = 0

    # ---- snapshots ----------------------------------------------------------------------------

    def take_snapshot(self, sync: bool = True) -> str | None:
        """Write a snapshot at the end offset of this state; return its path, None if it exists."""
        if self.map_end_offset <= self._last_snapshot:
            return None
        data = producer_snapshot.encode(state.entry() for state in self.producers)
        path = self.snapshots.write(self.map_end_offset, data, sync)
        self._last_snapshot = self.map_end_offset
        return path

    def remove_stray_snapshots(self, bases: list[int]) -> None:
        """Remove the snapshots at no segment's base offset.

        But for the newest of them where it is not below the last segment.
        """
        self.snapshots.look()
        offsets = self.snapshots.offsets
        kept = frozenset(producer_snapshot.kept_on_loading(offsets, bases))
        for offset in offsets:
            if offset not in kept:
                self.snapshots.remove(offset)

    # ---- loading ------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        return not len(self.producers) and not self._unreplicated

    def truncate_and_reload(self, log_start: int, log_end: int, now_ms: int) -> None:
        """Go back to the newest snapshot in the range of the log, unless the end is this one's."""
        for offset in self.snapshots.outside(log_start, log_end):
            self.snapshots.remove(offset)
        if log_end == self.map_end_offset:
            self.on_log_start(log_start)
            return
        self._forget()
        self._load_newest(log_start, now_ms)

    def _load_newest(self, log_start: int, now_ms: int) -> None:
        while (offset := self.snapshots.latest) is not None:
            try:
                entries = self.snapshots.read(offset)
            except CorruptFileError:  # as Kafka: it goes, and the next older one is taken
                self.snapshots.remove(offset)
                continue
            for entry in entries:
                state = ProducerStateEntry.of(entry)
                if not self._is_expired(state, now_ms):
                    self._load(state)
            break
        self._last_snapshot = self.map_end_offset = log_start if offset is None else offset

    def _load(self, state: ProducerStateEntry) -> None:
        self.producers.put(state)
        first = state.txn_first_offset
        if first is not None:
            self._ongoing[first] = TxnMetadata(state.producer_id, OffsetMetadata(first))

    def _forget(self) -> None:
        self.producers.clear()
        self._ongoing.clear()
        self._unreplicated.clear()

    def truncate_fully(self, offset: int) -> None:
        """Forget everything; the log starts again at an offset."""
        self._forget()
        for snapshot in self.snapshots.offsets:
            self.snapshots.remove(snapshot)
        self._last_snapshot, self.map_end_offset = 0, offset

    def on_log_start(self, log_start: int) -> None:
        """The log start has moved: what lies below it is decided."""
        self._forget_unreplicated(log_start)
        self.map_end_offset = max(self.map_end_offset, log_start)
        latest = self.snapshots.latest
        self._last_snapshot = log_start if latest is None else latest

    def on_high_watermark(self, high_watermark: int) -> None:
        self._forget_unreplicated(high_watermark)

    def _forget_unreplicated(self, below: int) -> None:
        for first, txn in list(self._unreplicated.items()):
            if txn.last_offset is not None and txn.last_offset < below:
                del self._unreplicated[first]

    # ---- appends ------------------------------------------------------------------------------

    def prepare(self, producer_id: int, origin: AppendOrigin) -> ProducerAppendInfo:
        """Return what an append works on; nothing changes before `update`."""
        current = self.producers.get(producer_id) or ProducerStateEntry(producer_id)
        return ProducerAppendInfo(current, origin, self._verifications.get(producer_id))

    def update(self, append: ProducerAppendInfo) -> None:
        """Take over what an append has made of its producer."""
        updated = append.updated
        known = self.producers.get(updated.producer_id)
        if known is None:
            self.producers.put(updated)
        else:
            known.take_over(updated)
        for started in append.started:
            self._ongoing[started.first.offset] = TxnMetadata(*started)

    def complete(self, txn: CompletedTxn) -> None:
        """A transaction has its marker; it counts until the high watermark is past that."""
        open_txn = self._ongoing.pop(txn.first_offset, None)
        if open_txn is None:
            raise IllegalArgumentError(f"no transaction is open from offset {txn.first_offset}")
        self._unreplicated[txn.first_offset] = open_txn._replace(last_offset=txn.last_offset)

    def last_stable_offset(self, txn: CompletedTxn) -> int:
        """Return the last stable offset for the index entry of a transaction that ends."""
        others = [f for f, o in self._ongoing.items() if o.producer_id != txn.producer_id]
        return min(others, default=txn.last_offset + 1)

    @property
    def first_unstable(self) -> OffsetMetadata | None:
        """The first offset of the oldest transaction that is open, or not replicated yet."""
        if not self._unreplicated and not self._ongoing:  # as nearly always
            return None
        found = [self._unreplicated[min(self._unreplicated)]] if self._unreplicated else []
        if self._ongoing:
            found.append(self._ongoing[min(self._ongoing)])
        return min((txn.first for txn in found), key=lambda first: first.offset, default=None)

    @property
    def open_transactions(self) -> tuple[OpenTransaction, ...]:
        """The transactions without a marker, by their first offset."""
        found = [
            OpenTransaction(known.producer_id, known.epoch, first, or_none(known.last_timestamp))
            for known in self.producers
            if (first := known.txn_first_offset) is not None
        ]
        return tuple(sorted(found, key=lambda txn: txn.first_offset))

    def has_late_transaction(self, now_ms: int) -> bool:
        """Whether the oldest open transaction is older than any may be."""
        if not self._ongoing:
            return False
        producer = self.producers.get(self._ongoing[min(self._ongoing)].producer_id)
        last = NO_TIMESTAMP if producer is None else producer.last_timestamp
        return last > 0 and now_ms - last > self.settings.max_transaction_ms + LATE_BUFFER_MS

    # ---- expiry and verification --------------------------------------------------------------

    def _is_expired(self, state: ProducerStateEntry, now_ms: int) -> bool:
        age = now_ms - state.last_timestamp
        return state.txn_first_offset is None and age >= self.settings.expiration_ms

    def remove_expired(self, now_ms: int) -> None:
        """Forget producers without an open transaction that have not written for too long."""
        expired = [s.producer_id for s in self.producers if self._is_expired(s, now_ms)]
        self.producers.remove(expired)
        for producer_id, entry in list(self._verifications.items()):
            if now_ms - entry.created_ms >= self.settings.expiration_ms:
                del self._verifications[producer_id]

    def has_ongoing(self, producer_id: int, epoch: int) -> bool:
        state = self.producers.get(producer_id)
        return state is not None and state.txn_first_offset is not None and state.epoch == epoch

    def verification(self, producer_id: int) -> VerificationStateEntry | None:
        return self._verifications.get(producer_id)

    def start_verification(
        self, producer_id: int, new: VerificationStateEntry
    ) -> VerificationGuard:
        """Note that a transaction that is about to begin is being verified with its coordinator.

        Return what the append that begins it has to hand in: the guard of what was noted first, or
        SENTINEL where the transaction is going on. Raise InvalidProducerEpochError for an older
        epoch. Source: Kafka, UnifiedLog.maybeStartTransactionVerification; spec L-15.
        """
        state = self.producers.get(producer_id)
        if state is not None and state.epoch > new.epoch:
            raise InvalidProducerEpochError(
                f"producer {producer_id} has epoch {state.epoch}, asked for {new.epoch}"
            )
        if self.has_ongoing(producer_id, new.epoch):
            return SENTINEL
        known = self._verifications.setdefault(producer_id, new)
        known.update(new.lowest_sequence, new.epoch)
        return known.guard

    def end_verification(self, producer_id: int) -> None:
        self._verifications.pop(producer_id, None)

    def guard(self, producer_id: int) -> VerificationGuard:
        found = self._verifications.get(producer_id)
        return SENTINEL if found is None else found.guard


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


def rebuild_producers(
    manager: ProducerStateManager,
    segments: Sequence[ReplayedSegment],
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
    bases = [segment.base_offset for segment in segments[-2:]]
    if manager.snapshots.latest is None and after_clean_shutdown:
        for offset in [*bases, end]:
            manager.map_end_offset = offset
            manager.take_snapshot()
        return completed
    was_empty = manager.is_empty and manager.map_end_offset >= end
    manager.truncate_and_reload(log_start, end, now_ms)
    if end > manager.map_end_offset and not was_empty:
        first = max(bisect_right(segments, manager.map_end_offset, key=_base) - 1, 0)
        last = bisect_right(segments, end, key=_base) - 1
        for number in range(first, bisect_left(segments, end, key=_base)):
            segment = segments[number]
            start = max(segment.base_offset, manager.map_end_offset, log_start)
            manager.map_end_offset = start
            if segment.base_offset in (*bases, end):
                manager.take_snapshot()
            completed += _replay(manager, segment, start, end if number == last else None)
    manager.map_end_offset = end
    manager.take_snapshot()
    return completed


def _base(segment: ReplayedSegment) -> int:
    return segment.base_offset


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

    What follows a damaged batch is not looked at.
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
