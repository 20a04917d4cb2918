"""What stands in a `.log` file: a row for each batch, and the records of each.

Keys and values that are not UTF-8 come as hex. Those of `__consumer_offsets`,
`__transaction_state` and `__cluster_metadata`, by the name of the directory, come as what they say,
and so do those of snapshots of the metadata log.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import Any

from storage.codecs.compression import decompress
from storage.errors import CorruptFileError
from storage.file_names import parse_partition_dir
from storage.files.files import Files
from storage.formats.batch_header import BATCH_HEADER_BYTES, MAGIC
from storage.formats.control_record import (
    ControlType,
    decode_coordinator_epoch,
    decode_snapshot_time,
    decode_type,
)
from storage.formats.coordinator_records import (
    CONSUMER_OFFSETS,
    METADATA_TOPIC,
    TRANSACTION_STATE,
    Decoded,
    decode_control,
    decode_key,
    decode_metadata,
    decode_value,
)
from storage.formats.legacy_messages import decode_records
from storage.formats.record import MalformedRecordError, Record, or_none
from storage.formats.record_batch import BatchHeader
from storage.log.segment_reader import read_batch_headers, read_batches

METADATA_SNAPSHOT = ".checkpoint"
_OF_QUORUM = (ControlType.LEADER_CHANGE, ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS)
_INTERNAL = (CONSUMER_OFFSETS, TRANSACTION_STATE, METADATA_TOPIC)
Row = dict[str, Any]  # `kind` comes first

EVERY_OFFSET = 2**63 - 1
_DECODED_KEYS = 1 << 14  # kept: keys of these topics come again and again


@dataclass
class WantedOffsets:
    """Which records and entries are shown, and how many more."""

    from_offset: int = 0
    to_offset: int = EVERY_OFFSET  # exclusive
    limit: int | None = None  # records and entries; None: all

    @property
    def is_everything(self) -> bool:
        return (self.from_offset, self.to_offset, self.limit) == (0, EVERY_OFFSET, None)

    def is_reached(self) -> bool:
        """Whether the limit is reached."""
        return self.limit is not None and self.limit <= 0

    def takes(self, offset: int) -> bool:
        """Whether a record or entry is shown; it counts."""
        if not self.from_offset <= offset < self.to_offset or self.is_reached():
            return False
        if self.limit is not None:
            self.limit -= 1
        return True

    def takes_all(self, header: BatchHeader) -> bool:
        """Whether all records of a batch are shown; they count."""
        count = header.records_count
        if header.base_offset < self.from_offset or header.last_offset >= self.to_offset:
            return False
        if self.limit is None:
            return True
        if count > self.limit:
            return False
        self.limit -= count
        return True


EVERYTHING = WantedOffsets()


@dataclass(frozen=True, slots=True)
class RecordBlock:
    """The records of a whole batch of format v2 that holds data; rows alone if need be."""

    header: BatchHeader
    batch: memoryview
    path: str
    position: int

    def payload(self) -> bytes | memoryview:
        """The records, not compressed. Raise CorruptFileError where they do not decompress."""
        data = self.batch[BATCH_HEADER_BYTES : self.header.size_bytes]
        if not self.header.codec:
            return data
        return decompress(self.header.codec, data, self.path, self.position)

    def rows(self) -> Iterator[Row]:
        """A row for each. Raise CorruptFileError where one does not parse."""
        for record in decode_records(self.batch, self.header, self.path, self.position):
            yield _record(record)


def blocks_of(path: str, wanted: WantedOffsets, files: Files) -> Iterator[Row | RecordBlock]:
    """Yield the batches of a log, each followed by its records.

    Raise CorruptFileError where a batch is damaged or cut short, after all that stands before it.
    """
    topic = _coordinator_topic(path)
    start = _start_of(path, wanted.from_offset, files)
    for position, header, batch in read_batches(path, files=files, start=start):
        if header.base_offset >= wanted.to_offset or wanted.is_reached():
            return
        yield batch_row(position, header) if header.magic == MAGIC else _message(position, header)
        is_plain = header.magic == MAGIC and header.records_count and not header.is_control
        if is_plain and topic is None and wanted.takes_all(header):
            yield RecordBlock(header, batch, path, position)
            continue
        for record in decode_records(batch, header, path, position):
            if not wanted.takes(record.offset):
                continue
            if header.is_control:
                yield _record(record) | _control(record, path, position)
            else:
                yield _record(record) if topic is None else _coordinator_record(record, topic)


def _coordinator_topic(path: str) -> str | None:
    if METADATA_SNAPSHOT in os.path.basename(path):
        return METADATA_TOPIC
    key = parse_partition_dir(os.path.basename(os.path.dirname(os.path.abspath(path))))
    return key[0] if key and key[0] in _INTERNAL else None


def _start_of(path: str, from_offset: int, files: Files) -> int:
    """Return where the first batch begins that holds an offset or a later one."""
    if not from_offset:
        return 0
    end = 0
    for position, header in read_batch_headers(path, files=files):
        if header.last_offset >= from_offset:
            return position
        end = position + header.size_bytes
    return end


def batch_row(position: int, header: BatchHeader) -> Row:
    return {
        "kind": "batch",
        "position": position,
        "size_bytes": header.size_bytes,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": header.records_count,
        "codec": header.codec.name.lower(),
        "base_timestamp": header.base_timestamp,
        "max_timestamp": or_none(header.max_timestamp),
        "timestamp_type": "LogAppendTime" if header.is_log_append_time else "CreateTime",
        "delete_horizon_ms": header.delete_horizon_ms,
        "partition_leader_epoch": or_none(header.partition_leader_epoch),
        "producer_id": or_none(header.producer_id),
        "producer_epoch": or_none(header.producer_epoch),
        "base_sequence": or_none(header.base_sequence),
        "transactional": header.is_transactional,
        "control": header.is_control,
        "crc": header.crc,
    }


def _message(position: int, header: BatchHeader) -> Row:
    """An entry of format v0 or v1; a wrapper, if it has a codec: its records are the messages."""
    types = "LogAppendTime" if header.is_log_append_time else "CreateTime"
    return {
        "kind": "message",
        "position": position,
        "size_bytes": header.size_bytes,
        "magic": header.magic,
        "offset": header.last_offset,
        "codec": header.codec.name.lower(),
        "timestamp": or_none(header.max_timestamp),
        "timestamp_type": types if header.magic else None,
        "crc": header.crc,
    }


def _record(record: Record) -> Row:
    return {
        "kind": "record",
        "offset": record.offset,
        "timestamp": or_none(record.timestamp),
        "key": _readable(record.key),
        "value": _readable(record.value),
        "headers": [[_readable(key), _readable(value)] for key, value in record.headers],
    }


def _coordinator_record(record: Record, topic: str) -> Row:
    row = _record(record)
    if topic == METADATA_TOPIC:
        if record.value is not None:
            row["value"] = _metadata_value(record.value)
    elif record.key is not None:
        row["key"] = _decoded_key(topic, record.key)
        if record.value is not None:
            value = decode_value(topic, record.key, record.value)
            row["value"] = _coordinator_fields(value, "version", record.value)
    return row


def _metadata_value(value: bytes) -> Row:
    record_type, found = decode_metadata(value)
    row: Row = {"type": record_type, "name": found.name, "version": or_none(found.version)}
    if found.fields is None:
        return row | {"problem": found.problem, "hex": value.hex()}
    return row | {"data": _plain(found.fields)}


@lru_cache(_DECODED_KEYS)
def _decoded_key(topic: str, key: bytes) -> Row:
    return _coordinator_fields(decode_key(topic, key), "type", key)


def _coordinator_fields(decoded: Decoded, number: str, data: bytes) -> Row:
    """number: what that which stands first in data is."""
    row: Row = {number: decoded.version}
    if decoded.name is not None and number == "type":
        row["name"] = decoded.name
    if decoded.fields is None:
        return row | {"problem": decoded.problem, "hex": data.hex()}
    return row | {"data": _plain(decoded.fields)}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return _readable(value)
    if isinstance(value, float) and not isfinite(value):
        return str(value)  # for which JSON has no number
    if isinstance(value, dict):
        return {name: _plain(own) for name, own in value.items()}
    return [_plain(own) for own in value] if isinstance(value, list) else value


def _control(record: Record, path: str, position: int) -> Row:
    try:
        kind = decode_type(record.key)
        row: Row = {"control_type": kind.name}
        if kind.is_marker:
            row["coordinator_epoch"] = decode_coordinator_epoch(record.value)
        elif kind is ControlType.SNAPSHOT_HEADER:
            row["last_contained_log_timestamp"] = or_none(decode_snapshot_time(record.value))
        elif kind in _OF_QUORUM and record.value is not None:
            told = decode_control(kind, record.value)
            row["value"] = _coordinator_fields(told, "version", record.value)
        return row
    except MalformedRecordError as error:
        raise CorruptFileError(path, position, str(error)) from error


def _readable(data: bytes | None) -> str | dict[str, str] | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"hex": data.hex()}
