"""Why one log is cleaned or not: each of its bounds by name, and what set it.

Everything comes from the plan of a round over its log directory, so that the explanation is what a
run would do. Only the log's end and its producers are read where the plan did not need them.
Source: spec C-4, C-5, C-18, C-23.
"""

import os
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from compactor.errors import ConfigError
from compactor.host.printable import duration_text, size_text
from compactor.host.suggestions import did_you_mean
from compactor.outcome.json_values import HIDDEN, OF_ENDING, written
from compactor.outcome.round_report import LogReport, LogStatus, RetentionReport
from compactor.outcome.start_problems import StartProblem, forbid_start
from compactor.planning.candidate import Judgement, RoundClock, prepare
from compactor.planning.log_retention import retention_report
from compactor.planning.reasons import CODE_OF_BOUND, tightest_bound, waiting_text
from compactor.planning.remedies import NamedLog, OpenSince, Remedy, brief_of, remedy_of
from compactor.planning.round_plan import RoundPlan, notices_of
from compactor.planning.selection import Bound, BoundName
from compactor.reason_codes import ReasonCode
from compactor.settings.config import Config, with_filters
from compactor.settings.topic_config import TopicConfig
from storage.errors import CorruptFileError
from storage.file_names import Segment, is_special_dir, parse_partition_dir
from storage.formats.kafka_settings import MAX_LONG
from storage.kafka_versions import RECORD_LIMIT, record_limit
from storage.log.log_dir import log_end_offset


class SectionName(StrEnum):
    """The parts of a log, in their order."""

    CLEAN = "clean"
    DIRTY = "dirty"  # would be cleaned now, were it enough
    WAITING = "waiting"  # dirty, and kept from being cleaned by a bound
    ACTIVE = "active"  # the active segment


class Section(NamedTuple):
    name: str  # a SectionName
    start_offset: int
    end_offset: int  # exclusive
    size_bytes: int  # of .log files


class Mark(NamedTuple):
    """An offset with a name, and where in the log it lies."""

    name: str
    offset: int
    position: int  # bytes of .log files below it


class Bounds(NamedTuple):
    """The offsets at which a log is cut."""

    log_start: int
    first_dirty: int
    first_uncleanable: int
    log_end: int


def sections_of(segments: Sequence[Segment], bounds: Bounds) -> tuple[Section, ...]:
    """Give the parts of a log that are not empty. segments: all, by rising base offset."""
    active = max(segments[-1].base_offset, bounds.log_start)
    dirty = min(bounds.first_dirty, active)
    waiting = min(max(bounds.first_uncleanable, dirty), active)
    cuts = (bounds.log_start, dirty, waiting, active, bounds.log_end)
    positions = [position_of(segments, bounds.log_end, offset) for offset in cuts]
    found = (
        Section(
            name=name,
            start_offset=cuts[n],
            end_offset=cuts[n + 1],
            size_bytes=positions[n + 1] - positions[n],
        )
        for n, name in enumerate(SectionName)
    )
    return tuple(section for section in found if section.start_offset < section.end_offset)


def position_of(segments: Sequence[Segment], log_end: int, offset: int) -> int:
    """Give how many bytes of the log lie below an offset, in proportion within its segment."""
    number = max(bisect_right(segments, offset, key=lambda s: s.base_offset) - 1, 0)
    segment = segments[number]
    end = segments[number + 1].base_offset if number + 1 < len(segments) else log_end
    before = sum(each.log_bytes for each in segments[:number])
    span = max(end - segment.base_offset, 1)
    within = min(max(offset - segment.base_offset, 0), span)
    return before + segment.log_bytes * within // span


_SET_APART = {
    "future": "a copy of it that a broker was making to move the log here, and never finished",
    "stray": "one that a broker has set aside, as its metadata did not have it here",
    "delete": "one that a broker is deleting",
}
OVERDUE = "ms past max.compaction.lag.ms"


class NamedBound(NamedTuple):
    name: str
    value: float | None  # None: there is none; a dirty ratio is no whole number
    set_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a log is cleaned or not, and what sets each of its bounds."""

    log_dir: str
    topic: str
    partition: int
    outcome: str  # to-clean, passed-over, set-aside
    verdict: str = ""  # a sentence
    reason: str | None
    # None: it would be cleaned, or a part of it
    reason_code: ReasonCode | None = field(default=None, metadata=written(name="log_reason_code"))
    remedy: Remedy | None = None  # None: there is nothing to be helped
    sections: tuple[Section, ...] = ()  # none where the log was not judged or cannot be read
    # of these, by position from the log start on
    marks: tuple[Mark, ...] = field(default=(), metadata=HIDDEN)
    bounds: tuple[NamedBound, ...]  # none where the log was not judged
    retention: RetentionReport
    notes: tuple[str, ...]
    notices: tuple[str, ...]
    start_problems: tuple[StartProblem, ...] = ()  # what a broker's start does not do well with
    as_of_ms: int = field(metadata=OF_ENDING)
    warnings: tuple[str, ...] = ()  # of no log


def only_topic_of(topic_partition: str, config: Config) -> Config:
    """The configuration for a plan that is about this log. ConfigError if this is no log's name."""
    topic, _ = _named(topic_partition)
    return with_filters(config, re.escape(topic), None)


def explain(
    plan: RoundPlan,
    topic_partition: str,
    config: Config,
    start_problems: tuple[StartProblem, ...] = (),
) -> Explanation:
    """Say what a plan makes of one log. Raise ConfigError if its directories do not have the log.

    plan: over all of the broker's directories, since a log may be on its way from one to another.
    config: that of the plan. start_problems: of its directories.
    """
    topic, partition = key = _named(topic_partition)
    reports = [r for r in plan.not_cleaned if (r.topic, r.partition) == key]
    taken = [log.log_dir for log in plan.logs if (log.topic, log.partition) == key]
    places = [report.log_dir for report in reports] + taken
    if not places:
        log_dirs = " or ".join(log_dir.path for log_dir in plan.log_dirs)
        known = [f"{log.topic}-{log.partition}" for log in plan.not_cleaned]
        hint = did_you_mean(topic_partition, known + [log.name for log in plan.logs])
        hint = "".join(_only_as(key, plan)) or hint
        raise ConfigError(f"no such partition in {log_dirs}{hint}", value=topic_partition)
    facts = next((f for f in plan.facts if f.judgement.partition[:2] == key), None)
    judgement = _looked_into(facts.judgement, plan, config) if facts else None
    sections, marks = _cut(judgement) if judgement else ((), ())
    report = reports[0] if reports else None
    code = report.reason_code if report else None
    held = _held_by(judgement) if judgement and not report else None
    to_help = CODE_OF_BOUND[held.name] if held else code
    open_since: tuple[OpenSince, ...] = ()
    if to_help is ReasonCode.OPEN_TRANSACTION and judgement is not None:
        open_since = _open_since(judgement, plan)
        if not open_since:  # it has its marker, which the high watermark has not passed
            to_help = ReasonCode.HIGH_WATERMARK
    place = NamedLog(places[0], topic, partition, tuple(places[1:]), open_since)
    return Explanation(
        log_dir=places[0],
        topic=topic,
        partition=partition,
        outcome=report.status.value if report else "to-clean",
        reason=report.reason if report else None,
        bounds=tuple(_bounds(judgement)) if judgement else (),
        retention=_retention(plan, key),
        notes=facts.notes if facts else (),
        notices=notices_of(plan),
        as_of_ms=plan.as_of_ms,
        reason_code=code,
        verdict=_verdict(topic_partition, report, judgement, held),
        remedy=_remedy_at_start(report, start_problems) or _remedy(to_help, place, start_problems),
        sections=sections,
        marks=marks,
        start_problems=start_problems,
    )


def _only_as(key: tuple[str, int], plan: RoundPlan) -> Iterator[str]:
    """Return the directories of a log that a broker has set apart."""
    for log_dir in plan.log_dirs:
        for name, _ in log_dir.ignored:
            if is_special_dir(name) and parse_partition_dir(name.rpartition(".")[0]) == key:
                suffix = name.rpartition("-")[2]
                yield f"; {os.path.join(log_dir.path, name)} is {_SET_APART[suffix]}"


def _remedy_at_start(report: LogReport | None, problems: tuple[StartProblem, ...]) -> Remedy | None:
    """Give the smallest repair, where what sets a log aside is what a start does not do well with.

    None: it is something else.
    """
    if report is None or report.reason_code is not ReasonCode.DAMAGED or report.reason is None:
        return None
    own = (
        each for each in problems if report.reason.startswith((f"{each.path},", f"{each.path}:"))
    )
    found = next(own, None)
    if found is None:
        return None
    commands = () if found.command is None else (found.command,)
    return Remedy(found.repair, commands, brief_of(ReasonCode.DAMAGED, may_start=False))


def _remedy(
    code: ReasonCode | None, place: NamedLog, problems: tuple[StartProblem, ...]
) -> Remedy | None:
    return remedy_of(code, place, not forbid_start(problems)) if code else None


def _held_by(judgement: Judgement) -> Bound | None:
    """What keeps another part of a log that is to be cleaned from being cleaned, too."""
    held = tightest_bound(judgement)
    first = judgement.cleanable.first_uncleanable_offset
    waits = any(s.base_offset >= first for s in judgement.partition.segments[:-1])
    return held if waits and held.name is not BoundName.ACTIVE_SEGMENT else None


def _verdict(
    name: str, report: LogReport | None, judgement: Judgement | None, held: Bound | None
) -> str:
    """The outcome and its reason, and what has to wait: a sentence each, with its full stop."""
    if report is not None:
        is_set_aside = report.status is LogStatus.SET_ASIDE
        outcome = "is set aside, and would be left as it is" if is_set_aside else "is not compacted"
        return f"{name} {outcome}: {report.reason}."
    assert judgement is not None, name
    found = judgement.cleanable
    dirty = f"{size_text(found.cleanable_bytes)} of {size_text(found.total_bytes)} are dirty"
    least = judgement.config.min_cleanable_dirty_ratio
    why = f"which is a dirty ratio above min.cleanable.dirty.ratio {least}"
    if not found.ratio > least:
        lag = duration_text(judgement.config.max_compaction_lag_ms)
        why = f"and have waited for longer than max.compaction.lag.ms of {lag}"
    rest = f" {waiting_text(judgement, held)}." if held else ""
    return f"{name} would be compacted now: {dirty}, {why}.{rest}"


def _cut(judgement: Judgement) -> tuple[tuple[Section, ...], tuple[Mark, ...]]:
    """The log as it is drawn. Nothing where its end cannot be read."""
    end = _end_of(judgement).value
    if not isinstance(end, int):
        return (), ()
    segments, cleanable = judgement.partition.segments, judgement.cleanable
    start = judgement.offsets.log_start
    cuts = Bounds(start, judgement.first_dirty.offset, cleanable.first_uncleanable_offset, end)
    named = [
        ("log start", start),
        ("first dirty", cuts.first_dirty),
        ("first uncleanable", cuts.first_uncleanable),
        *((bound.name.value, bound.offset) for bound in judgement.bounds),
        ("log end", end),
    ]
    before = position_of(segments, end, start)
    marks = (
        Mark(name, offset, max(position_of(segments, end, offset) - before, 0))
        for name, offset in named
    )
    return sections_of(segments, cuts), tuple(sorted(marks, key=lambda mark: mark.offset))


def _named(topic_partition: str) -> tuple[str, int]:
    key = parse_partition_dir(topic_partition)
    if key is None:
        raise ConfigError(
            f"expected TOPIC-PARTITION, like {topic_partition or 'orders'}-0",
            value=topic_partition,
        )
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


def _open_since(judgement: Judgement, plan: RoundPlan) -> tuple[OpenSince, ...]:
    from compactor.inspection.open_transactions import open_transactions  # with NumPy

    own = next(facts for facts in plan.log_dirs if facts.path == judgement.log_dir)
    found = open_transactions(
        judgement.partition, judgement.offsets.log_start, own.has_clean_shutdown, plan.as_of_ms
    )
    return tuple(OpenSince(txn.producer_id, txn.first_offset) for txn in found)


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
        last = f"the last of {len(segments)} segments" if len(segments) > 1 else "the only segment"
        cause = bound.cause or f"base offset of {last}"
        bounds.append(NamedBound(bound.name.value, bound.offset, cause))
    least = min(judgement.bounds, key=lambda bound: bound.offset)
    delay_ms = judgement.compaction_delay_ms
    dirty, in_all = size_text(cleanable.cleanable_bytes), size_text(cleanable.total_bytes)
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
            f"{dirty} of {in_all}; cleaned if above min.cleanable.dirty.ratio "
            f"{config.min_cleanable_dirty_ratio}",
        ),
        NamedBound(OVERDUE, delay_ms, f"max.compaction.lag.ms {_lag(config)}"),
        *_record_limit(judgement),
    ]


def _record_limit(judgement: Judgement) -> Iterator[NamedBound]:
    """Return the limit on records; nothing by default."""
    configured = judgement.config.max_decompressed_message_bytes
    limit = record_limit(judgement.kafka, configured)
    if limit is not None:
        cause = f"{RECORD_LIMIT}: a larger one in a compressed batch sets the log aside"
        yield NamedBound("bytes of a record", limit, cause)


def _lag(config: TopicConfig) -> str:
    """Return max.compaction.lag.ms for people; the largest value stands for none (C-4.7)."""
    lag_ms = config.max_compaction_lag_ms
    return "is not set" if lag_ms == MAX_LONG else f"of {duration_text(lag_ms)}"


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
