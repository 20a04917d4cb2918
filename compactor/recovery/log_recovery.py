"""What a log becomes that a broker did not leave in good order: read and decided, nothing changed.

As a broker that starts does, every segment from the one with the recovery point on is walked with
its checksums, and so is each without an `.index`; their indexes, the producer snapshots and the
leader epochs are made anew. The log ends where the first damaged batch begins, and later segments
go. But only what a crash tears is cut off: where a whole batch with a right checksum stands behind
the damage, or the damage is below the recovery point, so that it was on disk, the log is left as
it is, with the place (docs/differences.md).

Source: Kafka, LogLoader.load, recoverLog, LeaderEpochFileCache; spec F-12.5, F-14.3, F-16.1, C-23.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from compactor.retention.log_deletion import leader_epochs_from
from storage.errors import CorruptFileError
from storage.file_names import LOG, TXN_INDEX, file_name
from storage.files.files import Entry
from storage.formats import leader_epoch_checkpoint, txn_index
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT, EpochEntry
from storage.formats.segment import Segment
from storage.formats.txn_index import AbortedTxn
from storage.log.log_dir import PartitionListing
from storage.log.producer_recovery import LogToRead, ProducerRecovery, SnapshotBook
from storage.log.producer_state import ExpiryClock
from storage.log.segment_recovery import RecoveredSegment, recover_segment
from storage.log.sound_batches import first_sound_batch


class RecoveryFacts(NamedTuple):
    """What the checkpoints and the configuration say of a log."""

    log_start_offset: int
    recovery_point: int
    index_interval_bytes: int
    segment_index_bytes: int
    clock: ExpiryClock


@dataclass(slots=True)
class RecoveredLog:
    """What is to stand in the partition directory."""

    log: PartitionListing
    segments: dict[int, RecoveredSegment] = field(default_factory=dict)  # by base offset
    before_read: dict[int, Entry | None] = field(default_factory=dict)  # their .log, likewise
    aborted: dict[int, tuple[AbortedTxn, ...]] = field(default_factory=dict)
    deleted: tuple[int, ...] = ()  # base offsets, rising
    snapshots: SnapshotBook = field(default_factory=lambda: SnapshotBook("", set()))
    epochs: Sequence[EpochEntry] = ()

    @property
    def truncated(self) -> RecoveredSegment | None:
        """The segment that is cut off, the last one of those that are left."""
        last = self.segments[max(self.segments)]
        return last if last.damage is not None else None


def recovered_log(log: PartitionListing, facts: RecoveryFacts) -> RecoveredLog:
    """Read a log that has segments. CorruptFileError where it is not to be recovered by cutting."""
    return _Recovery(log, facts).run()


class _Recovery:
    def __init__(self, log: PartitionListing, facts: RecoveryFacts) -> None:
        self._log, self._facts = log, facts
        self._sizes = {segment.base_offset: segment.log_bytes for segment in log.segments}
        book = SnapshotBook(log.path, {*log.snapshot_offsets}, access=log.access)
        self._result = RecoveredLog(log, snapshots=book)
        self._producers = ProducerRecovery(self._result.snapshots, facts.clock)
        path = os.path.join(log.path, LEADER_EPOCH_CHECKPOINT)
        self._epochs = leader_epoch_checkpoint.read(path, log.access)
        leader_epoch_checkpoint.check(self._epochs, path)

    def run(self) -> RecoveredLog:
        segments = self._log.segments
        for number, segment in enumerate(segments):
            if segment.index_bytes is None or _has_foreign_txn_index(self._log, segment):
                self._recover(segment, segments[:number])
        first = max(
            (i for i, s in enumerate(segments) if s.base_offset <= self._facts.recovery_point),
            default=0,
        )
        kept = segments
        for number, segment in enumerate(segments[first:], first):
            self._recover(segment, segments)
            if self._result.segments[segment.base_offset].damage is not None:
                kept = segments[: number + 1]
                break
        self._result.deleted = tuple(s.base_offset for s in segments[len(kept) :])
        for base_offset in self._result.deleted:
            self._result.segments.pop(base_offset, None)  # its .index was missing
        end_offset = self._result.segments[kept[-1].base_offset].end_offset
        self._require_not_below_start(kept[-1], end_offset)
        log_start_offset = max(self._facts.log_start_offset, kept[0].base_offset)
        self._producers.end(self._to_read(kept), log_start_offset, end_offset)
        epochs = [entry for entry in self._epochs if entry.start_offset < end_offset]
        self._result.epochs = leader_epochs_from(epochs, self._facts.log_start_offset)
        return self._result

    def _recover(self, segment: Segment, loaded: Sequence[Segment]) -> None:
        """loaded: the segments that a broker has loaded by then."""
        base_offset = segment.base_offset
        producers = self._producers.begin(
            self._to_read(loaded), base_offset, self._facts.log_start_offset
        )
        log_path = os.path.join(self._log.path, file_name(base_offset, LOG))
        interval_bytes = self._facts.index_interval_bytes
        self._result.before_read[base_offset] = self._log.access.look_up(log_path)
        found = recover_segment(
            log_path, base_offset, interval_bytes, producers.add, self._log.access
        )
        producers.finish()
        indexes = found.indexes
        if indexes.problem:
            raise CorruptFileError(log_path, indexes.problem_position, indexes.problem)
        if found.damage is not None:
            self._require_torn(found, found.damage)
        self._result.segments[base_offset] = found
        self._result.aborted[base_offset] = tuple(producers.aborted)
        self._sizes[base_offset] = found.log_bytes
        for entry in found.epochs:
            self._assign(entry)

    def _require_torn(self, found: RecoveredSegment, damage: CorruptFileError) -> None:
        """Raise unless nothing but a crash explains the damage, and nothing sound is behind it."""
        if found.is_out_of_order:
            raise damage
        if found.end_offset < self._facts.recovery_point:
            problem = (
                f"{damage.problem}; records from offset {found.end_offset} up to the recovery "
                f"point {self._facts.recovery_point} were on disk: no crash can have torn them"
            )
            raise CorruptFileError(damage.path, damage.position, problem)
        start = found.log_bytes
        for base_offset in [s.base_offset for s in self._log.segments]:
            if base_offset < found.base_offset:
                continue
            path = os.path.join(self._log.path, file_name(base_offset, LOG))
            sound = first_sound_batch(path, start, base_offset, self._log.access)
            if sound == found.log_bytes and base_offset == found.base_offset:
                raise damage  # the batch itself is whole, and not what a broker writes
            if sound is not None:
                behind = f"{os.path.basename(path)} has a sound batch at byte {sound}, behind it"
                problem = f"{damage.problem}; {behind}: cutting the log off here would lose that"
                raise CorruptFileError(damage.path, damage.position, problem)
            start = 0

    def _require_not_below_start(self, last: Segment, end_offset: int) -> None:
        if end_offset < self._facts.log_start_offset:
            log_path = os.path.join(self._log.path, file_name(last.base_offset, LOG))
            problem = (
                f"log ends at offset {end_offset}, before its log start offset "
                f"{self._facts.log_start_offset}: a broker that starts here deletes every segment"
            )
            raise CorruptFileError(log_path, self._sizes[last.base_offset], problem)

    def _assign(self, entry: EpochEntry) -> None:
        """A leader epoch that begins here, where it is higher than all that are known."""
        epochs = self._epochs
        if epochs and entry.epoch <= epochs[-1].epoch:
            return
        while epochs and epochs[-1].start_offset >= entry.start_offset:
            epochs.pop()
        epochs.append(entry)

    def _to_read(self, segments: Sequence[Segment]) -> LogToRead:
        bases = tuple(segment.base_offset for segment in segments)
        return LogToRead(self._log.path, bases, tuple(self._sizes[base] for base in bases))


def _has_foreign_txn_index(log: PartitionListing, segment: Segment) -> bool:
    """Whether its `.txnindex` has a transaction that ends below the segment (F-11.6)."""
    if not segment.txn_index_bytes:
        return False
    index_path = os.path.join(log.path, file_name(segment.base_offset, TXN_INDEX))
    whole = segment.txn_index_bytes // txn_index.ENTRY.size * txn_index.ENTRY.size
    entries = txn_index.decode(log.access.read_range(index_path, 0, whole), index_path)
    return any(entry.last_offset < segment.base_offset for entry in entries)
