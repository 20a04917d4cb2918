"""Survey the log directories by names, sizes, times and small files: no record is read.

Every directory keeps its own checkpoints, yet a partition may be in one of them only, so what they
say is compared in this module. Where no file says how far logs are replicated, only the operator
can know (`require_high_watermarks`): a broker may be a follower with records at the end of a log
that no leader has any more. They are above the high watermark, and neither go nor let others go
(F-13.1). `foreign_files` are those in partition directories that are neither Kafka's nor ours:
`.bak`, `.gz`, of rsync.

Source: Kafka, LogCleanerManager.allCleanerCheckpoints, LogSegment; spec C-4.3, C-23.1, C-23.2,
F-12.8, F-13.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from cleaner_jobs.staging import STAGED_MARKER
from compactor.errors import RefusedError
from compactor.host.printable import counted, first_few
from compactor.log_dirs.missing_logs import (
    NOT_ASKED,
    Checkpoints,
    RecordedEnds,
    ends_where_needed,
    recorded_ends,
    why_cut_short,
    why_start_gone,
)
from compactor.reason_codes import ReasonCode, error_text, reason_code_of
from storage.errors import CorruptFileError
from storage.file_names import (
    LOG,
    MAX_RELATIVE_OFFSET,
    TIME_INDEX,
    Segment,
    file_name,
    parse_future_dir,
    parse_partition_dir,
)
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats import checkpoint
from storage.formats.checkpoint import REPLICATION, TopicPartition
from storage.formats.index_entry import TIME_ENTRY, time_at
from storage.formats.partition_metadata import PARTITION_METADATA
from storage.log import segment_reader
from storage.log.log_dir import LogDirListing, PartitionListing, list_log_dir, partition_of


@dataclass(frozen=True, slots=True)
class LogDirSurvey:
    """One log directory: what is in it, and what its checkpoints say."""

    listing: LogDirListing
    cleaner_offsets: Mapping[TopicPartition, int]
    log_start_offsets: Mapping[TopicPartition, int]
    high_watermarks: Mapping[TopicPartition, int] | None  # None: there is no such file
    problem: str | None = None  # a checkpoint that cannot be read: no log here can be judged
    # how far logs reached, by checkpoints; none where each of them has its segments
    recorded_ends: RecordedEnds = NOT_ASKED
    recovery_points: Mapping[TopicPartition, int] = field(default_factory=dict)
    # when the high watermarks were written; None: after a clean shutdown, so they are of these logs
    watermarks_written_ns: int | None = None

    @property
    def path(self) -> str:
        return self.listing.path

    def why_cut_short(self, partition: PartitionListing, end_offset: int) -> str | None:
        """Say that records are gone from the end of a log; None if they are not, or may be."""
        if not self.listing.has_clean_shutdown:
            return None
        known = {
            checkpoint.RECOVERY_POINT: self.recovery_points,
            checkpoint.REPLICATION: self.high_watermarks or {},
        }
        return why_cut_short((partition.topic, partition.partition), end_offset, known)

    def why_start_gone(self, partition: PartitionListing) -> str | None:
        """Say that records are gone from its beginning; None if they are not, or may be."""
        return why_start_gone(partition, self.log_start_offsets)


class CheckpointOffsets(NamedTuple):
    """What the checkpoints of its log directory say of one log."""

    cleaner: int | None  # None: no entry
    log_start: int  # at least the base offset of the first segment (C-23.1)
    high_watermark: int | None  # not below the log start; None: taken to be the log end offset
    high_watermark_cause: str  # where it comes from, for people


def survey_log_dirs(
    paths: Iterable[str],
    files: Files = LOCAL,
    with_files: bool = True,
    is_own: Callable[[str], bool] = lambda _: True,
) -> list[LogDirSurvey]:
    """Look at each directory once, also if it is named twice; RefusedError if one is unreadable.

    with_files, is_own: see `list_log_dir`.
    """
    distinct: dict[str, str] = {}
    for path in paths:
        distinct.setdefault(LOCAL.resolve(path), path)
    return [survey_log_dir(path, files, with_files, is_own) for path in distinct.values()]


def survey_log_dir(
    path: str,
    files: Files = LOCAL,
    with_files: bool = True,
    is_own: Callable[[str], bool] = lambda _: True,
) -> LogDirSurvey:
    """List one log directory, and read its checkpoints."""
    try:
        listing = list_log_dir(path, files, with_files, is_own)
    except OSError as error:
        raise RefusedError(f"{path}: {error.strerror}", reason_code_of(error)) from error
    known: dict[str, Mapping[TopicPartition, int]] = {}
    try:
        # before it is read: if it goes meanwhile, nothing counts as replicated
        is_known = has_high_watermarks(path, files)
        written_ns = None if listing.has_clean_shutdown else _watermarks_written_ns(path, files)
        for name in (checkpoint.CLEANER_OFFSET, checkpoint.LOG_START, checkpoint.REPLICATION):
            known[name] = checkpoint.read(os.path.join(path, name), files)
    except (CorruptFileError, OSError) as error:
        return LogDirSurvey(
            listing=listing,
            cleaner_offsets={},
            log_start_offsets={},
            high_watermarks=None,
            problem=error_text(error),
            recorded_ends=recorded_ends(path, files, known),
        )
    points = _recovery_points(path, files)
    return LogDirSurvey(
        listing=listing,
        cleaner_offsets=known[checkpoint.CLEANER_OFFSET],
        log_start_offsets=known[checkpoint.LOG_START],
        high_watermarks=known[checkpoint.REPLICATION] if is_known else None,
        recorded_ends=ends_where_needed(listing, {**known, **points}, files),
        recovery_points=points.get(checkpoint.RECOVERY_POINT, {}),
        watermarks_written_ns=written_ns,
    )


def topics_in(log_dirs: Iterable[str], files: Files = LOCAL) -> tuple[set[str], set[str]]:
    """Return the topics with partitions in these directories, and those being moved to them.

    By the names in these directories alone.
    """
    listed = [files.list_names(path) for path in log_dirs]
    names = [name for directories, others in listed for name in (*directories, *others)]
    return _topics(parse_partition_dir, names), _topics(parse_future_dir, names)


def offsets_of(
    partition: PartitionListing, survey: LogDirSurvey, assume_fully_replicated: bool
) -> CheckpointOffsets:
    """Put together what the checkpoints say of a log that has segments."""
    key = partition.topic, partition.partition
    log_start = max(survey.log_start_offsets.get(key, 0), partition.segments[0].base_offset)
    high_watermark, cause = _high_watermark(partition, survey, assume_fully_replicated)
    if high_watermark is not None:
        high_watermark = max(high_watermark, log_start)
    return CheckpointOffsets(survey.cleaner_offsets.get(key), log_start, high_watermark, cause)


def conflicts(
    surveys: Sequence[LogDirSurvey], is_stray: Callable[[PartitionListing], bool]
) -> dict[TopicPartition, str]:
    """Give the partitions that stand in more than one log directory, and where.

    is_stray: whether a log is known to be of an earlier topic of its name: a broker renames it.
    """
    places: dict[TopicPartition, list[tuple[str, PartitionListing]]] = {}
    for survey in surveys:
        for found in survey.listing.partitions:
            places.setdefault((found.topic, found.partition), []).append((survey.path, found))
    known = {
        key: [path for path, found in logs if not is_stray(found)]
        for key, logs in places.items()
        if len(logs) > 1
    }
    return {
        key: f"is in {_and(paths)}: a broker would not start with both, unless their topic ids "
        "differ: then it renames one to -stray"
        for key, paths in known.items()
        if len(paths) > 1
    }


def moves(surveys: Sequence[LogDirSurvey]) -> dict[TopicPartition, str]:
    """Give the partitions that are being moved between log directories, and why they are left.

    Their copy so far (`-future`) may hold records that a cleaning would drop together with what
    hides them; a broker goes on copying after these, and then puts the copy in the log's place.
    So Kafka neither cleans such a log nor lets retention delete from it (C-3.3).
    """
    places: dict[TopicPartition, list[str]] = {}
    for survey in surveys:
        for key in survey.listing.moving_in:
            places.setdefault(key, []).append(survey.path)
    return {
        key: f"is being moved to {_and(paths)}: a record that is removed here could come back "
        "with the copy there (-future); it waits until a broker has finished or cancelled the move"
        for key, paths in places.items()
    }


def stray_entries(
    surveys: Sequence[LogDirSurvey],
) -> dict[TopicPartition, dict[str, int]]:
    """Give cleaner checkpoint entries for logs that stand in another log directory only (C-4.3).

    By partition, then by the directory that has the entry. Kafka puts all files together, and its
    cleaner thread ends where two of them name the same partition.
    """
    home = {
        (partition.topic, partition.partition): survey.path
        for survey in surveys
        for partition in survey.listing.partitions
    }
    found: dict[TopicPartition, dict[str, int]] = {}
    for survey in surveys:
        for key, offset in survey.cleaner_offsets.items():
            if home.get(key, survey.path) != survey.path:
                found.setdefault(key, {})[survey.path] = offset
    return found


def largest_timestamp_ms(partition: PartitionListing, segment: Segment) -> int:
    """Give the largest timestamp of an inactive segment as its time index says it (F-12.8).

    Without one it is the modification time of the log. Kafka has that in whole milliseconds. Where
    the `.index` is missing, a broker that starts makes a new time index, too (F-16.1).
    """
    if segment.index_bytes is None:
        log_path = os.path.join(partition.path, file_name(segment.base_offset, LOG))
        batches = segment_reader.read_batch_headers(log_path, files=partition.access)
        largest_ms = max((header.max_timestamp for _, header in batches), default=-1)
        return largest_ms if largest_ms >= 0 else segment.log_mtime_ns // 1_000_000
    last_ms = last_time_entry_ms(partition, segment)
    return last_ms if last_ms >= 0 else segment.log_mtime_ns // 1_000_000


def last_time_entry_ms(partition: PartitionListing, segment: Segment) -> int:
    """Give the time of the last entry in the time index of an inactive segment; -1: none."""
    entries = (segment.time_index_bytes or 0) // TIME_ENTRY.size
    if not entries:
        return -1
    path = f"{partition.path}/{file_name(segment.base_offset, TIME_INDEX)}"
    return time_at(path, entries - 1, partition.access)


def has_batch_from(partition: PartitionListing, segment: Segment, from_ms: int) -> bool:
    """Say whether a segment has a batch of that time or later, whatever its time index says.

    Raise CorruptFileError if the time index contradicts that batch (F-10.1): no index of an
    inactive segment ends before it, nor does an entry for an offset above it have an earlier time.
    """
    log_path = os.path.join(partition.path, file_name(segment.base_offset, LOG))
    batches = segment_reader.read_batch_headers(log_path, 0, segment.log_bytes, partition.access)
    found = next((header for _, header in batches if header.max_timestamp >= from_ms), None)
    if found is None or segment.time_index_bytes is None:
        return found is not None
    from storage.formats import time_index  # with arrays, which few plans need

    path = os.path.join(partition.path, file_name(segment.base_offset, TIME_INDEX))
    data = partition.access.read_bytes(path) if segment.time_index_bytes else b""
    whole = len(data) // TIME_ENTRY.size * TIME_ENTRY.size
    last = time_index.last(time_index.decode(data[:whole], path), segment.base_offset)
    is_active = segment.base_offset == partition.segments[-1].base_offset
    is_behind = last.timestamp_ms is None or last.offset < found.last_offset
    if is_active and is_behind:  # which gets entries later than batches
        return True
    if found.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:  # no entry can name it
        return True
    problem = (
        f"largest timestamp {-1 if last.timestamp_ms is None else last.timestamp_ms}, but its log "
        f"has a batch with timestamp {found.max_timestamp} that ends at offset {found.last_offset}"
    )
    raise CorruptFileError(path, max(0, whole - TIME_ENTRY.size), problem)


def first_batch_timestamp_ms(partition: PartitionListing, segment: Segment) -> int | None:
    """Give the largest timestamp in the first batch of a segment; None if it has none (F-12.8)."""
    log_path = os.path.join(partition.path, file_name(segment.base_offset, LOG))
    for _, header in segment_reader.read_batch_headers(log_path, files=partition.access):
        return header.max_timestamp if header.max_timestamp >= 0 else None
    return None


def has_high_watermarks(log_dir: str, files: Files = LOCAL) -> bool:
    return files.exists(os.path.join(log_dir, REPLICATION))


def require_high_watermarks(
    log_dirs: Iterable[str], assume_fully_replicated: bool, files: Files = LOCAL
) -> None:
    """Raise RefusedError where a run would have to take the end of a log, and nobody says so."""
    for path in () if assume_fully_replicated else log_dirs:
        if has_high_watermarks(path, files):
            continue
        directories, others = files.list_names(path)
        if any(map(partition_of, (*directories, *others))):
            raise RefusedError(
                f"{path}: no {REPLICATION}, where a broker notes how far each log is replicated. "
                "Records that are not replicated could be removed, or cause others to be removed",
                ReasonCode.REPLICATION_UNKNOWN,
                path=os.path.join(path, REPLICATION),
                remedy="If each log here is replicated to its end, say so with "
                "--assume-fully-replicated",
            )


def foreign_files(partitions: Iterable[PartitionListing]) -> tuple[str, ...]:
    """Each with the name of its partition before it."""
    return tuple(
        f"{partition.name}/{name}"
        for partition in partitions
        for name in partition.foreign
        if STAGED_MARKER not in name
    )


def foreign_notice(log_dir: str, names: Sequence[str]) -> str:
    """One sentence on them, without a full stop. names: of one file or more."""
    return (
        f"{log_dir}: {counted(len(names), 'file')} in partition directories "
        f"{'is' if len(names) == 1 else 'are'} not Kafka's "
        f"({first_few(names)}). No command changes such a file, and --output copies it"
    )


def _topics(parsed: Callable[[str], tuple[str, int] | None], names: Iterable[str]) -> set[str]:
    return {key[0] for key in map(parsed, names) if key is not None}


def _recovery_points(log_dir: str, files: Files) -> Checkpoints:
    """Nothing where they cannot be read: a broker's start says that."""
    with suppress(CorruptFileError, OSError):
        path = os.path.join(log_dir, checkpoint.RECOVERY_POINT)
        return {checkpoint.RECOVERY_POINT: checkpoint.read(path, files)}
    return {}


def _high_watermark(
    partition: PartitionListing, survey: LogDirSurvey, assume_fully_replicated: bool
) -> tuple[int | None, str]:
    key = partition.topic, partition.partition
    if assume_fully_replicated:
        return None, "taken to be the log end offset, as asked for"
    if survey.high_watermarks is None:
        return None, f"taken to be the log end offset: there is no {checkpoint.REPLICATION}"
    if key not in survey.high_watermarks:
        return 0, f"no entry in {checkpoint.REPLICATION}"
    if _is_younger(partition, survey.watermarks_written_ns):
        return 0, f"{checkpoint.REPLICATION} was written before this log was created"
    return survey.high_watermarks[key], checkpoint.REPLICATION


def _watermarks_written_ns(log_dir: str, files: Files) -> int | None:
    entry = files.look_up(os.path.join(log_dir, checkpoint.REPLICATION))
    return None if entry is None else entry.mtime_ns


def _is_younger(partition: PartitionListing, written_ns: int | None) -> bool:
    """Return whether the high watermarks were written before the log was created (F-13.7).

    A broker writes them every five seconds, and when it stops cleanly. One that was killed within
    these seconds after a topic was deleted and created again leaves the entry of the deleted log.
    """
    if written_ns is None:
        return False
    created = partition.access.look_up(os.path.join(partition.path, PARTITION_METADATA))
    return created is not None and written_ns < created.mtime_ns


def _and(paths: Sequence[str]) -> str:
    return " and ".join(paths)
