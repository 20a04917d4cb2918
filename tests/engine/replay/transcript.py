"""What a replay tells after each line: the state of the log, and the files of its directory."""

import json
import os
import re
from typing import Any
from zlib import crc32

from storage.errors import ConfigError
from storage.file_names import SNAPSHOT, offset_of
from storage.files.files import Files
from storage.log.errors import LogError, RecordValidationError
from storage.log.index_files import OFFSET_ENTRY, TIME_ENTRY, IndexFile
from storage.log.log import Log
from storage.log.offsets import OffsetMetadata
from storage.log.producer_state_entry import ProducerStateEntry
from storage.log.segment import LogSegment

Json = dict[str, Any]

_LINE_END = re.compile(r"\r\n|\n|\r")
_UNIQUE = re.compile(r"\.[0-9a-f]{32}-")


class MalformedInputError(LogError):
    """A file of text that is none."""


def state_of(log: Log) -> Json:
    """All that can be seen of a log, taken without touching it."""
    return {
        "log_start_offset": log.log_start_offset,
        "log_end_offset": log.log_end_offset,
        "high_watermark": log.high_watermark,
        "last_stable_offset": log.last_stable_offset,
        "first_unstable_offset": log.first_unstable_offset,
        "recovery_point": log.recovery_point,
        "size": log.size_bytes,
        "segments": [_segment(segment) for segment in log.segments],
        "producers": [
            _producer(state)
            for state in sorted(log.producers.producers, key=lambda each: each.producer_id)
        ],
        "leader_epochs": [list(entry) for entry in log.epochs.entries],
        "producer_state_end_offset": log.producers.map_end_offset,
        "snapshots": _snapshots(log),
    }


def _snapshots(log: Log) -> list[int]:
    """The offsets of the producer snapshots; none where the directory is gone."""
    names = log.files.list_names(log.path)[1] if log.files.is_directory(log.path) else []
    offsets = {offset_of(name) for name in names if name.endswith(SNAPSHOT)}
    return sorted(offset for offset in offsets if offset is not None)


def _segment(segment: LogSegment) -> Json:
    return {
        "base_offset": segment.base_offset,
        "log": segment.size_bytes,
        "index": _bytes_in_use(segment.offset_index.file, OFFSET_ENTRY.size),
        "timeindex": _bytes_in_use(segment.time_index.file, TIME_ENTRY.size),
        "txnindex": segment.txn_index.size_bytes,
    }


def _producer(state: ProducerStateEntry) -> Json:
    return {
        "pid": state.producer_id,
        "epoch": state.epoch,
        "last_seq": state.last_sequence,
        "last_offset": state.last_offset,
        "last_timestamp": state.last_timestamp,
        "coordinator_epoch": state.coordinator_epoch,
        "current_txn_first_offset": state.txn_first_offset,
        "batches": [
            [b.first_sequence, b.last_sequence, b.first_offset, b.last_offset, b.timestamp]
            for b in state.batches
        ],
    }


def place_of(place: OffsetMetadata) -> Json:
    return {"offset": place.offset, "segment": place.segment, "position": place.position}


def masked(name: str) -> str:
    """A name without what is random in it: the unique part of a partition's directory."""
    return _UNIQUE.sub(".UUID-", name)


def files_below(files: Files, root: str, path: str = "") -> list[Json]:
    """Size and CRC-32 of every file; of a checkpoint its lines, whose order means nothing."""
    found: list[Json] = []
    directory = os.path.join(root, path) if path else root
    for entry in files.list_directory(directory):
        name = os.path.join(path, entry.name)
        if entry.is_dir:
            found += files_below(files, root, name)
        elif entry.name != ".lock":
            found.append(_file(files, root, name))
    return sorted(found, key=_order)


def _order(file: Json) -> tuple[str, int, int, str]:
    """Two directories may differ in nothing but what is masked; then by what is in the files."""
    lines = json.dumps(file["lines"], separators=(",", ":")) if "lines" in file else ""
    return file["name"], file.get("size", 0), file.get("crc32", 0), lines


def _file(files: Files, root: str, name: str) -> Json:
    data = files.read_bytes(os.path.join(root, name))
    if name.endswith("checkpoint"):
        return {"name": masked(name), "lines": sorted(_lines(data)[2:])}
    return {"name": masked(name), "size": len(data), "crc32": crc32(data)}


def _lines(data: bytes) -> list[str]:
    """As Java reads lines: what is not UTF-8 cannot be read."""
    try:
        lines = _LINE_END.split(data.decode())
    except UnicodeDecodeError as error:
        raise MalformedInputError(str(error)) from None
    return lines if lines[-1] else lines[:-1]


def described(error: Exception) -> Json:
    """An error by the names of Kafka and of Java's files."""
    told: Json = {"error": _name(error)}
    if isinstance(error, RecordValidationError):
        told["cause"], told["records"] = error.cause.kafka_name, list(error.positions)
    elif isinstance(error, LogError) and error.kafka_cause is not None:
        told["cause"] = error.kafka_cause
    elif isinstance(error.__cause__, Exception):
        told["cause"] = _name(error.__cause__)
    return told


def _name(error: BaseException) -> str:
    if isinstance(error, LogError):
        return error.kafka_name
    if isinstance(error, ConfigError):
        return "ConfigException"
    if isinstance(error, FileExistsError):
        return "FileAlreadyExistsException"
    return "NoSuchFileException" if isinstance(error, FileNotFoundError) else "IOException"


def _bytes_in_use(index: IndexFile, entry_bytes: int) -> int:
    """The bytes of entries in use; of a file that was not opened, of all that are whole."""
    if index.is_open:
        return index.size_bytes
    found = index._files.look_up(index.path)
    return 0 if found is None else found.size_bytes // entry_bytes * entry_bytes
