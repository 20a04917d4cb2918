"""One record of a v2 batch (spec F-5), in Python: for reads, dumps and writing.

Kernels decode many at once (`batch_columns.py`).

length varint | attributes int8, 0 | timestamp delta varlong | offset delta varint
key length varint, -1 null | key | value length varint, -1 null | value
headers count varint | each: key length varint, key (UTF-8), value length varint, -1 null, value

Source: Kafka, DefaultRecord.
"""

from typing import NamedTuple

from storage.errors import LogCompactionError
from storage.formats.varint import (
    Bytes,
    decode_varint,
    decode_varlong,
    encode_varint,
    encode_varlong,
)

_ATTRIBUTES = b"\x00"
_NULL = encode_varint(-1)


class MalformedRecordError(LogCompactionError):
    """A record breaks its format; the reader of the file adds path and position."""


class CutFieldError(MalformedRecordError):
    """A field of a record is longer than what is left."""

    def __init__(self, expected: int, left: int) -> None:
        super().__init__(expected, left)
        self.expected, self.left = expected, left

    def __str__(self) -> str:
        return f"{self.expected} bytes expected, {self.left} left in the record"


class Record(NamedTuple):
    """One record of a batch, as `Log.read` gives it and `encode_batch` takes it."""

    offset: int
    timestamp: int  # ms; -1: none
    key: bytes | None
    value: bytes | None  # None: a tombstone
    headers: tuple[tuple[bytes, bytes | None], ...] = ()


def encode(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    """Return the record as it stands in a batch with these bases."""
    body = b"".join(
        (
            _ATTRIBUTES,
            encode_varlong(int64(record.timestamp - base_timestamp)),
            encode_varint(record.offset - base_offset),
            _encode_nullable(record.key),
            _encode_nullable(record.value),
            encode_varint(len(record.headers)),
            *(_encode_nullable(part) for header in record.headers for part in header),
        )
    )
    return encode_varint(len(body)) + body


def decode(data: Bytes, at: int, base_offset: int, base_timestamp: int) -> tuple[Record, int]:
    """Return the record at that index and the index after it.

    Raise MalformedRecordError or MalformedVarintError.
    """
    length, start = decode_varint(data, at)
    end = start + length
    if length < 0 or end > len(data):
        raise MalformedRecordError(f"a record of {length} bytes, {len(data) - start} left")
    record, at = decode_fields(memoryview(data)[:end], start, base_offset, base_timestamp)
    if at != end:
        raise MalformedRecordError(f"a record of {length} bytes ends {end - at} bytes early")
    return record, end


def decode_fields(
    data: Bytes, at: int, base_offset: int, base_timestamp: int
) -> tuple[Record, int]:
    """Return the record whose fields begin at that index, and the index after them.

    The index is that after the record's length. The fields may take all that is left of data. Raise
    what decode raises.
    """
    timestamp_delta, at = decode_varlong(data, at + len(_ATTRIBUTES))
    offset_delta, at = decode_varint(data, at)
    key, at = _decode_nullable(data, at)
    value, at = _decode_nullable(data, at)
    headers, at = _decode_headers(data, at)
    timestamp = int64(base_timestamp + timestamp_delta)
    return Record(base_offset + offset_delta, timestamp, key, value, headers), at


def int64(number: int) -> int:
    """What Java makes of a sum or a difference that needs more than 64 bits."""
    return (number + 2**63) % 2**64 - 2**63


def or_none(number: int) -> int | None:
    """What -1 on disk says: none."""
    return None if number == -1 else number


def _encode_nullable(data: bytes | None) -> bytes:
    return _NULL if data is None else encode_varint(len(data)) + data


def _decode_nullable(data: Bytes, at: int) -> tuple[bytes | None, int]:
    length, at = decode_varint(data, at)
    if length < 0:  # of any magnitude (F-5.3)
        return None, at
    if at + length > len(data):
        raise CutFieldError(length, len(data) - at)
    return bytes(data[at : at + length]), at + length


def _decode_headers(data: Bytes, at: int) -> tuple[tuple[tuple[bytes, bytes | None], ...], int]:
    count, at = decode_varint(data, at)
    if not 0 <= count <= len(data) - at:
        raise MalformedRecordError(f"a count of {count} for headers, {len(data) - at} bytes left")
    headers = []
    for _ in range(count):
        key, at = _decode_nullable(data, at)
        if key is None:
            raise MalformedRecordError("a header without a key")
        value, at = _decode_nullable(data, at)
        headers.append((key, value))
    return tuple(headers), at
