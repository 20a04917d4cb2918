"""Writes messages of format v0 and v1 as Kafka's builder made them; no broker does so today."""

from collections.abc import Sequence
from zlib import crc32

import xxhash

from storage.codecs.compression import Codec, compress
from storage.formats.batch_header import LOG_APPEND_TIME
from storage.formats.legacy_messages import FRAMING, HEADS, LENGTH
from storage.formats.record import Record


def encode_message(magic: int, record: Record, attributes: int = 0) -> bytes:
    """Return one message; of v0, the timestamp is left out."""
    head = (magic, attributes, record.timestamp)[: 3 if magic else 2]
    body = HEADS[magic].pack(*head) + _encode_nullable(record.key) + _encode_nullable(record.value)
    return FRAMING.pack(record.offset, 4 + len(body), crc32(body)) + body


def encode_message_set(
    magic: int,
    records: Sequence[Record],
    codec: Codec = Codec.NONE,
    log_append_time_ms: int | None = None,
) -> bytes:
    """Return what Kafka's builder made of these records: a message each, or a wrapper of them."""
    stamp = 0
    if log_append_time_ms is not None and magic == 1:
        stamp = LOG_APPEND_TIME
        records = [record._replace(timestamp=log_append_time_ms) for record in records]
    if codec is Codec.NONE:
        return b"".join(encode_message(magic, record, stamp) for record in records)
    base_offset = records[0].offset if magic == 1 else 0
    inner = b"".join(
        encode_message(magic, record._replace(offset=record.offset - base_offset), stamp)
        for record in records
    )
    value = compress(codec, inner)
    if codec is Codec.LZ4 and magic == 0:
        value = _with_legacy_header_checksum(value)
    timestamp = max(record.timestamp for record in records)
    return encode_message(magic, Record(records[-1].offset, timestamp, None, value), codec | stamp)


def _encode_nullable(data: bytes | None) -> bytes:
    return LENGTH.pack(-1) if data is None else LENGTH.pack(len(data)) + data


def _with_legacy_header_checksum(frame: bytes) -> bytes:
    """F-8.4: that of message format v0 covers the magic, too."""
    checksum = xxhash.xxh32_intdigest(frame[:6]) >> 8 & 0xFF
    return frame[:6] + bytes([checksum]) + frame[7:]
