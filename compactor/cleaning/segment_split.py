"""Splits one segment whose offsets span more than an index can hold, batch by batch.

Each new segment is named after its first batch and takes the batches that follow as long as their
last offset is at most 2^31 - 1 above that. They have the bytes of the source, indexes of their own
and the source's time. Entries of a `.txnindex` go along with their markers; Kafka leaves that file
behind, by which aborted records would come to life in its next round. Source: Kafka,
LocalLog.splitOverflowedSegment; spec C-16.3, C-16.4.
"""

import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from cleaner_jobs.plan import LogPlan
from cleaner_jobs.staging import staged_suffix
from cleaner_jobs.task_values import Source
from cleaner_jobs.tasks.cleaned_segment import finish_like, write_like
from cleaner_jobs.tasks.sink import write_whole
from compactor.finalizer import StagedGroup, StagedSegment, remove_cleaned, swap_group
from storage.errors import CorruptFileError
from storage.file_names import INDEX, LOG, TIME_INDEX, TXN_INDEX, file_name
from storage.files import io_limit
from storage.files.file_attributes import FileAttributes, attributes_of
from storage.files.files import Files
from storage.files.filesystem import naming, open_file, private, sync_file
from storage.files.local import LOCAL
from storage.formats import txn_index
from storage.formats.segment import MAX_RELATIVE_OFFSET
from storage.formats.segment_indexes import (
    SegmentIndexes,
    build_indexes,
    check_capacity,
    made_to_fit,
)
from storage.formats.txn_index import AbortedTxn
from storage.log.segment_reader import read_batches

if TYPE_CHECKING:
    from compactor.originals.originals_keeper import OriginalsKeeper

COPY_BYTES = 8 << 20


@dataclass(slots=True)
class _NewSegment:
    """Consecutive batches of the source, from the first on that no segment before takes."""

    base_offset: int
    start: int  # position in the source
    sizes: list[int] = field(default_factory=list)
    last_offsets: list[int] = field(default_factory=list)
    max_timestamps: list[int] = field(default_factory=list)

    @property
    def log_bytes(self) -> int:
        return sum(self.sizes)


def split_segment(
    log: LogPlan,
    source: Source,
    originals: "OriginalsKeeper | None" = None,
    files: Files = LOCAL,
) -> None:
    """Put copies of a segment's batches in its place, in several segments.

    originals: keeps the segment. Every checksum is held first: what is damaged stays as it is.
    Raise CorruptFileError, LogChangedError or OSError.
    """
    aborted = _aborted_txns(log, source)
    segments = _cut(source)
    staged = _names(log.path, segments, aborted)
    try:
        model = attributes_of(source.path)
        for segment, names in zip(segments, staged, strict=True):
            _copy(source, segment, names.log_file, model)
            indexes = _indexes(segment, log)
            write_like(names.index_file, indexes.offset_index, model)
            write_like(names.time_index_file, indexes.time_index, model)
            if names.txn_index_file:
                entries = map(txn_index.encode, _of(segment, aborted))
                write_like(names.txn_index_file, b"".join(entries), model)
            for path in names.files.values():
                sync_file(path)
        remove_cleaned(files, log.path)
        group = StagedGroup(log.path, (source,), tuple(staged))
        if originals is not None:
            group = originals.keep_group(log, group)
        swap_group(files, group)
    except BaseException:
        for path in (path for names in staged for path in names.files.values()):
            with suppress(OSError):  # the first error counts; the next run removes it
                files.remove(path)
        raise


def _aborted_txns(log: LogPlan, source: Source) -> list[AbortedTxn]:
    for base_offset, entries in log.rebuilt_txn_indexes:
        if base_offset == source.base_offset:
            return list(entries)
    return txn_index.read(source.path.removesuffix(LOG) + TXN_INDEX)


def _cut(source: Source) -> list[_NewSegment]:
    segments: list[_NewSegment] = []
    previous_offset = source.base_offset - 1
    for position, header, _ in read_batches(source.path):
        if header.base_offset <= previous_offset or header.last_offset < header.base_offset:
            problem = f"base offset {header.base_offset} after offset {previous_offset}"
            raise CorruptFileError(source.path, position, problem)
        previous_offset = header.last_offset
        if not segments or header.last_offset - segments[-1].base_offset > MAX_RELATIVE_OFFSET:
            segments.append(_NewSegment(header.base_offset, position))
        segments[-1].sizes.append(header.size_bytes)
        segments[-1].last_offsets.append(header.last_offset)
        segments[-1].max_timestamps.append(header.max_timestamp)
    return segments


def _names(
    path: str, segments: list[_NewSegment], aborted: list[AbortedTxn]
) -> list[StagedSegment]:
    suffix = staged_suffix(secrets.token_hex(4), "split")
    staged = []
    for segment in segments:
        stem = os.path.join(path, file_name(segment.base_offset, ""))
        txn_index_file = stem + TXN_INDEX + suffix if _of(segment, aborted) else ""
        log_file, index_file, time_index_file = (
            stem + kind + suffix for kind in (LOG, INDEX, TIME_INDEX)
        )
        staged.append(
            StagedSegment(
                segment.base_offset, log_file, index_file, time_index_file, txn_index_file
            )
        )
    return staged


def _of(segment: _NewSegment, aborted: list[AbortedTxn]) -> list[AbortedTxn]:
    first, last = segment.base_offset, segment.last_offsets[-1]
    return [txn for txn in aborted if first <= txn.last_offset <= last]


def _copy(source: Source, segment: _NewSegment, path: str, model: FileAttributes) -> None:
    with (
        open(open_file(source.path), "rb", buffering=0) as old,
        naming(path),
        open(path, "xb", 0, opener=private) as new,
    ):
        position, end = segment.start, segment.start + segment.log_bytes
        while position < end:
            io_limit.take(min(COPY_BYTES, end - position))
            data = os.pread(old.fileno(), min(COPY_BYTES, end - position), position)
            if not data:
                raise CorruptFileError(source.path, position, "the file ends here")
            write_whole(new, memoryview(data))
            position += len(data)
        finish_like(new.fileno(), model)


def _indexes(segment: _NewSegment, log: LogPlan) -> SegmentIndexes:
    sizes, last_offsets, max_timestamps = (
        np.array(column, np.int64)
        for column in (segment.sizes, segment.last_offsets, segment.max_timestamps)
    )
    indexes = build_indexes(
        segment.base_offset, sizes, last_offsets, max_timestamps, log.index_interval_bytes
    )
    if check_capacity(indexes, log.segment_index_bytes):
        return made_to_fit(indexes, log.segment_index_bytes)
    return indexes
