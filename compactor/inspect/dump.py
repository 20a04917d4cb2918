"""What stands in the files of a log directory, a row for each batch, record or entry.

Reads one file, or all of a directory in the order of their names. Keys and values that are not
UTF-8 come as hex.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any

from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.file_names import (
    INDEX,
    LOG,
    SNAPSHOT,
    TIME_INDEX,
    TXN_INDEX,
    UNFINISHED_SUFFIXES,
    offset_of,
)
from storage.files import filesystem
from storage.formats import (
    checkpoint,
    clean_shutdown,
    leader_epoch_checkpoint,
    meta_properties,
    offset_index,
    partition_metadata,
    producer_snapshot,
    time_index,
    txn_index,
)
from storage.formats.batch_header import MAGIC
from storage.formats.control_record import decode_coordinator_epoch, decode_type
from storage.formats.legacy_messages import decode_records
from storage.formats.record import MalformedRecordError, Record
from storage.formats.record_batch import BatchHeader
from storage.log.segment_reader import read_batches

Row = dict[str, Any]  # `kind` comes first


def rows_of(path: str) -> Iterator[Row]:
    """Yield the rows of a file, or of every file of a directory that is one of Kafka's.

    Raise CorruptFileError where a file is damaged, after all that stands before it, and
    UnsupportedFormatError for a file that is none of a log directory.
    """
    if not filesystem.is_directory(path):
        yield from _rows_of_file(path)
        return
    for entry in sorted(filesystem.list_directory(path)):
        if not (entry.is_dir or entry.special):
            yield from _rows_in_directory(path, entry.name)


def _rows_in_directory(directory: str, name: str) -> Iterator[Row]:
    path = os.path.join(directory, name)
    if _reader_of(name) is None:
        yield {"kind": "unknown_file", "name": name}
        return
    yield {"kind": "file", "name": name}
    try:
        yield from _rows_of_file(path)
    except FileNotFoundError:  # a broker may be at work beside us
        yield {"kind": "vanished_file", "name": name}


def _rows_of_file(path: str) -> Iterator[Row]:
    read = _reader_of(os.path.basename(path))
    if read is None:
        raise UnsupportedFormatError(path, 0, "by its name not a file of a log directory")
    return read(path)


def _reader_of(name: str) -> Callable[[str], Iterator[Row]] | None:
    for suffix in UNFINISHED_SUFFIXES:
        name = name.removesuffix(suffix)
    if name in _BY_NAME:
        return _BY_NAME[name]
    base, dot, kind = name.rpartition(".")
    return _BY_SUFFIX.get(dot + kind) if offset_of(name) is not None and base.isdigit() else None


# logs


def _log(path: str) -> Iterator[Row]:
    for position, header, batch in read_batches(path):
        yield _batch(position, header) if header.magic == MAGIC else _message(position, header)
        for record in decode_records(batch, header, path, position):
            row = _record(record)
            if header.is_control:
                row |= _control(record, path, position)
            yield row


def _batch(position: int, header: BatchHeader) -> Row:
    return {
        "kind": "batch",
        "position": position,
        "size_bytes": header.size_bytes,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": header.records_count,
        "codec": header.codec.name.lower(),
        "base_timestamp": header.base_timestamp,
        "max_timestamp": header.max_timestamp,
        "timestamp_type": "LogAppendTime" if header.is_log_append_time else "CreateTime",
        "delete_horizon_ms": header.delete_horizon_ms,
        "partition_leader_epoch": _or_none(header.partition_leader_epoch),
        "producer_id": _or_none(header.producer_id),
        "producer_epoch": _or_none(header.producer_epoch),
        "base_sequence": _or_none(header.base_sequence),
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
        "timestamp": header.max_timestamp,
        "timestamp_type": types if header.magic else None,
        "crc": header.crc,
    }


def _or_none(value: int) -> int | None:
    return None if value == -1 else value  # -1 is how the disk says it


def _record(record: Record) -> Row:
    return {
        "kind": "record",
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _readable(record.key),
        "value": _readable(record.value),
        "headers": [[_readable(key), _readable(value)] for key, value in record.headers],
    }


def _control(record: Record, path: str, position: int) -> Row:
    try:
        kind = decode_type(record.key)
        row: Row = {"control_type": kind.name}
        if kind.is_marker:
            row["coordinator_epoch"] = decode_coordinator_epoch(record.value)
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


# indexes and snapshots


def _base_offset(path: str) -> int:
    base_offset = offset_of(os.path.basename(path))
    assert base_offset is not None, "looked at by _reader_of"
    return base_offset


def _offset_index(path: str) -> Iterator[Row]:
    base_offset = _base_offset(path)
    for relative_offset, position in offset_index.read(path).tolist():
        yield {"kind": "index", "offset": base_offset + relative_offset, "position": position}


def _time_index(path: str) -> Iterator[Row]:
    base_offset = _base_offset(path)
    for timestamp, relative_offset in time_index.read(path).tolist():
        yield {"kind": "timeindex", "timestamp": timestamp, "offset": base_offset + relative_offset}


def _txn_index(path: str) -> Iterator[Row]:
    for aborted in txn_index.read(path):
        yield {"kind": "txnindex", **aborted._asdict()}


def _snapshot(path: str) -> Iterator[Row]:
    for entry in producer_snapshot.read(path):
        yield {"kind": "producer", **entry._asdict()}


# files of text


def _offset_checkpoint(path: str) -> Iterator[Row]:
    for (topic, partition), offset in sorted(checkpoint.read(path).items()):
        yield {"kind": "checkpoint", "topic": topic, "partition": partition, "offset": offset}


def _leader_epochs(path: str) -> Iterator[Row]:
    for entry in leader_epoch_checkpoint.read(path):
        yield {"kind": "leader_epoch", **entry._asdict()}


def _partition_metadata(path: str) -> Iterator[Row]:
    metadata = partition_metadata.read(path)
    topic_id = partition_metadata.encode_uuid(metadata.topic_id)
    yield {"kind": "partition_metadata", "version": metadata.version, "topic_id": topic_id}


def _meta_properties(path: str) -> Iterator[Row]:
    yield {"kind": "meta_properties", **meta_properties.read(os.path.dirname(path))._asdict()}


def _clean_shutdown(path: str) -> Iterator[Row]:
    yield {"kind": "clean_shutdown", "broker_epoch": clean_shutdown.read(os.path.dirname(path))}


_BY_SUFFIX: dict[str, Callable[[str], Iterator[Row]]] = {
    LOG: _log,
    INDEX: _offset_index,
    TIME_INDEX: _time_index,
    TXN_INDEX: _txn_index,
    SNAPSHOT: _snapshot,
}
_BY_NAME: dict[str, Callable[[str], Iterator[Row]]] = {
    checkpoint.CLEANER_OFFSET: _offset_checkpoint,
    checkpoint.RECOVERY_POINT: _offset_checkpoint,
    checkpoint.LOG_START: _offset_checkpoint,
    checkpoint.REPLICATION: _offset_checkpoint,
    leader_epoch_checkpoint.LEADER_EPOCH_CHECKPOINT: _leader_epochs,
    partition_metadata.PARTITION_METADATA: _partition_metadata,
    meta_properties.META_PROPERTIES: _meta_properties,
    clean_shutdown.CLEAN_SHUTDOWN: _clean_shutdown,
}
