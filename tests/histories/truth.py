"""What producers have written to one log, whatever cleaners have made of it since.

Told by the history alone: no file is read. Batches stay in the list when they are superseded; only
a truncation takes them away, since that says that they never counted.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

NO_PRODUCER = -1


class Kind(IntEnum):
    DATA = 0
    COMMIT = 1
    ABORT = 2


class Fate(IntEnum):
    COMMITTED = 0
    ABORTED = 1
    OPEN = 2


class Record(NamedTuple):
    offset: int
    key: str
    value: str | None  # None: a tombstone
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Batch:
    base_offset: int
    last_offset: int
    leader_epoch: int
    producer_id: int = NO_PRODUCER
    producer_epoch: int = -1
    last_sequence: int = -1
    transactional: bool = False
    kind: Kind = Kind.DATA
    records: tuple[Record, ...] = ()


@dataclass
class LogTruth:
    """One life of a log, from its creation to its deletion."""

    batches: list[Batch] = field(default_factory=list)
    leader_epoch: int = 0
    high_watermark: int = 0  # nothing below it is ever truncated
    producer_epochs: dict[int, int] = field(default_factory=dict)
    forgotten: set[int] = field(default_factory=set)  # producers that have to begin anew

    @property
    def end(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else 0

    def append(self, batch: Batch) -> None:
        assert batch.base_offset == self.end, (batch, self.end)
        self.batches.append(batch)

    def boundaries(self) -> list[int]:
        """The offsets to which a follower may have to truncate.

        Not before the marker of a transaction that began below the high watermark: a broker that
        has started since takes it for decided, wherever its marker is (C-23.4), and Kafka's cleaner
        removes what it supersedes. What a truncation then makes of it is Kafka's loss as well.
        """
        first = self.high_watermark
        open_since: dict[int, int] = {}
        for batch in self.batches:
            producer_id = batch.producer_id
            if batch.kind is not Kind.DATA:
                if open_since.pop(producer_id, self.end) < self.high_watermark:
                    first = max(first, batch.base_offset + 1)
            elif batch.transactional:
                open_since.setdefault(producer_id, batch.base_offset)
        return [b.base_offset for b in self.batches if b.base_offset >= first]

    def truncate(self, offset: int) -> None:
        assert offset >= self.high_watermark
        self.batches = [batch for batch in self.batches if batch.last_offset < offset]

    def forget_producers(self, start: int) -> None:
        """A broker that starts may not know those any more of which nothing is left: they begin
        anew, as after an error that tells them so.
        """
        for pid in self.producer_epochs:
            own = [b for b in self.batches if b.producer_id == pid and b.kind is Kind.DATA]
            if own and own[-1].last_offset < start:
                self.forgotten.add(pid)

    def next_sequence(self, producer_id: int) -> int:
        epoch = self.producer_epochs.get(producer_id, 0)
        for batch in reversed(self.batches):
            is_data = batch.producer_id == producer_id and batch.kind is Kind.DATA
            if is_data and batch.producer_epoch == epoch:
                return batch.last_sequence + 1
        return 0

    def open_transactions(self) -> dict[int, int]:
        """First offset by producer."""
        found: dict[int, int] = {}
        for batch in self.batches:
            if batch.kind is not Kind.DATA:
                found.pop(batch.producer_id, None)
            elif batch.transactional:
                found.setdefault(batch.producer_id, batch.base_offset)
        return found

    def fates(self) -> Iterator[tuple[Batch, Fate]]:
        """Every data batch, the last one first, and what its transaction came to."""
        ends: dict[int, Fate] = {}
        for batch in reversed(self.batches):
            if batch.kind is not Kind.DATA:
                is_abort = batch.kind is Kind.ABORT
                ends[batch.producer_id] = Fate.ABORTED if is_abort else Fate.COMMITTED
            elif batch.transactional:
                yield batch, ends.get(batch.producer_id, Fate.OPEN)
            else:
                yield batch, Fate.COMMITTED
