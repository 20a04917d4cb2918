"""Logs without a `.log` file, though the checkpoints of their directory say they had records.

A backup that skips `*.log` leaves them so. A broker that starts there begins each of them again as
an empty log, and does not complain. Source: Kafka, LogLoader.load, LocalLog.
"""

import os
from collections.abc import Collection, Mapping
from typing import NamedTuple

from storage.errors import CorruptFileError
from storage.file_names import LOG, SWAP
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats import checkpoint
from storage.formats.checkpoint import TopicPartition
from storage.log.log_dir import LogDirListing, PartitionListing

START_NO_BROKER = "Start no broker here: it begins a log without .log files again as an empty one."
_SAYING_AN_END = (checkpoint.REPLICATION, checkpoint.RECOVERY_POINT, checkpoint.CLEANER_OFFSET)


Checkpoints = Mapping[str, Mapping[TopicPartition, int]]  # entries by the name of the file


class RecordedEnd(NamedTuple):
    """The highest offset that a checkpoint has for a log: its log end was not below."""

    offset: int  # exclusive
    checkpoint: str  # name of the file


def recorded_ends(
    log_dir: str, files: Files = LOCAL, known: Checkpoints | None = None
) -> Mapping[TopicPartition, RecordedEnd]:
    """Give the recorded end of each log that had records above its log start offset.

    known: checkpoints that were read already. One that cannot be read says nothing here; who needs
    it reports it.
    """
    known = known or {}
    entries = {
        name: known[name] if name in known else _entries(log_dir, name, files)
        for name in (checkpoint.LOG_START, *_SAYING_AN_END)
    }
    starts = entries[checkpoint.LOG_START]
    ends: dict[TopicPartition, RecordedEnd] = {}
    for name in _SAYING_AN_END:
        for key, offset in entries[name].items():
            below = ends[key].offset if key in ends else max(starts.get(key, 0), 0)
            if offset > below:
                ends[key] = RecordedEnd(offset, name)
    return ends


def ends_where_needed(
    listing: LogDirListing, known: Checkpoints, files: Files = LOCAL
) -> Mapping[TopicPartition, RecordedEnd]:
    """Give them where some log has no segment, or a checkpoint names one without a directory."""
    here = {(log.topic, log.partition) for log in listing.partitions}
    is_any_gone = any(key not in here for entries in known.values() for key in entries)
    if not is_any_gone and all(partition.segments for partition in listing.partitions):
        return {}
    return recorded_ends(listing.path, files, known)


def why_missing(
    partition: PartitionListing, ends: Mapping[TopicPartition, RecordedEnd]
) -> str | None:
    """Say that the records of a log are gone; None if they are not."""
    end = ends.get((partition.topic, partition.partition))
    if end is None or partition.segments or partition.special:
        return None
    return None if _has_log(partition.unfinished) else _text(end)


def why_missing_by_names(names: Collection[str], end: RecordedEnd | None) -> str | None:
    """Say the same of the names in a log's directory."""
    return None if end is None or _has_log(names) else _text(end)


def _has_log(names: Collection[str]) -> bool:
    """Whether one of them is a segment, or one that a swap is about to put in place."""
    return any(name.endswith((LOG, LOG + SWAP)) for name in names)


def _text(end: RecordedEnd) -> str:
    return (
        f"its .log files are gone: {end.checkpoint} says that it had records up to offset "
        f"{end.offset}, and a broker that starts here begins it again as an empty log"
    )


def _entries(log_dir: str, name: str, files: Files) -> Mapping[TopicPartition, int]:
    try:
        return checkpoint.read(os.path.join(log_dir, name), files)
    except (CorruptFileError, OSError):
        return {}
