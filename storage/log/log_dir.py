"""What stands in a log directory: its partitions, and the segments and snapshots of each.

Everything here comes from names, sizes and times; only `log_end_offset` opens files. Nothing is
locked and nothing changed: beside a live broker, what vanishes meanwhile is left out.
Source: Kafka, LogManager.loadLogs, LogLoader; spec F-1, F-2, F-12.9.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from storage.errors import CorruptFileError
from storage.file_names import (
    INDEX,
    LOG,
    OFFSET_DIGITS,
    SEGMENT_SUFFIXES,
    SNAPSHOT,
    TIME_INDEX,
    TXN_INDEX,
    UNFINISHED_SUFFIXES,
    Segment,
    file_name,
    is_offset,
    is_special_dir,
    offset_of,
    parse_future_dir,
    parse_partition_dir,
)
from storage.files.files import Entry, Files, size_of
from storage.files.local import LOCAL
from storage.formats.batch_header import MAGIC
from storage.formats.clean_shutdown import CLEAN_SHUTDOWN
from storage.formats.index_entry import OffsetPosition, read_last
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.meta_properties import META_PROPERTIES
from storage.formats.partition_metadata import PARTITION_METADATA
from storage.formats.record_batch import BatchHeader
from storage.log import segment_reader

_KAFKA_DIRS = {
    "__cluster_metadata-0": "the metadata log of KRaft",
    "remote-log-index-cache": "a cache of indexes of remote segments",
}
_LIVE_SUFFIXES = frozenset((*SEGMENT_SUFFIXES, SNAPSHOT))
# Kafka takes the offset from every name that ends so, and fails where there is none (F-2.5).
_NUMBERED = (*SEGMENT_SUFFIXES, SNAPSHOT, *UNFINISHED_SUFFIXES[:2])

_LOADABLE = re.compile(r"0{10}\d{10}\.(?:log|index|timeindex|snapshot)", re.ASCII)  # most files
_UNLOADABLE = "a broker cannot load a log that has a file of this name"
_NOT_KAFKAS = "no broker writes a file of this name: an offset in one has 20 digits"


_OF_LOG = (
    *SEGMENT_SUFFIXES,
    SNAPSHOT,
    *UNFINISHED_SUFFIXES,
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
)
_TEMPORARY = ".tmp"  # of a text file that is being replaced
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}", re.ASCII)  # Kafka, Topic.validate


class PartitionListing(NamedTuple):
    """The files of one partition directory."""

    topic: str
    partition: int
    path: str
    segments: tuple[Segment, ...]  # by rising base offset
    snapshot_offsets: tuple[int, ...]  # rising
    unfinished: tuple[str, ...]  # names ending in .cleaned, .swap or .deleted
    stray: tuple[str, ...]  # names that a loading broker would trip over
    special: tuple[str, ...] = ()  # what is no file but has a file's name, and what it is
    files: tuple[Entry, ...] = ()  # of the log, by name; those that a swap leaves apart
    access: Files = LOCAL  # by which it was listed, and is to be read
    foreign: tuple[str, ...] = ()  # names of files that no broker writes there

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


class LogDirListing(NamedTuple):
    """The partitions of a log directory, and what else is in it."""

    path: str
    partitions: tuple[PartitionListing, ...]  # by topic, then partition
    ignored: tuple[tuple[str, str], ...]  # directories that hold no log to work on: name, reason
    has_clean_shutdown: bool
    has_meta_properties: bool
    moving_in: tuple[tuple[str, int], ...] = ()  # logs of which a `-future` copy stands here


def partition_of(dir_name: str) -> tuple[str, int] | None:
    """Give topic and partition of a directory that holds a log to work on; None for any other."""
    return None if dir_name in _KAFKA_DIRS else parse_partition_dir(dir_name)


def list_log_dir(
    path: str,
    access: Files = LOCAL,
    with_files: bool = True,
    is_own: Callable[[str], bool] = lambda _: True,
) -> LogDirListing:
    """List every partition of a log directory. OSError if the directory itself cannot be listed.

    is_own: of which directories, by name; of another one the listing has no more than the name.
    """
    partitions = []
    ignored = []
    files = set()
    moving_in = set()
    for entry in access.list_directory(path):
        future = parse_future_dir(entry.name)
        if future is not None and (entry.is_dir or entry.special):
            moving_in.add(future)
        topic_partition = partition_of(entry.name)
        if not entry.is_dir:
            files.add(entry.name)
            if entry.special and topic_partition is not None:
                ignored.append((entry.name, f"is {entry.special}, which is not followed"))
            continue
        if topic_partition is None:
            ignored.append((entry.name, _why_ignored(entry.name)))
            continue
        if not is_topic_name(topic_partition[0]):
            ignored.append((entry.name, "its topic has a name that Kafka does not accept"))
            continue
        try:
            partition_dir = os.path.join(path, entry.name)
            if is_own(entry.name):
                listing = list_partition(partition_dir, *topic_partition, access, with_files)
            else:
                listing = PartitionListing(
                    *topic_partition,
                    path=partition_dir,
                    segments=(),
                    snapshot_offsets=(),
                    unfinished=(),
                    stray=(),
                )
            partitions.append(listing)
        except OSError as error:  # gone, or not to be read: the others go on
            ignored.append((entry.name, f"cannot be listed: {error.strerror}"))
    return LogDirListing(
        path=path,
        partitions=tuple(sorted(partitions)),
        ignored=tuple(sorted(ignored)),
        has_clean_shutdown=CLEAN_SHUTDOWN in files,
        has_meta_properties=META_PROPERTIES in files,
        moving_in=tuple(sorted(moving_in)),
    )


def is_topic_name(name: str) -> bool:
    """Say whether Kafka accepts a name for a topic."""
    return _TOPIC.fullmatch(name) is not None


def list_partition(
    path: str, topic: str, partition: int, access: Files = LOCAL, with_files: bool = True
) -> PartitionListing:
    """List one partition directory. with_files: or `files` stays empty, which takes less memory."""
    by_suffix: dict[str, dict[str, Entry]] = {suffix: {} for suffix in _LIVE_SUFFIXES}
    known: set[str] = set()  # digits that are those of an offset
    unfinished: list[str] = []
    stray: list[str] = []
    special: list[str] = []
    foreign: list[str] = []
    files: list[Entry] = []
    for entry in access.list_directory(path):
        name = entry.name
        if entry.is_dir or entry.special:
            if is_of_file(name):
                special.append(f"{name}: is {entry.special or 'a directory'}, not a file")
            continue
        of_suffix = by_suffix.get(name[OFFSET_DIGITS:])
        if of_suffix is not None:  # nearly every one
            digits = name[:OFFSET_DIGITS]
            if digits not in known and is_offset(digits):
                known.add(digits)
            if digits in known:
                of_suffix[digits] = entry
                continue
        if _is_live(name):
            files.append(entry)
        if is_unloadable(name):
            stray.append(name)
        elif name.endswith(UNFINISHED_SUFFIXES):
            unfinished.append(name)
        elif not name.endswith((*_OF_LOG, _TEMPORARY)):
            foreign.append(name)
    if with_files:
        files += [entry for entries in by_suffix.values() for entry in entries.values()]
    else:
        files = []
    return PartitionListing(
        topic=topic,
        partition=partition,
        path=path,
        segments=_segments(by_suffix),
        snapshot_offsets=tuple(sorted(map(int, by_suffix[SNAPSHOT]))),
        unfinished=tuple(sorted(unfinished)),
        stray=tuple(sorted(stray)),
        special=tuple(sorted(special)),
        files=tuple(sorted(files)),
        access=access,
        foreign=tuple(sorted(foreign)),
    )


def list_files(path: str, access: Files = LOCAL) -> list[Entry]:
    """List the files of the log in a partition directory, in no order."""
    entries = access.list_directory(path)
    return [e for e in entries if not e.is_dir and not e.special and _is_live(e.name)]


def _is_live(name: str) -> bool:
    return is_of_file(name) and not name.endswith(UNFINISHED_SUFFIXES)


def is_of_file(name: str) -> bool:
    """Say whether a name in a partition directory is that of a file of the log."""
    return name.endswith(_OF_LOG)


def is_unloadable(name: str) -> bool:
    """Say whether a loading broker would trip over a file of that name."""
    if _LOADABLE.fullmatch(name) or not name.endswith(_NUMBERED):
        return False
    return name[OFFSET_DIGITS : OFFSET_DIGITS + 1] != "." or not is_offset(name[:OFFSET_DIGITS])


def why_unloadable(name: str) -> str:
    """Say what is wrong with such a name; a broker finds an offset in `9.log`, and loads it."""
    return _UNLOADABLE if offset_of(name) is None else _NOT_KAFKAS


def log_end_offset(partition: PartitionListing) -> int:
    """Give the offset after the last record of the log (F-12.9).

    Walks the batch headers of the last segment from its last index entry. Raise CorruptFileError
    where the entry does not point at its batch, base offsets go backwards, or the log does not end
    with a whole batch. 0 for a log without segments.
    """
    if not partition.segments:
        return 0
    last = partition.segments[-1]
    if not last.log_bytes and not last.index_bytes:
        return last.base_offset
    stem = os.path.join(partition.path, file_name(last.base_offset, ""))
    return segment_end_offset(stem + LOG, stem + INDEX, last.base_offset, partition.access)


def segment_end_offset(
    log_path: str, index_path: str, base_offset: int, access: Files = LOCAL
) -> int:
    """Return the offset after the last record of a segment, or its base offset (F-12.9).

    The index may be missing. Raise CorruptFileError as log_end_offset does.
    """
    end_offset = base_offset
    for position, header in _last_headers(log_path, index_path, base_offset, access):
        if header.base_offset < end_offset:
            problem = f"base offset {header.base_offset}, expected {end_offset} or more"
            raise CorruptFileError(log_path, position, problem)
        end_offset = header.next_offset
    return end_offset


def last_batch_time_ms(partition: PartitionListing, segment: Segment) -> int:
    """Give the largest timestamp of the batches from its last index entry on; -1: none has one.

    Raise CorruptFileError where a batch or the entry is damaged.
    """
    stem = os.path.join(partition.path, file_name(segment.base_offset, ""))
    headers = _last_headers(stem + LOG, stem + INDEX, segment.base_offset, partition.access)
    return max((header.max_timestamp for _, header in headers), default=-1)


def _last_headers(
    log_path: str, index_path: str, base_offset: int, access: Files
) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each batch from the last index entry on.

    Raise CorruptFileError where the entry does not lead to its batch, or a batch is cut short.
    """
    try:
        entry = read_last(index_path, base_offset, access)
    except FileNotFoundError:
        entry = OffsetPosition(base_offset, 0)
    headers = segment_reader.read_batch_headers(log_path, entry.position, files=access)
    if entry.position:
        try:
            first = next(headers) if entry.position > 0 else None
        except (CorruptFileError, StopIteration):
            first = None
        if first is None or not _is_batch_with(entry, first[1]):
            at = f"offset {entry.offset} at byte {entry.position}"
            problem = f"the last entry, {at}, does not lead to that batch of the log"
            raise CorruptFileError(index_path, size_of(access, index_path), problem)
        yield first
    yield from headers


def _is_batch_with(entry: OffsetPosition, header: BatchHeader) -> bool:
    is_wrapper = header.magic < MAGIC and header.codec  # it begins before the offset in its header
    return bool(is_wrapper) or header.base_offset <= entry.offset


def _why_ignored(name: str) -> str:
    if name in _KAFKA_DIRS:
        return _KAFKA_DIRS[name]
    if is_special_dir(name):
        return "being deleted, moved or kept aside by the broker"
    return "not named like a partition: a broker that starts here would fail"


def _segments(files: Mapping[str, Mapping[str, Entry]]) -> tuple[Segment, ...]:
    """files: by suffix, then by the twenty digits of the name.

    An index by itself is removed by the broker when it loads.
    """
    index_of, time_index_of = files[INDEX].get, files[TIME_INDEX].get
    txn_indexes = files[TXN_INDEX]
    # in their order: by keyword it takes twice as long, for each of 60,000 segments of a plan
    return tuple(
        Segment(
            int(digits),
            log.size_bytes,
            _size(index_of(digits)),
            _size(time_index_of(digits)),
            _size(txn_indexes.get(digits)) if txn_indexes else None,
            log.mtime_ns,
            log.inode,
            log.ctime_ns,
            log.device,
        )
        for digits, log in sorted(files[LOG].items())
    )


def _size(entry: Entry | None) -> int | None:
    return None if entry is None else entry.size_bytes
