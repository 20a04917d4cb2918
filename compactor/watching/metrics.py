"""Prometheus metrics of a command, in the text format of a collector of text files. Pure.

One file is of one command, and each series carries its path: collectors add none, so that without
it the files of two brokers on one host would have the same series. Names, units and help follow
Prometheus' conventions: base units, a timestamp instead of an age.
docs/watching.md lists every metric.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families

from compactor.host.printable import printable
from compactor.outcome.round_report import CleaningReport, LogReport, LogStatus
from compactor.watching.measures import ELIGIBLE, LogMeasures, Measures, word_of

# 4: some logs were left, which has metrics of its own; 5: a condition that holds is an answer
_SUCCESSFUL = (0, 4, 5)
_LOG_METRICS: Mapping[str, tuple[str, str]] = MappingProxyType(  # by measure: name, help
    {
        "dirty_ratio": ("compactor_log_dirty_ratio", "dirty bytes as Kafka's cleaner weighs them"),
        "dirty_bytes": ("compactor_log_dirty_bytes", "bytes of closed segments not cleaned yet"),
        "blocked_bytes": ("compactor_log_blocked_bytes", "those that may not be cleaned yet"),
        "log_bytes": ("compactor_log_size_bytes", "bytes of the log"),
        "segments": ("compactor_log_segments", "segments of the log"),
        "seconds_overdue": ("compactor_log_overdue_seconds", "by this past max.compaction.lag.ms"),
    }
)
_OLDEST_DIRTY = (
    "compactor_log_oldest_dirty_timestamp_seconds",
    "when the oldest closed segment that is not cleaned yet was last written",
)
_Log = LogMeasures | LogReport
SUCCESS = "compactor_command_success_timestamp_seconds"
CLEANED = "compactor_run_log_cleaned_timestamp_seconds"
LOG_LABELS = ("log_dir", "topic", "partition")
_BEGINS = tuple(f"{name}{{".encode() for name in (SUCCESS, CLEANED))


class Earlier(NamedTuple):
    """Seconds since the epoch."""

    success_s: Mapping[str, float]  # by command
    cleaned_s: Mapping[tuple[str, ...], float]  # by the values of LOG_LABELS


class Ending(NamedTuple):
    """How a command ended."""

    command: str
    exit_code: int
    status: str
    reason_code: str
    ended_ms: int
    seconds: float
    version: str
    file: str  # absolute path of the metrics, which no other command on this host writes


def metrics_text(
    ending: Ending,
    plan: Measures | None = None,
    run: CleaningReport | None = None,
    previous: bytes = b"",
) -> bytes:
    """Lay a file of metrics out.

    plan: of a `plan` that came to its end; run: of a `run` that did. previous: the file that this
    one replaces, for the time of the last success, and of each log's last cleaning; what cannot be
    read of it is left out.
    """
    before = earlier(previous)
    families = [*_of_command(ending, before), *_of_plan(plan), *_of_run(run)]
    if ending.command == "run":
        families.append(_cleaned(ending, run, before))
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected([_with_file(family, ending.file) for family in families]))
    return generate_latest(registry)


def _with_file(family: Metric, file: str) -> Metric:
    """Give every sample the label that makes its series this command's own."""
    family.samples = [s._replace(labels={"file": file, **s.labels}) for s in family.samples]
    return family


class _Collected:
    """The shape in which a registry takes metrics."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = tuple(families)

    def collect(self) -> Iterable[Metric]:
        return self._families


def _of_command(ending: Ending, before: Earlier) -> Iterator[Metric]:
    of_command = {"command": ending.command}
    ended_s = ending.ended_ms / 1000
    version = of_command | {"version": ending.version}
    yield _gauge("compactor_command_info", "1 for the version that was run", version)
    yield _gauge(
        "compactor_command_end_timestamp_seconds", "when the command ended", of_command, ended_s
    )
    is_success = ending.exit_code in _SUCCESSFUL
    success_s = ended_s if is_success else before.success_s.get(ending.command)
    if success_s is not None:
        what = "when the command last came to its end, as far as this file knows"
        yield _gauge(SUCCESS, what, of_command, success_s)
    yield _gauge(
        "compactor_command_duration_seconds", "how long it took", of_command, ending.seconds
    )
    yield _gauge("compactor_command_exit_code", "its exit code", of_command, ending.exit_code)
    yield _gauge(
        "compactor_command_outcome",
        "1 for the outcome of the command",
        of_command | {"status": ending.status, "reason_code": ending.reason_code},
    )


def _of_plan(plan: Measures | None) -> Iterator[Metric]:
    if plan is None:
        return
    counted = (ELIGIBLE, word_of(LogStatus.PASSED_OVER), word_of(LogStatus.SET_ASIDE))
    yield _counts("plan", {name: plan.totals[name] for name in counted})
    state = GaugeMetricFamily(
        "compactor_log_state",
        "1 for what a run would do with the log",
        labels=(*LOG_LABELS, "state"),
    )
    for log in plan.logs:
        state.add_metric([*_labels(log), log.counted_as], 1)
    yield state
    yield _not_cleaned("compactor_log_not_cleaned_info", plan.logs)
    for measure, (name, what) in _LOG_METRICS.items():
        values = ((log, log.values[measure]) for log in plan.logs if measure in log.values)
        yield _of_logs(name, what, values)
    as_of_s = plan.as_of_ms / 1000
    written = (
        (log, as_of_s - log.values["seconds_since_clean"])
        for log in plan.logs
        if log.values.get("dirty_bytes")
    )
    yield _of_logs(*_OLDEST_DIRTY, written)


def _of_run(run: CleaningReport | None) -> Iterator[Metric]:
    if run is None:
        return
    statuses = [log.status for log in run.logs]
    yield _counts("run", {word_of(status): statuses.count(status) for status in LogStatus})
    yield _gauge("compactor_run_is_dry", "1: it was a dry run", {}, int(run.dry_run))
    phases = GaugeMetricFamily(
        "compactor_run_phase_seconds", "how long a phase of the run took", labels=("phase",)
    )
    for phase in run.phases:
        phases.add_metric([phase.name], phase.seconds)
    yield phases
    done = run.done
    before = ((log, log.bytes_before) for log in done)
    yield _of_logs("compactor_run_log_before_bytes", "bytes of the segments rewritten", before)
    after = ((log, log.bytes_after) for log in done)
    yield _of_logs("compactor_run_log_after_bytes", "bytes of what was written instead", after)
    freed = ((log, log.bytes_before - log.bytes_after) for log in done)
    yield _of_logs("compactor_run_log_freed_bytes", "the difference", freed)
    left = [log for log in run.logs if log.status in (LogStatus.FAILED, LogStatus.SET_ASIDE)]
    yield _not_cleaned("compactor_run_log_not_cleaned_info", left)


def _cleaned(ending: Ending, run: CleaningReport | None, before: Earlier) -> Metric:
    """Return when each log was last cleaned: of known logs, too, where the run was cut short."""
    what = "when a run last cleaned the log, as far as this file knows"
    family = GaugeMetricFamily(CLEANED, what, labels=LOG_LABELS)
    when_s = dict(before.cleaned_s)
    if run is not None:
        there = {tuple(_labels(log)): log.status for log in run.logs}
        now_s = {of: ending.ended_ms / 1000 for of in there if there[of] is LogStatus.CLEANED}
        when_s = {of: time_s for of, time_s in (when_s | now_s).items() if of in there}
    for labels, time_s in when_s.items():
        family.add_metric(labels, time_s)
    return family


def _not_cleaned(name: str, logs: Iterable[_Log]) -> Metric:
    what = "1 for why the log is not cleaned"
    family = GaugeMetricFamily(name, what, labels=(*LOG_LABELS, "reason_code"))
    for log in logs:
        if log.reason_code is not None:
            family.add_metric([*_labels(log), log.reason_code.value], 1)
    return family


def _counts(command: str, by_status: Mapping[str, float]) -> Metric:
    what = "logs by what became, or would become, of them"
    family = GaugeMetricFamily("compactor_logs", what, labels=("command", "status"))
    for status, count in by_status.items():
        family.add_metric([command, status], count)
    return family


def _of_logs(name: str, what: str, values: Iterable[tuple[_Log, float]]) -> Metric:
    family = GaugeMetricFamily(name, what, labels=LOG_LABELS)
    for log, value in values:
        family.add_metric(_labels(log), value)
    return family


def _gauge(name: str, what: str, labels: Mapping[str, str], value: float = 1) -> Metric:
    family = GaugeMetricFamily(name, what, labels=tuple(labels))
    family.add_metric(list(labels.values()), value)
    return family


def _labels(log: _Log) -> list[str]:
    return [printable(log.log_dir), printable(log.topic), str(log.partition)]


def earlier(previous: bytes) -> Earlier:
    """Read the file that is replaced; what cannot be read of it says nothing.

    Which file a series names does not matter: it may have been moved, or name none.
    """
    lines = [line for line in previous.splitlines() if line.startswith(_BEGINS)]
    try:
        families = list(text_string_to_metric_families(b"\n".join(lines).decode()))
    except ValueError:  # UnicodeDecodeError is one
        families = []
    success_s: dict[str, float] = {}
    cleaned_s: dict[tuple[str, ...], float] = {}
    for sample in (sample for family in families for sample in family.samples):
        if not math.isfinite(sample.value):
            continue
        labels = {name: text for name, text in sample.labels.items() if name != "file"}
        if sample.name == SUCCESS and labels.keys() == {"command"}:
            success_s[labels["command"]] = sample.value
        elif sample.name == CLEANED and labels.keys() == set(LOG_LABELS):
            cleaned_s[tuple(labels[label] for label in LOG_LABELS)] = sample.value
    return Earlier(MappingProxyType(success_s), MappingProxyType(cleaned_s))
