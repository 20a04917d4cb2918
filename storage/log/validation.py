"""What a log is asked to append, and what a leader does to it: checks, offsets, times, conversion.

Offsets and times go into the buffer in place where Kafka does it in place; else one new batch is
made. Source: Kafka, LogValidator, MemoryRecordsBuilder, DefaultRecordBatch.setMaxTimestamp,
LegacyRecord; spec L-3, L-13.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

from crc32c import crc32c

from storage.codecs.compression import Codec, compress
from storage.codecs.lz4_frame import with_wrong_header_checksum
from storage.formats.batch_header import (
    ATTRIBUTES_AT,
    CHECKED_AT,
    CRC_AT,
    LEADER_EPOCH_AT,
    LEGACY_ATTRIBUTES_AT,
    LEGACY_CRC_AT,
    LEGACY_TIMESTAMP_AT,
    LOG_APPEND_TIME,
    MAGIC,
    MAGIC_AT,
    MAX_LAST_OFFSET,
    MAX_TIMESTAMP_AT,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    entry_bytes,
)
from storage.formats.legacy_messages import FRAMING, HEADS, LENGTH
from storage.formats.record import Record
from storage.formats.record_batch import BatchOptions, encode_batch
from storage.log.batches import Batch, in_memory
from storage.log.errors import (
    CorruptRecordError,
    IllegalArgumentError,
    InvalidRecordError,
    InvalidTimestampError,
    LogError,
    RecordValidationError,
    UnsupportedForMessageFormatError,
    UnsupportedOperationError,
)
from storage.log.log_config import LogConfig
from storage.log.offsets import UNKNOWN
from storage.log.producer_state_entry import (
    SENTINEL,
    UNKNOWN_VERSION,
    AppendOrigin,
    VerificationGuard,
)
from storage.log.record_decoder import LazyMessage, lacks_key, whole


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendRequest:
    """How batches are appended."""

    origin: AppendOrigin = AppendOrigin.CLIENT
    leader_epoch: int = 0
    guard: VerificationGuard = SENTINEL
    target_magic: int = MAGIC
    transaction_version: int = UNKNOWN_VERSION
    # one v2 batch, with a codec and records that the log takes: it is only given its offsets
    is_made_for_log: bool = False

    @property
    def gives_offsets(self) -> bool:
        """Whether the log does."""
        return self.origin in (AppendOrigin.CLIENT, AppendOrigin.COORDINATOR)


BY_CLIENT = AppendRequest()


class LogAppendInfo(NamedTuple):
    """The outcome of an append; of a duplicate, with the offsets of the first time."""

    first_offset: int  # -1: not known, or nothing was appended
    last_offset: int
    max_timestamp: int
    log_append_time: int
    log_start_offset: int
    last_leader_epoch: int | None
    source_codec: Codec
    valid_bytes: int
    last_offset_of_first_batch: int
    records_converted: int = 0

    @property
    def first_or_last_of_first_batch(self) -> int:
        return (
            self.last_offset_of_first_batch if self.first_offset == UNKNOWN else self.first_offset
        )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """How a set of batches is to be checked, and what they become."""

    request: AppendRequest
    config: LogConfig
    source_codec: Codec  # of the set
    now_ms: int
    next_offset: int

    @property
    def target_codec(self) -> Codec:
        kind = self.config.compression_type
        if kind == "producer":
            return self.source_codec
        return Codec.NONE if kind == "uncompressed" else Codec[kind.upper()]


class Validated(NamedTuple):
    """Batches as they are to be written."""

    data: bytearray | bytes
    next_offset: int
    max_timestamp: int
    records_converted: int
    size_may_have_changed: bool


def validate(data: bytearray, how: Validation) -> Validated:
    """Check batches and give them offsets; data is changed where that is done in place."""
    batches = list(in_memory(data))
    _check_count(batches, how)
    if how.source_codec is not Codec.NONE or how.target_codec is not Codec.NONE:
        return _compressed(data, batches, how)
    if all(batch.magic == how.request.target_magic for batch in batches):
        return _in_place(data, batches, how)
    return _converted(batches, how)


def give_offsets(data: bytearray, how: Validation) -> Validated:
    """Give one batch of v2 its offsets, of which all is known that `validate` checks."""
    (batch,) = in_memory(data)
    _check_of_client(batch)
    end = how.next_offset + batch.header.records_count
    largest = batch.max_timestamp
    _give_offset(data, batch, end - 1, how.request.leader_epoch)
    set_times(data, batch, _log_time(how), largest)
    largest = how.now_ms if how.config.is_log_append_time else largest
    return Validated(data, end, largest, 0, False)


def _check_count(batches: list[Batch], how: Validation) -> None:
    if not batches:
        raise InvalidRecordError("no whole batch to append")
    if len(batches) > 1 and (batches[0].magic >= MAGIC or how.source_codec is not Codec.NONE):
        raise InvalidRecordError("more than one batch at once")


def _in_place(data: bytearray, batches: list[Batch], how: Validation) -> Validated:
    offset, largest = how.next_offset, NO_TIMESTAMP
    for batch in batches:
        _check_batch(batch, batches[0], how)
        largest_of_batch = NO_TIMESTAMP
        checks = _RecordChecks(batch, how)
        for record in batch.record_heads():
            checks.check(record)
            offset += 1
            if batch.magic > 0:
                largest_of_batch = max(largest_of_batch, record.timestamp)
        checks.finish()
        largest = max(largest, largest_of_batch)
        _give_offset(data, batch, offset - 1, how.request.leader_epoch)
        if batch.magic > 0:
            set_times(data, batch, _log_time(how), largest_of_batch)
    if how.config.is_log_append_time:
        largest = how.now_ms if how.request.target_magic else NO_TIMESTAMP
    return Validated(data, offset, largest, 0, False)


def _log_time(how: Validation) -> int | None:
    return how.now_ms if how.config.is_log_append_time else None


def _give_offset(data: bytearray, batch: Batch, last_offset: int, leader_epoch: int) -> None:
    """Set the last offset of a batch, and of a v2 batch its leader epoch."""
    require_next_offset(last_offset)
    at = batch.position
    if batch.is_legacy:
        data[at : at + 8] = last_offset.to_bytes(8, "big", signed=True)
        return
    base = last_offset - batch.header.last_offset_delta
    data[at : at + 8] = base.to_bytes(8, "big", signed=True)
    at += LEADER_EPOCH_AT
    data[at : at + 4] = leader_epoch.to_bytes(4, "big", signed=True)


def require_next_offset(last_offset: int) -> None:
    """Raise IllegalArgumentError where no offset can follow.

    Kafka writes a batch that ends at 2^63 - 1, and then raises what is raised here: its log ends
    below 0 from then on.
    """
    if last_offset > MAX_LAST_OFFSET:
        raise IllegalArgumentError(f"last offset {last_offset}: no offset can follow it")


def _converted(batches: list[Batch], how: Validation) -> Validated:
    first = batches[0]
    if first.is_transactional and how.request.target_magic < MAGIC:
        raise IllegalArgumentError("a transaction in an old message format")
    for batch in batches:  # Kafka first sums the sizes of all records up
        for record in batch.records():
            whole(record)
    kept: list[Record] = []
    offset = how.next_offset
    for batch in batches:
        _check_batch(batch, first, how)
        checks = _RecordChecks(batch, how)
        for record in batch.records():
            if checks.check(record) and checks.all_passed:  # after a bad one, nothing is written
                found = whole(record)
                require_encodable(found, how.request.target_magic)
                kept.append(found._replace(offset=offset))
                offset += 1
        checks.finish()
    require_next_offset(offset - 1)
    made = _rebuilt(kept, first, how)
    return Validated(made.data, offset, made.max_timestamp, len(kept), True)


def _compressed(data: bytearray, batches: list[Batch], how: Validation) -> Validated:
    first = batches[0]
    in_place = (
        how.source_codec is how.target_codec or (first.is_control and not how.source_codec)
    ) and first.magic == how.request.target_magic != 0
    was_in_place = in_place
    records: list[Record | LazyMessage] = []
    largest, number = NO_TIMESTAMP, 0
    for batch in batches:
        _check_batch(batch, first, how)
        checks = _RecordChecks(batch, how)
        for record in batch.records():
            if not checks.check(record):
                continue
            if batch.magic > 0 and how.request.target_magic > 0:
                largest = max(largest, record.timestamp)
                if record.offset != number:
                    in_place = False
            number += 1
            records.append(record)
        checks.finish()
    if not in_place:
        if was_in_place and first.magic == MAGIC and how.source_codec:
            # Kafka has read neither keys nor values of what it meant to leave as it is
            raise UnsupportedOperationError("a compressed batch whose offsets are not 0, 1, 2, …")
        require_next_offset(how.next_offset + len(records) - 1)
        numbered = [whole(r)._replace(offset=how.next_offset + i) for i, r in enumerate(records)]
        made = _rebuilt(numbered, first, how)
        end = how.next_offset + len(records)
        return Validated(made.data, end, made.max_timestamp, len(records), True)
    end = how.next_offset + len(records)
    _give_offset(data, first, end - 1, how.request.leader_epoch)
    set_times(data, first, _log_time(how), largest)
    largest = how.now_ms if how.config.is_log_append_time else largest
    return Validated(data, end, largest, 0, False)


class _Rebuilt(NamedTuple):
    data: bytes
    max_timestamp: int


def _rebuilt(records: Sequence[Record], first: Batch, how: Validation) -> _Rebuilt:
    """Make one batch of records, or as many messages; none of no records. first: of the batches."""
    magic, append_time, level = (
        how.request.target_magic,
        _log_time(how),
        how.config.compression_level,
    )
    if first.producer_id != NO_PRODUCER_ID and first.base_sequence == NO_SEQUENCE:
        raise IllegalArgumentError("a batch of a producer without a sequence")
    if magic < MAGIC and how.target_codec is Codec.ZSTD:
        raise IllegalArgumentError("zstd in an old message format")
    for record in records:
        require_encodable(record, magic)
    if not records:
        return _Rebuilt(b"", NO_TIMESTAMP)
    largest = max(record.timestamp for record in records) if append_time is None else append_time
    if magic < MAGIC:
        messages = message_set(records, magic, how.target_codec, append_time, level)
        is_known = magic or append_time is not None
        return _Rebuilt(messages, largest if is_known else NO_TIMESTAMP)
    options = BatchOptions(
        partition_leader_epoch=how.request.leader_epoch,
        producer_id=first.producer_id,
        producer_epoch=NO_PRODUCER_EPOCH if first.is_legacy else first.producer_epoch,
        base_sequence=first.base_sequence,
        is_transactional=first.is_transactional,
        compression_level=level,
    )
    batch = bytearray(encode_batch(records, how.target_codec, options))
    if append_time is not None:
        set_v2_times(batch, 0, append_time, LOG_APPEND_TIME)
    return _Rebuilt(bytes(batch), largest)


def _check_batch(batch: Batch, first: Batch, how: Validation) -> None:
    if batch.magic != first.magic:
        raise InvalidRecordError(f"magic {batch.magic} behind magic {first.magic}")
    if how.request.origin is AppendOrigin.CLIENT:
        _check_of_client(batch)
    if batch.is_transactional and how.request.target_magic < MAGIC:
        raise UnsupportedForMessageFormatError("a transaction in an old message format")
    if batch.has_producer_id and how.request.target_magic < MAGIC:
        raise UnsupportedForMessageFormatError("a producer id in an old message format")


def _check_of_client(batch: Batch) -> None:
    if not batch.is_legacy:
        header = batch.header
        span = header.last_offset - header.base_offset + 1
        if span <= 0 or header.records_count <= 0 or span != header.records_count:
            raise InvalidRecordError(
                f"a records count of {header.records_count} over {span} offsets"
            )
    if batch.is_control:
        raise InvalidRecordError("a client writes no control batch")
    if batch.has_producer_id and batch.base_sequence < 0:
        raise InvalidRecordError(f"sequence {batch.base_sequence} of a producer")


class _RecordChecks:
    """The checks of the records of one batch; what is wrong with them is raised at its end."""

    def __init__(self, batch: Batch, how: Validation) -> None:
        self._batch, self._how = batch, how
        self._number = 0
        self._errors: list[tuple[int, LogError]] = []
        config = how.config
        self._compacted = config.is_compacted
        self._log_append_time = config.is_log_append_time
        self._is_wrapper = batch.is_legacy and batch.codec is not Codec.NONE
        self._takes_times = not self._log_append_time
        # the times that pass, both included
        self._earliest = how.now_ms - config.message_timestamp_before_max_ms
        self._latest = how.now_ms + config.message_timestamp_after_max_ms

    def check(self, record: Record | LazyMessage) -> bool:
        """Look at the next record; whether it is sound."""
        is_timely = self._takes_times and self._earliest <= record.timestamp <= self._latest
        is_plain = is_timely and not self._is_wrapper
        if is_plain and not (self._compacted and lacks_key(record)):  # as nearly always
            self._number += 1
            return True
        error = self._problem(record)
        if error is not None:
            self._errors.append((self._number, error))
        self._number += 1
        return error is None

    def _problem(self, record: Record | LazyMessage) -> LogError | None:
        if self._is_wrapper and isinstance(record, LazyMessage):
            if record.magic != self._batch.magic:
                return InvalidRecordError(f"a message of magic {record.magic} in a wrapper")
            if not record.has_right_crc:
                raise CorruptRecordError("a message in a wrapper does not match its checksum")
        if self._compacted and lacks_key(record):
            return InvalidRecordError("a record without a key, in a topic that is compacted")
        if not self._log_append_time and record.timestamp != NO_TIMESTAMP:
            if not self._earliest <= record.timestamp <= self._latest:
                return InvalidTimestampError(f"time {record.timestamp} is too far from the clock")
        elif self._batch.is_log_append_time:
            return InvalidTimestampError("a batch with a time that only the log may give")
        return None

    @property
    def all_passed(self) -> bool:
        return not self._errors

    def finish(self) -> None:
        """Raise what was wrong with any record."""
        if not self._errors:
            return
        kinds = [error for _, error in self._errors]
        of_time = [error for error in kinds if isinstance(error, InvalidTimestampError)]
        raise RecordValidationError((of_time or kinds)[0], [number for number, _ in self._errors])
