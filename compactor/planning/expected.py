"""Say what a run is expected to free and in what time, and compare that with the run. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from cleaner_jobs.messages import LogPlan
from compactor.host.printable import counted, duration_text, size_text
from compactor.host.run_history import Pace
from compactor.outcome.json_values import written
from compactor.outcome.round_report import CleaningReport


class SampledLog(NamedTuple):
    """A log that a sample is taken of, as it travels to the task that does so."""

    log: LogPlan
    as_of_ms: int  # of its plan
    sample_bytes: int  # read at most; a log of no more is read whole


class Estimate(NamedTuple):
    """What share of the bytes that are read and rewritten would go."""

    least: float | None  # None: it cannot be told
    most: float | None
    read_bytes: int
    problem: str | None = None  # why it cannot be told

    @property
    def is_exact(self) -> bool:
        return self.least is not None and self.least == self.most


Estimates = Mapping[str, Estimate]  # by partition directory


@dataclass(frozen=True, slots=True)
class Expected:
    """Of a run over the logs of a plan."""

    seconds: float = field(metadata=written(digits=1))
    runs: int  # of this machine that the time is known from; 0: a careful guess
    least_bytes: int | None = None  # that would go, of the logs with an estimate; None: no sample
    most_bytes: int | None = None
    read_bytes: int = 0  # of the sample
    untold: int = 0  # logs of which it cannot be told


class Gain(NamedTuple):
    """Bytes that a run would free of some logs, by a sample."""

    least_bytes: int
    most_bytes: int
    untold: int  # logs of which it cannot be told


def no_estimate(read_bytes: int, problem: str) -> Estimate:
    """Return the estimate of a log whose share cannot be said, with the reason."""
    return Estimate(None, None, read_bytes, problem)


def expected_of(logs: Iterable[LogPlan], pace: Pace, estimates: Estimates | None) -> Expected:
    """Sum up the logs of a plan. estimates: None if nothing was sampled."""
    logs = list(logs)
    log_bytes = sum(log.log_bytes for log in logs)
    known = Expected(seconds=pace.seconds(log_bytes) if logs else 0.0, runs=pace.runs)
    if estimates is None:
        return known
    gain = gain_of(logs, estimates)
    return replace(
        known,
        least_bytes=gain.least_bytes,
        most_bytes=gain.most_bytes,
        read_bytes=sum(found.read_bytes for found in estimates.values()),
        untold=gain.untold,
    )


def gain_of(logs: Iterable[LogPlan], estimates: Estimates) -> Gain:
    """Sum up what the samples of these logs say."""
    logs = list(logs)
    told = [(log, estimates[log.path]) for log in logs if estimates[log.path].least is not None]
    return Gain(
        least_bytes=round(sum(log.log_bytes * (found.least or 0) for log, found in told)),
        most_bytes=round(sum(log.log_bytes * (found.most or 0) for log, found in told)),
        untold=len(logs) - len(told),
    )


def gain_text(gain: Gain) -> str:
    """From the least to the most, without the logs that cannot be estimated."""
    least, most = size_text(gain.least_bytes), size_text(gain.most_bytes)
    return least if least == most else f"{least} to {most}"


def expected_lines(expected: Expected) -> list[str]:
    """For a person, a sentence each."""
    lines = []
    is_sampled = expected.read_bytes or expected.untold
    if is_sampled and expected.least_bytes is not None and expected.most_bytes is not None:
        freed = gain_text(Gain(expected.least_bytes, expected.most_bytes, expected.untold))
        untold = f"; of {counted(expected.untold, 'log')} it cannot be told" * bool(expected.untold)
        sample = f"by a sample of {size_text(expected.read_bytes)}"
        lines.append(f"A run would free {freed}, {sample}{untold}")
    if expected.seconds:
        known = f"the last {counted(expected.runs, 'run')} here" if expected.runs else "a guess"
        lines.append(f"It would take about {_about(expected.seconds)}, by {known}")
    return lines


def compare_with_run(expected: Mapping[str, Any], report: CleaningReport) -> str:
    """What a saved plan had expected, beside what became of it: one sentence."""
    freed = sum(log.bytes_before - log.bytes_after for log in report.done)
    took, thought = (_about(seconds) for seconds in (report.seconds, expected["seconds"]))
    text = f"The plan expected {thought}, it took {took}"
    if expected["least_bytes"] is None:
        return text
    least, most = (size_text(expected[name]) for name in ("least_bytes", "most_bytes"))
    within = expected["least_bytes"] <= freed <= expected["most_bytes"]
    missed = "" if within or expected["untold"] else ", which is outside of that"
    return f"{text}; it expected to free {least} to {most}, and {size_text(freed)} went{missed}"


def _about(seconds: float) -> str:
    """Whole seconds: it is not known better."""
    return duration_text(max(round(seconds), 1) * 1000)
