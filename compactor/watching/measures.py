"""The numbers of a plan or a run that conditions and metrics speak of. Pure.

A measure is of one log (`dirty_ratio`) or of all (`set_aside`). Each measure of a log has a
greatest value and, where a sum means something, a sum: `max_dirty_ratio`, `sum_dirty_bytes`.
A log whose number is not known has none; it counts neither in the greatest nor in the sum.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from compactor.outcome.json_values import HIDDEN
from compactor.outcome.round_report import CleaningReport, LogReport, LogStatus
from compactor.planning.candidate import Judgement
from compactor.planning.inventory import LogSize
from compactor.planning.round_plan import RoundPlan
from compactor.planning.selection import inactive_from
from compactor.reason_codes import ReasonCode

ELIGIBLE = "eligible"  # what a plan takes on; the other words are those of LogStatus

LOG_MEASURES_OF_PLAN: Mapping[str, str] = MappingProxyType(
    {
        "dirty_ratio": "dirty bytes as a share of the bytes that a cleaning would weigh",
        "dirty_bytes": "bytes of closed segments that are not cleaned yet",
        "blocked_bytes": "those of them that may not be cleaned yet",
        "log_bytes": "bytes of the log, with the active segment",
        "segments": "segments of the log, with the active one",
        "seconds_since_clean": "age of the oldest closed segment that is not cleaned yet, by the "
        "time at which its file was last written; 0 where there is none",
        "seconds_overdue": "by how much the log is past max.compaction.lag.ms; 0: it is not",
    }
)
LOG_MEASURES_OF_RUN: Mapping[str, str] = MappingProxyType(
    {
        "bytes_before": "bytes of the segments that were, or would be, rewritten",
        "bytes_after": "bytes of what is written instead",
        "bytes_freed": "the difference",
        "freed_ratio": "the difference as a share of the bytes before",
        "records_removed": "records that were, or would be, removed",
    }
)
TOTALS: Mapping[str, str] = MappingProxyType(
    {
        "logs": "logs that were found",
        "eligible": "logs that are, or were, to be cleaned",
        "passed_over": "logs that are not to be cleaned now",
        "set_aside": "logs that should be cleaned and cannot be",
        "failed": "logs whose cleaning failed",
    }
)
_NOT_SUMMED = ("dirty_ratio", "freed_ratio", "seconds_since_clean", "seconds_overdue")


@dataclass(frozen=True, slots=True)
class LogMeasures:
    """What is known of one log. counted_as: the name of the total that it counts in."""

    log_dir: str
    topic: str
    partition: int
    counted_as: str = field(metadata=HIDDEN)
    reason: str | None = field(metadata=HIDDEN)
    values: Mapping[str, float] = field(metadata=HIDDEN)
    reason_code: ReasonCode | None = field(
        default=None, metadata=HIDDEN
    )  # of a log that is not, or was not, cleaned

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Measures:
    """All numbers. names: every measure of a log, known or not."""

    names: tuple[str, ...]
    logs: tuple[LogMeasures, ...]
    totals: Mapping[str, float]
    as_of_ms: int  # the time from which ages are counted


def measures_of_plan(plan: RoundPlan) -> Measures:
    """Return the measures of a plan, with ages counted from its clock."""
    now_ms = plan.as_of_ms
    sizes = {size.key: size for size in plan.inventory}
    values = {f.key: _values_of_plan(f.judgement, sizes[f.key], now_ms) for f in plan.facts}
    logs = [
        LogMeasures(*log.key, counted_as=ELIGIBLE, reason=None, values=values[log.key])
        for log in plan.logs
    ]
    logs += [_left(report, values.get(report.key, {})) for report in plan.not_cleaned]
    return _measures(tuple(LOG_MEASURES_OF_PLAN), logs, now_ms)


def measures_of_run(report: CleaningReport) -> Measures:
    """Return the measures of a run, dry or real."""
    logs = [_left(log, _values_of_run(log) if log.is_done else {}) for log in report.logs]
    return _measures(tuple(LOG_MEASURES_OF_RUN), logs, report.as_of_ms)


def word_of(status: LogStatus) -> str:
    """A status as a name: set_aside."""
    return status.value.replace("-", "_")


def _left(report: LogReport, values: Mapping[str, float]) -> LogMeasures:
    counted_as = ELIGIBLE if report.is_done else word_of(report.status)
    return LogMeasures(
        log_dir=report.log_dir,
        topic=report.topic,
        partition=report.partition,
        counted_as=counted_as,
        reason=report.reason,
        values=values,
        reason_code=report.reason_code,
    )


def _values_of_plan(judgement: Judgement, size: LogSize, now_ms: int) -> dict[str, float]:
    segments = judgement.partition.segments
    closed = inactive_from(segments, judgement.first_dirty.offset)
    oldest_ns = min((s.log_mtime_ns for s in closed if s.log_bytes), default=None)
    age_ms = 0 if oldest_ns is None else max(now_ms - oldest_ns // 1_000_000, 0)
    return {
        "dirty_ratio": judgement.cleanable.ratio,
        "dirty_bytes": size.dirty_bytes or 0,
        "blocked_bytes": size.held_bytes,
        "log_bytes": size.total_bytes,
        "segments": len(segments),
        "seconds_since_clean": age_ms / 1000,
        "seconds_overdue": judgement.compaction_delay_ms / 1000,
    }


def _values_of_run(log: LogReport) -> dict[str, float]:
    freed = log.bytes_before - log.bytes_after
    return {
        "bytes_before": log.bytes_before,
        "bytes_after": log.bytes_after,
        "bytes_freed": freed,
        "freed_ratio": freed / log.bytes_before if log.bytes_before else 0.0,
        "records_removed": log.counts.records_read - log.counts.records_kept,
    }


def names_of_totals(names: Iterable[str]) -> tuple[str, ...]:
    """Every number of all logs, where those of each log have these names."""
    derived = [f"max_{n}" for n in names] + [f"sum_{n}" for n in names if n not in _NOT_SUMMED]
    return (*TOTALS, *derived)


def _measures(names: tuple[str, ...], logs: Sequence[LogMeasures], as_of_ms: int) -> Measures:
    totals: dict[str, float] = dict.fromkeys(names_of_totals(names), 0)
    totals["logs"] = len(logs)
    for log in logs:
        totals[log.counted_as] += 1
    for name in names:
        known = _known(logs, name)
        totals[f"max_{name}"] = max(known, default=0)
        if name not in _NOT_SUMMED:
            totals[f"sum_{name}"] = sum(known)
    return Measures(names, tuple(logs), totals, as_of_ms)


def _known(logs: Iterable[LogMeasures], name: str) -> list[float]:
    return [log.values[name] for log in logs if name in log.values]
