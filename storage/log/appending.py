"""An append, step by step. What a step has done stays done where a later one refuses.

1. The batches are looked at one by one; nothing is changed.
2. As a leader: they are validated, and get their offsets (`validation`).
3. The leader epochs of the batches are noted.
4. More than a segment takes is refused.
5. The active segment is rolled, where that is due.
6. Producers are checked; what was sent before is answered with its offsets.
7. The batches are written, the log end moves, and producers and transactions follow.
8. The log is flushed, where flush.messages asks for it.

Source: Kafka, UnifiedLog.append, analyzeAndValidateRecords, analyzeAndValidateProducerState; spec
L-18.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from storage.codecs.compression import Codec
from storage.formats.batch_header import NO_LEADER_EPOCH, NO_TIMESTAMP
from storage.log.batches import Batch, in_memory
from storage.log.errors import (
    CorruptRecordError,
    InvalidProducerEpochError,
    InvalidRecordError,
    InvalidTxnStateError,
    OffsetsOutOfOrderError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
    UnexpectedAppendOffsetError,
)
from storage.log.log_state import LogState, flush, roll
from storage.log.offsets import UNKNOWN, OffsetMetadata
from storage.log.producer_state_entry import (
    SENTINEL,
    AppendOrigin,
    BatchMetadata,
    CompletedTxn,
    ProducerAppendInfo,
    VerificationGuard,
)
from storage.log.producer_state_manager import index_and_complete, update_all, update_producer
from storage.log.segment import IncomingBytes, LogSegment
from storage.log.validation import (
    AppendRequest,
    LogAppendInfo,
    Validation,
    give_offsets,
    require_next_offset,
    validate,
)

_MAX_INT = 2**31 - 1
_MAX_LONG = 2**63 - 1


def append(
    state: LogState, data: bytearray, info: LogAppendInfo, how: AppendRequest
) -> LogAppendInfo:
    """Append what `analyze` has looked at, under the log's lock."""
    state.local.require_open()
    del data[info.valid_bytes :]
    if how.gives_offsets:
        data, info = _validated(state, data, info, how)
    else:
        _require_after_end(state, data, info)
    batches = list(in_memory(data))
    _note_epochs(state, batches)
    if len(data) > state.config.segment_bytes:
        raise RecordBatchTooLargeError(
            f"{len(data)} bytes at once, and segment.bytes is {state.config.segment_bytes}"
        )
    segment = _segment_for(state, info, len(data))
    place = OffsetMetadata(
        info.first_or_last_of_first_batch, segment.base_offset, segment.size_bytes
    )
    producers = _check_producers(state, batches, place, how)
    duplicate = producers.duplicate
    if duplicate is not None:
        return info._replace(
            first_offset=duplicate.first_offset,
            last_offset=duplicate.last_offset,
            log_append_time=duplicate.timestamp,
            log_start_offset=state.watermarks.log_start,
        )
    state.local.append(info.last_offset, data, batches)
    _follow(state, info, segment, producers)
    return info


def _follow(
    state: LogState, info: LogAppendInfo, segment: LogSegment, producers: "_ProducersOfAppend"
) -> None:
    """Move high watermark, producers and transactions past the bytes, and flush if that is due."""
    local, manager = state.local, state.producers
    state.watermarks.follow_end()
    update_all(manager, producers.updated)
    for txn in producers.completed:
        index_and_complete(manager, txn, segment.add_aborted)
    manager.map_end_offset = info.last_offset + 1
    state.watermarks.update_first_unstable()
    if local.end_offset - local.recovery_point >= state.config.flush_messages:
        flush(state, local.end_offset, including=False)


# ---- what is looked at first -----------------------------------------------------------------


def analyze(state: LogState, data: bytes | bytearray, how: AppendRequest) -> LogAppendInfo:
    """Look at the frames and headers of batches, and at their checksums."""
    seen = _Seen()
    checks_size = how.origin is not AppendOrigin.REPLICATION
    for batch in _not_skipped(data, how):
        seen.first(batch)
        if checks_size and batch.size_bytes > state.config.max_message_bytes:
            raise _too_large(batch, state)
        if not batch.is_valid():
            raise CorruptRecordError(
                f"the batch at byte {batch.position} does not match its checksum"
            )
        seen.add(batch, not how.gives_offsets)
    return LogAppendInfo(
        first_offset=seen.first_offset,
        last_offset=seen.last_offset,
        max_timestamp=seen.max_timestamp,
        log_append_time=NO_TIMESTAMP,
        log_start_offset=state.watermarks.log_start,
        last_leader_epoch=None if seen.leader_epoch == NO_LEADER_EPOCH else seen.leader_epoch,
        source_codec=seen.codec,
        valid_bytes=seen.valid_bytes,
        last_offset_of_first_batch=seen.last_offset_of_first_batch,
    )


def _not_skipped(data: bytes | bytearray, how: AppendRequest) -> Iterator[Batch]:
    """Yield batches; a follower leaves out what begins with an epoch that it does not know yet."""
    for batch in in_memory(data):
        if how.origin is AppendOrigin.RAFT_LEADER and batch.leader_epoch != how.leader_epoch:
            raise InvalidRecordError(
                f"a batch of leader epoch {batch.leader_epoch}, expected {how.leader_epoch}"
            )
        is_of_client = how.origin is AppendOrigin.CLIENT and not batch.is_legacy
        if is_of_client and batch.base_offset != 0:
            raise InvalidRecordError(f"base offset {batch.base_offset} of a client, expected 0")
        if how.origin is AppendOrigin.REPLICATION and batch.leader_epoch > how.leader_epoch:
            return
        yield batch


def _too_large(batch: Batch, state: LogState) -> RecordTooLargeError:
    most = state.config.max_message_bytes
    return RecordTooLargeError(f"a batch of {batch.size_bytes} bytes; max.message.bytes is {most}")


@dataclass(slots=True)
class _Seen:
    """A summary of batches."""

    first_offset: int = UNKNOWN
    last_offset: int = UNKNOWN
    last_offset_of_first_batch: int = UNKNOWN
    leader_epoch: int = NO_LEADER_EPOCH
    max_timestamp: int = NO_TIMESTAMP
    codec: Codec = Codec.NONE
    valid_bytes: int = 0
    is_first: bool = True

    def first(self, batch: Batch) -> None:
        if self.is_first:
            if not batch.is_legacy:
                self.first_offset = batch.base_offset
            self.last_offset_of_first_batch = batch.last_offset
            self.is_first = False

    def add(self, batch: Batch, must_rise: bool) -> None:
        # Kafka counts from the highest offset on to the lowest, which is not after any
        if must_rise and not self.last_offset < batch.last_offset <= _MAX_LONG:
            raise OffsetsOutOfOrderError(
                f"last offset {batch.last_offset} of a batch, behind {self.last_offset}"
            )
        self.last_offset, self.leader_epoch = batch.last_offset, batch.leader_epoch
        self.max_timestamp = max(self.max_timestamp, batch.max_timestamp)
        self.valid_bytes += batch.size_bytes
        self.codec = batch.codec or self.codec


# ---- offsets and epochs ----------------------------------------------------------------------


def _validated(
    state: LogState, data: bytearray, info: LogAppendInfo, how: AppendRequest
) -> tuple[bytearray, LogAppendInfo]:
    now_ms, first = state.now_ms, state.local.end_offset
    validation = Validation(
        request=how,
        config=state.config,
        source_codec=info.source_codec,
        now_ms=now_ms,
        next_offset=first,
    )
    done = (give_offsets if how.is_made_for_log else validate)(data, validation)
    if done.size_may_have_changed:
        for batch in in_memory(done.data):
            if batch.size_bytes > state.config.max_message_bytes:
                raise _too_large(batch, state)
    info = info._replace(
        first_offset=first,
        last_offset=done.next_offset - 1,
        max_timestamp=done.max_timestamp,
        log_append_time=now_ms if state.config.is_log_append_time else NO_TIMESTAMP,
        records_converted=done.records_converted,
    )
    return bytearray(done.data), info


def _require_after_end(state: LogState, data: bytearray, info: LogAppendInfo) -> None:
    end = state.local.end_offset
    if info.first_or_last_of_first_batch < end:
        first = info.first_offset
        if first == UNKNOWN:
            first = next(in_memory(data)).base_offset
        raise UnexpectedAppendOffsetError(
            f"first offset {first}, last offset {info.last_offset}, and the log ends at {end}"
        )
    require_next_offset(info.last_offset)


def _note_epochs(state: LogState, batches: Iterable[Batch]) -> None:
    for batch in batches:
        if not batch.is_legacy:
            state.epochs.assign(batch.leader_epoch, batch.base_offset)
        elif state.epochs.latest is not None:
            state.epochs.clear()


def _segment_for(state: LogState, info: LogAppendInfo, size_bytes: int) -> LogSegment:
    active = state.local.segments.active
    incoming = IncomingBytes(size_bytes, info.max_timestamp, info.last_offset)
    if not active.should_roll(incoming, state.config):
        return active
    first = info.last_offset - _MAX_INT if info.first_offset == UNKNOWN else info.first_offset
    return roll(state, first)


# ---- producers -------------------------------------------------------------------------------


@dataclass(slots=True)
class _ProducersOfAppend:
    """The producers that an append changes, or what it repeats."""

    updated: dict[int, ProducerAppendInfo] = field(default_factory=dict)
    completed: list[CompletedTxn] = field(default_factory=list)
    duplicate: BatchMetadata | None = None


def _check_producers(
    state: LogState, batches: Iterable[Batch], place: OffsetMetadata, how: AppendRequest
) -> _ProducersOfAppend:
    found, position = _ProducersOfAppend(), place.position
    for batch in batches:
        if batch.has_producer_id:
            if how.origin is AppendOrigin.CLIENT:
                found.duplicate = _duplicate(state, batch)
                if found.duplicate is not None:
                    return found
            if how.gives_offsets:
                _require_verified(state, batch, how.guard)
            first = OffsetMetadata(batch.base_offset, place.segment, position)
            txn = update_producer(
                state.producers,
                batch,
                found.updated,
                first if batch.is_transactional else None,
                how.origin,
                how.transaction_version,
            )
            found.completed += [] if txn is None else [txn]
        position += batch.size_bytes
    return found


def _duplicate(state: LogState, batch: Batch) -> BatchMetadata | None:
    known = state.producers.producers.get(batch.producer_id)
    if known is None:
        return None
    return known.duplicate_of(batch.producer_epoch, batch.base_sequence, batch.last_sequence)


def _require_verified(state: LogState, batch: Batch, guard: VerificationGuard) -> None:
    manager, producer_id, epoch = state.producers, batch.producer_id, batch.producer_epoch
    if not batch.is_transactional or manager.has_ongoing(producer_id, epoch):
        return
    known = manager.producers.get(producer_id)
    if known is not None and epoch < known.epoch:
        raise InvalidProducerEpochError(
            f"producer {producer_id} has epoch {known.epoch}, and the batch epoch {epoch}"
        )
    is_checked = manager.settings.verifies_transactions and not batch.is_control
    if is_checked and (guard is SENTINEL or guard is not manager.guard(producer_id)):
        raise InvalidTxnStateError(f"the transaction of producer {producer_id} is not verified")
