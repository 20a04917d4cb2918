"""Why a log is not cleaned, in one line that an operator can act on. Pure.

Numbers are plain digits, so that reasons that differ in nothing else can be told as one.
"""

from compactor.candidate import Judgement
from compactor.selection import Bound, BoundName, DirtyFrom
from compactor.topic_config import TopicConfig

RETENTION_NOTE = "cleaned as compact; the retention of compact,delete is left to the broker"


def why_not_compacted(config: TopicConfig) -> str:
    """For a topic whose policy does not contain compact."""
    if config.cleanup_policy is None:
        return (
            "cleanup.policy is not known: no configuration was given for this topic "
            "(--topic-configs FILE, or [[topics]] in --config FILE)"
        )
    policy = ",".join(config.cleanup_policy) or "empty"
    return f"cleanup.policy is {policy}, so it is not compacted (set by {config.policy_source})"


def why_not_eligible(judgement: Judgement) -> str:
    """For a compacted log without enough to clean."""
    segments = judgement.partition.segments
    active = segments[-1].base_offset
    cleanable = judgement.cleanable
    if len(segments) == 1:
        size = f"{segments[0].log_bytes} bytes"
        return f"only the active segment, of {size}, which is never cleaned"
    if not any(segment.log_bytes for segment in segments[:-1]):
        return f"all of its records are in the active segment, from offset {active} on"
    if judgement.first_dirty.offset >= active:
        start = judgement.first_dirty.offset
        is_clean = judgement.first_dirty.set_by is DirtyFrom.CHECKPOINT
        known = f"cleaned up to offset {start}" if is_clean else f"the log starts at offset {start}"
        return f"{known}; all that is newer is in the active segment"
    if not cleanable.cleanable_bytes:
        return _why_nothing(judgement)
    needed = judgement.config.min_cleanable_dirty_ratio
    share = f"{cleanable.cleanable_bytes} of {cleanable.total_bytes} bytes are dirty"
    reason = f"dirty ratio {cleanable.ratio:.4f} is not above {needed}: {share}"
    held = _tightest(judgement)
    if held.name is not BoundName.ACTIVE_SEGMENT:
        reason += f"; {_waiting(judgement)} behind {_told(held)}"
    return reason


def _why_nothing(judgement: Judgement) -> str:
    """Between first dirty offset and the active segment is something, but none may be cleaned."""
    held = _tightest(judgement)
    from_offset = f"offset {judgement.first_dirty.offset}"
    if held.name is BoundName.ACTIVE_SEGMENT:
        return f"no bytes between {from_offset} and the active segment"
    advice = ""
    if held.name is BoundName.HIGH_WATERMARK:
        advice = " (--assume-fully-replicated looks past it)"
    return f"{_waiting(judgement)} from {from_offset} on behind {_told(held)}{advice}"


def _tightest(judgement: Judgement) -> Bound:
    """The bound that counts; the active segment where none is lower, since nothing can move it."""
    active = judgement.partition.segments[-1].base_offset
    return min(
        judgement.bounds,
        key=lambda bound: (min(bound.offset, active), bound.name is not BoundName.ACTIVE_SEGMENT),
    )


def _waiting(judgement: Judgement) -> str:
    """How much is dirty and kept from being cleaned, without the active segment."""
    first = judgement.cleanable.first_uncleanable_offset
    waiting = [s.log_bytes for s in judgement.partition.segments[:-1] if s.base_offset >= first]
    return f"{sum(waiting)} bytes wait"


def _told(bound: Bound) -> str:
    cause = f" ({bound.cause})" if bound.cause else ""
    if bound.name is BoundName.MIN_COMPACTION_LAG:
        return f"{bound.name}, which segment {bound.offset} is under{cause}"
    return f"the {bound.name}, {bound.offset}{cause}"
