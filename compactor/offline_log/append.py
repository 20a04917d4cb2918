"""Appends to an offline log: records, as its leader adds them, and the end of a transaction."""

import hashlib
from collections.abc import Iterator, Sequence

from compactor.errors import UsageError
from compactor.host.printable import counted
from compactor.offline_log.open_log import OpenLog
from compactor.offline_log.record_filter import NewRecord
from compactor.offline_log.truncate import AppendedRecord, Change
from storage.codecs.compression import Codec
from storage.formats.control_record import KEY, MARKER_VALUE, ControlType
from storage.formats.record import Record
from storage.formats.record_batch import BatchOptions, encode_batch
from storage.log.log import Log
from storage.log.producer_state_entry import AppendOrigin
from storage.log.validation import AppendRequest

BATCH_BYTES = 16_384  # as a producer's batch.size


def append(records: Sequence[NewRecord], codec: Codec) -> Change:
    """Append records in batches of a producer's size, as the leader of the latest leader epoch.

    The topic's configuration may change codec and timestamps, and refuse a batch. The high
    watermark follows, as that of an only replica.
    """

    def act(work: OpenLog) -> str | None:
        if not records:
            return None
        log, now_ms = work.log, work.now_ms
        first = log.log_end_offset
        request = AppendRequest(leader_epoch=_leader_epoch(log))
        data = b"".join(_encoded(batch, codec, now_ms) for batch in _batches(records))
        batches = len(log.append_batches_as_leader(data, request))
        log.follow_end()
        tombstones = sum(record.value is None for record in records)
        return (
            f"appends {counted(len(records), 'record')} ({tombstones} of them without a value) "
            f"in {counted(batches, 'batch', 'batches')} from offset {first} on, leader epoch "
            f"{request.leader_epoch}"
        )

    return Change("append", act, True, "there are no records to append")


def appended_records(records: Sequence[NewRecord], first_offset: int) -> tuple[AppendedRecord, ...]:
    """Return what a report says of appended records, to recognize them later."""
    return tuple(
        AppendedRecord(
            offset,
            None if record.key is None else hashlib.sha256(record.key).hexdigest(),
            record.value is None,
        )
        for offset, record in enumerate(records, start=first_offset)
    )


def abort(producer_id: int) -> Change:
    """End the open transaction of a producer by the marker that a coordinator would write.

    It has the producer's epoch, and the coordinator epoch that the log knows.

    Source: Kafka, TransactionsCommand (abort), UnifiedLog.appendAsLeader; spec L-14, L-17.
    """

    def act(work: OpenLog) -> str | None:
        log = work.log
        known = log.producers.producers.get(producer_id)
        if known is None or known.txn_first_offset is None:
            raise UsageError(_no_transaction(log), "producer_id", producer_id)
        first, epoch = known.txn_first_offset, known.epoch
        coordinator_epoch = max(known.coordinator_epoch, 0)
        value = MARKER_VALUE.pack(0, coordinator_epoch)
        marker = Record(0, work.now_ms, KEY.pack(0, ControlType.ABORT), value)
        options = BatchOptions(
            producer_id=producer_id,
            producer_epoch=epoch,
            is_transactional=True,
            is_control=True,
        )
        request = AppendRequest(
            origin=AppendOrigin.COORDINATOR, leader_epoch=_leader_epoch(log), transaction_version=0
        )
        log.append_as_leader(encode_batch([marker], options=options), request)
        log.follow_end()
        return (
            f"aborts the transaction of producer {producer_id}, epoch {epoch}, that began at "
            f"offset {first}: its records are no longer shown to readers of committed ones, and "
            "the cleaner removes them. In __transaction_state nothing is changed: if a "
            "coordinator still has this transaction open, it goes on from there"
        )

    return Change("abort", act, True)


def _no_transaction(log: Log) -> str:
    found = [str(txn.producer_id) for txn in log.producers.open_transactions]
    if not found:
        return "has no open transaction in this log, and neither has any other"
    return f"has no open transaction in this log; producers that have: {', '.join(found[:20])}"


def _leader_epoch(log: Log) -> int:
    """Return the leader epoch of the last leader."""
    return log.epochs.latest or 0


def _batches(records: Sequence[NewRecord]) -> Iterator[list[NewRecord]]:
    batch: list[NewRecord] = []
    size = 0
    for record in records:
        if batch and size + record.size_bytes > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += record.size_bytes
    yield batch


def _encoded(batch: Sequence[NewRecord], codec: Codec, now_ms: int) -> bytes:
    records = [
        Record(
            offset,
            now_ms if record.timestamp_ms is None else record.timestamp_ms,
            record.key,
            record.value,
            record.headers,
        )
        for offset, record in enumerate(batch)
    ]
    return encode_batch(records, codec)
