"""Results as Markdown tables, fit for a terminal and for docs/benchmarks.md. Pure."""

from collections.abc import Iterator, Mapping, Sequence

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
    EngineResult,
    FleetResult,
    InspectionResult,
    LogResult,
    Peak,
    Ratio,
    Results,
    SwapResult,
    medians,
)
from tests.bench.workloads import COLD, COPY, KAFKA, OURS, SIDES, WARM

NOTHING = "–"
LABELS = {KAFKA: "Kafka", COPY: "`cp -r`", COLD: "ours cold", WARM: "ours warm"}
KINDS = (DRIVER, JVM, WORKERS)


def document(results: Results) -> str:
    """All tables that there are results for."""
    return "\n\n".join(_sections(results)) + "\n"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, its columns padded; the first is for names, the others for numbers."""
    widths = [max(map(len, (*column, "--:"))) for column in zip(head, *rows, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]

    def line(cells: Sequence[str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        padded = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
        return f"| {' | '.join(padded)} |"

    return "\n".join([line(head), line(rule), *map(line, rows)])


def _sections(results: Results) -> Iterator[str]:
    if results.quick:
        yield "**A quick run, to try the benchmark out: its numbers mean nothing.**"
    yield "\n".join(f"- {name}: {value}" for name, value in results.machine.items())
    rows = [
        [goal.what, *map(_number, goal.numbers()), goal.unit, goal.rating()]
        for goal in goals(results)
    ]
    if rows:
        head = ["goal", "measured", "at least", "aim", "", "rating"]
        yield "### What it has to reach\n\n" + markdown(head, rows)
    if results.logs:
        yield "### Speed, seconds\n\n" + _speed(results.logs)
        yield "### Ratios of seconds\n\n" + _ratios(results.logs)
        yield "### CPU seconds\n\n" + _cpu(results.logs)
        yield "### Peak memory, MiB\n\n" + _memory(results.logs)
        yield from _phases(results.logs)
        yield from _growth(results)
    if results.plan:
        yield "### `plan`\n\n" + _fleet(results.plan)
    if results.recovery:
        yield "### `recover`\n\n" + _fleet(results.recovery)
    if results.opening:
        yield "### Logs opened by a log manager\n\n" + _fleet(results.opening)
    if results.many_logs:
        yield "### Many small logs, whole commands\n\n" + _many_logs(results.many_logs)
    if results.inspection:
        yield "### `inspect`, beside a dry run\n\n" + _inspection(results.inspection)
    if results.swaps:
        yield "### Swap of one log\n\n" + _swaps(results.swaps)
    if results.engine:
        yield "### The storage engine, microseconds of processor time each\n\n" + _engine(
            results.engine
        )


def _speed(logs: Sequence[LogResult]) -> str:
    head = ["log", "MB", "records", "kept", *(LABELS[side] for side in SIDES)]
    head += ["Kafka, MB/s", "ours warm, MB/s"]
    rows = []
    for log in logs:
        read, kept = log.outcome.records_read, log.outcome.records_kept
        shape = [log.name, _number(log.log_bytes / 1e6), f"{read:,}", f"{kept / read:.0%}"]
        numbers = [log.seconds(side) for side in SIDES]
        numbers += [_speed_mb(log, side) for side in (KAFKA, WARM)]
        rows.append([*shape, *map(_number, numbers)])
    return markdown(head, rows)


def _ratios(logs: Sequence[LogResult]) -> str:
    pairs = [(KAFKA, WARM), (KAFKA, COLD), (WARM, COPY), (COLD, COPY)]
    head = ["log", *(f"{LABELS[slower]} ÷ {LABELS[faster]}" for slower, faster in pairs)]
    return markdown(head, [[log.name, *(_ratio(log.ratio(*p)) for p in pairs)] for log in logs])


def _cpu(logs: Sequence[LogResult]) -> str:
    sides = (KAFKA, COLD, WARM)
    head = ["log", *(LABELS[side] for side in sides), *(f"{LABELS[s]}, per GB" for s in sides)]
    head += [f"ours warm: {kind}" for kind in KINDS]
    rows = []
    for log in logs:
        used = [log.cpu_seconds(side) for side in sides]
        used += [log.cpu_seconds_per_gb(side) for side in sides]
        by_kind = medians(log.warm_cpu_seconds)
        rows.append([log.name, *map(_number, [*used, *(by_kind.get(kind) for kind in KINDS)])])
    return markdown(head, rows)


def _memory(logs: Sequence[LogResult]) -> str:
    head = ["log", "side", DRIVER, JVM, "worker", "worker, PSS", "worker, USS", "all, PSS"]
    rows = []
    for log in logs:
        for side, peaks in log.memory.items():
            worker = peaks.get(WORKERS, Peak())
            sizes = [peaks.get(kind, Peak()).rss_bytes for kind in KINDS]
            sizes += [worker.pss_bytes, worker.uss_bytes, peaks.get(ALL, Peak()).pss_bytes]
            cells = [f"{size / MIB:,.0f}" if size else NOTHING for size in sizes]
            rows.append([log.name, LABELS[side], *cells])
    return markdown(head, rows)


def _phases(logs: Sequence[LogResult]) -> Iterator[str]:
    by_log = {log.name: (log, medians(log.warm_phases)) for log in logs if log.warm_phases}
    names = list(dict.fromkeys(name for _, phases in by_log.values() for name in phases))
    if not names:
        return
    rows = []
    for log, phases in by_log.values():
        total = log.seconds(WARM)
        first_round = medians([{"s": seconds} for seconds in log.first_rounds])
        cells = [first_round.get("s"), total, *(phases.get(name) for name in names)]
        rows.append([log.name, *map(_number, cells)])
    head = ["log", "first round", "second, counted", *names]
    yield "### Phases of a warm round, seconds\n\n" + markdown(head, rows)


def _growth(results: Results) -> Iterator[str]:
    for long, short in GROWTH_PAIRS:
        changes = {s: growth_percent(results, s, (long, short)) for s in (KAFKA, COLD, WARM)}
        if changes[WARM] is None:
            continue
        lines = [f"- {LABELS[side]}: {change:+.1f} %" for side, change in changes.items() if change]
        title = f"CPU seconds per GB of {long} against {short}"
        yield f"### Growth: {title}\n\n" + "\n".join(lines)


def _fleet(found: FleetResult) -> str:
    cpu = medians([{"s": sample.cpu_seconds} for sample in found.samples])["s"]
    head = ["partitions", "segments", "seconds", "CPU seconds", "peak memory, MiB"]
    numbers = [_number(found.seconds()), _number(cpu), f"{found.peak_rss_bytes / MIB:,.0f}"]
    return markdown(head, [[f"{found.partitions:,}", f"{found.segments:,}", *numbers]])


def _many_logs(sides: Mapping[str, FleetResult]) -> str:
    head = ["side", "logs", "seconds", "CPU seconds", "CPU ms a log"]
    rows = []
    for side, found in sides.items():
        cpu = medians([{"s": sample.cpu_seconds} for sample in found.samples])["s"]
        numbers = [found.seconds(), cpu, 1000 * cpu / found.partitions]
        rows.append([LABELS.get(side, side), f"{found.partitions:,}", *map(_number, numbers)])
    return markdown(head, rows)


def _swaps(swaps: Sequence[SwapResult]) -> str:
    head = ["segments", "in a group", "seconds", "CPU ms a segment"]
    rows = []
    for swap in swaps:
        numbers = map(_number, (swap.seconds(), swap.cpu_ms_a_segment()))
        rows.append([f"{swap.segments:,}", str(swap.segments_a_group), *numbers])
    return markdown(head, rows)


def _engine(operations: Sequence[EngineResult]) -> str:
    head = ["log: operation", "Kafka", "ours", "Kafka ÷ ours"]
    rows = []
    for found in operations:
        each = [_number(found.each(side)) for side in (KAFKA, OURS)]
        ratio = _ratio(found.ratio(KAFKA, OURS))
        rows.append([f"{found.log}: {found.what}", *each, ratio])
    return markdown(head, rows)


def _inspection(found: InspectionResult) -> str:
    head = ["log: processor time", "ratio", "worker, MiB", "driver, MiB"]
    memory = [
        _number(found.memory[kind].rss_bytes / MIB if kind in found.memory else None)
        for kind in (WORKERS, DRIVER)
    ]
    first = _ratio(found.ratio([COUNT], [SCAN]))
    both = _ratio(found.ratio([COUNT, MERGE], [SCAN, RESOLVE]))
    return markdown(
        head,
        [
            [f"{found.log}: counting ÷ scan", first, *memory],
            [f"{found.log}: inspection ÷ scan and resolve", both, *memory],
        ],
    )


def _speed_mb(log: LogResult, side: str) -> float | None:
    seconds = log.seconds(side)
    return log.log_bytes / 1e6 / seconds if seconds else None


def _number(value: float | None) -> str:
    """Three digits that mean something, no more."""
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
