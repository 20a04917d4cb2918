"""Results as Markdown tables, fit for a terminal and for a page of the documentation.

All but `write_between_marks` is pure.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.bench.goals import ENGINES, GROWTH_PAIRS, MIB, Goal, goals, growth_percent
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
from tests.bench.workloads import (
    COLD,
    COPY,
    DRY_RUN,
    GROWTH_LONG,
    KAFKA,
    LOCAL,
    LOCAL_COLD,
    OURS,
    RUN,
    WARM,
)

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
MANY_LOGS_LABELS = {
    KAFKA: "Kafka",
    DRY_RUN: "Spark, dry run",
    RUN: "Spark, run",
    LOCAL_COLD: "local, run",
}
KINDS = (DRIVER, JVM, WORKERS)
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
    return _text(results, [*_main_tables(results), *_other_tables(results)], _growth(results))


def page(results: Results) -> str:
    """Return the tables of the page, which is to stay short."""
    return _text(results, _main_tables(results))


def _text(results: Results, tables: Iterable[Table], more: Iterable[str] = ()) -> str:
    sections = []
    if results.quick:
        sections.append("**A quick run, to try the benchmark out: its numbers mean nothing.**")
    sections.append("\n".join(f"- {name}: {value}" for name, value in results.machine.items()))
    sections += [f"### {title}\n\n{markdown(head, rows)}" for title, head, rows in tables if rows]
    return "\n\n".join([*sections, *more]) + "\n"


def _main_tables(results: Results) -> Iterator[Table]:
    yield _goals_of_engines(results)
    yield _goals_without_engine(results)
    yield _warm(results.logs)
    yield _cold(results.logs)


def _other_tables(results: Results) -> Iterator[Table]:
    yield _rounds(results.logs)
    yield _memory(results.logs)
    yield _fleets(results)
    yield _many_logs(results.many_logs)
    yield _inspection({WARM: results.inspection, LOCAL: results.local_inspection})
    executors = [
        [LABELS.get(name, f"Spark, {name}"), *_numbers(*middle(samples))]
        for name, samples in results.executors.items()
    ]
    title = f"{GROWTH_LONG} by so many executors of one core"
    yield Table(title, ["executors", "seconds", "CPU seconds"], executors)
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


def _goals_of_engines(results: Results) -> Table:
    """Return a row for each goal, with both engines side by side."""
    by_goal: dict[tuple[str, str], dict[str, Goal]] = {}
    for goal in goals(results):
        if goal.engine is not None:
            by_goal.setdefault((goal.what, goal.unit), {})[goal.engine] = goal
    rows = [
        [what, unit, *(cell for engine in ENGINES for cell in _held(of_engines.get(engine)))]
        for (what, unit), of_engines in by_goal.items()
    ]
    head = ["goal", ""]
    for label in ("local", "Spark"):
        head += [label, "must", "aim", "rating"]
    return Table("What each engine has to reach", head, rows)


def _goals_without_engine(results: Results) -> Table:
    rows = [[goal.what, goal.unit, *_held(goal)] for goal in goals(results) if not goal.engine]
    head = ["goal", "", "measured", "must", "aim", "rating"]
    return Table("What the rest has to reach", head, rows)


def _held(goal: Goal | None) -> list[str]:
    if goal is None:
        return [NOTHING] * 4
    return [*_numbers(goal.measured, *goal.bounds), goal.rating()]


def _warm(logs: Sequence[LogResult]) -> Table:
    rows = []
    for log in logs:
        if any(side in log.samples for side in (WARM, LOCAL)):
            read, kept = log.outcome.records_read, log.outcome.records_kept
            shape = [log.name, number(log.log_bytes / 1e6), f"{read:,}", f"{kept / read:.0%}"]
            rows.append([*shape, *_taken(log, KAFKA, LOCAL, WARM)])
    head = ["log", "MB", "records", "kept", *_head_of("Kafka", "local", "Spark")]
    return Table("Warm rounds", head, rows)


def _cold(logs: Sequence[LogResult]) -> Table:
    rows = []
    for log in logs:
        if any(side in log.samples for side in (COLD, LOCAL_COLD)):
            floor = log.middle(COPY)
            copied = number(floor.seconds if floor else None)
            rows.append([log.name, copied, *_taken(log, KAFKA, LOCAL_COLD, COLD)])
    head = ["log", "`cp -r`, s", *_head_of("Kafka, warm", "local", "Spark")]
    return Table("Whole commands, from the shell's prompt to the report", head, rows)


def _head_of(kafka: str, *ours: str) -> list[str]:
    head = [f"{kafka}, s", "CPU s"]
    for label in ours:
        head += [f"{label}, s", "CPU s", f"Kafka ÷ {label}"]
    return head


def _taken(log: LogResult, *sides: str) -> list[str]:
    """Return seconds and CPU seconds of each side, and of all but Kafka how much faster it is."""
    cells = []
    for side in sides:
        cells += _numbers(*(log.middle(side) or (None, None)))
        if side != KAFKA:
            cells.append(_ratio(log.ratio(KAFKA, side)))
    return cells


def _rounds(logs: Sequence[LogResult]) -> Table:
    """Return where the seconds and the CPU seconds of a warm round go."""
    rounds = [
        (log, side, median(first), medians(phases), medians(used))
        for log in logs
        for side, first, phases, used in (
            (WARM, log.first_rounds, log.warm_phases, log.warm_cpu_seconds),
            (LOCAL, log.local_first_rounds, log.local_phases, log.local_cpu_seconds),
        )
        if side in log.samples and phases
    ]
    names = list(dict.fromkeys(name for *_, phases, _ in rounds for name in phases))
    rows = []
    for log, side, first_seconds, phases, used in rounds:
        cells: list[float | None] = [first_seconds, middle(log.samples[side]).seconds]
        cells += [phases.get(name) for name in names]
        cells += [used.get(kind) for kind in KINDS]
        rows.append([log.name, LABELS[side], *_numbers(*cells)])
    head = ["log", "side", "first round", "second, counted", *names]
    head += [f"CPU: {kind}" for kind in KINDS]
    return Table("Parts of a warm round, seconds", head, rows)


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


def _growth(results: Results) -> Iterator[str]:
    for long, short in GROWTH_PAIRS:
        of_sides = {
            side: growth_percent(results, side, (long, short)) for side in (KAFKA, WARM, LOCAL)
        }
        lines = [
            f"- {LABELS[side]}: {change:+.1f} %"
            for side, change in of_sides.items()
            if change is not None
        ]
        if lines:
            title = f"CPU seconds per GB of {long} against {short}"
            yield f"### Growth: {title}\n\n" + "\n".join(lines)


def _fleets(results: Results) -> Table:
    found = {
        "`plan`": results.plan,
        "`configs`": results.configs,
        "`explain`": results.explain,
        "`recover`": results.recovery,
        "a log manager's start": results.opening,
    }
    rows = [
        [
            name,
            f"{fleet.partitions:,}",
            f"{fleet.segments:,}",
            *_numbers(*middle(fleet.samples)),
            f"{fleet.peak_rss_bytes / MIB:,.0f}",
        ]
        for name, fleet in found.items()
        if fleet
    ]
    head = ["command", "partitions", "segments", "seconds", "CPU seconds", "peak memory, MiB"]
    return Table("Many partitions", head, rows)


def _many_logs(sides: Mapping[str, FleetResult]) -> Table:
    head = ["side", "logs", "seconds", "CPU seconds", "CPU ms a log"]
    rows = []
    for side, found in sides.items():
        seconds, cpu_seconds = middle(found.samples)
        numbers = _numbers(seconds, cpu_seconds, 1000 * cpu_seconds / found.partitions)
        rows.append([MANY_LOGS_LABELS[side], f"{found.partitions:,}", *numbers])
    return Table("Many small logs, whole commands", head, rows)


def _inspection(by_side: Mapping[str, InspectionResult | None]) -> Table:
    rows: Rows = []
    for side, found in by_side.items():
        if found is None:
            continue
        peaks = [found.memory.get(kind) for kind in (WORKERS, DRIVER)]
        memory = _numbers(*(peak.rss_bytes / MIB if peak else None for peak in peaks))
        for what, of, to in (
            ("counting ÷ scan", [COUNT], [SCAN]),
            ("inspection ÷ scan and resolve", [COUNT, MERGE], [SCAN, RESOLVE]),
        ):
            name = f"{found.log}: {what}"
            rows.append([name, LABELS[side], _ratio(found.ratio(of, to)), *memory])
    head = ["log: processor time", "side", "ratio", "worker, MiB", "driver, MiB"]
    return Table("`inspect`, beside a dry run", head, rows)


def _numbers(*values: float | None) -> list[str]:
    return list(map(number, values))


def number(value: float | None) -> str:
    """Return three digits that mean something, no more."""
    if value is None:
        return NOTHING
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _ratio(ratio: Ratio | None) -> str:
    if ratio is None:
        return NOTHING
    text = number(ratio.of_medians)
    if ratio.least == ratio.most:
        return text
    return f"{text} ({number(ratio.least)}–{number(ratio.most)})"
