"""Puts in place what a recovered log is to be: each step, and what there is if it is the last one.

The log directory has no marker of a clean shutdown, so that a broker that starts in between does it
all by itself. Recovery decides anew from what is left, and with the same end:

1. later segments -> .deleted; sync   the segment before is still damaged: what is left of them goes
2. cut the damaged segment off, and   whole as it is; its indexes may reach too far, and are made
   sync every `.log` that was read    anew from it
3. indexes, each replaced in one      what was not replaced is made anew; of a segment without
   step, the .index files last; one   an .index all are, wherever the recovery point is
   that is only longer, as that of
   a killed broker, cut
4. snapshots that are new             the state is built from them instead of from older ones
5. leader-epoch-checkpoint            what it has of offsets past the end is dropped again
6. remove snapshots of no use         likewise
7. remove the .deleted files          they are of no consequence

A file that is right already is not touched. `.kafka_cleanshutdown` is not written: a broker may
look for itself.
"""

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from compactor.finalizer import mark_deleted
from compactor.recovery.log_recovery import RecoveredLog, require_as_read
from storage.file_names import DELETED, INDEX, LOG, SNAPSHOT, TIME_INDEX, file_name, offset_of
from storage.files.files import Files, size_of
from storage.files.overlay import FileChange
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.segment_indexes import SegmentIndexes, made_to_fit


class PutInPlace(NamedTuple):
    """Names of files."""

    rebuilt: tuple[str, ...]
    removed: tuple[str, ...]
    truncated: str | None  # the `.log` that was cut off, and by how much


def put_in_place(recovered: RecoveredLog, segment_index_bytes: int) -> PutInPlace:
    """Steps 1 to 7. LogChangedError where a `.log` is not what was read."""
    path, files = recovered.log.path, recovered.log.access
    changes = {change.name: change for change in recovered.changes}
    require_as_read(recovered.log, recovered.before_read)
    deleted = mark_deleted(files, path, recovered.deleted[::-1])
    if deleted:
        files.sync_directory(path)
    truncated = _cut_off(recovered, changes)
    _sync_logs(recovered)
    written = _written(recovered, changes, segment_index_bytes)
    rebuilt = [name for name, data in written if _make(files, os.path.join(path, name), data)]
    gone = {change.name for change in recovered.changes if change.size_bytes is None}
    for name in sorted(gone):
        if files.exists(os.path.join(path, name)):
            files.remove(os.path.join(path, name))
    for deleted_path in deleted:
        files.remove(deleted_path)
    removed = gone | {os.path.basename(p).removesuffix(DELETED) for p in deleted}
    return PutInPlace(tuple(rebuilt), tuple(sorted(removed)), truncated)


def _cut_off(recovered: RecoveredLog, changes: Mapping[str, FileChange]) -> str | None:
    told = None
    for name, change in sorted(changes.items()):
        if not name.endswith(LOG) or change.size_bytes is None:
            continue
        log_path = os.path.join(recovered.log.path, name)
        size_bytes = size_of(recovered.log.access, log_path)
        base = offset_of(name) or 0
        require_as_read(recovered.log, {base: recovered.before_read[base]})
        recovered.log.access.truncate_file(log_path, change.size_bytes)
        cut = size_bytes - change.size_bytes
        told = f"{name} from {size_bytes:,} to {change.size_bytes:,} bytes, {cut:,} torn bytes"
    return told


def _sync_logs(recovered: RecoveredLog) -> None:
    """The logs of a broker that was killed are perhaps in memory only, and so are their names.

    A round takes older records away for the sake of what stands in them.
    """
    log = recovered.log
    for base_offset in recovered.recovered:
        log.access.sync_file(os.path.join(log.path, file_name(base_offset, LOG)))
    log.access.sync_directory(log.path)


def _written(
    recovered: RecoveredLog, changes: Mapping[str, FileChange], segment_index_bytes: int
) -> Iterator[tuple[str, bytes]]:
    """Names and bytes of what was made anew: indexes, then snapshots, then leader epochs."""
    made = {
        name: _data_of(recovered, change)
        for name, change in changes.items()
        if change.size_bytes is not None and not name.endswith(LOG)
    }
    for base_offset in recovered.recovered:
        names = file_name(base_offset, INDEX), file_name(base_offset, TIME_INDEX)
        offsets, times = (made.get(name, b"") for name in names)
        if max(len(offsets), len(times)) > segment_index_bytes:
            fitting = made_to_fit(SegmentIndexes(offsets, times, 0, None), segment_index_bytes)
            made.update(zip(names, fitting[:2], strict=True))
    yield from sorted(made.items(), key=lambda item: (_turn(item[0]), item[0]))


def _turn(name: str) -> int:
    if name == LEADER_EPOCH_CHECKPOINT:
        return 3
    return 2 if name.endswith(SNAPSHOT) else int(name.endswith(INDEX))


def _data_of(recovered: RecoveredLog, change: FileChange) -> bytes:
    if change.data is not None:
        return change.data
    path = os.path.join(recovered.log.path, change.name)
    return recovered.log.access.read_range(path, 0, change.size_bytes or 0)


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
