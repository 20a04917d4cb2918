"""Messages of format v0 and v1 as Kafka's builder makes them, for a log that is kept in these.

Source: Kafka, MemoryRecordsBuilder, LegacyRecord; spec F-7, F-8.4.
"""

from collections.abc import Sequence
from zlib import crc32

from storage.codecs.compression import Codec, compress
from storage.codecs.lz4_frame import with_wrong_header_checksum
from storage.formats.batch_header import LOG_APPEND_TIME, NO_TIMESTAMP
from storage.formats.legacy_messages import FRAMING, HEADS, LENGTH
from storage.formats.record import Record


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
