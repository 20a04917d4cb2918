"""The entries of a log, one by one: v2 batches and legacy messages, in a file or in memory.

What is wrong in an entry is noticed where Kafka notices it, which is often later than one might
think: a header is taken as it is. Source: Kafka, FileLogInputStream, ByteBufferLogInputStream,
DefaultRecordBatch, AbstractLegacyRecordBatch; spec F-3, F-4, F-7, L-3.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from struct import Struct
from typing import Protocol
from zlib import crc32

from crc32c import crc32c

from storage.codecs.compression import Codec, CutPayloadError, decompress, inflated
from storage.codecs.lz4_frame import with_header_checksum
from storage.errors import CorruptFileError, LogCompactionError
from storage.formats.batch_header import (
    BATCH_HEADER_BYTES,
    CHECKED_AT,
    CODEC_MASK,
    FRAME_BYTES,
    LEGACY_ATTRIBUTES_AT,
    LEGACY_TIMESTAMP_AT,
    LENGTH_AT,
    LOG_APPEND_TIME,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_AT,
    MIN_LEGACY_LENGTH,
    NO_LEADER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
)
from storage.formats.record import Record
from storage.formats.record_batch import FRAMING, HEADER, BatchHeader
from storage.log.errors import (
    BufferUnderflowError,
    CodecError,
    CorruptRecordError,
    CutZipError,
    IllegalArgumentError,
    InvalidRecordError,
    KafkaError,
    LogError,
    ZipError,
    ZstdError,
)
from storage.log.record_decoder import (
    LazyMessage,
    messages_within,
    read_head,
    read_record,
    read_unpacked,
    require_framed,
)

Bytes = bytes | bytearray | memoryview
_Read = Callable[[bytes, int, int, int], tuple[Record, int]]

_V1_TIMESTAMP = Struct(">q")
_MAX_SEQUENCE = 2**31 - 1
_BUFFERED_BYTES = 64 * 1024


class BatchSource(Protocol):
    """A file or buffer that entries are read from."""

    def read_fully(self, position: int, length: int) -> Bytes:
        """Return length bytes. Raise KafkaError where there are fewer."""
        ...


class Batch:
    """One entry of a log. Its fields are read when they are asked for."""

    def __init__(
        self, source: BatchSource, position: int, offset: int, size_bytes: int, magic: int
    ) -> None:
        self._source, self.position = source, position
        self._offset, self.size_bytes, self.magic = offset, size_bytes, magic

    @cached_property
    def header(self) -> BatchHeader:
        """The header of a v2 batch, as it is."""
        data = self._source.read_fully(self.position, BATCH_HEADER_BYTES)
        return BatchHeader(*HEADER.unpack_from(data))

    @cached_property
    def data(self) -> Bytes:
        return self._source.read_fully(self.position, self.size_bytes)

    @property
    def is_legacy(self) -> bool:
        return self.magic < MAGIC

    @property
    def base_offset(self) -> int:
        """The first offset; a wrapper is decompressed to read that of its first message."""
        if self.is_legacy and self.codec is not Codec.NONE:
            try:
                return next(self.records()).offset
            except LogError as error:
                error.position = self.position
                raise
        return self._offset

    @property
    def last_offset(self) -> int:
        return self._offset if self.is_legacy else self.header.last_offset

    @property
    def attributes(self) -> int:
        if self.is_legacy:
            at = self.position + LEGACY_ATTRIBUTES_AT
            return self._source.read_fully(at, 1)[0]
        return self.header.attributes & 0xFF

    @property
    def codec(self) -> Codec:
        """The codec. Raise IllegalArgumentError where there is no such codec."""
        number = self.attributes & CODEC_MASK
        if number > Codec.ZSTD:
            raise IllegalArgumentError(f"no codec has the number {number}")
        return Codec(number)

    @property
    def is_log_append_time(self) -> bool:
        return self.magic > 0 and bool(self.attributes & LOG_APPEND_TIME)

    @property
    def max_timestamp(self) -> int:
        if not self.is_legacy:
            return self.header.max_timestamp
        if self.magic < 0:
            raise IllegalArgumentError(f"no entry has the magic {self.magic}")
        if self.magic == 0:
            return NO_TIMESTAMP
        at = self.position + LEGACY_TIMESTAMP_AT
        return int(_V1_TIMESTAMP.unpack(self._source.read_fully(at, _V1_TIMESTAMP.size))[0])

    @property
    def leader_epoch(self) -> int:
        return NO_LEADER_EPOCH if self.is_legacy else self.header.partition_leader_epoch

    @property
    def producer_id(self) -> int:
        return NO_PRODUCER_ID if self.is_legacy else self.header.producer_id

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def producer_epoch(self) -> int:
        return self.header.producer_epoch

    @property
    def base_sequence(self) -> int:
        return NO_SEQUENCE if self.is_legacy else self.header.base_sequence

    @property
    def last_sequence(self) -> int:
        """The last sequence by Kafka's arithmetic of 32 bits, also of a wrong header."""
        first, more = self.header.base_sequence, self.header.last_offset_delta
        if first == NO_SEQUENCE:
            return NO_SEQUENCE
        if first > _int32(_MAX_SEQUENCE - more):
            return _int32(more - _int32(_MAX_SEQUENCE - first) - 1)
        return _int32(first + more)

    @property
    def is_transactional(self) -> bool:
        return not self.is_legacy and self.header.is_transactional

    @property
    def is_control(self) -> bool:
        return not self.is_legacy and self.header.is_control

    def is_valid(self) -> bool:
        """Whether it is large enough, and its checksum right (F-4.9)."""
        if self.is_legacy:
            return crc32(memoryview(self.data)[MAGIC_AT:]) == self._legacy_crc
        if self.size_bytes < BATCH_HEADER_BYTES:
            return False
        return crc32c(memoryview(self.data)[CHECKED_AT:]) == self.header.crc

    @property
    def _legacy_crc(self) -> int:
        return int.from_bytes(bytes(self.data[LOG_OVERHEAD_BYTES:MAGIC_AT]), "big")

    def require_valid(self) -> None:
        """Raise CorruptRecordError for a batch that is not valid."""
        if not self.is_valid():
            raise CorruptRecordError(
                f"the batch of {self.size_bytes} bytes at byte {self.position}, offset "
                f"{self._offset}, does not match its checksum"
            )

    def records(self) -> Iterator[Record | LazyMessage]:
        """Yield the records, with their offsets and times.

        Keys and values of old formats are looked at when they are asked for. Raise
        InvalidRecordError at the first that cannot be one, and where there are fewer or more bytes
        than records.
        """
        if self.is_legacy:
            return self._legacy_records()
        if self.codec is Codec.NONE:
            return self._v2_records()
        return iter(list(self._v2_records(read_unpacked)))  # Kafka reads them all before the first

    def _legacy_records(self) -> Iterator[LazyMessage]:
        if self.codec is Codec.NONE:
            return iter((LazyMessage(self._offset, self.data),))
        if self.magic < 0 or self.codec is Codec.ZSTD:
            raise InvalidRecordError(f"a wrapper of magic {self.magic}, codec {self.codec.name}")
        value = LazyMessage(self._offset, self.data).value
        if value is None:
            raise InvalidRecordError("a wrapper without a value")
        if self.codec is Codec.LZ4 and self.magic == 0:
            value = with_header_checksum(value)  # it is wrong in v0 (F-8.4)
        stamp_ms = self.max_timestamp if self.is_log_append_time else None
        try:
            data = self._unpacked(value)
        except CodecError:
            if self.codec is Codec.GZIP:  # Kafka frames the messages before it sees the trailer
                require_framed(inflated(value) or b"")
            raise
        return messages_within(data, self._offset, self.magic, stamp_ms)

    def record_heads(self) -> Iterator[Record | LazyMessage]:
        """Yield the records of a v2 batch, with b"" for any key, no values and no headers."""
        return self._legacy_records() if self.is_legacy else self._v2_records(read_head)

    def _v2_records(self, read: _Read = read_record) -> Iterator[Record]:
        header = self.header
        if not header.records_count:
            return
        payload = bytes(self._payload())
        if header.records_count < 0:
            raise InvalidRecordError(f"a records count of {header.records_count}")
        at, append_time = 0, header.is_log_append_time
        base_offset, base_time = header.base_offset, header.base_timestamp
        for number in range(header.records_count):
            record, at = read(payload, at, base_offset, base_time)
            if append_time:
                record = record._replace(timestamp=header.max_timestamp)
            if number + 1 == header.records_count and at != len(payload):
                raise InvalidRecordError(f"{len(payload) - at} bytes are left behind the records")
            yield record

    def _payload(self) -> Bytes:
        payload = memoryview(self.data)[BATCH_HEADER_BYTES:]
        return payload if self.codec is Codec.NONE else self._unpacked(bytes(payload))

    def _unpacked(self, payload: bytes) -> bytes:
        codec = self.codec
        try:
            return decompress(codec, payload, "", self.position)
        except LogCompactionError as error:
            kind = {Codec.GZIP: ZipError, Codec.ZSTD: ZstdError}.get(codec, CodecError)
            if isinstance(error.__cause__, CutPayloadError):
                kind = CutZipError
            problem = error.problem if isinstance(error, CorruptFileError) else str(error)
            raise kind(f"the records cannot be decompressed: {problem}") from error

    def offset_of_max_timestamp(self) -> int | None:
        """The first record with the largest time of the batch; None if no record has it."""
        if self.magic == 0:
            return None
        largest = self.max_timestamp
        return next((r.offset for r in self.records() if r.timestamp == largest), None)


def _int32(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31


class _Memory:
    """A buffer as a source of entries."""

    __slots__ = ("_data",)

    def __init__(self, data: Bytes) -> None:
        self._data = memoryview(data)

    def read_fully(self, position: int, length: int) -> Bytes:
        found = self._data[position : position + length]
        if len(found) < length:
            raise BufferUnderflowError(f"{length} bytes expected, and only {len(found)} left")
        return found


def in_memory(data: Bytes) -> Iterator[Batch]:
    """Yield the entries of a buffer up to one that is cut short.

    Raise CorruptRecordError at the first that cannot be framed (F-3.4).
    """
    source = _Memory(data)
    position, end = 0, len(data)
    while end - position >= LOG_OVERHEAD_BYTES:
        length = int.from_bytes(
            data[position + LENGTH_AT : position + LOG_OVERHEAD_BYTES], "big", signed=True
        )
        if length < MIN_LEGACY_LENGTH:
            raise CorruptRecordError(f"an entry of {length} bytes at byte {position}")
        if end - position < FRAME_BYTES:
            return
        offset, length, _, magic = FRAMING.unpack_from(data, position)
        if not 0 <= magic <= MAGIC:
            raise CorruptRecordError(f"magic {magic} at byte {position + MAGIC_AT}")
        size = length + LOG_OVERHEAD_BYTES
        if end - position < size:
            return
        yield Batch(source, position, offset, size, magic)
        position += size


def in_file(source: "FileSource", position: int, end: int) -> Iterator[Batch]:
    """Yield the entries of a file from one to end, up to one that is cut short (F-3.3)."""
    window, start = b"", position
    while position < end - FRAME_BYTES:
        at = position - start
        if at + FRAME_BYTES > len(window):
            window, start, at = bytes(source.read(position, _BUFFERED_BYTES)), position, 0
            if len(window) < FRAME_BYTES:
                raise KafkaError(f"the file ends at byte {position + len(window)}, before {end}")
        offset, length, _, magic = FRAMING.unpack_from(window, at)
        if length < MIN_LEGACY_LENGTH:
            raise CorruptRecordError(f"an entry of {length} bytes at byte {position}")
        size = length + LOG_OVERHEAD_BYTES
        if position > end - size:
            return
        batch = Batch(source, position, offset, size, magic)
        if magic >= MAGIC and at + BATCH_HEADER_BYTES <= len(window):
            batch.header = BatchHeader(*HEADER.unpack_from(window, at))
        if at + size <= len(window):
            batch.data = memoryview(window)[at : at + size]
        yield batch
        position += size


class FileSource(BatchSource, Protocol):
    """A file as a source of entries."""

    def read(self, position: int, length: int) -> bytes: ...
