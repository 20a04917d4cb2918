"""What was measured, as values, and as JSON so that tables can be made of it again. Pure."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import median
from typing import Any, NamedTuple

SCHEMA_VERSION = 1
DRIVER, JVM, WORKERS, ALL = "driver", "jvm", "workers", "all"
# stages of an inspection, and of the dry run beside it
COUNT, MERGE, SCAN, RESOLVE = "inspect: inspect", "inspect: merge", "run: scan", "run: resolve"


class Sample(NamedTuple):
    """One turn of one side."""

    seconds: float
    cpu_seconds: float  # of all its processes, user and system


class Peak(NamedTuple):
    """The most memory that the largest process of a kind held. Each field's own moment."""

    rss_bytes: int = 0  # with pages that other processes hold too, and of mapped files
    pss_bytes: int = 0  # shared pages divided by those who share them
    uss_bytes: int = 0  # pages that are nobody else's

    def or_more(self, other: "Peak") -> "Peak":
        return Peak(*map(max, self, other))


class Outcome(NamedTuple):
    """What a cleaning did."""

    bytes_after: int  # of the segments that were rewritten
    records_read: int  # Kafka does not count those of aborted transactions
    records_kept: int

    @property
    def left(self) -> tuple[int, int]:
        """What must be the same whoever cleans."""
        return self.bytes_after, self.records_kept


@dataclass(frozen=True, slots=True)
class LogResult:
    """One log, by every side."""

    name: str
    log_bytes: int
    outcome: Outcome
    samples: dict[str, list[Sample]] = field(default_factory=dict)  # by side, a turn each
    first_rounds: list[float] = field(default_factory=list)  # seconds; warm's round not counted
    warm_cpu_seconds: list[dict[str, float]] = field(default_factory=list)  # by kind of process
    warm_phases: list[dict[str, float]] = field(default_factory=list)  # seconds by phase
    memory: dict[str, dict[str, Peak]] = field(default_factory=dict)  # by side, kind of process

    def seconds(self, side: str) -> float | None:
        """The median of the turns; None if this side had none."""
        return _median(sample.seconds for sample in self.samples.get(side, ()))

    def cpu_seconds(self, side: str) -> float | None:
        return _median(sample.cpu_seconds for sample in self.samples.get(side, ()))

    def cpu_seconds_per_gb(self, side: str) -> float | None:
        cpu_seconds = self.cpu_seconds(side)
        return None if cpu_seconds is None else cpu_seconds / (self.log_bytes / 1e9)

    def ratio(self, slower: str, faster: str) -> "Ratio | None":
        """How many times faster: of the medians, and the least and most of any one turn."""
        above, below = self.seconds(slower), self.seconds(faster)
        if above is None or below is None:
            return None
        turns = zip(self.samples[slower], self.samples[faster], strict=True)
        of_turns = [slow.seconds / fast.seconds for slow, fast in turns]
        return Ratio(above / below, min(of_turns), max(of_turns))


class Ratio(NamedTuple):
    of_medians: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class FleetResult:
    """Of a command over a log directory of many logs."""

    partitions: int
    segments: int
    samples: list[Sample]
    peak_rss_bytes: int

    def seconds(self) -> float:
        return median(sample.seconds for sample in self.samples)


@dataclass(frozen=True, slots=True)
class SwapResult:
    """Of the swap of one log."""

    segments: int
    segments_a_group: int
    samples: list[Sample]

    def seconds(self) -> float:
        return median(sample.seconds for sample in self.samples)

    def cpu_ms_a_segment(self) -> float:
        return 1000 * median(sample.cpu_seconds for sample in self.samples) / self.segments


@dataclass(frozen=True, slots=True)
class EngineResult:
    """One operation of the storage engine on one log, by both sides."""

    log: str
    what: str
    # of processor time for each operation; of a side, a turn each
    microseconds: dict[str, list[float]] = field(default_factory=dict)

    def each(self, side: str) -> float:
        return median(self.microseconds[side])

    def ratio(self, slower: str, faster: str) -> Ratio:
        """How many times faster."""
        turns = zip(self.microseconds[slower], self.microseconds[faster], strict=True)
        of_turns = [slow / fast for slow, fast in turns]
        return Ratio(self.each(slower) / self.each(faster), min(of_turns), max(of_turns))


@dataclass(frozen=True, slots=True)
class InspectionResult:
    """Of inspections of one log, each in turn with a dry run."""

    log: str
    cpu_seconds: dict[str, list[float]]  # by stage, a turn each
    memory: dict[str, Peak]  # by kind of process, of both

    def ratio(self, of: Sequence[str], to: Sequence[str]) -> Ratio:
        """Of the sums of some stages to those of others: the median, and single turns."""
        above, below = (
            [sum(turn) for turn in zip(*(self.cpu_seconds[stage] for stage in stages), strict=True)]
            for stages in (of, to)
        )
        of_turns = [a / b for a, b in zip(above, below, strict=True)]
        return Ratio(median(of_turns), min(of_turns), max(of_turns))


@dataclass(frozen=True, slots=True)
class Results:
    """Everything of a run."""

    machine: dict[str, str]  # what it is, and when and how it was measured; shown as it is
    quick: bool = False
    logs: tuple[LogResult, ...] = ()
    plan: FleetResult | None = None
    recovery: FleetResult | None = None
    opening: FleetResult | None = None  # by a log manager
    swaps: tuple[SwapResult, ...] = ()
    many_logs: dict[str, FleetResult] = field(default_factory=dict)  # by side
    # million records a CPU second, by what was done with them
    tables: dict[str, float] = field(default_factory=dict)
    engine: tuple[EngineResult, ...] = ()
    inspection: InspectionResult | None = None

    def log(self, name: str) -> LogResult | None:
        return next((log for log in self.logs if log.name == name), None)


def medians(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The median of each key, in the order of the first row; a key that a row lacks counts 0."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: median(row.get(name, 0.0) for row in rows) for name in names}


def merged(runs: Sequence[Results]) -> Results:
    """Several runs as one: of a log that was measured twice, the later run's."""
    first, *others = runs
    for run in others:
        later = {log.name: log for log in run.logs}
        kept = [later.pop(log.name, log) for log in first.logs]
        first = replace(
            run,
            quick=first.quick or run.quick,
            logs=(*kept, *later.values()),
            plan=run.plan or first.plan,
            recovery=run.recovery or first.recovery,
            opening=run.opening or first.opening,
            swaps=run.swaps or first.swaps,
            many_logs=run.many_logs or first.many_logs,
            tables=run.tables or first.tables,
            engine=run.engine or first.engine,
            inspection=run.inspection or first.inspection,
        )
    return first


def to_json(results: Results) -> str:
    return json.dumps({"schema_version": SCHEMA_VERSION, **asdict(results)}, indent=1) + "\n"


def from_json(text: str) -> Results:
    """Raise ValueError if it is not what to_json writes."""
    document = json.loads(text)
    if not isinstance(document, dict) or document.get("schema_version") != SCHEMA_VERSION:
        raise ValueError(f"not the results of a benchmark of schema version {SCHEMA_VERSION}")
    return Results(
        document["machine"],
        document["quick"],
        tuple(_log(fields) for fields in document["logs"]),
        _fleet(document["plan"]),
        _fleet(document.get("recovery")),
        _fleet(document.get("opening")),
        tuple(SwapResult(**_with_samples(fields)) for fields in document.get("swaps", ())),
        {
            side: FleetResult(**_with_samples(fields))
            for side, fields in document.get("many_logs", {}).items()
        },
        document.get("tables", {}),
        tuple(EngineResult(**fields) for fields in document.get("engine", ())),
        _inspection(document.get("inspection")),
    )


def _inspection(fields: dict[str, Any] | None) -> InspectionResult | None:
    if fields is None:
        return None
    memory = {kind: Peak(*peak) for kind, peak in fields["memory"].items()}
    return InspectionResult(fields["log"], fields["cpu_seconds"], memory)


def _fleet(fields: dict[str, Any] | None) -> FleetResult | None:
    if fields is None:
        return None
    return FleetResult(**_with_samples(fields))


def _with_samples(fields: dict[str, Any]) -> dict[str, Any]:
    return {**fields, "samples": [Sample(*sample) for sample in fields["samples"]]}


def _log(fields: dict[str, Any]) -> LogResult:
    samples = {side: [Sample(*s) for s in turns] for side, turns in fields["samples"].items()}
    memory = {
        side: {kind: Peak(*peak) for kind, peak in peaks.items()}
        for side, peaks in fields["memory"].items()
    }
    outcome = Outcome(*fields["outcome"])
    return LogResult(**{**fields, "outcome": outcome, "samples": samples, "memory": memory})


def _median(numbers: Iterable[float]) -> float | None:
    values = list(numbers)
    return median(values) if values else None
