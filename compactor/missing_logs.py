"""Logs without a `.log` file, though the checkpoints of their directory say they had records.

A backup that skips `*.log` leaves them so. A broker that starts there begins each of them again as
an empty log, and does not complain. Source: Kafka, LogLoader.load, LocalLog.
"""

import os
from collections.abc import Collection, Mapping
from typing import NamedTuple

from compactor.reason_codes import ReasonCode
from compactor.round_report import Reason
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


class RecordedEnds(NamedTuple):
    """The recorded end of each log that had records above its log start offset."""

    by_log: Mapping[TopicPartition, RecordedEnd] = {}
    unread: str | None = None  # why a checkpoint could not be read: of other logs nothing is known

    def why_missing(self, partition: PartitionListing) -> Reason | None:
        """Say that the records of a log are gone, or may be; None if they are not."""
        if partition.segments or partition.special:
            return None
        return self.why_missing_by_names(
            (partition.topic, partition.partition), partition.unfinished
        )

    def why_missing_by_names(self, log: TopicPartition, names: Collection[str]) -> Reason | None:
        """Say the same by the names in a log's directory."""
        if any(name.endswith((LOG, LOG + SWAP)) for name in names):  # a swap puts those in place
            return None
        end = self.by_log.get(log)
        if end is not None:
            text = (
                f"its .log files are gone: {end.checkpoint} says that it had records up to offset "
                f"{end.offset}, and a broker that starts here begins it again as an empty log"
            )
            return Reason(ReasonCode.LOG_MISSING, text)
        if self.unread is None:
            return None
        text = (
            f"it has no .log files, and whether it had records is not known: {self.unread}. A "
            "broker that starts here begins it again as an empty log"
        )
        return Reason(ReasonCode.LOG_DIR_DAMAGED, text)


NOT_ASKED = RecordedEnds()  # no log lacks its segments


def recorded_ends(
    log_dir: str, files: Files = LOCAL, known: Checkpoints | None = None
) -> RecordedEnds:
    """Read them. known: checkpoints that were read already."""
    entries, unread = dict(known or {}), None
    for name in (checkpoint.LOG_START, *_SAYING_AN_END):
        if name in entries:
            continue
        try:
            entries[name] = checkpoint.read(os.path.join(log_dir, name), files)
        except CorruptFileError as error:
            entries[name], unread = {}, unread or str(error)
        except OSError as error:
            entries[name], unread = {}, unread or f"{error.filename}: {error.strerror}"
    starts = entries[checkpoint.LOG_START]
    ends: dict[TopicPartition, RecordedEnd] = {}
    for name in _SAYING_AN_END:
        for key, offset in entries[name].items():
            below = ends[key].offset if key in ends else max(starts.get(key, 0), 0)
            if offset > below:
                ends[key] = RecordedEnd(offset, name)
    return RecordedEnds(ends, unread)


def ends_where_needed(
    listing: LogDirListing, known: Checkpoints, files: Files = LOCAL
) -> RecordedEnds:
    """Give them where some log has no segment, or a checkpoint names one without a directory."""
    here = {(log.topic, log.partition) for log in listing.partitions}
    is_any_gone = any(key not in here for entries in known.values() for key in entries)
    if not is_any_gone and all(partition.segments for partition in listing.partitions):
        return NOT_ASKED
    return recorded_ends(listing.path, files, known)
