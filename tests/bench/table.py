"""Results as Markdown tables, fit for a terminal and for a page of the documentation.

All but `write_between_marks` is pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.bench.goals import GROWTH_PAIRS, MIB, goals, growth_percent
from tests.bench.results import (
    ALL,
    COUNT,
    DRIVER,
    JVM,
    MERGE,
    RESOLVE,
    SCAN,
    WORKERS,
    BenchError,
    FleetResult,
    InspectionResult,
    LogResult,
    Peak,
    Ratio,
    Results,
    medians,
    middle,
)
from tests.bench.workloads import COLD, COPY, KAFKA, LOCAL, LOCAL_COLD, OURS, SIDES, WARM

PAGES = Path(__file__).resolve().parents[2] / "docs"
NOTHING = "–"
LABELS = {
    KAFKA: "Kafka",
    COPY: "`cp -r`",
    COLD: "Spark cold",
    WARM: "Spark warm",
    LOCAL_COLD: "local cold",
    LOCAL: "local warm",
}
KINDS = (DRIVER, JVM, WORKERS)
LOCAL_KINDS = (DRIVER, WORKERS)
Rows = list[list[str]]


class Table(NamedTuple):
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


def write_between_marks(page: Path, target: str, tables: str) -> None:
    """Put tables in place of what stands between the marks of a make target."""
    text = page.read_text("utf-8")
    begin, end = (f"<!-- {which}: written by make {target} -->" for which in ("begin", "end"))
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise BenchError(f"{page.name}: expected one line {begin!r}, and {end!r} after it")
    before, after = text[: text.index(begin)], text[text.index(end) :]
    page.write_text(f"{before}{begin}\n\n{tables.strip()}\n\n{after}", "utf-8")


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table, its columns padded; the first is for names, the others for numbers."""
    widths = [max(map(len, (*column, "--:"))) for column in zip(head, *rows, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]

    def line(cells: Sequence[str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        padded = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
        return f"| {' | '.join(padded)} |"

    return "\n".join([line(head), line(rule), *map(line, rows)])


def document(results: Results) -> str:
    """Return all tables that there are results for."""
    return "\n\n".join(_sections(results)) + "\n"


def _sections(results: Results) -> Iterator[str]:
    if results.quick:
        yield "**A quick run, to try the benchmark out: its numbers mean nothing.**"
    yield "\n".join(f"- {name}: {value}" for name, value in results.machine.items())
    for title, head, rows in _tables(results):
        if rows:
            yield f"### {title}\n\n{markdown(head, rows)}"
        if title.startswith("Phases"):
            yield from _growth(results)


def _tables(results: Results) -> Iterator[Table]:
    rated = [
        [goal.what, *_numbers(*goal[1:4]), goal.unit, goal.rating()] for goal in goals(results)
    ]
    head = ["goal", "measured", "at least", "aim", "", "rating"]
    yield Table("What it has to reach", head, rated)
    yield _speed(results.logs)
    yield _ratios(results.logs)
    yield _cpu(results.logs)
    yield _memory(results.logs)
    yield _phases(results.logs)
    yield _fleet("`plan`", results.plan)
    yield _fleet("`recover`", results.recovery)
    yield _fleet("Logs opened by a log manager", results.opening)
    yield _many_logs(results.many_logs)
    yield _inspection(results.inspection)
    swaps = [
        [
            f"{swap.segments:,}",
            str(swap.segments_a_group),
            *_numbers(middle(swap.samples).seconds, swap.cpu_ms_a_segment()),
        ]
        for swap in results.swaps
    ]
    yield Table("Swap of one log", ["segments", "in a group", "seconds", "CPU ms a segment"], swaps)
    engine = [
        [
            f"{found.log}: {found.what}",
            *_numbers(*(median(found.microseconds[side]) for side in (KAFKA, OURS))),
            _ratio(found.ratio(KAFKA, OURS)),
        ]
        for found in results.engine
    ]
    head = ["log: operation", "Kafka", "ours", "Kafka ÷ ours"]
    yield Table("The storage engine, microseconds of processor time each", head, engine)


def _speed(logs: Sequence[LogResult]) -> Table:
    head = ["log", "MB", "records", "kept", *(LABELS[side] for side in SIDES)]
    head += ["Kafka, MB/s", "Spark warm, MB/s", "local warm, MB/s"]
    rows = []
    for log in logs:
        read, kept = log.outcome.records_read, log.outcome.records_kept
        size_mb = log.log_bytes / 1e6
        seconds = {side: s.seconds if (s := log.middle(side)) else None for side in SIDES}
        speeds = [size_mb / n if (n := seconds[side]) else None for side in (KAFKA, WARM, LOCAL)]
        shape = [log.name, _number(size_mb), f"{read:,}", f"{kept / read:.0%}"]
        rows.append([*shape, *_numbers(*seconds.values(), *speeds)])
    return Table("Speed, seconds", head, rows)


def _ratios(logs: Sequence[LogResult]) -> Table:
    pairs = [(KAFKA, LOCAL), (KAFKA, LOCAL_COLD), (KAFKA, WARM), (KAFKA, COLD), (LOCAL, COPY)]
    head = ["log", *(f"{LABELS[slower]} ÷ {LABELS[faster]}" for slower, faster in pairs)]
    rows = [[log.name, *(_ratio(log.ratio(*pair)) for pair in pairs)] for log in logs]
    return Table("Ratios of seconds", head, rows)


def _cpu(logs: Sequence[LogResult]) -> Table:
    sides = (KAFKA, COLD, WARM, LOCAL_COLD, LOCAL)
    head = ["log", *(LABELS[side] for side in sides), *(f"{LABELS[s]}, per GB" for s in sides)]
    head += [f"{LABELS[WARM]}: {kind}" for kind in KINDS]
    head += [f"{LABELS[LOCAL]}: {kind}" for kind in LOCAL_KINDS]
    rows = []
    for log in logs:
        used = [s.cpu_seconds if (s := log.middle(side)) else None for side in sides]
        used += [log.cpu_seconds_per_gb(side) for side in sides]
        by_kind, by_local_kind = medians(log.warm_cpu_seconds), medians(log.local_cpu_seconds)
        used += [by_kind.get(kind) for kind in KINDS]
        used += [by_local_kind.get(kind) for kind in LOCAL_KINDS]
        rows.append([log.name, *_numbers(*used)])
    return Table("CPU seconds", head, rows)


def _memory(logs: Sequence[LogResult]) -> Table:
    head = ["log", "side", DRIVER, JVM, "worker", "worker, PSS", "worker, USS", "all, PSS"]
    rows = []
    for log in logs:
        for side, peaks in log.memory.items():
            worker = peaks.get(WORKERS, Peak())
            sizes = [peaks.get(kind, Peak()).rss_bytes for kind in KINDS]
            sizes += [worker.pss_bytes, worker.uss_bytes, peaks.get(ALL, Peak()).pss_bytes]
            cells = [f"{size / MIB:,.0f}" if size else NOTHING for size in sizes]
            rows.append([log.name, LABELS[side], *cells])
    return Table("Peak memory, MiB", head, rows)


def _phases(logs: Sequence[LogResult]) -> Table:
    rounds = [
        (log, side, median(first), medians(phases))
        for log in logs
        for side, first, phases in (
            (WARM, log.first_rounds, log.warm_phases),
            (LOCAL, log.local_first_rounds, log.local_phases),
        )
        if phases
    ]
    names = list(dict.fromkeys(name for *_, phases in rounds for name in phases))
    rows = []
    for log, side, first_seconds, phases in rounds:
        counted = middle(log.samples[side]).seconds
        cells = _numbers(first_seconds, counted, *(phases.get(name) for name in names))
        rows.append([log.name, LABELS[side], *cells])
    head = ["log", "side", "first round", "second, counted", *names]
    return Table("Phases of a warm round, seconds", head, rows)


def _growth(results: Results) -> Iterator[str]:
    for long, short in GROWTH_PAIRS:
        changes = {s: growth_percent(results, s, (long, short)) for s in (KAFKA, COLD, WARM, LOCAL)}
        if changes[WARM] is None:
            continue
        lines = [f"- {LABELS[side]}: {change:+.1f} %" for side, change in changes.items() if change]
        title = f"CPU seconds per GB of {long} against {short}"
        yield f"### Growth: {title}\n\n" + "\n".join(lines)


def _fleet(title: str, found: FleetResult | None) -> Table:
    head = ["partitions", "segments", "seconds", "CPU seconds", "peak memory, MiB"]
    if found is None:
        return Table(title, head, [])
    numbers = [*_numbers(*middle(found.samples)), f"{found.peak_rss_bytes / MIB:,.0f}"]
    return Table(title, head, [[f"{found.partitions:,}", f"{found.segments:,}", *numbers]])


def _many_logs(sides: Mapping[str, FleetResult]) -> Table:
    head = ["side", "logs", "seconds", "CPU seconds", "CPU ms a log"]
    rows = []
    for side, found in sides.items():
        seconds, cpu_seconds = middle(found.samples)
        numbers = _numbers(seconds, cpu_seconds, 1000 * cpu_seconds / found.partitions)
        rows.append([LABELS.get(side, side), f"{found.partitions:,}", *numbers])
    return Table("Many small logs, whole commands", head, rows)


def _inspection(found: InspectionResult | None) -> Table:
    rows: Rows = []
    if found is not None:
        peaks = [found.memory.get(kind) for kind in (WORKERS, DRIVER)]
        memory = _numbers(*(peak.rss_bytes / MIB if peak else None for peak in peaks))
        for what, of, to in (
            ("counting ÷ scan", [COUNT], [SCAN]),
            ("inspection ÷ scan and resolve", [COUNT, MERGE], [SCAN, RESOLVE]),
        ):
            rows.append([f"{found.log}: {what}", _ratio(found.ratio(of, to)), *memory])
    head = ["log: processor time", "ratio", "worker, MiB", "driver, MiB"]
    return Table("`inspect`, beside a dry run", head, rows)


def _numbers(*values: float | None) -> list[str]:
    return list(map(_number, values))


def _number(value: float | None) -> str:
    """Return three digits that mean something, no more."""
    if value is None:
        return NOTHING
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _ratio(ratio: Ratio | None) -> str:
    if ratio is None:
        return NOTHING
    text = _number(ratio.of_medians)
    if ratio.least == ratio.most:
        return text
    return f"{text} ({_number(ratio.least)}–{_number(ratio.most)})"
