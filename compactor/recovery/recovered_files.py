"""Puts in place what a recovered log is to be: each step, and what there is if it is the last one.

The log directory has no marker of a clean shutdown, so that a broker that starts in between does it
all by itself. Recovery decides anew from what is left, and with the same end:

1. later segments -> .deleted; sync   the segment before is still damaged: what is left of them goes
2. cut the damaged segment off, and   whole as it is; its indexes may reach too far, and are made
   sync every `.log` that was read    anew from it
3. indexes, each replaced in one      what was not replaced is made anew
   step; one that is only longer,
   as that of a killed broker, cut
4. snapshots that are new             the state is built from them instead of from older ones
5. remove snapshots of no use         they are dropped again
6. leader-epoch-checkpoint            likewise
7. remove the .deleted files          they are of no consequence

A file that is right already is not touched. `.kafka_cleanshutdown` is not written: a broker may
look for itself.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

from cleaner_jobs.unchanged import LogChangedError
from compactor.finalizer import mark_deleted
from compactor.recovery.log_recovery import RecoveredLog
from storage.errors import CorruptFileError
from storage.file_names import INDEX, LOG, SNAPSHOT, TIME_INDEX, TXN_INDEX, file_name
from storage.files.files import Files, size_of
from storage.formats import leader_epoch_checkpoint, producer_snapshot, txn_index
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.producer_snapshot import ProducerEntry
from storage.formats.segment_indexes import check_capacity, made_to_fit


class PutInPlace(NamedTuple):
    """Names of files."""

    rebuilt: tuple[str, ...]
    removed: tuple[str, ...]
    truncated: str | None  # the `.log` that was cut off, and by how much


def put_in_place(recovered: RecoveredLog, segment_index_bytes: int) -> PutInPlace:
    """Steps 1 to 7. LogChangedError where what would be cut off is not what was read."""
    path, files = recovered.log.path, recovered.log.access
    _require_as_read(recovered)
    deleted = mark_deleted(files, path, recovered.deleted[::-1])
    if deleted:
        files.sync_directory(path)
    truncated = _cut_off(recovered)
    _sync_logs(recovered)
    rebuilt = [
        name
        for name, data in _indexes(recovered, segment_index_bytes)
        if _make(files, os.path.join(path, name), data)
    ]
    book = recovered.snapshots
    for offset, entries in sorted(book.made.items()):
        name = file_name(offset, SNAPSHOT)
        if not _has_entries(files, os.path.join(path, name), entries):
            producer_snapshot.write(os.path.join(path, name), entries, files)
            rebuilt.append(name)
    stale = sorted({*recovered.log.snapshot_offsets} - {*book.offsets})
    for offset in stale:
        files.remove(os.path.join(path, file_name(offset, SNAPSHOT)))
    epochs_path = os.path.join(path, LEADER_EPOCH_CHECKPOINT)
    if leader_epoch_checkpoint.read(epochs_path, files) != [*recovered.epochs]:
        leader_epoch_checkpoint.write(epochs_path, recovered.epochs, files)
        rebuilt.append(LEADER_EPOCH_CHECKPOINT)
    for deleted_path in deleted:
        files.remove(deleted_path)
    removed = [file_name(offset, SNAPSHOT) for offset in stale]
    removed += [os.path.basename(p).removesuffix(".deleted") for p in deleted]
    return PutInPlace(tuple(rebuilt), tuple(sorted(removed)), truncated)


def _cut_off(recovered: RecoveredLog) -> str | None:
    segment = recovered.truncated
    if segment is None:
        return None
    name = file_name(segment.base_offset, LOG)
    log_path = os.path.join(recovered.log.path, name)
    files = recovered.log.access
    size_bytes = size_of(files, log_path)
    _require_as_read(recovered)
    files.truncate_file(log_path, segment.log_bytes)
    cut = size_bytes - segment.log_bytes
    return f"{name} from {size_bytes:,} to {segment.log_bytes:,} bytes, {cut:,} torn bytes"


def _require_as_read(recovered: RecoveredLog) -> None:
    segment = recovered.truncated
    if segment is None:
        return
    path = os.path.join(recovered.log.path, file_name(segment.base_offset, LOG))
    if recovered.log.access.look_up(path) != recovered.before_read[segment.base_offset]:
        problem = "changed since it was read, so nothing was cut off: the log is in use"
        raise LogChangedError(path, problem)


def _sync_logs(recovered: RecoveredLog) -> None:
    """The logs of a broker that was killed are perhaps in memory only, and so are their names.

    A round takes older records away for the sake of what stands in them.
    """
    log = recovered.log
    for base_offset in recovered.segments:
        log.access.sync_file(os.path.join(log.path, file_name(base_offset, LOG)))
    log.access.sync_directory(log.path)


def _indexes(recovered: RecoveredLog, segment_index_bytes: int) -> Iterator[tuple[str, bytes]]:
    has_txn_index = {s.base_offset for s in recovered.log.segments if s.txn_index_bytes is not None}
    for base_offset, segment in sorted(recovered.segments.items()):
        indexes = segment.indexes
        if check_capacity(indexes, segment_index_bytes):
            indexes = made_to_fit(indexes, segment_index_bytes)
        yield file_name(base_offset, INDEX), indexes.offset_index
        yield file_name(base_offset, TIME_INDEX), indexes.time_index
        aborted = recovered.aborted[base_offset]
        if aborted or base_offset in has_txn_index:  # an empty one stays, as a broker leaves it
            yield file_name(base_offset, TXN_INDEX), b"".join(map(txn_index.encode, aborted))
    for kept in recovered.log.segments:  # as a broker, which does not look into such a segment
        if kept.time_index_bytes is None and kept.base_offset not in recovered.segments:
            yield file_name(kept.base_offset, TIME_INDEX), b""


def _make(files: Files, path: str, data: bytes) -> bool:
    """Make a file hold exactly data; whether it did not."""
    try:
        size_bytes = size_of(files, path)
        if files.read_range(path, 0, len(data)) == data:
            if size_bytes > len(data):
                files.truncate_file(path, len(data))
            return size_bytes > len(data)
    except FileNotFoundError:
        pass
    files.replace_file(path, data)
    return True


def _has_entries(files: Files, path: str, entries: tuple[ProducerEntry, ...]) -> bool:
    """Whether a snapshot holds these, in whatever order: Kafka's is that of a hash map."""
    try:
        return {*producer_snapshot.read(path, files)} == {*entries}
    except (FileNotFoundError, CorruptFileError):
        return False
