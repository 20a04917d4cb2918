"""`compactor verify LOG_DIR --against BEFORE`: the reader's proof of a whole log directory.

Partition by partition, on an engine or in this process; `partition_comparison` compares one. It
only reads, takes no lock, and uses nothing of what scans, resolves and rewrites: an error of those
cannot hide itself. Shared are the readers of `storage/` (names, checkpoints, snapshots, codecs) and
what carries the name of a partition to a process and its findings back.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from cleaner_jobs.messages import value_of
from compactor.errors import UsageError
from compactor.host.progress import AGAINST_STAGE, ProgressSink
from compactor.host.suggestions import did_you_mean
from compactor.jobs.mapping import MappedLog, MapSettings, as_plan, map_logs
from compactor.log_checks.findings import Finding, difference
from compactor.outcome.json_values import HIDDEN, written
from compactor.settings.rules import TaskOptions
from compactor.verification.evidence import CleaningClock, LogClock, Soundness
from compactor.verification.reader_bounds import (
    Checkpoints,
    check_checkpoints,
    damage,
    read_checkpoints,
)
from storage.errors import CorruptFileError
from storage.files.local import LOCAL
from storage.formats import checkpoint
from storage.log.log_dir import PartitionListing, list_log_dir

COMPARE = "compactor.verification.partition_comparison:compare_partition"  # it loads kernels
IN_THIS_PROCESS = MapSettings(TaskOptions(in_process=True), stage=AGAINST_STAGE)


@dataclass(frozen=True, slots=True)
class Compared:
    """What was compared of one partition that was cleaned."""

    name: str = field(metadata=written(name="partition"))
    log_start_offset: int
    log_start_before: int = field(metadata=written(name="log_start_offset_before"))
    keys: int
    records_before: int
    records_after: int
    soundness: Soundness
    log_start_shown_by: str = field(metadata=written(attribute="higher_start_shown_by"))
    gone: dict[str, int]
    disputed_batches: int = field(metadata=written(name="batches_of_disputed_transactions"))
    horizon_moments: int
    unreported_moments: int
    possible_removals: int
    appended_from: int | None  # what was appended since begins there
    is_cut_short: bool = field(metadata=written(name="checkpoint_missing"))
    log_end: int = field(metadata=HIDDEN)

    @property
    def higher_start_shown_by(self) -> str | None:
        """What shows that the log may start where it does; None: it starts where it did."""
        return self.log_start_shown_by if self.log_start_offset > self.log_start_before else None


class PartitionPair(NamedTuple):
    """A partition and its copy, as they travel to the task that compares them."""

    topic: str
    partition: int
    before: str  # the partition directory of the copy
    after: str
    checkpoints: tuple[dict[str, int | None], ...]  # by file name: of the copy, then of the log
    clock: LogClock
    has_clean_shutdown: bool  # of the copy


class PartitionComparison(NamedTuple):
    """What came of one partition."""

    is_linked: bool = False  # with files of its copy
    is_untouched: bool = False
    compared: Compared | None = None  # None: it is untouched, or damaged
    findings: tuple[Finding, ...] = ()


@dataclass(slots=True)
class Comparison:
    """A log directory compared with its copy from before."""

    before: str
    clock: CleaningClock
    untouched: int = 0
    linked: int = 0  # partitions that share files with their copy
    unmatched: tuple[str, ...] = ()  # partitions of which there is no copy
    partitions: list[Compared] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def take(self, one: PartitionComparison) -> None:
        """Add what came of one partition."""
        self.linked += one.is_linked
        self.untouched += one.is_untouched
        self.findings += one.findings
        if one.compared is not None:
            self.partitions.append(one.compared)

    def counts(self) -> dict[Soundness, int]:
        """How many partitions come to what; one that is untouched is whole."""
        found = dict.fromkeys(Soundness, 0) | {Soundness.WHOLE: self.untouched}
        for partition in self.partitions:
            found[partition.soundness] += 1
        return found


def verify_against(
    log_dir: str,
    before: str,
    only: str | None,
    clock: CleaningClock,
    progress: ProgressSink,
    settings: MapSettings = IN_THIS_PROCESS,
) -> Comparison:
    """Compare each partition that both have; with `only`, that one.

    settings: what runs the comparisons. Raise UsageError if `only` names none of the partitions.
    """
    was, now = list_log_dir(before, LOCAL), list_log_dir(log_dir, LOCAL)
    old = {p.name: p for p in was.partitions if only in (None, p.name)}
    new = {p.name: p for p in now.partitions if only in (None, p.name)}
    if only is not None and only not in old:
        hint = did_you_mean(only, [partition.name for partition in was.partitions])
        raise UsageError(f"there is no such partition in {before}{hint}", "topic_partition", only)
    unmatched = tuple(sorted(new.keys() - old.keys()))
    found = Comparison(before=before, clock=clock, unmatched=unmatched)
    for name in sorted(old.keys() - new.keys()):
        found.findings.append(difference(os.path.join(log_dir, name), 0, "the partition is gone"))
    try:
        checkpoints = read_checkpoints(before), read_checkpoints(log_dir)
        if only is None:
            truncated = clock.evidence.truncated_to
            found.findings += check_checkpoints(*checkpoints, now, truncated)
    except (CorruptFileError, OSError) as error:
        found.findings.append(damage(error, log_dir))
        return found
    pairs = _pairs(old, new, checkpoints, clock, was.has_clean_shutdown)
    for result in map_logs(COMPARE, pairs, settings, progress):
        found.take(value_of(PartitionComparison, result))
    return found


def _pairs(
    old: Mapping[str, PartitionListing],
    new: Mapping[str, PartitionListing],
    checkpoints: tuple[Checkpoints, Checkpoints],
    clock: CleaningClock,
    has_clean_shutdown: bool,
) -> list[MappedLog]:
    """Return what is to be compared, by the names of the partitions."""
    wanted = []
    for name in sorted(old.keys() & new.keys()):
        was, now = old[name], new[name]
        key = now.topic, now.partition
        pair = PartitionPair(
            topic=now.topic,
            partition=now.partition,
            before=was.path,
            after=now.path,
            checkpoints=tuple(_entries(of_side, key) for of_side in checkpoints),
            clock=clock.of(*key),
            has_clean_shutdown=has_clean_shutdown,
        )
        logs = (as_plan(was), as_plan(now))
        wanted.append(MappedLog(pair, logs, _bytes_to_read(was, now), 1))
    return wanted


def _entries(checkpoints: Checkpoints, key: checkpoint.TopicPartition) -> dict[str, int | None]:
    return {name: entries.get(key) for name, entries in checkpoints.items()}


def _bytes_to_read(before: PartitionListing, after: PartitionListing) -> int:
    """Return how much of a partition is compared: nothing where all segments are the same files."""
    sides = before.segments, after.segments
    files = [{(each.log_device, each.log_inode) for each in segments} for segments in sides]
    if files[0] == files[1]:
        return 0
    return sum(each.log_bytes for segments in sides for each in segments)
