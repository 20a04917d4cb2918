"""Messages of format v0 and v1, one by one. For dumps, not for the hot path.

offset int64 | size int32, of what follows | CRC-32 uint32, of what follows | magic int8
attributes int8: codec, timestamp type (v1) | timestamp int64, v1 only
key length int32, -1 null | key | value length int32, -1 null | value

A message with a codec is a wrapper: its value holds other messages, compressed. Offsets inside a v1
wrapper are relative, such that the last of them is the wrapper's own. Source: Kafka, LegacyRecord,
AbstractLegacyRecordBatch, MemoryRecordsBuilder; log-format F-7.
"""

from collections.abc import Iterator
from struct import Struct
from zlib import crc32

from storage.codecs.compression import Bytes, Codec, decompress
from storage.codecs.lz4_frame import with_header_checksum
from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.formats import record_batch
from storage.formats.batch_header import (
    CODEC_MASK,
    LEGACY_ATTRIBUTES_AT,
    LENGTH_AT,
    LOG_APPEND_TIME,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_AT,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
)
from storage.formats.record import Record
from storage.formats.record_batch import BatchHeader

FRAMING = Struct(">qiI")  # offset, size, CRC
HEADS = (Struct(">bb"), Struct(">bbq"))  # by magic: magic, attributes, timestamp
LENGTH = Struct(">i")
MIN_BYTES = tuple(FRAMING.size + head.size + 2 * LENGTH.size for head in HEADS)
assert MIN_BYTES == (26, 34)


def is_legacy(data: Bytes) -> bool:
    """Whether the entry at the start of data is of format v0 or v1."""
    return len(data) > MAGIC_AT and data[MAGIC_AT] in (0, 1)


def decode_header(data: Bytes, position: int, path: str) -> BatchHeader:
    """Return the header of an entry of any message format, which stands at that position.

    That of a legacy message in the words of v2. Of a wrapper neither base offset nor records count
    are known: they are given as its own offset, and 0. Raise as record_batch.decode_header does.
    """
    if not is_legacy(data):
        return record_batch.decode_header(data, position, path)
    offset, size, crc = FRAMING.unpack_from(data)
    magic = data[MAGIC_AT]
    if size + LOG_OVERHEAD_BYTES < MIN_BYTES[magic]:
        problem = f"entry length {size}, expected at least {MIN_BYTES[magic] - LOG_OVERHEAD_BYTES}"
        raise CorruptFileError(path, position, problem)
    if len(data) < FRAMING.size + HEADS[magic].size:
        raise CorruptFileError(path, position, f"message header has only {len(data)} bytes")
    attributes, timestamp = data[LEGACY_ATTRIBUTES_AT], NO_TIMESTAMP
    if magic:
        timestamp = HEADS[1].unpack_from(data, MAGIC_AT)[2]
    codec = attributes & CODEC_MASK
    if codec > Codec.LZ4:
        raise UnsupportedFormatError(path, position, f"codec {codec} is not one of format v{magic}")
    if offset < 0:
        raise CorruptFileError(path, position, f"offset {offset} is negative")
    record_batch.require_next_offset(offset, position, path)
    return BatchHeader(
        base_offset=offset,
        batch_length=size,
        partition_leader_epoch=NO_LEADER_EPOCH,
        magic=magic,
        crc=crc,
        attributes=codec | (attributes & LOG_APPEND_TIME if magic else 0),
        last_offset_delta=0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        records_count=0 if codec else 1,
    )


def check_crc(entry: Bytes, header: BatchHeader, path: str, position: int) -> None:
    """Raise CorruptFileError if the bytes of a whole entry do not match its CRC."""
    if header.magic == MAGIC:
        record_batch.check_crc(entry, header, path, position)
        return
    found = crc32(memoryview(entry)[MAGIC_AT:])
    if found != header.crc:
        problem = f"message has CRC {header.crc:#010x}, its bytes give {found:#010x}"
        raise CorruptFileError(path, position, problem)


def decode_records(entry: Bytes, header: BatchHeader, path: str, position: int) -> list[Record]:
    """Return the records of a whole entry of any format, with absolute offsets and timestamps."""
    if header.magic == MAGIC:
        return record_batch.decode_records(entry, header, path, position)
    if not header.codec:
        return [_decode_message(entry, path, position)]
    inner = [
        (message[MAGIC_AT], _decode_message(message, path, position))
        for message in _messages_within(entry, header, path, position)
    ]
    if not inner:
        raise CorruptFileError(path, position, "the wrapper holds no message")
    base = 0
    if header.magic == 1 and header.last_offset:
        base = header.last_offset - inner[-1][1].offset
    if base < 0:
        raise CorruptFileError(path, position, "the wrapper's offset is below its last message's")
    return [
        record._replace(
            offset=base + record.offset,
            timestamp=header.max_timestamp
            if magic == 1 and header.is_log_append_time
            else record.timestamp,
        )
        for magic, record in inner
    ]


def _messages_within(
    entry: Bytes, header: BatchHeader, path: str, position: int
) -> Iterator[bytes]:
    """Yield the messages of a wrapper as they are. Their checksums are not looked at."""
    value = _decode_message(entry, path, position).value
    if value is None:
        raise CorruptFileError(path, position, "a wrapper without a value")
    if header.codec is Codec.LZ4 and header.magic == 0:
        value = with_header_checksum(value)  # it is wrong in v0 (F-8.4)
    return _messages(decompress(header.codec, value, path, position), path, position)


def _messages(data: bytes, path: str, position: int) -> Iterator[bytes]:
    """Yield the messages in a wrapper; what is cut at the end is left out."""
    at = 0
    while at + LOG_OVERHEAD_BYTES <= len(data):
        size = LENGTH.unpack_from(data, at + LENGTH_AT)[0] + LOG_OVERHEAD_BYTES
        if size < MIN_BYTES[0]:
            raise CorruptFileError(path, position, f"a message of {size} bytes in the wrapper")
        if at + size > len(data):
            return
        message = data[at : at + size]
        magic = message[MAGIC_AT]
        if magic > 1 or size < MIN_BYTES[magic]:
            problem = f"a message of {size} bytes with magic {magic} in the wrapper"
            raise CorruptFileError(path, position, problem)
        if message[LEGACY_ATTRIBUTES_AT] & CODEC_MASK:
            raise CorruptFileError(path, position, "a compressed message in the wrapper")
        yield message
        at += size


def _decode_message(message: Bytes, path: str, position: int) -> Record:
    offset, *_ = FRAMING.unpack_from(message)
    head = HEADS[message[MAGIC_AT]]
    _, _, *timestamp = head.unpack_from(message, MAGIC_AT)
    key, at = _nullable(message, MAGIC_AT + head.size, path, position)
    value, _ = _nullable(message, at, path, position)
    return Record(offset, timestamp[0] if timestamp else NO_TIMESTAMP, key, value)


def _nullable(message: Bytes, at: int, path: str, position: int) -> tuple[bytes | None, int]:
    start = at + LENGTH.size
    if start > len(message):
        raise CorruptFileError(path, position, "a message without room for key and value")
    (length,) = LENGTH.unpack_from(message, at)
    if length < 0:
        return None, start
    if start + length > len(message):
        problem = f"{length} bytes expected, {len(message) - start} left in the message"
        raise CorruptFileError(path, position, problem)
    return bytes(message[start : start + length]), start + length
