"""Messages of format v0 and v1 as Kafka's broker reads them: a field when it is asked for.

So a message whose key or value is damaged has an offset and a time all the same. Source: Kafka,
LegacyRecord, AbstractLegacyRecordBatch, Utils.sizeDelimited; spec F-7, L-3.6.
"""

from collections.abc import Iterator
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
from storage.formats.record import Record, int64
from storage.log.errors import (
    CorruptRecordError,
    IllegalArgumentError,
    IndexOutOfBoundsError,
    InvalidRecordError,
)

Bytes = bytes | bytearray | memoryview

_LENGTH, _TIMESTAMP = Struct(">i"), Struct(">q")


class LazyMessage(NamedTuple):
    """A whole message. Key and value raise IndexOutOfBoundsError where their length would stand
    behind its end, and IllegalArgumentError where they would end there.
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
        """What its length says."""
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
    """Give the messages of a wrapper, one after the other. InvalidRecordError at one that is
    compressed itself.

    data: its value, decompressed. last_offset: its own. All messages are framed before the first is
    given: CorruptRecordError where that fails, InvalidRecordError where no offset fits.
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
    return _given(framed, base, stamp_ms)


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


def _given(framed: list[bytes], base: int, stamp_ms: int | None) -> Iterator[LazyMessage]:
    for data in framed:
        codec = data[LEGACY_ATTRIBUTES_AT] & CODEC_MASK
        if codec > Codec.ZSTD:
            raise IllegalArgumentError(f"no codec has the number {codec}")
        if codec:
            raise InvalidRecordError("a compressed message in a wrapper")
        offset = int64(base + FRAMING.unpack_from(data)[0])
        yield LazyMessage(offset, data, stamp_ms if data[MAGIC_AT] == 1 else None)
