"""What a reader finds in a log directory, told without any of the code that cleans: the last value
of every key, and how large the logs are.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

from compactor.log_dirs.locked_log_dirs import LOCK_FILE
from storage.file_names import LOG, file_name
from storage.formats.record_batch import decode_records
from storage.log.log_dir import list_log_dir
from storage.log.segment_reader import read_batches

Latest = dict[bytes | None, tuple[int, bytes | None]]  # key -> offset and value of its last record


class LogContents(NamedTuple):
    """One partition, as a consumer sees it that reads it from its start to its end."""

    segments: int
    log_bytes: int
    records: int
    latest: Latest


def read_log_dir(path: str) -> dict[str, LogContents]:
    """Read every record of every partition, checksums verified."""
    contents = {}
    for partition in list_log_dir(path).partitions:
        latest: Latest = {}
        records = 0
        for segment in partition.segments:
            log_path = os.path.join(partition.path, file_name(segment.base_offset, LOG))
            for position, header, batch in read_batches(log_path):
                for record in decode_records(batch, header, log_path, position):
                    latest[record.key] = record.offset, record.value
                    records += 1
        log_bytes = sum(segment.log_bytes for segment in partition.segments)
        contents[partition.name] = LogContents(len(partition.segments), log_bytes, records, latest)
    return contents


def files_in(path: str) -> dict[str, bytes]:
    """Return what stands in the files of a log directory, but for its lock, by relative path."""
    files = {}
    for folder, _, names in os.walk(path):
        for name in names:
            if name != LOCK_FILE:
                found = os.path.join(folder, name)
                with open(found, "rb") as source:
                    files[os.path.relpath(found, path)] = source.read()
    return files


def differences(
    before: Mapping[str, LogContents], after: Mapping[str, LogContents]
) -> dict[str, int]:
    """For each log, the number of keys whose last record is not what it was: none, one hopes.

    A deleted key may have lost its tombstone too; every other last record is at its old offset.
    """
    return {
        name: _different_keys(before[name].latest, after[name].latest)
        if name in before and name in after
        else -1
        for name in sorted(before.keys() | after.keys())
    }


def _different_keys(before: Latest, after: Latest) -> int:
    return sum(
        before.get(key) != after.get(key) and not (key not in after and before[key][1] is None)
        for key in before.keys() | after.keys()
    )
