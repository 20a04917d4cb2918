"""What a log knows of each producer, and what one append makes of it.

`ProducerStateEntry` has a producer's epoch, its last five batches and its open transaction.
`ProducerAppendInfo` checks the sequences of an append, and begins or ends the transaction, on a
copy; the log takes it over when the batches are written. Duplicates are answered before that, in
`appending`; a kernel checks many plain batches at once (`kernels`).

Source: Kafka, ProducerStateEntry, BatchMetadata, VerificationStateEntry, ProducerAppendInfo
(checkProducerEpoch, checkSequence, inSequence); spec L-14.1 to L-14.6, L-15.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple, Self

from storage.formats.batch_header import (
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
)
from storage.formats.control_record import ControlType, decode_coordinator_epoch, decode_type
from storage.formats.producer_snapshot import ProducerEntry
from storage.formats.record import MalformedRecordError, Record
from storage.log.batches import Batch
from storage.log.errors import (
    IllegalArgumentError,
    InvalidProducerEpochError,
    InvalidRecordError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from storage.log.offsets import OffsetMetadata
from storage.log.record_decoder import whole

BATCHES_KEPT = 5
MAX_SEQUENCE = 2**31 - 1
NO_COORDINATOR_EPOCH = -1
UNKNOWN_VERSION = -1  # of a transaction
MAX_EPOCH = 2**15 - 1


class BatchMetadata(NamedTuple):
    """A batch that a producer sent."""

    last_sequence: int
    last_offset: int
    offset_delta: int  # from its first offset to its last
    timestamp: int

    @property
    def first_sequence(self) -> int:
        first = self.last_sequence - self.offset_delta
        return first if first >= 0 else first + 2**31

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


@dataclass(slots=True)
class ProducerStateEntry:
    """One producer. Changed in place, under the log's lock."""

    producer_id: int
    epoch: int = NO_PRODUCER_EPOCH
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    last_timestamp: int = NO_TIMESTAMP
    txn_first_offset: int | None = None  # of the open transaction
    batches: list[BatchMetadata] = field(default_factory=list)  # the last ones

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1

    def change_epoch(self, epoch: int) -> None:
        """Another epoch begins without batches."""
        if self.epoch != epoch:
            self.batches.clear()
            self.epoch = epoch

    def add_batch(self, epoch: int, batch: BatchMetadata) -> None:
        self.change_epoch(epoch)
        self._keep(batch)
        self.last_timestamp = batch.timestamp

    def _keep(self, batch: BatchMetadata) -> None:
        if len(self.batches) == BATCHES_KEPT:
            del self.batches[0]
        self.batches.append(batch)

    def take_over(self, newer: "ProducerStateEntry") -> None:
        """Take what an append has made of this producer."""
        self.change_epoch(newer.epoch)
        for batch in newer.batches:
            self._keep(batch)
        self.coordinator_epoch = newer.coordinator_epoch
        self.last_timestamp = newer.last_timestamp
        self.txn_first_offset = newer.txn_first_offset

    def duplicate_of(self, epoch: int, first: int, last: int) -> BatchMetadata | None:
        """The batch that was sent with these sequences before."""
        if epoch != self.epoch:
            return None
        found = (b for b in self.batches if (b.first_sequence, b.last_sequence) == (first, last))
        return next(found, None)

    def without_batches(self) -> "ProducerStateEntry":
        """A copy for an append, which notes the batches that come with it."""
        return ProducerStateEntry(
            producer_id=self.producer_id,
            epoch=self.epoch,
            coordinator_epoch=self.coordinator_epoch,
            last_timestamp=self.last_timestamp,
            txn_first_offset=self.txn_first_offset,
        )

    def entry(self) -> ProducerEntry:
        """Return it as a snapshot has it."""
        last = self.batches[-1] if self.batches else None
        return ProducerEntry(
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            last_sequence=None if self.last_sequence == NO_SEQUENCE else self.last_sequence,
            last_offset=None if last is None else last.last_offset,
            offset_delta=0 if last is None else last.offset_delta,
            timestamp=self.last_timestamp,
            coordinator_epoch=(
                None if self.coordinator_epoch == NO_COORDINATOR_EPOCH else self.coordinator_epoch
            ),
            current_txn_first_offset=self.txn_first_offset,
        )

    @classmethod
    def of(cls, entry: ProducerEntry) -> Self:
        """Return the producer of an entry of a snapshot."""
        batches = []
        if entry.last_offset is not None:
            sequence = NO_SEQUENCE if entry.last_sequence is None else entry.last_sequence
            batches = [
                BatchMetadata(sequence, entry.last_offset, entry.offset_delta, entry.timestamp)
            ]
        coordinator = entry.coordinator_epoch
        return cls(
            producer_id=entry.producer_id,
            epoch=entry.producer_epoch,
            coordinator_epoch=NO_COORDINATOR_EPOCH if coordinator is None else coordinator,
            last_timestamp=entry.timestamp,
            txn_first_offset=entry.current_txn_first_offset,
            batches=batches,
        )


class ProducerMap:
    """Producers by id, in the order in which Kafka's hash map gives them to a snapshot.

    Its table grows with the number of producers, and never shrinks; those of one place in it stand
    as they came.
    """

    def __init__(self) -> None:
        self._by_id: dict[int, ProducerStateEntry] = {}
        self._places = 16

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, producer_id: int) -> ProducerStateEntry | None:
        return self._by_id.get(producer_id)

    def put(self, state: ProducerStateEntry) -> None:
        self._by_id[state.producer_id] = state
        while len(self._by_id) > self._places * 3 // 4:
            self._places *= 2

    def remove(self, producer_ids: Iterable[int]) -> None:
        for producer_id in producer_ids:
            self._by_id.pop(producer_id, None)

    def clear(self) -> None:
        self._by_id.clear()

    def __iter__(self) -> Iterator[ProducerStateEntry]:
        """Iterate in the order of the table."""
        return iter(sorted(self._by_id.values(), key=lambda state: self._place(state.producer_id)))

    def _place(self, producer_id: int) -> int:
        unsigned = producer_id & 2**64 - 1
        code = (unsigned ^ unsigned >> 32) & 2**32 - 1
        return (code ^ code >> 16) & self._places - 1


class VerificationGuard:
    """What a caller of `start_transaction_verification` hands in with the append that follows."""

    __slots__ = ()


SENTINEL = VerificationGuard()  # there is nothing to verify


@dataclass(slots=True)
class VerificationStateEntry:
    """A producer whose next transaction is being verified with its coordinator."""

    created_ms: int
    lowest_sequence: int
    epoch: int
    supports_epoch_bump: bool
    guard: VerificationGuard = field(default_factory=VerificationGuard)

    def update(self, sequence: int, epoch: int) -> None:
        if epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence
        if epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence


class AppendOrigin(Enum):
    """Who appends, and so what is checked."""

    REPLICATION = auto()  # a follower, or a replay: nothing is refused for sequence or epoch
    COORDINATOR = auto()  # of groups or transactions
    CLIENT = auto()  # everything is checked
    RAFT_LEADER = auto()  # gives offsets and epochs itself


class CompletedTxn(NamedTuple):
    """A transaction with data whose marker is appended."""

    producer_id: int
    first_offset: int
    last_offset: int  # of the marker
    is_aborted: bool


class StartedTxn(NamedTuple):
    """A transaction, and where its first batch is."""

    producer_id: int
    first: OffsetMetadata


class ProducerAppendInfo:
    """The state of one producer as it will be."""

    def __init__(
        self,
        current: ProducerStateEntry,
        origin: AppendOrigin,
        verification: VerificationStateEntry | None,
    ) -> None:
        """current: as the log has it, and not changed."""
        self._current, self._origin, self._verification = current, origin, verification
        self.updated = current.without_batches()
        self.started: list[StartedTxn] = []

    def append(
        self, batch: Batch, first: OffsetMetadata | None, transaction_version: int
    ) -> CompletedTxn | None:
        """Take in a batch; give the transaction that it ends, if it does and that has data."""
        if not batch.is_control:
            self._append_data(batch, first or OffsetMetadata(batch.base_offset))
            return None
        record = next(map(whole, batch.records()), None)
        if record is None:  # what is left of a transaction that was cleaned away
            return None
        return self._append_marker(batch, record, transaction_version)

    def _append_data(self, batch: Batch, first: OffsetMetadata) -> None:
        if batch.producer_epoch < self.updated.epoch:
            self._refuse_epoch(batch)
        if self._origin is AppendOrigin.CLIENT:
            self._check_sequence(batch.producer_epoch, batch.base_sequence)
        delta = (batch.last_offset - first.offset + 2**31) % 2**32 - 2**31
        metadata = BatchMetadata(batch.last_sequence, batch.last_offset, delta, batch.max_timestamp)
        self.updated.add_batch(batch.producer_epoch, metadata)
        is_open = self.updated.txn_first_offset is not None
        if is_open and not batch.is_transactional:
            raise InvalidTxnStateError(
                f"producer {batch.producer_id} has a transaction open, and offset "
                f"{batch.base_offset} is outside of it"
            )
        if not is_open and batch.is_transactional:
            self.updated.txn_first_offset = first.offset
            self.started.append(StartedTxn(batch.producer_id, first))

    def _refuse_epoch(self, batch: Batch) -> None:
        if self._origin is not AppendOrigin.REPLICATION:
            raise InvalidProducerEpochError(
                f"producer {batch.producer_id} has epoch {self.updated.epoch}, "
                f"and the batch epoch {batch.producer_epoch}"
            )

    def _check_sequence(self, epoch: int, first: int) -> None:
        known, committed, verified = self.updated, self._current, self._verification
        if verified is not None:
            is_new = verified.supports_epoch_bump and first != 0 and not committed.batches
            if is_new or first > verified.lowest_sequence:
                raise self._out_of_order(first, "the sequence that is being verified")
        if epoch != known.epoch:
            if first != 0 and known.epoch != NO_PRODUCER_EPOCH:
                raise self._out_of_order(first, "0, as the epoch is new")
            return
        if known.batches:
            last = known.last_sequence
        else:
            last = committed.last_sequence if epoch == committed.epoch else NO_SEQUENCE
        follows = first == last + 1 or (first == 0 and last == MAX_SEQUENCE)
        if committed.epoch != NO_PRODUCER_EPOCH and not follows:
            raise self._out_of_order(first, f"the one after {last}")

    def _out_of_order(self, first: int, expected: str) -> OutOfOrderSequenceError:
        producer_id = self._current.producer_id
        return OutOfOrderSequenceError(
            f"producer {producer_id} sends sequence {first}, expected {expected}"
        )

    def _append_marker(self, batch: Batch, record: Record, version: int) -> CompletedTxn | None:
        kind, coordinator_epoch = _marker(record)
        if version == UNKNOWN_VERSION:
            if self._origin is not AppendOrigin.REPLICATION:
                raise IllegalArgumentError("a marker without the version of its transaction")
            version = 0
        if self._is_fenced(batch.producer_epoch, version):
            self._refuse_epoch(batch)
        state = self.updated
        if (
            state.coordinator_epoch > coordinator_epoch
            and self._origin is not AppendOrigin.REPLICATION
        ):
            raise TransactionCoordinatorFencedError(
                f"a marker of coordinator epoch {coordinator_epoch}, "
                f"after one of {state.coordinator_epoch}"
            )
        completed = None
        if state.txn_first_offset is not None:
            is_aborted = kind is ControlType.ABORT
            completed = CompletedTxn(
                state.producer_id, state.txn_first_offset, batch.base_offset, is_aborted
            )
        state.change_epoch(batch.producer_epoch)
        state.coordinator_epoch = coordinator_epoch
        state.last_timestamp = record.timestamp
        state.txn_first_offset = None
        return completed

    def _is_fenced(self, epoch: int, version: int) -> bool:
        known = self.updated.epoch
        if version < 2:
            return epoch < known
        is_retry = epoch == known and (self.updated.txn_first_offset is None or epoch == MAX_EPOCH)
        return epoch <= known and not is_retry


def _marker(record: Record) -> tuple[ControlType, int]:
    try:
        kind = decode_type(record.key)
        if not kind.is_marker:
            raise IllegalArgumentError(f"a control record of type {kind.name} is no marker")
        return kind, decode_coordinator_epoch(record.value)
    except MalformedRecordError as error:
        raise InvalidRecordError(str(error)) from error
