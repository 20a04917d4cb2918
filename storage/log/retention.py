"""Which old segments of a compacted log retention deletes: pure.

After a cleaning Kafka's cleaner lets retention pass over every log whose policy contains compact:
by log start offset, and where the policy contains delete too, by size and then by time. Each rule
walks the segments that the one before it left, from the oldest on, to the first that stays.
Source: Kafka, UnifiedLog.deleteOldSegments, deletableSegments; spec C-3.2, C-18.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from storage.formats.segment import Segment


class Rule(StrEnum):
    """Why a segment is deleted, in the order in which the rules are applied (C-18.1)."""

    LOG_START = "log_start"  # all of it is below the log start offset
    SIZE = "size"  # without it the log is still as large as retention.bytes
    TIME = "time"  # its youngest record is older than retention.ms


class RetentionLimits(NamedTuple):
    """What the rules check a log against."""

    log_start_offset: int
    high_watermark: int | None  # None: the log end offset
    now_ms: int  # of the time rule (C-18.5)
    retention_ms: int | None = None  # None: no time rule
    retention_bytes: int | None = None  # None: no size rule


class Deletion(NamedTuple):
    """The segments that go, and where the log starts without them."""

    by_rule: Mapping[Rule, tuple[Segment, ...]] = {}
    log_start_offset: int = 0
    rolls_at: int | None = None  # all go: base offset of the new active segment (C-18.3)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Every segment that goes, by rising base offset."""
        return tuple(segment for rule in Rule for segment in self.by_rule.get(rule, ()))


def decide(
    segments: Sequence[Segment],
    limits: RetentionLimits,
    end_offset: Callable[[], int],
    largest_timestamp_ms: Callable[[Segment], int],
) -> Deletion:
    """Apply the rules to a log of one segment or more, the active one last.

    end_offset, largest_timestamp_ms: asked for only where the answer depends on them.
    """
    left = list(segments)
    rolls_at: int | None = None
    by_rule = {}
    for rule, is_breached in _rules(limits, largest_timestamp_ms):
        gone = _deletable(left, limits.high_watermark, end_offset, is_breached(left))
        if not gone:
            continue
        by_rule[rule] = tuple(gone)
        left = left[len(gone) :]
        if not left:  # the new active segment is empty, which no rule deletes
            rolls_at = end_offset()
            break
    log_start_offset = limits.log_start_offset
    if by_rule:
        first = left[0].base_offset if rolls_at is None else rolls_at
        log_start_offset = max(log_start_offset, first)
    return Deletion(by_rule, log_start_offset, rolls_at)


_Predicate = Callable[[Segment, Segment | None], bool]  # of a segment and the one after it


def _rules(
    limits: RetentionLimits, largest_timestamp_ms: Callable[[Segment], int]
) -> list[tuple[Rule, Callable[[Sequence[Segment]], _Predicate]]]:
    def starts_later(_: Sequence[Segment]) -> _Predicate:
        start = limits.log_start_offset
        return lambda _, following: following is not None and following.base_offset <= start

    def too_large(left: Sequence[Segment]) -> _Predicate:
        assert limits.retention_bytes is not None
        return _exceeding(sum(segment.log_bytes for segment in left) - limits.retention_bytes)

    def too_old(_: Sequence[Segment]) -> _Predicate:
        assert limits.retention_ms is not None
        oldest_ms = limits.now_ms - limits.retention_ms  # one of that very time stays
        return lambda segment, _: largest_timestamp_ms(segment) < oldest_ms

    rules: list[tuple[Rule, Callable[[Sequence[Segment]], _Predicate]]] = [
        (Rule.LOG_START, starts_later)
    ]
    if limits.retention_bytes is not None:
        rules.append((Rule.SIZE, too_large))
    if limits.retention_ms is not None:
        rules.append((Rule.TIME, too_old))
    return rules


def _exceeding(excess_bytes: int) -> _Predicate:
    """The size rule: what is above the limit, used up segment by segment."""

    def is_breached(segment: Segment, _: Segment | None) -> bool:
        nonlocal excess_bytes
        if excess_bytes < 0 or excess_bytes < segment.log_bytes:
            return False
        excess_bytes -= segment.log_bytes
        return True

    return is_breached


def _deletable(
    segments: Sequence[Segment],
    high_watermark: int | None,
    end_offset: Callable[[], int],
    is_breached: _Predicate,
) -> list[Segment]:
    """Walk to the first segment that stays (C-18.2)."""
    gone = []
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        if following is None and not segment.log_bytes:
            break
        if not is_breached(segment, following):
            break
        if high_watermark is not None:
            end = following.base_offset if following is not None else end_offset()
            if high_watermark < end:
                break
        gone.append(segment)
    return gone
