"""Which old segments of a log retention deletes: pure.

By log start offset, and where the policy contains delete by size and then by time. Each rule walks
the segments that the one before it left, from the oldest on, to the first that stays. After a
cleaning Kafka's cleaner lets retention pass over every log whose policy contains compact; a round
asks about all rules at once (`decide`), a log in use about one after the other, as it deletes in
between (`storage.log.log_state`).
Source: Kafka, UnifiedLog.deleteOldSegments, deletableSegments; spec C-3.2, C-18, L-23.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeVar

from storage.file_names import Segment


class Sized(Protocol):
    """A segment, as far as the rules look at it; its largest timestamp is an argument of theirs."""

    @property
    def base_offset(self) -> int: ...

    @property
    def log_bytes(self) -> int: ...


AnySegment = TypeVar("AnySegment", bound=Sized)


class RetentionRule(StrEnum):
    """Why a segment is deleted, in the order in which the rules are applied (C-18.1)."""

    LOG_START = "log_start"  # all of it is below the log start offset
    SIZE = "size"  # without it the log is still as large as retention.bytes
    TIME = "time"  # its youngest record is older than retention.ms


class RetentionLimits(NamedTuple):
    """What the rules hold a log against."""

    log_start_offset: int
    high_watermark: int | None  # None: the log end offset
    now_ms: int  # of the time rule (C-18.5)
    retention_ms: int | None = None  # None: no time rule
    retention_bytes: int | None = None  # None: no size rule


class Deletion(NamedTuple):
    """The segments that go, and where the log starts without them."""

    by_rule: Mapping[RetentionRule, tuple[Segment, ...]] = {}
    log_start_offset: int = 0
    rolls_at: int | None = None  # all go: base offset of the new active segment (C-18.3)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Every segment that goes, by rising base offset."""
        return tuple(segment for rule in RetentionRule for segment in self.by_rule.get(rule, ()))


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
    for rule in RetentionRule:
        gone = deletable(left, rule, limits, end_offset, largest_timestamp_ms)
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


def deletable(
    segments: Sequence[AnySegment],
    rule: RetentionRule,
    limits: RetentionLimits,
    end_offset: int | Callable[[], int],
    largest_timestamp_ms: Callable[[AnySegment], int],
) -> list[AnySegment]:
    """Walk to the first segment that one rule leaves (C-18.2).

    Args:
        segments: Of the log, rising.
        rule: The rule to apply.
        limits: What the rules go by.
        end_offset: A number is asked about before the rule is, as in Kafka: a log in use makes
            the time index of a segment when it is first asked. What has to be found out comes
            last.
        largest_timestamp_ms: Returns the largest time of a segment.
    """
    is_breached = _predicate(segments, rule, limits, largest_timestamp_ms)
    if is_breached is None:
        return []

    def is_replicated(following: AnySegment | None) -> bool:
        if limits.high_watermark is None:
            return True
        if following is not None:
            return following.base_offset <= limits.high_watermark
        end = end_offset() if callable(end_offset) else end_offset
        return end <= limits.high_watermark

    gone = []
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        has_any = following is not None or segment.log_bytes > 0
        if callable(end_offset):
            goes = has_any and is_breached(segment, following) and is_replicated(following)
        else:
            goes = is_replicated(following) and is_breached(segment, following) and has_any
        if not goes:
            break
        gone.append(segment)
    return gone


def _predicate(
    segments: Sequence[AnySegment],
    rule: RetentionRule,
    limits: RetentionLimits,
    largest_timestamp_ms: Callable[[AnySegment], int],
) -> Callable[[AnySegment, AnySegment | None], bool] | None:
    """Return what a rule says of a segment and the one after it; None without such a rule."""
    if rule is RetentionRule.LOG_START:
        start = limits.log_start_offset
        return lambda _, following: following is not None and following.base_offset <= start
    if rule is RetentionRule.SIZE:
        if limits.retention_bytes is None:
            return None
        return _exceeding(sum(each.log_bytes for each in segments) - limits.retention_bytes)
    if limits.retention_ms is None:
        return None
    oldest_ms = limits.now_ms - limits.retention_ms  # one of that very time stays
    return lambda segment, _: largest_timestamp_ms(segment) < oldest_ms


def _exceeding(excess_bytes: int) -> Callable[[Sized, Sized | None], bool]:
    """The size rule: what is above the limit, used up segment by segment."""

    def is_breached(segment: Sized, _: Sized | None) -> bool:
        nonlocal excess_bytes
        if excess_bytes < 0 or excess_bytes < segment.log_bytes:
            return False
        excess_bytes -= segment.log_bytes
        return True

    return is_breached
