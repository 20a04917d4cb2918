"""Select what of a log can be cleaned, whether that is enough, and which log comes first. Pure.

Segments, offsets and times in, values out. Source: Kafka, LogCleanerManager.cleanableOffsets,
maxCompactionDelay, grabFilthiestCompactedLog, LogToClean; spec C-2, C-4, C-5.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from compactor.host.printable import duration_text
from storage.file_names import Segment


class DirtyFrom(StrEnum):
    """What set the first dirty offset (C-4.1)."""

    CHECKPOINT = "cleaner checkpoint"
    LOG_START = "log start offset, as there is no cleaner checkpoint"
    CHECKPOINT_BELOW_START = "log start offset, as the cleaner checkpoint is below it"
    CHECKPOINT_PAST_END = "log start offset, as the cleaner checkpoint is past the log's end"


class FirstDirty(NamedTuple):
    """Where the last cleaning stopped, and how that is known."""

    offset: int
    set_by: DirtyFrom

    @property
    def rewrites_checkpoint(self) -> bool:
        """Say whether the checkpoint is impossible, and to be set to this offset (C-4.2)."""
        return self.set_by in (DirtyFrom.CHECKPOINT_BELOW_START, DirtyFrom.CHECKPOINT_PAST_END)


class BoundName(StrEnum):
    """What can keep a cleaning from going further (C-4.4)."""

    HIGH_WATERMARK = "high watermark"
    OPEN_TRANSACTION = "open transaction"
    ACTIVE_SEGMENT = "active segment"
    MIN_COMPACTION_LAG = "min.compaction.lag.ms"
    SAVED_PLAN = "saved plan"  # not Kafka's: how far a reviewed plan goes


class Bound(NamedTuple):
    """No record at this offset or past it is cleaned, and what says so."""

    name: BoundName
    offset: int
    cause: str = ""  # what set it there, for people


class CleanableRange(NamedTuple):
    """The dirty range that a round would clean, and the sizes that it is chosen by (C-5.2)."""

    first_dirty_offset: int
    first_uncleanable_offset: int  # exclusive; base offset of the segment where the bound is met
    clean_bytes: int
    cleanable_bytes: int

    @property
    def total_bytes(self) -> int:
        return self.clean_bytes + self.cleanable_bytes

    @property
    def ratio(self) -> float:
        return self.cleanable_bytes / self.total_bytes if self.total_bytes else 0.0

    def is_eligible(self, min_cleanable_dirty_ratio: float, compaction_delay_ms: int) -> bool:
        """Say whether the log is to be cleaned (C-5.3, C-5.5)."""
        cleanable_bytes = self.cleanable_bytes
        total_bytes = self.clean_bytes + cleanable_bytes
        if not total_bytes:
            return False
        is_due = compaction_delay_ms > 0 and cleanable_bytes > 0
        return is_due or cleanable_bytes / total_bytes > min_cleanable_dirty_ratio


def first_dirty(checkpoint: int | None, log_start_offset: int, log_end_offset: int) -> FirstDirty:
    """Give the offset below which all has been through a cleaning (C-4.1)."""
    if checkpoint is None:
        return FirstDirty(log_start_offset, DirtyFrom.LOG_START)
    if checkpoint < log_start_offset:
        return FirstDirty(log_start_offset, DirtyFrom.CHECKPOINT_BELOW_START)
    if checkpoint > log_end_offset:
        return FirstDirty(log_start_offset, DirtyFrom.CHECKPOINT_PAST_END)
    return FirstDirty(checkpoint, DirtyFrom.CHECKPOINT)


def last_stable_bound(high_watermark: int, first_unstable_offset: int | None) -> Bound:
    """Give the last stable offset, and which of the two it is (C-4.5)."""
    if first_unstable_offset is not None and first_unstable_offset < high_watermark:
        return Bound(BoundName.OPEN_TRANSACTION, first_unstable_offset)
    return Bound(BoundName.HIGH_WATERMARK, high_watermark)


def min_lag_bound(
    segments: Sequence[Segment],
    first_dirty_offset: int,
    largest_timestamp_ms: Callable[[Segment], int],
    youngest_cleanable_ms: int,
) -> Bound | None:
    """Give the first dirty segment with a record that is too young; None without one (C-4.4).

    youngest_cleanable_ms: now - min.compaction.lag.ms; a record of that very time is old enough.
    Segments after the first one are not asked for their timestamp.
    """
    for segment in inactive_from(segments, first_dirty_offset):
        too_young_ms = largest_timestamp_ms(segment) - youngest_cleanable_ms
        if too_young_ms > 0:
            cause = f"the youngest record is {duration_text(too_young_ms)} too young"
            return Bound(BoundName.MIN_COMPACTION_LAG, segment.base_offset, cause)
    return None


def compaction_delay_ms(
    first_batch_timestamps_ms: Iterable[int | None], oldest_allowed_ms: int
) -> int:
    """Give by how much the oldest dirty segment is overdue; 0: it is not (C-4.7).

    oldest_allowed_ms: now - max.compaction.lag.ms. None stands for a segment without timestamps.
    """
    known = [time for time in first_batch_timestamps_ms if time is not None and time > 0]
    return max(oldest_allowed_ms - min(known), 0) if known else 0


def cleanable_range(
    segments: Sequence[Segment], first_dirty_offset: int, bounds: Iterable[Bound]
) -> CleanableRange:
    """Round the least bound down to a segment, and weigh what is before it (C-4.4, C-5.2).

    segments: all of the log, by rising base offset, at least one; the last is the active one. A
    segment that holds the first dirty offset counts as clean and as cleanable, as it does in Kafka.
    """
    uncleanable = max(first_dirty_offset, min([bound.offset for bound in bounds]))
    behind = inactive_from(segments, uncleanable) or segments[-1:]
    first_uncleanable = behind[0].base_offset
    clean = segments[: bisect_left(segments, first_dirty_offset, key=_base_offset)]
    start = min(first_dirty_offset, first_uncleanable)
    return CleanableRange(
        first_dirty_offset,
        first_uncleanable,
        _log_bytes(clean),
        _log_bytes(between(segments, start, first_uncleanable)),
    )


def between(segments: Sequence[Segment], start: int, end: int) -> Sequence[Segment]:
    """Give the segments from the one that holds offset start to the last below end (C-2.1)."""
    assert start <= end, (start, end)
    if start == end:
        return ()
    first = max(bisect_right(segments, start, key=_base_offset) - 1, 0)
    return segments[first : bisect_left(segments, end, key=_base_offset)]


def inactive_from(segments: Sequence[Segment], offset: int) -> Sequence[Segment]:
    """Give the segments from the one that holds offset on, without the active one (C-2.2)."""
    active = segments[-1].base_offset
    return between(segments, min(offset, active), active)


def dirtiest_first(cleanable: CleanableRange, topic: str, partition: int) -> tuple[float, str, int]:
    """Give the key to sort eligible logs by (C-5.6).

    Where Kafka takes whichever of two equals it happens to meet first, the name decides.
    """
    return -cleanable.ratio, topic, partition


def legacy_horizon_ms(
    segments: Sequence[Segment], first_dirty_offset: int, delete_retention_ms: int
) -> int:
    """Give the latest time of a segment whose legacy tombstones may go (C-6.1).

    0 where nothing was cleaned yet. segments: of the log, by rising base offset.
    """
    clean = [segment for segment in segments if segment.base_offset < first_dirty_offset]
    return clean[-1].log_mtime_ns // 1_000_000 - delete_retention_ms if clean else 0


def _base_offset(segment: Segment) -> int:
    return segment.base_offset


def _log_bytes(segments: Iterable[Segment]) -> int:
    return sum([segment.log_bytes for segment in segments])
