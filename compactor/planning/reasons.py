"""Say why a log is not cleaned, in one line that an operator can act on. Pure.

Numbers are plain digits, and sizes as `size_text` has them, so that reasons that differ in nothing
else can be reported as one.
"""

from compactor.host.printable import duration_text, size_text
from compactor.planning.candidate import Judgement
from compactor.planning.selection import Bound, BoundName, DirtyFrom
from compactor.reason_codes import Reason, ReasonCode
from compactor.settings.topic_config import TopicConfig
from storage.formats.kafka_settings import MAX_LONG

CODE_OF_BOUND = {
    BoundName.ACTIVE_SEGMENT: ReasonCode.NOTHING_NEW,
    BoundName.HIGH_WATERMARK: ReasonCode.HIGH_WATERMARK,
    BoundName.OPEN_TRANSACTION: ReasonCode.OPEN_TRANSACTION,
    BoundName.MIN_COMPACTION_LAG: ReasonCode.MIN_COMPACTION_LAG,
    BoundName.SAVED_PLAN: ReasonCode.NOT_REVIEWED,
}


def why_not_compacted(config: TopicConfig) -> Reason:
    """Return why a topic is not compacted whose policy does not contain compact."""
    if config.cleanup_policy is None:
        return Reason(
            ReasonCode.UNKNOWN_POLICY,
            "cleanup.policy is not known: no configuration was given for this topic "
            "(--metadata DIR, --topic-configs FILE, or [[topics]] in --config FILE)",
        )
    policy = ",".join(config.cleanup_policy) or "empty"
    reason = f"cleanup.policy is {policy}, so it is not compacted (set by {config.policy_source})"
    if config.has_retention:
        reason += "; its retention is left to the broker, and nothing is deleted here"
    return Reason(ReasonCode.NOT_COMPACTED, reason)


def why_not_eligible(judgement: Judgement) -> Reason:
    """For a compacted log without enough to clean."""
    newest = _why_all_is_new(judgement)
    if newest is not None:
        return newest
    cleanable = judgement.cleanable
    held = tightest_bound(judgement)
    if not cleanable.cleanable_bytes:
        return Reason(CODE_OF_BOUND[held.name], _why_nothing(judgement))
    config = judgement.config
    dirty, in_all = size_text(cleanable.cleanable_bytes), size_text(cleanable.total_bytes)
    needed = f"min.cleanable.dirty.ratio {config.min_cleanable_dirty_ratio}"
    parts = [
        f"dirty ratio {cleanable.ratio:.4f} is not above {needed}: {dirty} of {in_all} are dirty"
    ]
    if config.max_compaction_lag_ms < MAX_LONG:
        lag = duration_text(config.max_compaction_lag_ms)
        parts.append(f"max.compaction.lag.ms of {lag} has not run out")
    if held.name is not BoundName.ACTIVE_SEGMENT:
        parts.append(waiting_text(judgement, held))
    return Reason(ReasonCode.BELOW_RATIO, "; ".join(parts))


def tightest_bound(judgement: Judgement) -> Bound:
    """The bound that counts; the active segment where none is lower, since nothing can move it."""
    active = judgement.partition.segments[-1].base_offset
    return min(
        judgement.bounds,
        key=lambda bound: (min(bound.offset, active), bound.name is not BoundName.ACTIVE_SEGMENT),
    )


def _why_all_is_new(judgement: Judgement) -> Reason | None:
    """Where nothing can be cleaned but what is in the active segment."""
    segments = judgement.partition.segments
    active = segments[-1].base_offset
    if len(segments) == 1:
        size = size_text(segments[0].log_bytes)
        text = f"only the active segment, of {size}, which is never cleaned"
        return Reason(ReasonCode.ACTIVE_SEGMENT, text)
    if not any(segment.log_bytes for segment in segments[:-1]):
        text = f"all of its records are in the active segment, from offset {active} on"
        return Reason(ReasonCode.ACTIVE_SEGMENT, text)
    if judgement.first_dirty.offset >= active:
        start = judgement.first_dirty.offset
        is_clean = judgement.first_dirty.set_by is DirtyFrom.CHECKPOINT
        known = f"cleaned up to offset {start}" if is_clean else f"the log starts at offset {start}"
        kind = ReasonCode.NOTHING_NEW if is_clean else ReasonCode.ACTIVE_SEGMENT
        return Reason(kind, f"{known}; all that is newer is in the active segment")
    return None


def _why_nothing(judgement: Judgement) -> str:
    """Between first dirty offset and the active segment is something, but none may be cleaned."""
    held = tightest_bound(judgement)
    if held.name is BoundName.ACTIVE_SEGMENT:
        return f"no bytes between offset {judgement.first_dirty.offset} and the active segment"
    advice = ""
    if held.name is BoundName.HIGH_WATERMARK:
        advice = "; --assume-fully-replicated looks past it"
    return waiting_text(judgement, held) + advice


def waiting_text(judgement: Judgement, bound: Bound) -> str:
    """How much is dirty and kept from being cleaned by a bound, without the active segment."""
    first = judgement.cleanable.first_uncleanable_offset
    sizes = [s.log_bytes for s in judgement.partition.segments[:-1] if s.base_offset >= first]
    from_offset = max(first, judgement.first_dirty.offset)
    waiting = f"{size_text(sum(sizes))} from offset {from_offset} on wait behind"
    if bound.name is BoundName.MIN_COMPACTION_LAG:
        lag = duration_text(judgement.config.min_compaction_lag_ms)
        return f"{waiting} {bound.name} of {lag}: of segment {bound.offset} {bound.cause}"
    return f"{waiting} the {bound.name} {bound.offset} ({bound.cause})"
