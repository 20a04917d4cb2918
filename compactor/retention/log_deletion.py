"""Deletes old segments of a log: the steps, and what a starting broker makes of a crash after each.

1. where all segments go: producer snapshot,      an index without its .log is removed; with the
   .index, .timeindex and .log of a new one at    .log, the log as after a roll
   the log end offset, the .log last
2. log-start-offset-checkpoint                    the log starts there, and so does its leader-epoch
                                                  file; the broker's retention deletes the rest
3. leader-epoch-checkpoint                        likewise
4. .log files -> .deleted, oldest first; sync     .deleted goes, so does an index without its .log;
                                                  the log start offset stands in the checkpoint
5. index files -> .deleted; sync                  likewise: none goes before its .log has gone
6. remove the snapshots of deleted bases          stale ones are removed
7. remove the .deleted files                      likewise

The recovery point and the cleaner checkpoint stay; entries below the log start are what a broker
expects. Step 2 comes first of those that cannot be undone: were a file gone before it, readers
below would find a gap. It is one write for many logs, so steps 1, and 3 to 7, are apart from
it. Source: Kafka, UnifiedLog.deleteSegments, LeaderEpochFileCache.truncateFromStart; spec C-18.3,
C-18.4, C-23.7.
"""

import os
from collections.abc import Callable, Mapping, Sequence

from compactor.finalizer import mark_deleted
from storage.file_names import INDEX, INDEX_SUFFIXES, LOG, SNAPSHOT, TIME_INDEX, file_name
from storage.files.files import Files
from storage.formats import checkpoint, leader_epoch_checkpoint, producer_snapshot
from storage.formats.checkpoint import TopicPartition
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT, EpochEntry
from storage.formats.producer_snapshot import ProducerEntry
from storage.log.log_dir import PartitionListing
from storage.log.retention import Deletion

ROLLED = (SNAPSHOT, INDEX, TIME_INDEX, LOG)  # what step 1 makes, in its order


def roll(
    log: PartitionListing, base_offset: int, producers: Callable[[], Sequence[ProducerEntry]]
) -> None:
    """Step 1: an empty active segment at the log end offset.

    producers: the active ones there, for the snapshot, unless it was written at the last shutdown.
    """
    if base_offset not in log.snapshot_offsets:
        snapshot_path = os.path.join(log.path, file_name(base_offset, SNAPSHOT))
        producer_snapshot.write(snapshot_path, producers(), log.access)
    for kind in ROLLED[1:]:
        log.access.replace_file(os.path.join(log.path, file_name(base_offset, kind)), b"")


def raise_log_starts(files: Files, log_dir: str, log_starts: Mapping[TopicPartition, int]) -> None:
    """Step 2, for all logs of a log directory that lose segments; no entry is lowered."""
    path = os.path.join(log_dir, checkpoint.LOG_START)
    entries = checkpoint.read(path, files)
    raised = {key: max(offset, entries.get(key, 0)) for key, offset in log_starts.items()}
    if raised.items() <= entries.items():
        return
    checkpoint.write(path, entries | raised, files)


def leader_epochs_from(
    entries: Sequence[EpochEntry], log_start_offset: int
) -> Sequence[EpochEntry]:
    """Cut the start of the epochs; the one that covers the log start offset begins there."""
    covering = [entry for entry in entries if entry.start_offset <= log_start_offset]
    if not covering:
        return entries
    return [covering[-1]._replace(start_offset=log_start_offset), *entries[len(covering) :]]


def check_leader_epochs(log: PartitionListing) -> Sequence[EpochEntry]:
    """Give the leader epochs of a log; CorruptFileError if they are damaged."""
    path = os.path.join(log.path, LEADER_EPOCH_CHECKPOINT)
    entries = leader_epoch_checkpoint.read(path, log.access)
    leader_epoch_checkpoint.check(entries, path)
    return entries


def delete_segments(log: PartitionListing, deletion: Deletion) -> None:
    """Steps 3 to 7."""
    entries, files = check_leader_epochs(log), log.access
    cut = leader_epochs_from(entries, deletion.log_start_offset)
    if cut != entries:
        leader_epoch_checkpoint.write(os.path.join(log.path, LEADER_EPOCH_CHECKPOINT), cut, files)
    bases = [segment.base_offset for segment in deletion.segments]
    deleted = mark_deleted(files, log.path, bases, (LOG,))
    files.sync_directory(log.path)
    deleted += mark_deleted(files, log.path, bases, INDEX_SUFFIXES)
    files.sync_directory(log.path)
    for segment in deletion.segments:
        path = os.path.join(log.path, file_name(segment.base_offset, SNAPSHOT))
        if files.exists(path):
            files.remove(path)
    for path in deleted:
        files.remove(path)
