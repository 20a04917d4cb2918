"""A log that begins or ends elsewhere than the files beside it say.

Source: Kafka, LogManager.shutdown, UnifiedLog.flush, UnifiedLog.deleteSegments,
LeaderEpochFileCache.truncateFromStart, LogManager.checkpointLogStartOffsetsInDir; spec F-13.
"""

import os
from collections.abc import Mapping

from storage.errors import CorruptFileError
from storage.file_names import DELETED, LOG, MAX_RELATIVE_OFFSET, SWAP, offset_of
from storage.formats import checkpoint, leader_epoch_checkpoint
from storage.formats.checkpoint import TopicPartition
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.log.log_dir import PartitionListing, log_end_offset


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


def _may_be_split(log: PartitionListing, start: int) -> bool:
    """Say whether the first segment may have had offsets too far apart, and was split.

    What a split makes begins at the first batch that is left, not where the segment began.
    """
    try:
        return log_end_offset(log) - start > MAX_RELATIVE_OFFSET
    except (CorruptFileError, OSError):  # a problem of its own
        return True
