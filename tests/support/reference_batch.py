"""v2 record batches for tests: slow, obvious, and sharing no code with `storage`.

Layout after log-format F-4 and F-5. Reads every codec, by decompressing alone; writes uncompressed
batches only. Nothing is checked that a test does not need checked.
"""

import gzip
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from struct import Struct

import cramjam
import crc32c
import zstandard

HEADER = Struct(">qiibIhiqqqhii")
assert HEADER.size == 61
LENGTH_STARTS_AT = 12  # batchLength counts the bytes after itself
CRC_STARTS_AT = 21  # the checksum covers everything after itself
WORD = 2**64
HORIZON, CONTROL, TRANSACTIONAL, LOG_APPEND_TIME, CODEC_BITS = 0x40, 0x20, 0x10, 0x08, 0x07
NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
XERIAL = b"\x82SNAPPY\x00"

Header = tuple[bytes, bytes | None]


@dataclass(frozen=True, slots=True)
class ReferenceRecord:
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


@dataclass(frozen=True, slots=True)
class ReferenceBatch:
    base_offset: int
    last_offset: int
    leader_epoch: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    records: tuple[ReferenceRecord, ...] = ()

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        return self.base_timestamp if self.attributes & HORIZON else None


def split(data: bytes) -> Iterator[bytes]:
    """The bytes of each batch of a `.log`."""
    position = 0
    while position < len(data):
        batch_length = int.from_bytes(data[position + 8 : position + LENGTH_STARTS_AT], "big")
        end = position + LENGTH_STARTS_AT + batch_length
        yield data[position:end]
        position = end


def decode(raw: bytes, with_records: bool = True) -> ReferenceBatch:
    """One batch; without its records, where only the header counts."""
    base, _, leader_epoch, magic, _, attributes, last_delta, *rest = HEADER.unpack_from(raw)
    base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count = rest
    assert magic == 2
    payload = io.BytesIO(
        _decompress(attributes & CODEC_BITS, raw[HEADER.size :]) if with_records and count else b""
    )
    records = []
    for _ in range(count if with_records else 0):
        record = _decode_record(payload, base, base_timestamp)
        if attributes & LOG_APPEND_TIME:  # F-4.4
            record = ReferenceRecord(record.offset, max_timestamp, *_contents(record))
        records.append(record)
    assert not payload.read()
    return ReferenceBatch(
        base, base + last_delta, leader_epoch, attributes, base_timestamp, max_timestamp,
        producer_id, producer_epoch, base_sequence, tuple(records),
    )  # fmt: skip


def _contents(record: ReferenceRecord) -> tuple[bytes | None, bytes | None, tuple[Header, ...]]:
    return record.key, record.value, record.headers


def _decode_record(data: io.BytesIO, base_offset: int, base_timestamp: int) -> ReferenceRecord:
    length = _read_varint(data)
    end = data.tell() + length
    data.read(1)  # attributes: none is defined
    timestamp = base_timestamp + _read_varint(data)
    offset = base_offset + _read_varint(data)
    key, value = _read_bytes(data), _read_bytes(data)
    headers = tuple(
        (_read_bytes(data) or b"", _read_bytes(data)) for _ in range(_read_varint(data))
    )
    assert data.tell() == end
    return ReferenceRecord(offset, timestamp, key, value, headers)


def _read_varint(data: io.BytesIO) -> int:
    number = shift = 0
    while True:
        byte = data.read(1)[0]
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1)


def _read_bytes(data: io.BytesIO) -> bytes | None:
    length = _read_varint(data)
    return None if length < 0 else data.read(length)


def _decompress(codec: int, data: bytes) -> bytes:
    if codec == GZIP:
        return gzip.decompress(data)
    if codec == SNAPPY:
        return decompress_snappy(data)
    if codec == LZ4:
        return bytes(cramjam.lz4.decompress(data))
    if codec == ZSTD:
        return zstandard.ZstdDecompressor().decompressobj().decompress(data)
    assert codec == NONE
    return data


def decompress_snappy(data: bytes) -> bytes:
    """A 16-byte head, then blocks, each with its length in front (F-8.3), or one block alone."""
    if not data.startswith(XERIAL):
        return bytes(cramjam.snappy.decompress_raw(data))
    position, blocks = 16, []
    while position < len(data):
        length = int.from_bytes(data[position : position + 4], "big")
        block = data[position + 4 : position + 4 + length]
        blocks.append(bytes(cramjam.snappy.decompress_raw(block)))
        position += 4 + length
    return b"".join(blocks)


def encode(batch: ReferenceBatch) -> bytes:
    """The bytes of an uncompressed batch."""
    base_timestamp = batch.base_timestamp
    records = b"".join(encode_record(r, batch.base_offset, base_timestamp) for r in batch.records)
    return encode_parts(batch, records)


def encode_parts(batch: ReferenceBatch, records: bytes) -> bytes:
    """Header and checksum around records that were encoded otherwise."""
    raw = (
        HEADER.pack(
            batch.base_offset,
            HEADER.size - LENGTH_STARTS_AT + len(records),
            batch.leader_epoch,
            2,
            0,
            batch.attributes,
            batch.last_offset - batch.base_offset,
            batch.base_timestamp,
            batch.max_timestamp,
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            len(batch.records),
        )
        + records
    )
    return sealed(raw)


def sealed(batch: bytes) -> bytes:
    """The batch with the checksum that fits it (F-4.2)."""
    checksum = crc32c.crc32c(batch[CRC_STARTS_AT:]).to_bytes(4, "big")
    return batch[: CRC_STARTS_AT - 4] + checksum + batch[CRC_STARTS_AT:]


def encode_record(record: ReferenceRecord, base_offset: int, base_timestamp: int) -> bytes:
    body = b"\x00" + varint(record.timestamp - base_timestamp)
    body += varint(record.offset - base_offset) + _bytes(record.key) + _bytes(record.value)
    body += varint(len(record.headers)) + b"".join(map(_header, record.headers))
    return varint(len(body)) + body


def _header(header: Header) -> bytes:
    return _bytes(header[0]) + _bytes(header[1])


def _bytes(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def varint(number: int) -> bytes:
    """Zig-zag, in as few bytes as will do (F-5.2)."""
    rest = (number << 1) ^ (number >> 63)
    out = []
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def sum_of_heads(batches: Iterable[bytes]) -> int:
    """Sum up what stands before the bytes that the checksums of whole batches cover."""
    return sum(_number(raw[:CRC_STARTS_AT]) for raw in batches) % WORD


def _number(head: bytes) -> int:
    first, second, third = (
        int.from_bytes(head[at : at + 8], "little") for at in (0, 8, CRC_STARTS_AT - 8)
    )
    x = first ^ third * 0x9E3779B97F4A7C15 % WORD
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93 % WORD ^ second
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93 % WORD
    return x ^ x >> 32
