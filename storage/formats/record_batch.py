"""Record batch of message format v2: 61-byte header, then the records, compressed as one blob.

Layout and rules: spec F-4. The CRC covers the attributes and all after them. When bit 0x40 is set,
the base timestamp holds the delete horizon and is still the base of the records' timestamps.
Source: Kafka, DefaultRecordBatch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from storage.codecs.compression import Bytes, Codec, compress, decompress
from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.formats import record as record_format
from storage.formats.batch_header import (
    BATCH_HEADER_BYTES,
    CHECKED_AT,
    CODEC_MASK,
    CONTROL,
    CRC_AT,
    DELETE_HORIZON,
    FRAME_BYTES,
    LOG_APPEND_TIME,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_AT,
    MAX_LAST_OFFSET,
    MIN_BATCH_LENGTH,
    MIN_LEGACY_LENGTH,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL,
)
from storage.formats.record import MalformedRecordError, Record
from storage.formats.varint import MalformedVarintError

HEADER = Struct(">qiibIhiqqqhii")  # the fields of BatchHeader, in order
assert HEADER.size == BATCH_HEADER_BYTES
FRAMING = Struct(">qiib")  # of every entry: offset, length, leader epoch or CRC, magic
assert FRAMING.size == FRAME_BYTES
CRC = Struct(">I")


class BatchHeader(NamedTuple):
    base_offset: int
    batch_length: int  # the bytes after this field
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int  # ms; the delete horizon if attribute bit 0x40 is set
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size_bytes(self) -> int:
        return self.batch_length + LOG_OVERHEAD_BYTES

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int | None:
        """None: the batch is not of an idempotent producer. After 2^31 - 1 comes 0 (F-4.6)."""
        if self.base_sequence == NO_SEQUENCE:
            return None
        return (self.base_sequence + self.last_offset_delta) % 2**31

    @property
    def codec(self) -> Codec:
        return Codec(self.attributes & CODEC_MASK)

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None


def decode_header(data: Bytes, position: int, path: str) -> BatchHeader:
    """Return the header at the start of data, which stands at that position of the file.

    Raise CorruptFileError where it cannot be one, UnsupportedFormatError for another message format
    or an unknown codec. Unknown attribute bits are ignored, as Kafka's readers do (F-4.3).
    """
    if len(data) < BATCH_HEADER_BYTES:
        _check_framing(data, position, path)
        problem = f"batch header has {len(data)} of {BATCH_HEADER_BYTES} bytes"
        raise CorruptFileError(path, position, problem)
    header = BatchHeader(*HEADER.unpack_from(data))
    if header.magic != MAGIC or header.batch_length < MIN_BATCH_LENGTH:
        _check_framing(data, position, path)
        problem = f"batch length {header.batch_length}, expected at least {MIN_BATCH_LENGTH}"
        raise CorruptFileError(path, position, problem)
    if header.attributes & CODEC_MASK > Codec.ZSTD:
        problem = f"codec {header.attributes & CODEC_MASK} is not known"
        raise UnsupportedFormatError(path, position, problem)
    if header.base_offset < 0 or header.last_offset_delta < 0 or header.records_count < 0:
        problem = (
            f"base offset {header.base_offset}, last offset delta {header.last_offset_delta}, "
            f"records count {header.records_count}: none of them can be negative"
        )
        raise CorruptFileError(path, position, problem)
    require_next_offset(header.last_offset, position, path)
    return header


def require_next_offset(last_offset: int, position: int, path: str) -> None:
    """Raise CorruptFileError if no offset can follow the last one: such a log has no end."""
    if last_offset > MAX_LAST_OFFSET:
        problem = f"last offset {last_offset}, above 2^63 - 2: no offset can follow it"
        raise CorruptFileError(path, position, problem)


def _check_framing(data: Bytes, position: int, path: str) -> None:
    """Raise what is wrong with the bytes that entries of every message format have in common."""
    if len(data) <= MAGIC_AT:
        return
    _, length, _, magic = FRAMING.unpack_from(data)
    if length < MIN_LEGACY_LENGTH:  # also where a file was preallocated and holds zeros
        problem = f"entry length {length}, expected at least {MIN_LEGACY_LENGTH}"
        raise CorruptFileError(path, position, problem)
    if magic != MAGIC:
        kind = "message format v" if magic in (0, 1) else "magic "
        raise UnsupportedFormatError(path, position, f"{kind}{magic}, only v2 is handled")


def check_crc(batch: Bytes, header: BatchHeader, path: str, position: int) -> None:
    """Raise CorruptFileError if the bytes of a whole batch do not match its CRC."""
    found = crc32c(memoryview(batch)[CHECKED_AT:])
    if found != header.crc:
        problem = f"batch has CRC {header.crc:#010x}, its bytes give {found:#010x}"
        raise CorruptFileError(path, position, problem)


def decode_records(batch: Bytes, header: BatchHeader, path: str, position: int) -> list[Record]:
    """Return the records of a whole batch, with absolute offsets and timestamps.

    Strict: there are as many as the header says and nothing follows them (F-4.8); otherwise
    CorruptFileError. Records of a batch with log append time all have its max timestamp (F-4.4).
    """
    payload = memoryview(batch)[BATCH_HEADER_BYTES : header.size_bytes]
    if header.codec and header.records_count:
        payload = memoryview(decompress(header.codec, payload, path, position))
    records, at = [], 0
    try:
        for _ in range(header.records_count):
            record, at = record_format.decode(
                payload, at, header.base_offset, header.base_timestamp
            )
            records.append(record)
    except (MalformedRecordError, MalformedVarintError) as error:
        problem = f"record {len(records)} of {header.records_count}: {error}"
        raise CorruptFileError(path, position, problem) from error
    if at != len(payload):
        problem = (
            f"{len(payload) - at} bytes are left after record {header.records_count}, the last"
        )
        raise CorruptFileError(path, position, problem)
    if header.is_log_append_time:
        return [record._replace(timestamp=header.max_timestamp) for record in records]
    return records


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """What a batch says of itself beyond its records."""

    base_offset: int | None = None  # None: the first record's
    last_offset: int | None = None  # None: the last record's
    partition_leader_epoch: int = NO_LEADER_EPOCH
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE
    is_transactional: bool = False
    is_control: bool = False
    log_append_time_ms: int | None = None  # None: the records' own times
    delete_horizon_ms: int | None = None
    compression_level: int | None = None  # None: the codec's default


def encode_batch(
    records: Sequence[Record],
    codec: Codec = Codec.NONE,
    options: BatchOptions = BatchOptions(),
) -> bytes:
    """Return the batch that Kafka's builder makes of these records; there is at least one."""
    first, last = records[0], records[-1]
    append_time = options.log_append_time_ms
    if append_time is not None:
        records = [record._replace(timestamp=append_time) for record in records]
    base_offset = first.offset if options.base_offset is None else options.base_offset
    last_offset = last.offset if options.last_offset is None else options.last_offset
    base_timestamp = records[0].timestamp
    if options.delete_horizon_ms is not None:
        base_timestamp = options.delete_horizon_ms
    payload = b"".join(record_format.encode(r, base_offset, base_timestamp) for r in records)
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=0,
        partition_leader_epoch=options.partition_leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=_attributes(codec, options),
        last_offset_delta=last_offset - base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=_max_timestamp(records, append_time),
        producer_id=options.producer_id,
        producer_epoch=options.producer_epoch,
        base_sequence=options.base_sequence,
        records_count=len(records),
    )
    return seal(header, compress(codec, payload, options.compression_level))


def _max_timestamp(records: Sequence[Record], append_time: int | None) -> int:
    """Return the largest time; Kafka's builder ignores those below NO_TIMESTAMP of some clients."""
    if append_time is not None:
        return append_time
    return max(NO_TIMESTAMP, max(record.timestamp for record in records))


def _attributes(codec: Codec, options: BatchOptions) -> int:
    return (
        codec
        | LOG_APPEND_TIME * (options.log_append_time_ms is not None)
        | TRANSACTIONAL * options.is_transactional
        | CONTROL * options.is_control
        | DELETE_HORIZON * (options.delete_horizon_ms is not None)
    )


def seal(header: BatchHeader, payload: bytes) -> bytes:
    """Return header and payload as one batch; its length and CRC are computed, not taken."""
    length = MIN_BATCH_LENGTH + len(payload)
    batch = bytearray(HEADER.pack(*header._replace(batch_length=length)))
    batch += payload
    CRC.pack_into(batch, CRC_AT, crc32c(memoryview(batch)[CHECKED_AT:]))
    return bytes(batch)
