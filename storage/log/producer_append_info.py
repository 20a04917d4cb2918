"""What one append makes of one producer: its sequences checked, its transaction begun or ended.

Works on a copy; the log takes it over when the batches are written. Duplicates are answered before
that, in `appending`; many plain batches at once are checked by a kernel (`kernels`).
Source: Kafka, ProducerAppendInfo (checkProducerEpoch, checkSequence, inSequence); spec L-14.2 to
L-14.6.
"""

from enum import Enum, auto
from typing import NamedTuple

from storage.formats.batch_header import NO_PRODUCER_EPOCH, NO_SEQUENCE
from storage.formats.control_record import ControlType, decode_coordinator_epoch, decode_type
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
from storage.log.producer_state_entry import (
    MAX_SEQUENCE,
    BatchMetadata,
    ProducerStateEntry,
    VerificationStateEntry,
)
from storage.log.record_decoder import whole

UNKNOWN_VERSION = -1  # of a transaction
MAX_EPOCH = 2**15 - 1


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
            raise self._out_of_order(first, f"one behind {last}")

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
