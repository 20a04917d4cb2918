"""Batches made anew by a leader, and times set in those that stay.

Source: Kafka, MemoryRecordsBuilder, DefaultRecordBatch.setMaxTimestamp, LegacyRecord; spec L-3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

from storage.codecs.compression import Codec, compress
from storage.codecs.lz4_frame import with_wrong_header_checksum
from storage.formats.batch_header import (
    ATTRIBUTES_AT,
    CHECKED_AT,
    CRC_AT,
    LEGACY_ATTRIBUTES_AT,
    LEGACY_CRC_AT,
    LEGACY_TIMESTAMP_AT,
    LOG_APPEND_TIME,
    MAGIC,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    entry_bytes,
)
from storage.formats.legacy_messages import FRAMING, HEADS, LENGTH
from storage.formats.record import Record
from storage.formats.record_batch import BatchOptions, encode_batch
from storage.kernels.crc32c import crc32c
from storage.log.batches import Batch
from storage.log.errors import IllegalArgumentError
from storage.log.log_config import LogConfig


def message_set(
    records: Sequence[Record],
    magic: int,
    codec: Codec,
    append_time_ms: int | None,
    level: int | None = None,
) -> bytes:
    """Return a message for each record, or a wrapper of them.

    append_time_ms: None for the records' own times. level: of the codec; None: its default.
    """
    stamp = LOG_APPEND_TIME if append_time_ms is not None and magic else 0
    if append_time_ms is not None:
        records = [record._replace(timestamp=append_time_ms) for record in records]
    if codec is Codec.NONE:
        return b"".join(_message(record, magic, stamp) for record in records)
    base_offset = records[0].offset if magic else 0
    inner = (record._replace(offset=record.offset - base_offset) for record in records)
    value = compress(codec, b"".join(_message(record, magic, stamp) for record in inner), level)
    if codec is Codec.LZ4 and not magic:
        value = with_wrong_header_checksum(value)
    time = max(NO_TIMESTAMP, max(record.timestamp for record in records))
    return _message(Record(records[-1].offset, time, None, value), magic, codec | stamp)


def _message(record: Record, magic: int, attributes: int) -> bytes:
    head = (magic, attributes, record.timestamp)[: 3 if magic else 2]
    body = HEADS[magic].pack(*head) + _nullable(record.key) + _nullable(record.value)
    return FRAMING.pack(record.offset, 4 + len(body), crc32(body)) + body


def _nullable(data: bytes | None) -> bytes:
    return LENGTH.pack(-1) if data is None else LENGTH.pack(len(data)) + data


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchModel:
    """What a new batch says of itself beyond its records."""

    magic: int
    config: LogConfig
    codec: Codec
    log_append_time_ms: int | None
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    first_offset: int


class Rebuilt(NamedTuple):
    data: bytes
    max_timestamp: int


def rebuild(records: Sequence[Record], model: BatchModel) -> Rebuilt:
    """Make one batch of records, or as many messages; none of no records."""
    if model.producer_id != NO_PRODUCER_ID and model.base_sequence == NO_SEQUENCE:
        raise IllegalArgumentError("a batch of a producer without a sequence")
    if model.magic < MAGIC and model.codec is Codec.ZSTD:
        raise IllegalArgumentError("zstd in an old message format")
    for record in records:
        require_encodable(record, model.magic)
    if not records:
        return Rebuilt(b"", NO_TIMESTAMP)
    append_time = model.log_append_time_ms
    largest = max(record.timestamp for record in records) if append_time is None else append_time
    if model.magic < MAGIC:
        level = model.config.compression_level
        messages = message_set(records, model.magic, model.codec, append_time, level)
        is_known = model.magic or append_time is not None
        return Rebuilt(messages, largest if is_known else NO_TIMESTAMP)
    options = BatchOptions(
        partition_leader_epoch=model.leader_epoch,
        producer_id=model.producer_id,
        producer_epoch=model.producer_epoch,
        base_sequence=model.base_sequence,
        is_transactional=model.is_transactional,
        compression_level=model.config.compression_level,
    )
    batch = bytearray(encode_batch(records, model.codec, options))
    if append_time is not None:
        set_v2_times(batch, 0, append_time, LOG_APPEND_TIME)
    return Rebuilt(bytes(batch), largest)


def require_encodable(record: Record, magic: int) -> None:
    """Raise IllegalArgumentError for what no batch of the format takes."""
    if record.headers and magic < MAGIC:
        raise IllegalArgumentError("headers in an old message format")
    if record.timestamp < NO_TIMESTAMP:
        raise IllegalArgumentError("a record with a time below -1")


def set_times(data: bytearray, batch: Batch, append_time_ms: int | None, largest_ms: int) -> None:
    """Give a batch its type of times and its largest one; its checksum follows."""
    timestamp = largest_ms if append_time_ms is None else append_time_ms
    bit = 0 if append_time_ms is None else LOG_APPEND_TIME
    if batch.is_log_append_time == bool(bit) and batch.max_timestamp == timestamp:
        return
    if batch.is_legacy:
        _set_message_time(data, batch, timestamp, bit)
    else:
        set_v2_times(data, batch.position, timestamp, bit)


def set_v2_times(data: bytearray, at: int, timestamp: int, bit: int) -> None:
    """Give a v2 batch its largest time, and the bit of its type of times; and its checksum."""
    end = at + entry_bytes(data, at)
    low = data[at + ATTRIBUTES_AT + 1] & 0x7F
    data[at + ATTRIBUTES_AT : at + ATTRIBUTES_AT + 2] = bytes((0, low & ~LOG_APPEND_TIME | bit))
    field = at + MAX_TIMESTAMP_AT
    data[field : field + 8] = timestamp.to_bytes(8, "big", signed=True)
    checked = memoryview(data)[at + CHECKED_AT : end]
    data[at + CRC_AT : at + CHECKED_AT] = crc32c(checked).to_bytes(4, "big")


def _set_message_time(data: bytearray, batch: Batch, timestamp: int, bit: int) -> None:
    at = batch.position
    kept = data[at + LEGACY_ATTRIBUTES_AT] & ~LOG_APPEND_TIME
    data[at + LEGACY_ATTRIBUTES_AT] = kept | bit
    field = at + LEGACY_TIMESTAMP_AT
    data[field : field + 8] = timestamp.to_bytes(8, "big", signed=True)
    checked = memoryview(data)[at + MAGIC_AT : at + batch.size_bytes]
    data[at + LEGACY_CRC_AT : at + MAGIC_AT] = crc32(checked).to_bytes(4, "big")
