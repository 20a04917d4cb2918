"""Say what retention has to know of one log, and what it would delete as the files are now.

No record is read: sizes are from the listing, times from the last entry of each time index, and of
the active segment, whose index may be filled up with zeros, from the whole of it. No checksum
covers a time index: before a segment goes by its time, the headers of its batches must agree.
Source: Kafka, LogSegment.largestTimestamp, LogConfig; spec C-18, F-12.8, F-16.1.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from compactor.log_dirs.survey import CheckpointOffsets, has_batch_from, largest_timestamp_ms
from compactor.outcome.round_report import LogKey, RetentionReport, SegmentCounts
from compactor.settings.topic_config import TopicConfig
from storage.file_names import TIME_INDEX, Segment, file_name
from storage.formats import leader_epoch_checkpoint
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT, EpochEntry
from storage.log.log_dir import PartitionListing, log_end_offset
from storage.log.retention import Deletion, RetentionLimits, RetentionRule, decide


@dataclass(frozen=True, slots=True)
class LogRetention:
    """A log that retention has something to say of, in this round or after its cleaning."""

    log_dir: str
    topic: str
    partition: int
    path: str
    limits: RetentionLimits
    producer_id_expiration_ms: int
    estimate: Deletion  # of the segments as they were when the round was planned

    @property
    def key(self) -> LogKey:
        return self.log_dir, self.topic, self.partition


class MergedSegments(NamedTuple):
    """What a cleaning would leave of adjacent segments: one, named after the first."""

    base_offsets: tuple[int, ...]  # of the segments
    log_bytes: int  # of what comes in their place


def limits_of(config: TopicConfig, offsets: CheckpointOffsets, now_ms: int) -> RetentionLimits:
    """Give the limits of a compacted topic: of time and size only if its policy has delete too."""
    by_time = config.has_retention and config.retention_ms >= 0
    by_size = config.has_retention and config.retention_bytes >= 0
    return RetentionLimits(
        offsets.log_start,
        offsets.high_watermark,
        now_ms,
        config.retention_ms if by_time else None,
        config.retention_bytes if by_size else None,
    )


def deletion_of(log: PartitionListing, limits: RetentionLimits) -> Deletion:
    """Check the segments of a log against its limits.

    Raise CorruptFileError where the answer depends on a log's end that is damaged, or on a time
    index that its log contradicts.
    """
    return decide(
        log.segments,
        limits,
        lambda: log_end_offset(log),
        lambda segment: _checked_timestamp_ms(log, segment, limits),
    )


def deletion_after(
    log: PartitionListing, limits: RetentionLimits, groups: Sequence[MergedSegments]
) -> Deletion:
    """Check the segments of a log as if segment groups of it had been cleaned.

    A record that would go may have been the youngest of its group: the time rule cannot know.
    """
    found = {segment.base_offset: segment for segment in log.segments}
    sources = {base: [segment] for base, segment in found.items()}
    for group in groups:
        first, *others = group.base_offsets
        last = found[group.base_offsets[-1]]
        found[first] = last._replace(base_offset=first, log_bytes=group.log_bytes)
        for base in others:
            sources[first] += sources.pop(base)
    return decide(
        [found[base] for base in sources],
        limits,
        lambda: log_end_offset(log),
        lambda segment: max(
            _checked_timestamp_ms(log, source, limits) for source in sources[segment.base_offset]
        ),
    )


def retention_report(deletion: Deletion) -> RetentionReport:
    """Count what goes by each rule."""
    if not deletion.by_rule:
        return RetentionReport()
    counts = {rule.value: _counts(deletion.by_rule.get(rule, ())) for rule in RetentionRule}
    return RetentionReport(**counts, log_start_offset=deletion.log_start_offset)


def check_leader_epochs(log: PartitionListing) -> Sequence[EpochEntry]:
    """Give the leader epochs of a log; CorruptFileError if they are damaged."""
    path = os.path.join(log.path, LEADER_EPOCH_CHECKPOINT)
    entries = leader_epoch_checkpoint.read(path, log.access)
    leader_epoch_checkpoint.check(entries, path)
    return entries


def _checked_timestamp_ms(log: PartitionListing, segment: Segment, limits: RetentionLimits) -> int:
    """Give the largest timestamp; of a segment that the time rule deletes, its batches agree."""
    assert limits.retention_ms is not None
    oldest_ms = limits.now_ms - limits.retention_ms
    largest_ms = _largest_timestamp_ms(log, segment)
    if largest_ms >= oldest_ms or not has_batch_from(log, segment, oldest_ms):
        return largest_ms
    return oldest_ms  # or later


def _largest_timestamp_ms(log: PartitionListing, segment: Segment) -> int:
    """F-12.8, with what a broker makes of the files when it starts (F-16.1)."""
    is_active = segment.base_offset == log.segments[-1].base_offset
    if segment.index_bytes is None or not (is_active and segment.time_index_bytes):
        return largest_timestamp_ms(log, segment)
    largest_ms = _last_used_entry_ms(log, segment)
    return largest_ms if largest_ms >= 0 else segment.log_mtime_ns // 1_000_000


def _last_used_entry_ms(log: PartitionListing, segment: Segment) -> int:
    from storage.formats import time_index  # with arrays, which few plans need

    path = os.path.join(log.path, file_name(segment.base_offset, TIME_INDEX))
    data = log.access.read_bytes(path)
    whole = len(data) // time_index.ENTRY.itemsize * time_index.ENTRY.itemsize
    last = time_index.last(time_index.decode(data[:whole], path), segment.base_offset)
    return -1 if last.timestamp_ms is None else last.timestamp_ms


def _counts(segments: Sequence[Segment]) -> SegmentCounts:
    return SegmentCounts(len(segments), sum(segment.log_bytes for segment in segments))
