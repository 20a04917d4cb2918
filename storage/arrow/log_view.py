"""What there is to read of a log, whole or in parts: files, positions, outcomes of transactions.

A log that no broker has open is read as it is: nothing is locked, recovered or written. For parts
(`splits_of`), small segments are joined, and a larger segment is cut where an entry of the offset
index says that a batch begins. The index decides about the sizes alone: the offsets of records say
to which part they belong.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from storage.arguments import PathArg, count_of, path_of, require_a
from storage.arrow.batch_runs import FileRange
from storage.arrow.selection import Selection
from storage.errors import CorruptFileError, LogCompactionError
from storage.file_names import (
    INDEX,
    LOG,
    SWAP,
    TXN_INDEX,
    Segment,
    file_name,
    is_special_dir,
    offset_of,
    parse_partition_dir,
)
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats import checkpoint, offset_index, txn_index_columns
from storage.formats.batch_columns import Int64Array
from storage.formats.batch_header import BATCH_HEADER_BYTES
from storage.formats.clean_shutdown import CLEAN_SHUTDOWN
from storage.formats.legacy_messages import check_crc, decode_header
from storage.formats.meta_properties import META_PROPERTIES
from storage.log.log import Log
from storage.log.log_dir import (
    PartitionListing,
    is_topic_name,
    list_partition,
    log_end_offset,
    partition_of,
)
from storage.log.producer_state import ExpiryClock, ProducerState, load_producer_state

NOTHING_EXPIRES = ExpiryClock(now_ms=0)


class NotALogError(LogCompactionError):
    """A directory is not that of a partition, or not in a state in which it can be read."""


class LogView(NamedTuple):
    """A log, or a part of it."""

    topic: str
    partition: int
    stretches: tuple[FileRange, ...]  # by rising offset
    first_offset: int  # nothing below is there for readers
    end_offset: int  # nor anything from here on
    aborted: Int64Array  # (n, 3) producer id, first and last offset, by producer and last offset
    files: Files

    @property
    def size_bytes(self) -> int:
        """Return the bytes from the start of each stretch to its end: an upper bound.

        A part of a segment that was cut ends where the segment ends, so parts overlap.
        """
        return sum(stretch.end - stretch.start for stretch in self.stretches)


def view_of_log(log: Log, selection: Selection) -> LogView:
    """What an open log holds now; what is appended later is not seen."""
    snapshot = log.offset_snapshot()
    log_end = snapshot.log_end
    end = snapshot.last_stable if selection.is_committed else log_end
    topic, partition = topic_partition(log.path)
    stretches = []
    for segment in log.segments:
        if segment.base_offset <= log_end.segment:
            is_last = segment.base_offset == log_end.segment
            size, start = log_end.position if is_last else segment.size_bytes, 0
            if selection.start_offset is not None and selection.start_offset > segment.base_offset:
                start = min(size, segment.offset_index.lookup(selection.start_offset).position)
            path = os.path.join(log.path, file_name(segment.base_offset, LOG))
            stretches.append((segment.base_offset, FileRange(path=path, start=start, end=size)))
    aborted = txn_index_columns.columns_of(())
    if selection.is_committed:
        found = log.aborted_transactions(log.log_start_offset, end.offset)
        aborted = txn_index_columns.columns_of(found)
    return LogView(
        topic=topic,
        partition=partition,
        stretches=_within(stretches, selection),
        first_offset=log.log_start_offset,
        end_offset=end.offset,
        aborted=_sorted(aborted),
        files=log.files,
    )


def view_of_directory(path: str, selection: Selection, files: Files = LOCAL) -> LogView:
    """What the directory of a partition holds.

    Raise NotALogError, or CorruptFileError where the log is damaged so that it cannot be said how
    far its transactions are decided.
    """
    listing = list_closed(path, files)
    log_start = _log_start(listing)
    end_offset, aborted = 2**63 - 1, txn_index_columns.columns_of(())
    if selection.is_committed and listing.segments:
        state = _producers(listing, log_start)
        if state.first_unstable_offset is not None:
            end_offset = state.first_unstable_offset
        aborted = _aborted(listing, state)
    stretches = [_stretch(listing, segment, selection) for segment in listing.segments]
    return LogView(
        topic=listing.topic,
        partition=listing.partition,
        stretches=_within(stretches, selection),
        first_offset=log_start,
        end_offset=end_offset,
        aborted=_sorted(aborted),
        files=files,
    )


def list_closed(path: str, files: Files = LOCAL) -> PartitionListing:
    """List the directory of a partition.

    Raise NotALogError, also where it has no segment, or where one is a link.
    """
    topic, partition = topic_partition(path)
    if not files.is_directory(path):
        raise NotALogError(f"{path}: there is no such directory")
    if is_log_dir(path, files):
        raise NotALogError(
            f"{path}: is a log directory, with a name like a partition's. Nothing was read. Read "
            "one of the partitions in it"
        )
    listing = list_partition(path, topic, partition, files)
    half_done = [name for name in listing.unfinished if name.endswith(SWAP)]
    if half_done:
        raise NotALogError(
            f"{path}: {half_done[0]} is left of a cleaning that was cut short, and what it takes "
            "the place of may be gone. Nothing was read. A broker that starts here, or the "
            "command recover, ends the cleaning"
        )
    if listing.special:
        raise NotALogError(
            f"{path}: {listing.special[0]}; links are not followed. Nothing was read"
        )
    if not listing.segments:
        raise NotALogError(
            f"{path}: holds no log: there is no {LOG} file in it, and a broker makes one with each "
            "log. Nothing was read. Either the path is wrong, or the files of the log are gone"
        )
    return listing


def partition_dirs(path: PathArg, files: Files = LOCAL) -> dict[tuple[str, int], str]:
    """Find the directories of the logs at a path: of a log directory, or of one partition.

    What is inside decides, for a log directory may be `/data/disk-1`. One without any partition is
    known by its meta.properties. Raise NotALogError for any other directory, and for one with a
    partition that is a link; UsageError or OSError.
    """
    path = path_of("path", path)
    of_path = _named(path)
    if of_path is not None and not is_log_dir(path, files):
        return {of_path: path}
    entries = list(files.list_directory(path))
    found = dict[tuple[str, int], str]()
    for entry in entries:
        key = partition_of(entry.name)
        if key is not None and is_topic_name(key[0]) and (entry.is_dir or entry.special):
            found[key] = os.path.join(path, entry.name)
            if entry.special:
                problem = f"is {entry.special}, which is not followed. Nothing was read"
                raise NotALogError(f"{found[key]}: {problem}")
    if not found and all(entry.name != META_PROPERTIES for entry in entries):
        raise NotALogError(
            f"{path}: is no log directory: no {META_PROPERTIES}, and nothing named like a "
            "partition, such as orders-0, is in it. Nothing was read"
        )
    return dict(sorted(found.items()))


def is_log_dir(path: PathArg, files: Files = LOCAL) -> bool:
    """Say whether what is inside is a log directory's: its name may be `/data/disk-1`.

    Raise UsageError or OSError.
    """
    entries = list(files.list_directory(path_of("path", path)))
    if any(entry.name.endswith(LOG) and not entry.is_dir for entry in entries):
        return False
    return any(
        parse_partition_dir(entry.name) is not None
        if entry.is_dir
        else entry.name == META_PROPERTIES
        for entry in entries
    )


def topic_partition(path: str) -> tuple[str, int]:
    """Return what a directory's name says; also where a broker put it aside (`t-0.<id>-stray`)."""
    found = _named(path)
    if found is None:
        raise NotALogError(f"{path}: the directory of a partition has a name such as orders-0")
    return found


def _named(path: str) -> tuple[str, int] | None:
    name = os.path.basename(os.path.abspath(path))
    return parse_partition_dir(name.rpartition(".")[0] if is_special_dir(name) else name)


def _log_start(listing: PartitionListing) -> int:
    """Return what the checkpoint beside the log has, or where the first segment begins."""
    path = os.path.join(os.path.dirname(os.path.abspath(listing.path)), checkpoint.LOG_START)
    noted = checkpoint.read(path, listing.access).get((listing.topic, listing.partition), 0)
    first = listing.segments[0].base_offset if listing.segments else 0
    return max(noted, first)


def _producers(listing: PartitionListing, log_start: int) -> ProducerState:
    """Load the producers at the log end; what was not synced for certain is read again."""
    log_dir = os.path.dirname(os.path.abspath(listing.path))
    is_clean = listing.access.exists(os.path.join(log_dir, CLEAN_SHUTDOWN))
    if not is_clean:
        path = os.path.join(log_dir, checkpoint.RECOVERY_POINT)
        points = checkpoint.read(path, listing.access)
        last = listing.segments[-1].base_offset
        point = points.get((listing.topic, listing.partition), last)
        listing = listing._replace(segments=_without_indexes(listing.segments, point))
    end = log_end_offset(listing)
    return load_producer_state(listing, log_start, end, NOTHING_EXPIRES, is_clean)


def _without_indexes(segments: tuple[Segment, ...], point: int) -> tuple[Segment, ...]:
    """Return all segments, those from the recovery point on without their indexes.

    A broker that starts would rebuild these.
    """
    bases = [segment.base_offset for segment in segments]
    first = max((base for base in bases if base <= point), default=0)
    return tuple(s._replace(index_bytes=None) if s.base_offset >= first else s for s in segments)


def _aborted(listing: PartitionListing, state: ProducerState) -> Int64Array:
    found = []
    for segment in listing.segments:
        entries = state.rebuilt_txn_indexes.get(segment.base_offset)
        if entries is not None:
            found.append(txn_index_columns.columns_of(entries))
        elif segment.txn_index_bytes:
            path = os.path.join(listing.path, file_name(segment.base_offset, TXN_INDEX))
            found.append(txn_index_columns.read_columns(path, listing.access))
    return np.concatenate(found) if found else txn_index_columns.columns_of(())


def _sorted(aborted: Int64Array) -> Int64Array:
    rows = aborted[:, :3]
    return np.ascontiguousarray(rows[np.lexsort((rows[:, 2], rows[:, 0]))])


def _stretch(
    listing: PartitionListing, segment: Segment, selection: Selection
) -> tuple[int, FileRange]:
    path = os.path.join(listing.path, file_name(segment.base_offset, LOG))
    whole = FileRange(path=path, start=0, end=segment.log_bytes)
    first = selection.start_offset
    if first is not None and first > segment.base_offset and segment.index_bytes:
        start = indexed_position(whole, segment.base_offset, first, listing.access)
        whole = whole._replace(start=start)
    return segment.base_offset, whole


def indexed_position(stretch: FileRange, base_offset: int, offset: int, files: Files) -> int:
    """Return a position at or before the batch that holds an offset.

    That is the start of the stretch where the index is of no use.
    """
    try:
        position = offset_index.search(entries_of(stretch, files), base_offset, offset).position
        if position <= stretch.start:
            return stretch.start
        head = files.read_range(stretch.path, position, BATCH_HEADER_BYTES)
        header = decode_header(head, position, stretch.path)
        batch = files.read_range(stretch.path, position, header.size_bytes)
        check_crc(batch, header, stretch.path, position)
    except CorruptFileError:
        return stretch.start
    return position if header.base_offset <= offset else stretch.start


def entries_of(stretch: FileRange, files: Files) -> offset_index.Entries:
    """The entries of the index of a segment; none where there is no such file.

    Raise CorruptFileError where they cannot be those of the segment.
    """
    path = stretch.path.removesuffix(LOG) + INDEX
    try:
        entries = offset_index.read(path, files)
    except FileNotFoundError:
        return np.empty(0, offset_index.ENTRY)
    offset_index.check(entries, stretch.end, path)
    return entries


def _within(
    stretches: Iterable[tuple[int, FileRange]], selection: Selection
) -> tuple[FileRange, ...]:
    """Return the stretches that may hold wanted offsets.

    stretches: base offset and stretch of each, in rising order.
    """
    every = list(stretches)
    wanted = selection.range
    bases = [base for base, _ in every]
    first = max((b for b in bases if b <= wanted.first_offset), default=wanted.first_offset)
    return tuple(each for base, each in every if first <= base < wanted.end_offset)


_NO_END = 2**63 - 1


def splits_of(
    path: PathArg, selection: Selection, split_bytes: int, files: Files = LOCAL
) -> list[LogView]:
    """Split the directory of a partition into parts of about `split_bytes`, by rising offset.

    Files and transactions are listed once, for all parts. Raise what a read raises before its first
    record. max_bytes and until_damage of a selection concern a log, not its parts: they have no
    effect.
    """
    require_a(Selection, "selection", selection, "a Selection")
    split_bytes = count_of("split_bytes", split_bytes, 1, _NO_END)
    view = view_of_directory(path_of("path", path), selection, files)
    wanted = selection.range
    first = max(view.first_offset, wanted.first_offset)
    end = min(view.end_offset, wanted.end_offset)
    narrowed = view._replace(first_offset=first, end_offset=end)
    return [part for part in _parts(narrowed, split_bytes) if part.first_offset < part.end_offset]


def _parts(view: LogView, split_bytes: int) -> Iterator[LogView]:
    """Cut large segments, and join small ones that follow each other."""
    held, held_bytes = list[FileRange](), 0
    for stretch in view.stretches:
        size_bytes = stretch.end - stretch.start
        if held and held_bytes + size_bytes > split_bytes:
            yield _part(view, held, _base_offset(held[0]), _NO_END)
            held, held_bytes = [], 0
        if size_bytes > split_bytes:
            yield from _cut(view, stretch, split_bytes)
        else:
            held.append(stretch)
            held_bytes += size_bytes
    if held:
        yield _part(view, held, _base_offset(held[0]), _NO_END)


def _base_offset(stretch: FileRange) -> int:
    base_offset = offset_of(os.path.basename(stretch.path))
    assert base_offset is not None, stretch.path
    return base_offset


def _cut(view: LogView, stretch: FileRange, split_bytes: int) -> Iterator[LogView]:
    """The parts of a segment."""
    base_offset = _base_offset(stretch)
    try:
        entries = entries_of(stretch, view.files)
    except CorruptFileError:  # one part, then
        entries = np.empty(0, offset_index.ENTRY)
    positions = np.arange(stretch.start + split_bytes, stretch.end, split_bytes)
    chosen = np.unique(np.searchsorted(entries["position"], positions))
    last_offsets = entries["relative_offset"][chosen[chosen < len(entries)]]
    edges = [base_offset, *(base_offset + int(last) + 1 for last in last_offsets), _NO_END]
    for first, end in pairwise(edges):
        start = indexed_position(stretch, base_offset, first, view.files)
        yield _part(view, [stretch._replace(start=start)], first, end)


def _part(view: LogView, stretches: Sequence[FileRange], first: int, end: int) -> LogView:
    return view._replace(
        stretches=tuple(stretches),
        first_offset=max(view.first_offset, first),
        end_offset=min(view.end_offset, end),
        aborted=_touching(view, first, end),
    )


def _touching(view: LogView, first: int, end: int) -> Int64Array:
    aborted = view.aborted
    return aborted[(aborted[:, 2] >= first) & (aborted[:, 1] < end)]
