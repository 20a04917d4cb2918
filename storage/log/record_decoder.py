"""Decoders of records and legacy messages, with the errors of Kafka's broker for what is none.

A record of format v2 is read on through whatever follows it, and only then held against its
length. Of a message of format v0 or v1 a field is read when it is asked for: so a message whose key
or value is damaged has an offset and a time all the same.

Source: Kafka, DefaultRecord.readFrom, ByteUtils, Utils.readBytes, LegacyRecord,
AbstractLegacyRecordBatch, Utils.sizeDelimited; spec F-5, F-7, L-3.6.
"""

from collections.abc import Callable, Iterator
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from storage.codecs.compression import Codec
from storage.formats.batch_header import (
    CODEC_MASK,
    LEGACY_ATTRIBUTES_AT,
    LEGACY_TIMESTAMP_AT,
    LENGTH_AT,
    LOG_OVERHEAD_BYTES,
    MAGIC_AT,
    MIN_LEGACY_LENGTH,
    NO_TIMESTAMP,
)
from storage.formats.legacy_messages import FRAMING, HEADS
from storage.formats.record import CutFieldError, MalformedRecordError, Record, decode_fields, int64
from storage.formats.varint import (
    Bytes,
    CutVarintError,
    MalformedVarintError,
    decode_varint,
    decode_varlong,
)
from storage.log.errors import (
    BufferUnderflowError,
    CorruptRecordError,
    IllegalArgumentError,
    IndexOutOfBoundsError,
    InvalidRecordError,
    LogError,
)

_Decode = Callable[[Bytes, int], tuple[int, int]]


def read_record(data: Bytes, at: int, base_offset: int, base_time: int) -> tuple[Record, int]:
    """Return the record at that index, and the index after it.

    Raise InvalidRecordError, or IllegalArgumentError where its length is no number.
    """
    try:
        length, start = _decoded(decode_varint, data, at)
    except BufferUnderflowError as error:
        raise InvalidRecordError(f"the batch ends within a record: {error}") from None
    if len(data) - start < length:
        left = len(data) - start
        raise InvalidRecordError(f"a record of {length} bytes, and {left} are left")
    try:
        if start == len(data):
            raise CutVarintError("no attributes are left")
        record, end = decode_fields(data, start, base_offset, base_time)
    except (MalformedVarintError, CutFieldError) as error:
        cause = _kafkas(error)
        raise InvalidRecordError(f"bytes that are no record: {cause}") from cause
    except MalformedRecordError as error:
        raise InvalidRecordError(str(error)) from None
    if end - start != length:
        raise InvalidRecordError(f"a record of {length} bytes that ends after {end - start}")
    return record, end


def read_unpacked(data: bytes, at: int, base_offset: int, base_time: int) -> tuple[Record, int]:
    """Read a record as read_record does, of bytes that were compressed.

    Such a record ends where its length says so, and what is no number is an InvalidRecordError,
    too.
    """
    try:
        length, start = _decoded(decode_varint, data, at)
    except (BufferUnderflowError, IllegalArgumentError) as error:
        cause = IllegalArgumentError(str(error))  # past the end Kafka reads on
        raise InvalidRecordError(f"a length that is none: {error}") from cause
    if length < 0:
        cause = IllegalArgumentError(f"{length} bytes")
        raise InvalidRecordError(f"a record of {length} bytes") from cause
    end = start + length
    record, _ = read_record(data[at:end], 0, base_offset, base_time)
    return record, end


def read_head(data: bytes, at: int, base_offset: int, base_time: int) -> tuple[Record, int]:
    """Read offset and time of a record, and whether it has a key, in a fifth of the time.

    As read_record: b"" stands for any key, and the record has no value and no headers.
    """
    try:
        length, after = _short(data, at)
        end = after + length
        time_delta, after = _signed(data, after + 1, decode_varlong)
        offset_delta, after = _signed(data, after, decode_varint)
        key_bytes, after = _signed(data, after, decode_varint)
        value_bytes, after = _signed(data, after + max(key_bytes, 0), decode_varint)
        after += max(value_bytes, 0)
        if data[after] == 0 and after + 1 == end:  # no headers, and nothing after them
            time = base_time + time_delta
            if -(2**63) <= time < 2**63:
                key = None if key_bytes < 0 else b""
                return Record(base_offset + offset_delta, time, key, None), end
    except (IndexError, IllegalArgumentError, BufferUnderflowError):
        pass  # what is unusual, or no record, is read with care
    record, end = read_record(data, at, base_offset, base_time)
    key = None if record.key is None else b""
    return Record(record.offset, record.timestamp, key, None), end


def _short(data: bytes, at: int) -> tuple[int, int]:
    """A length of one or two bytes. IndexError for any other, and for a negative one."""
    number = data[at]
    if number >= 0x80:
        number = number & 0x7F | data[at + 1] << 7
        at += 1
        if number >= 0x4000:
            raise IndexError
    if number & 1:
        raise IndexError
    return number >> 1, at + 1


def _signed(data: bytes, at: int, decode: _Decode) -> tuple[int, int]:
    number = data[at]
    if number < 0x80:
        return number >> 1 ^ -(number & 1), at + 1
    return _decoded(decode, data, at)


def _decoded(decode: _Decode, data: Bytes, at: int) -> tuple[int, int]:
    """Decode a number. Raise the broker's errors for what is none."""
    try:
        return decode(data, at)
    except MalformedVarintError as error:
        raise _kafkas(error) from None


def _kafkas(error: MalformedVarintError | CutFieldError) -> LogError:
    """Return what the broker raises in the place of an error."""
    if isinstance(error, CutVarintError):
        return BufferUnderflowError(str(error))
    if isinstance(error, CutFieldError):
        return IllegalArgumentError(f"{error.expected} bytes, and {error.left} are left")
    return IllegalArgumentError(str(error))


_LENGTH, _TIMESTAMP = Struct(">i"), Struct(">q")


class LazyMessage(NamedTuple):
    """A whole message of format v0 or v1, whose key and value are read when they are asked for.

    They raise IndexOutOfBoundsError where their length would stand past its end, and
    IllegalArgumentError where they would end there.
    """

    offset: int
    data: Bytes  # from its own offset on
    stamp_ms: int | None = None  # the time that the log gave to all of its wrapper

    @property
    def magic(self) -> int:
        return self.data[MAGIC_AT]

    @property
    def timestamp(self) -> int:
        if not self.magic:
            return NO_TIMESTAMP
        if self.stamp_ms is not None:
            return self.stamp_ms
        return int(_TIMESTAMP.unpack_from(self.data, LEGACY_TIMESTAMP_AT)[0])

    @property
    def has_key(self) -> bool:
        """Whether it has a key, by the length of the key."""
        return self._length(self._key_at) >= 0

    @property
    def key(self) -> bytes | None:
        return self._sized(self._key_at)

    @property
    def value(self) -> bytes | None:
        key_at = self._key_at
        return self._sized(key_at + _LENGTH.size + max(0, self._length(key_at)))

    @property
    def has_right_crc(self) -> bool:
        found: int = FRAMING.unpack_from(self.data)[2]
        return found == crc32(memoryview(self.data)[MAGIC_AT:])

    @property
    def _key_at(self) -> int:
        return MAGIC_AT + HEADS[min(self.magic, 1)].size

    def _length(self, at: int) -> int:
        if at + _LENGTH.size > len(self.data):
            raise IndexOutOfBoundsError(f"a length at byte {at} of {len(self.data)}")
        return int(_LENGTH.unpack_from(self.data, at)[0])

    def _sized(self, at: int) -> bytes | None:
        length, start = self._length(at), at + _LENGTH.size
        if length < 0:
            return None
        if length > len(self.data) - start:
            raise IllegalArgumentError(f"{length} bytes, and {len(self.data) - start} are left")
        return bytes(self.data[start : start + length])


def whole(record: Record | LazyMessage) -> Record:
    """A record with its key and value, which are read now."""
    if isinstance(record, Record):
        return record
    return Record(record.offset, record.timestamp, record.key, record.value)


def lacks_key(record: Record | LazyMessage) -> bool:
    return record.key is None if isinstance(record, Record) else not record.has_key


def messages_within(
    data: bytes, last_offset: int, wrapper_magic: int, stamp_ms: int | None
) -> Iterator[LazyMessage]:
    """Return the messages of a wrapper, one after the other.

    data: its value, decompressed. last_offset: its own. All messages are framed before the first is
    yielded: CorruptRecordError where that fails, InvalidRecordError where no offset fits, and at
    one that is compressed itself.
    """
    framed = list(_framed(data))
    if not framed:
        raise InvalidRecordError("the wrapper holds no message")
    base = 0
    if wrapper_magic and last_offset:  # 0: as some clients left it
        last_within = FRAMING.unpack_from(framed[-1])[0]
        if last_offset < last_within:
            raise InvalidRecordError(
                f"the wrapper's offset {last_offset} is below its last message's, {last_within}"
            )
        base = last_offset - last_within
    return _messages(framed, base, stamp_ms)


def require_framed(data: bytes) -> None:
    """Raise CorruptRecordError where what a wrapper holds cannot be framed."""
    for _ in _framed(data):
        pass


def _framed(data: bytes) -> Iterator[bytes]:
    """Yield the messages; what is cut at the end is left out."""
    at = 0
    while at + LOG_OVERHEAD_BYTES <= len(data):
        (length,) = _LENGTH.unpack_from(data, at + LENGTH_AT)
        if length < MIN_LEGACY_LENGTH:
            raise CorruptRecordError(f"a message of {length} bytes in a wrapper")
        end = at + LOG_OVERHEAD_BYTES + length
        if end > len(data):
            return
        yield data[at:end]
        at = end


def _messages(framed: list[bytes], base: int, stamp_ms: int | None) -> Iterator[LazyMessage]:
    for data in framed:
        codec = data[LEGACY_ATTRIBUTES_AT] & CODEC_MASK
        if codec > Codec.ZSTD:
            raise IllegalArgumentError(f"no codec has the number {codec}")
        if codec:
            raise InvalidRecordError("a compressed message in a wrapper")
        offset = int64(base + FRAMING.unpack_from(data)[0])
        yield LazyMessage(offset, data, stamp_ms if data[MAGIC_AT] == 1 else None)
