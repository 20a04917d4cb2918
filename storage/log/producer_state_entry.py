"""What a log knows of each producer: its epoch, its last five batches, its open transaction.

Source: Kafka, ProducerStateEntry, BatchMetadata, VerificationStateEntry; spec L-14.1, L-15.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from storage.formats.batch_header import (
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
)
from storage.formats.producer_snapshot import ProducerEntry

BATCHES_KEPT = 5
MAX_SEQUENCE = 2**31 - 1
NO_COORDINATOR_EPOCH = -1


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
