"""Split a segment of a log that nobody has open, before the log is cleaned.

`storage.log.splitting` says which new segments to make, and what they hold. This module stages
their files beside the log, with the attributes and the time of the source, and swaps them in.
"""

import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from cleaner_jobs.messages import LogPlan, Source
from cleaner_jobs.staging import staged_suffix
from cleaner_jobs.tasks.segment_facts import finish_like
from cleaner_jobs.work_file import write_whole
from compactor.finalizer import StagedGroup, StagedSegment, remove_cleaned, swap_group
from storage.errors import CorruptFileError
from storage.file_names import LOG, TXN_INDEX
from storage.files import io_limit
from storage.files.descriptors import naming
from storage.files.files import Disk, FileAttributes, Files
from storage.files.local import LOCAL
from storage.formats import txn_index
from storage.formats.txn_index import AbortedTxn
from storage.log.segment_reader import read_batches
from storage.log.splitting import IndexSettings, SplitBatch, plan_split

if TYPE_CHECKING:
    from compactor.originals.originals_keeper import OriginalsKeeper


def split_segment(
    log: LogPlan,
    source: Source,
    originals: "OriginalsKeeper | None" = None,
    disk: Disk = LOCAL,
) -> None:
    """Put copies of a segment's batches in its place, in several segments.

    originals: keeps the segment. All checksums are verified first: a damaged segment is not split.
    Raise CorruptFileError, LogChangedError or OSError.
    """
    limits = IndexSettings(log.index_interval_bytes, log.segment_index_bytes)
    batches = _checked(source, disk)
    segments = plan_split(batches, _aborted_txns(log, source, disk), limits.interval_bytes)
    for segment in segments:
        if segment.indexes.problem:
            raise CorruptFileError(source.path, segment.position, segment.indexes.problem)
    suffix = staged_suffix(secrets.token_hex(4), "split")
    staged = [
        StagedSegment.beside(log.path, segment.base_offset, suffix, bool(segment.aborted))
        for segment in segments
    ]
    try:
        model = disk.attributes_of(source.path)
        for segment, names in zip(segments, staged, strict=True):
            for kind, contents in segment.files(disk, source.path, limits).items():
                _write(names.files[kind], contents, model, disk)
            for path in names.files.values():
                disk.sync_file(path)
        remove_cleaned(disk, log.path)
        group = StagedGroup(log.path, (source,), tuple(staged))
        if originals is not None:
            group = originals.keep_group(log, group)
        swap_group(disk, group)
    except BaseException:
        for path in (path for names in staged for path in names.files.values()):
            with suppress(OSError):  # the first error counts; the next run removes it
                disk.remove(path)
        raise


def _aborted_txns(log: LogPlan, source: Source, files: Files) -> list[AbortedTxn]:
    for base_offset, entries in log.rebuilt_txn_indexes:
        if base_offset == source.base_offset:
            return list(entries)
    return txn_index.read(source.path.removesuffix(LOG) + TXN_INDEX, files)


def _checked(source: Source, files: Files) -> Iterator[SplitBatch]:
    previous_offset = source.base_offset - 1
    for position, header, _ in read_batches(source.path, files=files):
        if header.base_offset <= previous_offset or header.last_offset < header.base_offset:
            problem = f"base offset {header.base_offset} after offset {previous_offset}"
            raise CorruptFileError(source.path, position, problem)
        previous_offset = header.last_offset
        yield SplitBatch(
            position,
            header.size_bytes,
            header.base_offset,
            header.last_offset,
            header.max_timestamp,
        )


def _write(path: str, contents: Iterable[bytes], model: FileAttributes, disk: Disk) -> None:
    with naming(path), disk.open_raw(path, "xb") as out:
        for data in contents:
            io_limit.take(len(data))
            write_whole(out, memoryview(data))
        finish_like(out.fileno(), model, disk)
