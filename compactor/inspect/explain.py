"""Why one log is cleaned or not: each of its bounds by name, and what set it.

Everything comes from the plan of a round over its log directory, so that what is said here is what
a run would do. Where the plan had no need to look at the log's end and its producers, that is done
here, since it is one log. Source: spec C-4, C-5, C-18, C-23.
"""

import re
from typing import NamedTuple

from compactor.config import Config, with_filters
from compactor.errors import ConfigError
from compactor.planning.candidate import Judgement, RoundClock, prepare
from compactor.planning.notices import notices_of
from compactor.planning.round_plan import RoundPlan
from compactor.planning.selection import BoundName
from compactor.retention.retention_round import retention_report
from compactor.round_report import RetentionReport
from storage.errors import CorruptFileError
from storage.file_names import parse_partition_dir
from storage.log.log_dir import log_end_offset


class NamedBound(NamedTuple):
    name: str
    value: int | float | None  # None: there is none
    set_by: str


class Explanation(NamedTuple):
    log_dir: str
    topic: str
    partition: int
    outcome: str  # to-clean, passed-over, set-aside
    reason: str | None
    bounds: tuple[NamedBound, ...]  # none where the log was not judged
    retention: RetentionReport
    notes: tuple[str, ...]
    notices: tuple[str, ...]
    as_of_ms: int
    warnings: tuple[str, ...] = ()  # of no log


def only_topic_of(topic_partition: str, config: Config) -> Config:
    """The configuration for a plan that is about this log. ConfigError if this is no log's name."""
    topic, _ = _named(topic_partition)
    return with_filters(config, re.escape(topic), None)


def explain(plan: RoundPlan, topic_partition: str, config: Config) -> Explanation:
    """Say what a plan makes of one log. ConfigError if there is no such log in its directories.

    plan: over all of the broker's directories, since a log may be on its way from one to another.
    config: that of the plan.
    """
    topic, partition = key = _named(topic_partition)
    reports = [r for r in plan.not_cleaned if (r.topic, r.partition) == key]
    taken = [log.log_dir for log in plan.logs if (log.topic, log.partition) == key]
    places = [report.log_dir for report in reports] + taken
    if not places:
        log_dirs = " or ".join(log_dir.path for log_dir in plan.log_dirs)
        raise ConfigError(f"{topic_partition}: no such partition in {log_dirs}")
    facts = next((f for f in plan.facts if f.judgement.partition[:2] == key), None)
    return Explanation(
        log_dir=places[0],
        topic=topic,
        partition=partition,
        outcome=reports[0].status.value if reports else "to-clean",
        reason=reports[0].reason if reports else None,
        bounds=tuple(_bounds(_looked_into(facts.judgement, plan, config))) if facts else (),
        retention=_retention(plan, key),
        notes=facts.notes if facts else (),
        notices=notices_of(plan),
        as_of_ms=plan.as_of_ms,
    )


def _named(topic_partition: str) -> tuple[str, int]:
    key = parse_partition_dir(topic_partition)
    if key is None:
        raise ConfigError(f"{topic_partition}: expected TOPIC-PARTITION")
    return key


def _looked_into(judgement: Judgement, plan: RoundPlan, config: Config) -> Judgement:
    """Add the log's end and its open transactions, where it is not eligible without them."""
    if judgement.last_stable_offset is not None:
        return judgement
    clock = RoundClock(plan.as_of_ms, config.producer_id_expiration_ms)
    own = next(facts for facts in plan.log_dirs if facts.path == judgement.log_dir)
    try:
        return prepare(judgement, clock, own.has_clean_shutdown).judgement
    except CorruptFileError:  # a line of its own says so
        return judgement


def _bounds(judgement: Judgement) -> list[NamedBound]:
    config, offsets, cleanable = judgement.config, judgement.offsets, judgement.cleanable
    segments = judgement.partition.segments
    bounds = [
        NamedBound("log start offset", offsets.log_start, _log_start_cause(judgement)),
        _end_of(judgement),
        _stable_up_to(judgement),
        NamedBound("cleaner checkpoint", offsets.cleaner, "cleaner-offset-checkpoint"),
        NamedBound(
            "first dirty offset", judgement.first_dirty.offset, judgement.first_dirty.set_by.value
        ),
    ]
    if offsets.high_watermark is None:
        bounds.append(NamedBound("high watermark", None, offsets.high_watermark_cause))
    for bound in judgement.bounds:
        cause = bound.cause or f"base offset of the last of {len(segments)} segments"
        bounds.append(NamedBound(bound.name.value, bound.offset, cause))
    least = min(judgement.bounds, key=lambda bound: bound.offset)
    delay_ms = judgement.compaction_delay_ms
    return [
        *bounds,
        NamedBound(
            "first uncleanable offset",
            cleanable.first_uncleanable_offset,
            f"{least.name.value}, rounded down to a segment, or the first dirty offset's segment",
        ),
        NamedBound(
            "dirty ratio",
            round(cleanable.ratio, 4),
            f"{cleanable.cleanable_bytes} of {cleanable.total_bytes} bytes; cleaned if above "
            f"min.cleanable.dirty.ratio {config.min_cleanable_dirty_ratio}",
        ),
        NamedBound(
            "ms past max.compaction.lag.ms",
            delay_ms,
            f"max.compaction.lag.ms {config.max_compaction_lag_ms}",
        ),
    ]


def _log_start_cause(judgement: Judgement) -> str:
    if judgement.offsets.log_start > judgement.partition.segments[0].base_offset:
        return "log-start-offset-checkpoint"
    return "base offset of the first segment"


def _end_of(judgement: Judgement) -> NamedBound:
    try:
        return NamedBound("log end offset", log_end_offset(judgement.partition), "last batch")
    except CorruptFileError as error:
        return NamedBound("log end offset", None, str(error))


def _stable_up_to(judgement: Judgement) -> NamedBound:
    offset = judgement.last_stable_offset
    if offset is None:
        return NamedBound("last stable offset", None, "not known, as the log cannot be read")
    is_open = any(bound.name is BoundName.OPEN_TRANSACTION for bound in judgement.bounds)
    cause = "start of the oldest open transaction" if is_open else "no transaction is open below it"
    return NamedBound("last stable offset", offset, cause)


def _retention(plan: RoundPlan, key: tuple[str, int]) -> RetentionReport:
    for log in plan.retention:
        if (log.topic, log.partition) == key:
            return retention_report(log.estimate)
    return RetentionReport()
