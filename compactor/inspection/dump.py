"""What stands in the files of a log directory, a row for each batch, record or entry.

Reads one file, or all of a directory in the order of their names.
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

from compactor.inspection.dumped_log import EVERYTHING, RecordBlock, Row, WantedOffsets, blocks_of
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
from storage.files.files import Files
from storage.files.local import LOCAL
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
from storage.formats.record import or_none

_METADATA_SNAPSHOT = re.compile(r"[0-9]{20}-[0-9]{10}\.checkpoint", re.ASCII)
PART = ".part"  # of a snapshot of the metadata log that is being written


def rows_of(path: str, wanted: WantedOffsets = EVERYTHING, files: Files = LOCAL) -> Iterator[Row]:
    """Yield the rows of a file, or of every file of a directory that is one of Kafka's.

    Raise CorruptFileError where a file is damaged, after all that stands before it, and
    UnsupportedFormatError for a file that is none of a log directory.
    """
    for found in parts_of(path, wanted, files):
        if isinstance(found, RecordBlock):
            yield from found.rows()
        else:
            yield found


def parts_of(
    path: str, wanted: WantedOffsets = EVERYTHING, files: Files = LOCAL
) -> Iterator[Row | RecordBlock]:
    """Yield the same as rows_of, with the records of a batch as one value, for a kernel.

    Where only some offsets are wanted, only the logs of a directory are read.
    """
    if not files.is_directory(path):
        yield from _parts_of_file(path, wanted, files)
        return
    names = [e.name for e in files.list_directory(path) if not (e.is_dir or e.special)]
    if wanted.is_everything:
        for name in sorted(names):
            yield from _parts_in_directory(path, name, wanted, files)
        return
    logs = sorted(name for name in names if offset_of(name) is not None and name.endswith(LOG))
    for name, later in zip(logs, [*logs[1:], None], strict=True):
        end_offset = offset_of(later) if later is not None else None
        if end_offset is not None and end_offset <= wanted.from_offset:
            continue
        if (offset_of(name) or 0) >= wanted.to_offset or wanted.is_reached():
            return
        yield from _parts_in_directory(path, name, wanted, files)


def _parts_in_directory(
    directory: str, name: str, wanted: WantedOffsets, files: Files
) -> Iterator[Row | RecordBlock]:
    path = os.path.join(directory, name)
    if _reader_of(name) is None:
        yield {"kind": "unknown_file", "name": name}
        return
    yield {"kind": "file", "name": name}
    try:
        yield from _parts_of_file(path, wanted, files)
    except FileNotFoundError:  # a broker may be at work beside us
        yield {"kind": "vanished_file", "name": name}


def _parts_of_file(path: str, wanted: WantedOffsets, files: Files) -> Iterator[Row | RecordBlock]:
    read = _reader_of(os.path.basename(path))
    if read is None:
        raise UnsupportedFormatError(path, 0, "by its name not a file of a log directory")
    if read is blocks_of:
        yield from blocks_of(path, wanted, files)
        return
    for row in read(path, files):
        if "offset" not in row or wanted.takes(row["offset"]):
            yield row


def _reader_of(name: str) -> Callable[..., Iterator[Any]] | None:
    for suffix in (*UNFINISHED_SUFFIXES, PART):
        name = name.removesuffix(suffix)
    if name in _BY_NAME:
        return _BY_NAME[name]
    if _METADATA_SNAPSHOT.fullmatch(name):
        return blocks_of
    base, dot, kind = name.rpartition(".")
    return _BY_SUFFIX.get(dot + kind) if offset_of(name) is not None and base.isdigit() else None


# indexes and snapshots


def _base_offset(path: str) -> int:
    base_offset = offset_of(os.path.basename(path))
    assert base_offset is not None, "looked at by _reader_of"
    return base_offset


def _offset_index(path: str, files: Files) -> Iterator[Row]:
    base_offset = _base_offset(path)
    for relative_offset, position in offset_index.read(path, files).tolist():
        yield {"kind": "index", "offset": base_offset + relative_offset, "position": position}


def _time_index(path: str, files: Files) -> Iterator[Row]:
    base_offset = _base_offset(path)
    for timestamp, relative_offset in time_index.read(path, files).tolist():
        offset = base_offset + relative_offset
        yield {"kind": "timeindex", "timestamp": or_none(timestamp), "offset": offset}


def _txn_index(path: str, files: Files) -> Iterator[Row]:
    for aborted in txn_index.read(path, files):
        yield {"kind": "txnindex", **aborted._asdict()}


def _snapshot(path: str, files: Files) -> Iterator[Row]:
    for entry in producer_snapshot.read(path, files):
        row = entry._asdict() | {"timestamp": or_none(entry.timestamp)}
        yield {"kind": "producer", **row}


# files of text


def _offset_checkpoint(path: str, files: Files) -> Iterator[Row]:
    for (topic, partition), offset in sorted(checkpoint.read(path, files).items()):
        yield {"kind": "checkpoint", "topic": topic, "partition": partition, "offset": offset}


def _leader_epochs(path: str, files: Files) -> Iterator[Row]:
    for entry in leader_epoch_checkpoint.read(path, files):
        yield {"kind": "leader_epoch", **entry._asdict()}


def _partition_metadata(path: str, files: Files) -> Iterator[Row]:
    metadata = partition_metadata.read(path, files)
    topic_id = partition_metadata.encode_uuid(metadata.topic_id)
    yield {"kind": "partition_metadata", "version": metadata.version, "topic_id": topic_id}


def _meta_properties(path: str, files: Files) -> Iterator[Row]:
    yield {
        "kind": "meta_properties",
        **meta_properties.read(os.path.dirname(path), files)._asdict(),
    }


def _quorum_state(path: str, files: Files) -> Iterator[Row]:
    """What a node of the quorum knows of its leader; -1 in it: nobody."""
    try:
        found = json.loads(files.read_bytes(path))
        rows = {name: or_none(value) for name, value in found.items()}
    except (ValueError, RecursionError, AttributeError) as error:
        raise CorruptFileError(path, 0, "is no JSON object") from error
    yield {"kind": "quorum_state", **rows}


def _clean_shutdown(path: str, files: Files) -> Iterator[Row]:
    epoch = clean_shutdown.read(os.path.dirname(path), files)
    yield {"kind": "clean_shutdown", "broker_epoch": epoch}


_BY_SUFFIX: dict[str, Callable[..., Iterator[Any]]] = {
    LOG: blocks_of,
    INDEX: _offset_index,
    TIME_INDEX: _time_index,
    TXN_INDEX: _txn_index,
    SNAPSHOT: _snapshot,
}
_BY_NAME: dict[str, Callable[..., Iterator[Any]]] = {
    checkpoint.CLEANER_OFFSET: _offset_checkpoint,
    checkpoint.RECOVERY_POINT: _offset_checkpoint,
    checkpoint.LOG_START: _offset_checkpoint,
    checkpoint.REPLICATION: _offset_checkpoint,
    leader_epoch_checkpoint.LEADER_EPOCH_CHECKPOINT: _leader_epochs,
    partition_metadata.PARTITION_METADATA: _partition_metadata,
    meta_properties.META_PROPERTIES: _meta_properties,
    clean_shutdown.CLEAN_SHUTDOWN: _clean_shutdown,
    "bootstrap.checkpoint": blocks_of,
    "quorum-state": _quorum_state,
}
