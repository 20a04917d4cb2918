"""Joins the pieces of a segment group that several tasks rewrote into one staged segment.

The pieces were checked when they were written; the joined file is held against their checksums,
and the indexes are made of the facts of all their batches (compaction C-13.3).
"""

import contextlib
import errno
import os
from collections.abc import Sequence

import numpy as np
import xxhash

from cleaner_jobs.cleaned_segment import IndexesInMaking, facts_in, finish_like, write_like
from cleaner_jobs.plan import LogPlan
from cleaner_jobs.problems import WorkFileError
from cleaner_jobs.staging import staged_suffix
from cleaner_jobs.task_values import Rewritten, Source
from compactor.finalizer import StagedGroup, StagedSegment
from storage.errors import CorruptFileError
from storage.file_names import INDEX, LOG, TIME_INDEX, file_name
from storage.filesystem import naming, sync_file

READ_BYTES = 8 << 20
CANNOT_SHARE = (errno.EXDEV, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


def join_pieces(
    plan: LogPlan, sources: tuple[Source, ...], pieces: Sequence[Rewritten], run_id: str
) -> StagedGroup:
    """Join the pieces of a group, and say what is to be swapped in."""
    base_offset = sources[0].base_offset
    suffix = staged_suffix(run_id, "joined")
    log_file, index_file, time_index_file = names = [
        os.path.join(plan.path, file_name(base_offset, kind) + suffix)
        for kind in (LOG, INDEX, TIME_INDEX)
    ]
    try:
        model = os.stat(sources[-1].path)
        _join(log_file, pieces, model)
        indexes = _indexes(plan, base_offset, sources[0].path, pieces)
        write_like(index_file, indexes[0], model)
        write_like(time_index_file, indexes[1], model)
        for name in names:
            sync_file(name)
    except BaseException:
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                os.remove(name)
        raise
    segment = StagedSegment(base_offset, log_file, index_file, time_index_file, "")
    return StagedGroup(plan.path, sources, (segment,))


def check_joined_indexes(
    plan: LogPlan, sources: tuple[Source, ...], pieces: Sequence[Rewritten]
) -> None:
    """Raise what joining would raise of the indexes; for a dry run, which joins nothing."""
    _indexes(plan, sources[0].base_offset, sources[0].path, pieces)


def _indexes(
    plan: LogPlan, base_offset: int, path: str, pieces: Sequence[Rewritten]
) -> tuple[bytes, bytes]:
    limits = plan.index_interval_bytes, plan.segment_index_bytes
    making, previous_offset = IndexesInMaking(path, base_offset, limits), -1
    for facts in (facts for piece in pieces for facts in facts_in(piece.facts_file)):
        if np.any(np.diff(facts["last_offset"], prepend=previous_offset) <= 0):
            raise CorruptFileError(path, 0, "the pieces of the cleaned segment are out of order")
        previous_offset = int(facts["last_offset"][-1])
        making.add(facts)
    indexes = making.finish()
    return indexes.offset_index, indexes.time_index


def _join(path: str, pieces: Sequence[Rewritten], model: os.stat_result) -> None:
    with naming(path), open(path, "x+b", buffering=0) as out:
        for piece in pieces:
            with open(piece.log_file, "rb", buffering=0) as source:
                if not _append(source.fileno(), out.fileno(), piece.log_bytes):
                    raise WorkFileError(piece.log_file, piece.log_bytes, "cut short")
        position = 0
        for piece in pieces:
            if _checksum(out.fileno(), position, piece.log_bytes) != piece.log_checksum:
                raise WorkFileError(path, position, "a joined piece is not what was written")
            position += piece.log_bytes
        finish_like(out.fileno(), model)


def _append(source: int, target: int, log_bytes: int) -> bool:
    """Copy inside the kernel; where the file system can, without copying a byte.

    Whether source has so many bytes.
    """
    left = log_bytes
    while left:
        try:
            copied = os.copy_file_range(source, target, left)
        except OSError as error:  # for one, the work directory is on another file system
            if error.errno not in CANNOT_SHARE:
                raise
            copied = os.sendfile(target, source, None, left)
        if not copied:
            return False
        left -= copied
    os.lseek(target, 0, os.SEEK_END)
    return True


def _checksum(descriptor: int, position: int, log_bytes: int) -> int:
    digest, end = xxhash.xxh3_64(), position + log_bytes
    while position < end:
        data = os.pread(descriptor, min(READ_BYTES, end - position), position)
        if not data:
            break
        digest.update(data)
        position += len(data)
    return digest.intdigest()
