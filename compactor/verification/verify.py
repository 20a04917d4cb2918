"""`compactor verify`: is everything in a log directory as a broker, and its readers, rely on?

Every checksum, the order of offsets, those that are missing, that records decode, indexes against
their logs, producer snapshots, checkpoints and metadata files. Reads only, and beside a live broker
too: files that vanish meanwhile are left out. What Kafka mends by itself when it starts is a
finding as well, and says so.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from compactor.broker_start.reading import Depth, Look, problems_at_start
from compactor.errors import ConfigError, UsageError
from compactor.host.clock import now_ms
from compactor.host.printable import counted
from compactor.host.progress import VERIFY_STAGE, ProgressSink
from compactor.host.suggestions import did_you_mean
from compactor.log_checks.findings import Finding, finding_of
from compactor.log_checks.gap_checks import check_gaps, gap_after
from compactor.log_checks.missing_offsets import Gap, first_dirty_offsets
from compactor.log_checks.segment_checks import check_segment
from compactor.log_dirs.brokers import brokers_of
from compactor.log_dirs.directory_state import NO_BROKER, UNFINISHED
from compactor.log_dirs.missing_directories import Gone, entries_in, gone_from, logs_of_replaced
from compactor.log_dirs.missing_logs import RecordedEnds, may_be_log, recorded_ends
from compactor.log_dirs.survey import foreign_files, foreign_notice
from compactor.outcome.row_tables import arrow_table, html_table, pandas_frame, row_of
from compactor.outcome.start_problems import StartOutcome, StartProblem
from compactor.reason_codes import ReasonCode, reason_code_of
from compactor.settings.cluster_settings import MetadataSource, read_cluster_settings
from compactor.verification.rebuilt_at_start import mended_at_start
from storage.errors import CorruptFileError, shown
from storage.file_names import CLEANED, LOG, SNAPSHOT, SWAP, file_name, is_special_dir, offset_of
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats import (
    checkpoint,
    leader_epoch_checkpoint,
    meta_properties,
    partition_metadata,
    producer_snapshot,
)
from storage.formats.copy_marks import why_not_to_change
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.partition_metadata import PARTITION_METADATA
from storage.log.cluster_metadata import METADATA_DIR
from storage.log.log_dir import LogDirListing, PartitionListing, list_log_dir, why_unloadable

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

# a broker's, without logs for us; and what keeps a broker away from a copy
_OTHER_DIRS = (METADATA_DIR, "remote-log-index-cache", NO_BROKER, UNFINISHED)
_OF_COPIES = (ReasonCode.COPY_TO_KEEP, ReasonCode.OUTPUT_IN_USE)


@dataclass(slots=True)
class Verification:
    """What was checked, and the findings."""

    partitions: int = 0
    segments: int = 0
    batches: int = 0
    records: int = 0
    log_bytes: int = 0
    findings: list[Finding] = field(default_factory=list)
    notices: tuple[str, ...] = ()  # for people to judge
    start_problems: list[StartProblem] = field(default_factory=list)  # each is a finding, too
    rebuilt: set[str] = field(default_factory=set)  # indexes with findings that a start mends
    to_remove: set[str] = field(default_factory=set)  # indexes without which a start mends all
    # by the segment before: `.log.deleted` files that have all that is missing after it
    to_rename: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def checkpoints(self) -> list[str]:
        """Checkpoints with findings that a broker's start does not mind: it rewrites them."""
        known = {problem.path for problem in self.start_problems}
        paths = {finding.path for finding in self.findings} - known
        return sorted(path for path in paths if os.path.basename(path) in CHECKPOINTS)

    @property
    def other_findings(self) -> list[Finding]:
        """What is wrong that a broker's start does not mind at first, nor mends."""
        known = {problem.path for problem in self.start_problems}
        known |= {*self.checkpoints, *self.to_rename}
        mended = {os.path.splitext(path)[0] for path in self.to_remove}
        return [
            finding
            for finding in self.findings
            if finding.path not in known
            and not (finding.path in self.rebuilt and finding.reason_code is ReasonCode.DAMAGED)
            and os.path.splitext(finding.path)[0] not in mended
        ]

    def to_arrow(self) -> "pa.Table":
        """A row for each finding."""
        return arrow_table(map(row_of, self.findings))

    def to_pandas(self) -> "pd.DataFrame":
        """Return a pandas frame with a row for each finding. ImportError without pandas."""
        return pandas_frame(map(row_of, self.findings))

    def _repr_html_(self) -> str:
        title = f"{counted(self.partitions, 'partition')}, {counted(len(self.findings), 'finding')}"
        return html_table(title, [row_of(finding) for finding in self.findings])


@dataclass(slots=True)
class _Offsets:
    """The offsets of one log."""

    end: int | None = None  # None: it is not known
    gaps: list[Gap] = field(default_factory=list)  # between segments
    last_missing: int = -1  # inside of segments


class _Looked(NamedTuple):
    """What of one log directory is looked at."""

    listing: LogDirListing
    partitions: list[PartitionListing]
    missing: list[Finding]  # logs, or their segments
    notices: tuple[str, ...]
    of_partitions: tuple[str, ...]  # notices of those that are looked at


def verify(log_dirs: Sequence[str], only: Collection[str], progress: ProgressSink) -> Verification:
    """Check log directories, or the partitions in them that `only` names (TOPIC-PARTITION).

    Raise UsageError if none of them has such a partition.
    """
    looked = [_looked(log_dir, log_dirs, only) for log_dir in log_dirs]
    _require_partitions(only, looked)
    found = Verification()
    progress.stage(VERIFY_STAGE, sum(len(p.segments) for each in looked for p in each.partitions))
    for each in looked:
        found.findings += each.missing
        _verify_log_dir(each, bool(only), found, progress)
        found.notices += each.of_partitions if only else each.of_partitions + each.notices
    _check_start(found, log_dirs, only)
    for text in () if only else chain.from_iterable(map(_of_metadata_log, log_dirs)):
        if not any(text in finding.problem for finding in found.findings):
            found.notices += (text,)
    return found


def _looked(log_dir: str, log_dirs: Sequence[str], only: Collection[str]) -> _Looked:
    listing = list_log_dir(log_dir, LOCAL)
    partitions = [p for p in listing.partitions if not only or p.name in only]
    ends = recorded_ends(log_dir, LOCAL)
    others = [path for path in log_dirs if path != log_dir]
    own = entries_in(log_dir, LOCAL, ends)
    gone = gone_from(own, others, LOCAL).with_logs(logs_of_replaced(own, others, LOCAL))
    missing = list(_check_missing(partitions, gone, ends, only))
    where = f"{log_dir}: " if len(log_dirs) > 1 else ""
    notices = tuple(f"{where}{text}" for text in gone.notices)
    foreign = foreign_files(partitions)
    of_partitions = (foreign_notice(log_dir, foreign),) if foreign else ()
    return _Looked(listing, partitions, missing, notices, of_partitions)


def _of_metadata_log(log_dir: str) -> tuple[str, ...]:
    """Say what is wrong with the metadata log in a log directory, and how far it can be read."""
    path = os.path.join(log_dir, METADATA_DIR)
    if not LOCAL.exists(path):
        return ()
    try:
        cluster = read_cluster_settings([log_dir], MetadataSource(path), LOCAL, now_ms())
    except (ConfigError, CorruptFileError) as error:
        return (str(error),)
    return () if cluster is None else cluster.metadata_problems


def _require_partitions(only: Collection[str], looked: Sequence[_Looked]) -> None:
    """Raise UsageError where a named partition is neither in a directory nor known to be gone."""
    known = {p.name for each in looked for p in each.partitions}
    known |= {os.path.basename(gone.path) for each in looked for gone in each.missing}
    for name in only:
        if name not in known:
            names = [p.name for each in looked for p in each.listing.partitions]
            where = " and ".join(each.listing.path for each in looked)
            problem = f"there is no such partition in {where}{did_you_mean(name, names)}"
            raise UsageError(problem, "partitions", name)


def _verify_log_dir(
    looked: _Looked, only_some: bool, verification: Verification, progress: ProgressSink
) -> None:
    listing = looked.listing
    first_dirty_of = _first_dirty_offsets(listing.path)
    end_offsets = {}
    before = len(verification.findings)
    for partition in looked.partitions:
        offsets = _verify_partition(partition, verification, progress)
        is_to_grow = any(name.endswith(LOG + SWAP) for name in partition.unfinished)
        if offsets.end is not None and not is_to_grow:  # or a broker puts more segments in place
            end_offsets[partition.topic, partition.partition] = offsets.end
            first_dirty_offset = first_dirty_of(partition, offsets.end)
            if first_dirty_offset is not None and offsets.last_missing < first_dirty_offset:
                _check_gaps(verification, partition, offsets.gaps, first_dirty_offset)
    own = mended_at_start(listing.path, looked.partitions, verification.findings[before:], LOCAL)
    verification.findings[before:] = own.findings
    verification.rebuilt |= own.rebuilt
    verification.to_remove |= own.to_remove
    if not only_some:
        verification.findings += _check_log_dir(listing)
    verification.findings += check_checkpoints(
        listing.path, end_offsets, others_too=not only_some, files=LOCAL
    )


def _first_dirty_offsets(log_dir: str) -> Callable[[PartitionListing, int], int | None]:
    """Give where the dirty range of a log begins; nothing where a checkpoint is a finding."""
    try:
        return first_dirty_offsets(log_dir, LOCAL)
    except (CorruptFileError, OSError):
        return lambda *_: None


def _check_start(
    verification: Verification, log_dirs: Sequence[str], only: Collection[str]
) -> None:
    """Add what a broker's start would not do well with, and say what mends it.

    What keeps brokers away from a finished copy is as it should be, and a notice.
    """
    below = [os.path.join(path, name, "") for path in log_dirs for name in only or ("",)]
    for problem in _problems_at_start(verification, log_dirs):
        is_of_copy = problem.reason_code in _OF_COPIES
        if is_of_copy and _is_kept_away(problem):
            verification.notices += (f"{problem.path}: {problem.problem}",)
        elif is_of_copy or (
            problem.forbids_start and os.path.join(problem.path, "").startswith(tuple(below))
        ):
            verification.start_problems.append(problem)
    known = {finding.path: at for at, finding in enumerate(verification.findings)}
    for problem in verification.start_problems:
        command = f" {problem.command}" if problem.command else ""
        start = f"{problem.consequence}. {problem.repair}{command}"
        at = known.get(problem.path)
        if at is None:
            text = f"{problem.problem}; {start}"
            verification.findings.append(Finding(problem.path, 0, text, problem.reason_code))
        else:
            finding = verification.findings[at]
            verification.findings[at] = finding._replace(problem=f"{finding.problem}; {start}")


def _problems_at_start(
    verification: Verification, log_dirs: Sequence[str]
) -> Iterator[StartProblem]:
    """Return the problems of each broker's start; what cannot be read is a finding."""
    look = Look(LOCAL, Depth.LOADING, now_ms())
    for broker in brokers_of(log_dirs, LOCAL):
        try:
            others = [path for path in log_dirs if path not in broker]
            yield from problems_at_start(broker, look, others)
        except (CorruptFileError, OSError) as error:
            unread = finding_of(error, broker[0])
            if not any(finding.path == unread.path for finding in verification.findings):
                verification.findings.append(unread)
            marks = (why_not_to_change(path, LOCAL) for path in broker)
            for mark in filter(None, marks):
                verification.findings.append(
                    Finding(mark.path, 0, mark.problem, reason_code_of(mark))
                )


def _is_kept_away(problem: StartProblem) -> bool:
    is_finished = problem.reason_code is ReasonCode.COPY_TO_KEEP
    return is_finished and problem.outcome is StartOutcome.BROKER_ENDS


def _check_missing(
    partitions: Sequence[PartitionListing],
    gone: Gone,
    ends: RecordedEnds,
    only: Collection[str],
) -> Iterator[Finding]:
    for log in gone.logs:
        name = f"{log.topic}-{log.partition}"
        if not only or name in only:
            path = os.path.join(log.log_dir, name)
            yield Finding(path, 0, log.problem, ReasonCode.LOG_MISSING)
    if gone.unsaid is not None and not only:
        yield Finding(gone.manifest, 0, gone.unsaid, ReasonCode.COPY_TO_KEEP)
    for partition in partitions:
        missing = ends.why_missing(partition)
        if missing is not None:
            yield Finding(partition.path, 0, missing.text, missing.code)


def _verify_partition(
    partition: PartitionListing, verification: Verification, progress: ProgressSink
) -> _Offsets:
    """Check one partition; return its offsets, as far as they are known."""
    verification.partitions += 1
    verification.findings += _check_names(partition)
    if partition.special:  # what stands where its files should be is not opened
        return _Offsets()
    verification.findings += _check_metadata_files(partition)
    bases = [segment.base_offset for segment in partition.segments]
    offsets = _Offsets()
    for segment, next_base in zip(partition.segments, [*bases[1:], None], strict=False):
        try:
            findings, columns = check_segment(partition.path, segment, next_base, partition.access)
        except FileNotFoundError:  # deleted meanwhile: it is no longer part of the log
            continue
        except OSError as error:
            verification.findings.append(finding_of(error, partition.path))
            offsets.end = None
            continue
        verification.findings += findings
        verification.segments += 1
        verification.batches += len(columns.positions)
        verification.records += columns.records
        verification.log_bytes += columns.log_bytes
        if columns.end_position >= segment.log_bytes:
            empty = not len(columns.last_offsets)
            offsets.end = segment.base_offset if empty else int(columns.last_offsets[-1]) + 1
        else:
            offsets.end = None
        path = os.path.join(partition.path, file_name(segment.base_offset, LOG))
        gap = None if findings else gap_after(path, segment, columns, next_base)
        offsets.gaps += [] if gap is None else [gap]
        offsets.last_missing = max(offsets.last_missing, columns.last_missing_offset)
        progress.advance(verification.segments)
    verification.findings += _check_snapshots(partition)
    return offsets


def _check_gaps(
    verification: Verification,
    partition: PartitionListing,
    gaps: list[Gap],
    first_dirty_offset: int,
) -> None:
    try:
        for missing in check_gaps(partition, gaps, first_dirty_offset):
            verification.findings.append(missing.finding)
            if missing.filling:
                verification.to_rename[missing.finding.path] = missing.filling
    except FileNotFoundError:  # deleted meanwhile
        return
    except OSError as error:
        verification.findings.append(finding_of(error, partition.path))


def _check_names(partition: PartitionListing) -> Iterator[Finding]:
    for entry in partition.special:
        name, _, problem = entry.rpartition(": ")
        yield Finding(os.path.join(partition.path, name), 0, problem, ReasonCode.FOREIGN_FILE)
    for name in partition.stray:
        problem = why_unloadable(name)
        if offset_of(name) is None:
            problem = "a broker fails to load the partition: no offset in the name"
        yield Finding(os.path.join(partition.path, name), 0, problem, ReasonCode.FOREIGN_FILE)
    for name in partition.unfinished:
        if name.endswith((CLEANED, SWAP)):
            problem = "a cleaning was cut short here; a broker finishes or undoes it when it starts"
            yield Finding(os.path.join(partition.path, name), 0, problem, ReasonCode.CUT_SHORT)


def _check_metadata_files(partition: PartitionListing) -> Iterator[Finding]:
    files = partition.access
    epochs = os.path.join(partition.path, LEADER_EPOCH_CHECKPOINT)
    yield from _corrupt(
        lambda: leader_epoch_checkpoint.check(leader_epoch_checkpoint.read(epochs, files), epochs)
    )
    metadata = os.path.join(partition.path, PARTITION_METADATA)
    if files.exists(metadata):
        yield from _corrupt(lambda: partition_metadata.read(metadata, files))


def _check_snapshots(partition: PartitionListing) -> Iterator[Finding]:
    for offset in partition.snapshot_offsets:
        path = os.path.join(partition.path, file_name(offset, SNAPSHOT))
        yield from _corrupt(lambda: _check_snapshot(path, offset, partition.access))  # noqa: B023 - called at once


def _check_snapshot(path: str, offset: int, files: Files) -> None:
    for at, entry in enumerate(producer_snapshot.read(path, files)):
        if entry.last_offset is not None and entry.last_offset >= offset:
            problem = f"producer {entry.producer_id} has last offset {entry.last_offset}"
            position = producer_snapshot.HEADER.size + at * producer_snapshot.ENTRY.size
            raise CorruptFileError(path, position, f"{problem}, expected below {offset}")


def _check_log_dir(listing: LogDirListing) -> Iterator[Finding]:
    for name, reason in listing.ignored:
        if not is_special_dir(name) and name not in _OTHER_DIRS:
            yield Finding(os.path.join(listing.path, name), 0, reason, ReasonCode.FOREIGN_FILE)
    if listing.has_meta_properties:
        yield from _corrupt(lambda: meta_properties.read(listing.path, LOCAL))


def _corrupt(read: Callable[[], object]) -> Iterable[Finding]:
    """What read finds wrong with its file; nothing if the file is sound, or gone."""
    try:
        read()
    except FileNotFoundError:
        return []
    except (CorruptFileError, OSError) as error:
        return [finding_of(error)]
    return []


class _Consequence(NamedTuple):
    """What follows of an entry of a checkpoint that no log can have."""

    past_end: str
    negative: str


CHECKPOINTS = {
    checkpoint.CLEANER_OFFSET: _Consequence(
        "the next cleaning starts again from the log start offset",
        "the next cleaning starts again from the log start offset",
    ),
    checkpoint.RECOVERY_POINT: _Consequence(
        "a broker would not check the end of the log",
        "a broker checks the whole log after an unclean shutdown",
    ),
    checkpoint.REPLICATION: _Consequence(
        "a broker would cut the high watermark to the log end offset",
        "a broker would raise the high watermark to the log start offset",
    ),
    checkpoint.LOG_START: _Consequence(
        "a broker that starts here deletes every segment",
        "a broker goes by the first segment",
    ),
}


def check_checkpoints(
    log_dir: str, end_offsets: dict[tuple[str, int], int], others_too: bool, files: Files
) -> Iterator[Finding]:
    """Each parses, names only logs that can be, and no offset is past the end of its log."""
    for name, consequence in CHECKPOINTS.items():
        path = os.path.join(log_dir, name)
        try:
            entries = checkpoint.read(path, files)
        except (CorruptFileError, OSError) as error:
            if others_too:
                yield finding_of(error, path)
            continue
        for (topic, partition), offset in entries.items():
            if not may_be_log((topic, partition)):
                if others_too:
                    named = shown(f"{topic}-{partition}")
                    yield Finding(path, 0, f"no log can have the name {named}")
                continue
            end_offset = end_offsets.get((topic, partition))
            if offset < 0 or (end_offset is not None and offset > end_offset):
                problem = f"{topic}-{partition} has offset {offset}, its log ends at {end_offset}"
                follows = consequence.negative if offset < 0 else consequence.past_end
                yield Finding(path, 0, f"{problem}: {follows}")
