"""What was measured, as values, and as JSON so that tables can be made of it again. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import median
from types import UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

SCHEMA_VERSION = 1
DRIVER, JVM, WORKERS, ALL = "driver", "jvm", "workers", "all"
# stages of an inspection, and of the dry run beside it
COUNT, MERGE, SCAN, RESOLVE = "inspect: inspect", "inspect: merge", "run: scan", "run: resolve"


class BenchError(Exception):
    """A measurement cannot be made, or what it measured is not what it had to be."""


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


class Ratio(NamedTuple):
    of_medians: float
    least: float  # of any one turn
    most: float


def middle(samples: Sequence[Sample]) -> Sample:
    """Return the median of each field."""
    return Sample(*map(median, zip(*samples, strict=True)))


def ratio_of(above: Sequence[float], below: Sequence[float]) -> Ratio:
    """Return how many times more the one took than the other, a turn each."""
    of_turns = [a / b for a, b in zip(above, below, strict=True)]
    return Ratio(median(above) / median(below), min(of_turns), max(of_turns))


def medians(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the median of each key, in the order of the first row; a key that a row lacks is 0."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: median(row.get(name, 0.0) for row in rows) for name in names}


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
    # of the side `local`, what the three above are of `warm`
    local_first_rounds: list[float] = field(default_factory=list)
    local_cpu_seconds: list[dict[str, float]] = field(default_factory=list)
    local_phases: list[dict[str, float]] = field(default_factory=list)

    def middle(self, side: str) -> Sample | None:
        """Return the median of the turns; None if this side had none."""
        return middle(self.samples[side]) if self.samples.get(side) else None

    def cpu_seconds_per_gb(self, side: str) -> float | None:
        sample = self.middle(side)
        return None if sample is None else sample.cpu_seconds / (self.log_bytes / 1e9)

    def ratio(self, slower: str, faster: str) -> Ratio | None:
        """Return how many times faster one side is by the clock."""
        turns = [[s.seconds for s in self.samples.get(side, ())] for side in (slower, faster)]
        return ratio_of(*turns) if all(turns) else None


@dataclass(frozen=True, slots=True)
class FleetResult:
    """A command over a log directory of many logs."""

    partitions: int
    segments: int
    samples: list[Sample]
    peak_rss_bytes: int


@dataclass(frozen=True, slots=True)
class SwapResult:
    """The swap of one log."""

    segments: int
    segments_a_group: int
    samples: list[Sample]

    def cpu_ms_a_segment(self) -> float:
        return 1000 * middle(self.samples).cpu_seconds / self.segments


@dataclass(frozen=True, slots=True)
class EngineResult:
    """One operation of the storage engine on one log, by both sides."""

    log: str
    what: str
    # of processor time for each operation; of a side, a turn each
    microseconds: dict[str, list[float]] = field(default_factory=dict)

    def ratio(self, slower: str, faster: str) -> Ratio:
        return ratio_of(self.microseconds[slower], self.microseconds[faster])


@dataclass(frozen=True, slots=True)
class InspectionResult:
    """Inspections of one log, each in turn with a dry run."""

    log: str
    cpu_seconds: dict[str, list[float]]  # by stage, a turn each
    memory: dict[str, Peak]  # by kind of process, of both

    def ratio(self, of: Sequence[str], to: Sequence[str]) -> Ratio:
        """Return the ratio of the sums of some stages to those of others."""
        return ratio_of(
            *(
                [
                    sum(turn)
                    for turn in zip(*(self.cpu_seconds[stage] for stage in stages), strict=True)
                ]
                for stages in (of, to)
            )
        )


@dataclass(frozen=True, slots=True)
class Results:
    """Everything of a run."""

    machine: dict[str, str]  # what it is, and when and how it was measured; shown as it is
    quick: bool = False
    logs: tuple[LogResult, ...] = ()
    plan: FleetResult | None = None
    configs: FleetResult | None = None
    explain: FleetResult | None = None  # of one log of them
    recovery: FleetResult | None = None
    opening: FleetResult | None = None  # by a log manager
    swaps: tuple[SwapResult, ...] = ()
    many_logs: dict[str, FleetResult] = field(default_factory=dict)  # by side
    # million records a CPU second, by what was done with them
    tables: dict[str, float] = field(default_factory=dict)
    engine: tuple[EngineResult, ...] = ()
    inspection: InspectionResult | None = None  # on Spark
    local_inspection: InspectionResult | None = None
    # rounds over one log, by the number of executors, and of LOCAL; a turn each
    executors: dict[str, list[Sample]] = field(default_factory=dict)

    def log(self, name: str) -> LogResult | None:
        return next((log for log in self.logs if log.name == name), None)


def merged(runs: Sequence[Results]) -> Results:
    """Return several runs as one: of what was measured twice, the later run's."""
    first, *others = runs
    for run in others:
        later = {log.name: log for log in run.logs}
        logs = [later.pop(log.name, log) for log in first.logs]
        either = {name: getattr(run, name) or getattr(first, name) for name in asdict(run)}
        first = replace(first, **either | {"logs": (*logs, *later.values())})
    return first


def to_json(results: Results) -> str:
    return json.dumps({"schema_version": SCHEMA_VERSION, **asdict(results)}, indent=1) + "\n"


def from_json(text: str) -> Results:
    """Raise ValueError, KeyError or TypeError if it is not what to_json writes."""
    document = json.loads(text)
    if not isinstance(document, dict) or document.pop("schema_version", 0) != SCHEMA_VERSION:
        raise ValueError(f"not the results of a benchmark of schema version {SCHEMA_VERSION}")
    found: Results = value_of(Results, document)
    return found


def value_of(kind: Any, data: Any) -> Any:
    """Return what JSON data stand for in a field of this type."""
    origin, inner = get_origin(kind), get_args(kind)
    if data is None or kind in (int, float, str, bool):
        return data
    if origin is UnionType:  # with None
        return value_of(inner[0], data)
    if origin in (list, tuple):
        return origin(value_of(inner[0], each) for each in data)
    if origin is dict:
        return {key: value_of(inner[1], each) for key, each in data.items()}
    kinds = get_type_hints(kind)
    fields = data if isinstance(data, dict) else dict(zip(kinds, data, strict=True))
    return kind(**{name: value_of(kinds[name], each) for name, each in fields.items()})
