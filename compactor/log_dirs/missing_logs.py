"""Say which logs are gone, or begin or end elsewhere than the files beside them say.

A log may have no `.log` file though the checkpoints of its directory say it had records
(`RecordedEnds`): a backup that skips `*.log` leaves it so. A broker that starts begins such a log
again as an empty one, and does not complain. `why_cut_short` and `why_start_gone` say that records
are gone from the end or the beginning of a log.

Source: Kafka, LogLoader.load, LocalLog, LogManager.shutdown, UnifiedLog.flush,
UnifiedLog.deleteSegments, LeaderEpochFileCache.truncateFromStart,
LogManager.checkpointLogStartOffsetsInDir; spec F-13.
"""

import os
from collections.abc import Collection, Mapping
from typing import NamedTuple

from compactor.reason_codes import Reason, ReasonCode, error_text
from storage.errors import CorruptFileError
from storage.file_names import DELETED, LOG, MAX_RELATIVE_OFFSET, SWAP, offset_of
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats import checkpoint, leader_epoch_checkpoint
from storage.formats.checkpoint import TopicPartition
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.log.log_dir import LogDirListing, PartitionListing, is_topic_name, log_end_offset

START_NO_BROKER = "Start no broker here: it begins a log without .log files again as an empty one."
_OF_EVERY_LOG = (checkpoint.REPLICATION, checkpoint.RECOVERY_POINT)  # as a broker writes them
_SAYING_AN_END = (*_OF_EVERY_LOG, checkpoint.CLEANER_OFFSET)

Checkpoints = Mapping[str, Mapping[TopicPartition, int]]  # entries by the name of the file


class RecordedEnd(NamedTuple):
    """The highest offset that a checkpoint has for a log: its log end was not below."""

    offset: int  # exclusive
    checkpoint: str  # name of the file


class RecordedEnds(NamedTuple):
    """The recorded end of each log that had records above its log start offset."""

    by_log: Mapping[TopicPartition, RecordedEnd] = {}
    unread: str | None = None  # why a checkpoint could not be read: of other logs nothing is known
    is_silent: bool = False  # no checkpoint that can be read would name each log

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
    entries, problems = dict(known or {}), dict[str, str]()
    for name in (checkpoint.LOG_START, *_SAYING_AN_END):
        if name in entries:
            continue
        try:
            entries[name] = checkpoint.read(os.path.join(log_dir, name), files)
        except (CorruptFileError, OSError) as error:
            entries[name], problems[name] = {}, error_text(error)
    starts = entries[checkpoint.LOG_START]
    ends: dict[TopicPartition, RecordedEnd] = {}
    for name in _SAYING_AN_END:
        for key, offset in entries[name].items():
            below = ends[key].offset if key in ends else max(starts.get(key, 0), 0)
            if offset > below and may_be_log(key):
                ends[key] = RecordedEnd(offset, name)
    is_silent = all(
        name in problems or not (entries[name] or _has_bytes(os.path.join(log_dir, name), files))
        for name in _OF_EVERY_LOG
    )
    return RecordedEnds(ends, next(iter(problems.values()), None), is_silent)


def ends_where_needed(
    listing: LogDirListing, known: Checkpoints, files: Files = LOCAL
) -> RecordedEnds:
    """Return the recorded ends of logs if a log may be missing.

    That is so where some log has no segment, where a checkpoint names one without a directory, and
    where no checkpoint names any.
    """
    here = {(log.topic, log.partition) for log in listing.partitions}
    is_any_gone = any(key not in here for entries in known.values() for key in entries)
    may_be_silent = not any(known.get(name) for name in _OF_EVERY_LOG)
    is_each_whole = all(partition.segments for partition in listing.partitions)
    if is_each_whole and not is_any_gone and not may_be_silent:
        return NOT_ASKED
    return recorded_ends(listing.path, files, known)


def may_be_log(key: TopicPartition) -> bool:
    """Say whether a log can have this name: a damaged checkpoint may have any."""
    return is_topic_name(key[0]) and key[1] >= 0


def why_cut_short(
    log: TopicPartition, end_offset: int, known: Mapping[str, Mapping[TopicPartition, int]]
) -> str | None:
    """Say that a log ends before what its checkpoints say; None if it does not.

    Only of a log directory that was left in good order: a broker that stops flushes its logs, and
    writes both files then. known: of the names below, where they could be read.
    """
    for of_file in (checkpoint.RECOVERY_POINT, checkpoint.REPLICATION):
        offset = known.get(of_file, {}).get(log, 0)
        if offset > end_offset:
            return (
                f"it ends at offset {end_offset}, and {of_file} has {offset} for it: records are "
                "gone from its end. After a clean shutdown a broker does not look for them, and "
                "gives their offsets to new records"
            )
    return None


def why_start_gone(log: PartitionListing, log_starts: Mapping[TopicPartition, int]) -> str | None:
    """Say that the first segments of a log are gone; None if they are not, or may not be.

    Spec F-13.6. log_starts: of log-start-offset-checkpoint.
    """
    first = log.segments[0].base_offset if log.segments else 0
    if first <= 0 or (log.topic, log.partition) in log_starts:
        return None  # no segment can be missing, or it may be tiered: then it begins elsewhere
    path = os.path.join(log.path, LEADER_EPOCH_CHECKPOINT)
    try:
        entries = leader_epoch_checkpoint.read(path, log.access)
    except CorruptFileError:  # a problem of its own
        return None
    if not entries or not 0 <= entries[0].start_offset < first:
        return None
    epoch, start = entries[0]
    missing = [name for name in log.unfinished if start <= (offset_of(name) or 0) < first]
    if any(name.endswith(LOG + SWAP) for name in missing) or _may_be_split(log, start):
        return None  # a cleaner puts them in place
    deleted = next((name for name in missing if name.endswith(LOG + DELETED)), None)
    hint = f". {deleted} may be what is missing: then its name was without {DELETED}"
    return (
        f"it begins at offset {first}, and {LEADER_EPOCH_CHECKPOINT} has epoch {epoch} from "
        f"offset {start} on: records are gone from its beginning. A broker that moves the start of "
        f"a log moves that offset, too{hint if deleted else ''}"
    )


def _has_bytes(path: str, files: Files) -> bool:
    found = files.look_up(path)
    return found is not None and found.size_bytes > 0


def _may_be_split(log: PartitionListing, start: int) -> bool:
    """Say whether the first segment may have had offsets too far apart, and was split.

    What a split makes begins at the first batch that is left, not where the segment began.
    """
    try:
        return log_end_offset(log) - start > MAX_RELATIVE_OFFSET
    except (CorruptFileError, OSError):  # a problem of its own
        return True
