"""What the results are held against. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.bench.results import (
    DRIVER,
    WORKERS,
    Results,
    SwapResult,
    middle,
)
from tests.bench.workloads import (
    COLD,
    DRY_RUN,
    FEW_SEGMENTS,
    FEWER_KEYS,
    GROWTH_LONG,
    GROWTH_SHORT,
    KAFKA,
    LOCAL,
    LOCAL_COLD,
    MAIN,
    MANY_KEYS,
    MANY_SEGMENTS,
    MANY_TXN,
    OURS,
    RUN,
    SMALL,
    TXN,
    WARM,
)

MIB = 1024 * 1024
SPARK = "spark"  # the engines; the other is LOCAL
ENGINES: Mapping[str, tuple[str, str]] = {LOCAL: (LOCAL, LOCAL_COLD), SPARK: (WARM, COLD)}


class Bounds(NamedTuple):
    """The worst value that is allowed, and one that is striven for, if there is one."""

    must: float
    aim: float | None = None


class Goal(NamedTuple):
    """A measured value and its bounds."""

    what: str
    engine: str | None  # LOCAL or SPARK; None: where neither works
    measured: float
    bounds: Bounds
    unit: str
    more_is_better: bool = False

    def rating(self) -> str:
        """Return whether the measured value is as good as these."""
        if self.bounds.aim is not None and self._is_reached(self.bounds.aim):
            return "aim reached"
        return "reached" if self._is_reached(self.bounds.must) else "missed"

    def _is_reached(self, bound: float) -> bool:
        return self.measured >= bound if self.more_is_better else self.measured <= bound


# times as fast as Kafka's cleaner, by the side that is timed
SPEED_GOALS: Mapping[str, Mapping[str, Bounds]] = {
    MAIN: {LOCAL: Bounds(9, 12), WARM: Bounds(8)},
    GROWTH_LONG: {LOCAL: Bounds(12, 14), WARM: Bounds(10.5)},
    "100b-lz4": {LOCAL: Bounds(9.5, 12), WARM: Bounds(8.5)},
    "100b-zstd": {LOCAL: Bounds(8.5, 10), WARM: Bounds(7.7)},
    "1000b-none": {LOCAL: Bounds(3.2, 4), WARM: Bounds(2.8)},
    TXN: {LOCAL: Bounds(9, 12), WARM: Bounds(8)},
    MANY_TXN: {LOCAL: Bounds(6, 8), WARM: Bounds(3.5)},
    "100b-v1": {LOCAL: Bounds(4, 6), WARM: Bounds(3)},
    "100b-v1-gzip": {LOCAL: Bounds(4, 6), WARM: Bounds(3)},
    MANY_KEYS: {WARM: Bounds(15, 25)},
}
# the same of a command that starts for one log; Kafka's cleaner is warm
COLD_SPEED_GOALS: Mapping[str, Mapping[str, Bounds]] = {
    MAIN: {LOCAL_COLD: Bounds(3, 5), COLD: Bounds(1.5)},
    "1000b-none": {LOCAL_COLD: Bounds(1, 1.5), COLD: Bounds(0.37)},
}
# at most: seconds and CPU seconds of a command over the small log
SMALL_GOALS: Mapping[str, tuple[Bounds, Bounds]] = {
    LOCAL_COLD: (Bounds(1, 0.7), Bounds(1.2)),
    COLD: (Bounds(2.9), Bounds(4.7)),
}
# at most: seconds over the many small logs
MANY_LOGS_GOALS: Mapping[str, tuple[str, str, Bounds]] = {
    DRY_RUN: ("dry run", SPARK, Bounds(12, 6)),
    RUN: ("run", SPARK, Bounds(8.9)),
    LOCAL_COLD: ("run", LOCAL, Bounds(5, 3)),
}
# at most: how many times the CPU seconds the bytes take in a thousand times the segments
SEGMENTS_GOALS: Mapping[str, Bounds] = {LOCAL: Bounds(1.25, 1.1), WARM: Bounds(1.36)}
EXECUTORS_TIMES = Bounds(1.25)  # at most: CPU seconds of the same work, the most by the least
PEAK_MIB = Bounds(300)  # at most, of a worker and of the driver
GROWTH_PERCENT = Bounds(10, 5)  # at most
GROWTH_PAIRS = (GROWTH_LONG, GROWTH_SHORT), (MANY_KEYS, FEWER_KEYS)
TABLE_SPEED = Bounds(2, 4)
ENGINE_GOALS = {  # times faster than Kafka's engine, by the beginning of log and operation
    "16 KB batches of 100-byte records: append, many": Bounds(1, 1.5),
    "16 KB batches of 100-byte records: append": Bounds(1 / 5, 1),
    "1 KB batches: append, many": Bounds(1, 3),
    "1 KB batches: append": Bounds(1 / 5, 1),
    "1 KB batches: read": Bounds(1, 1.5),
    "16 KB batches of 100-byte records: read": Bounds(1, 1.5),
    "1 KB batches: offset lookup": Bounds(1 / 3, 1),
    "16 KB batches of 100-byte records: offset lookup": Bounds(1 / 3, 1),
    "1 KB batches: timestamp lookup": Bounds(1 / 3, 1),
    "16 KB batches of 100-byte records: timestamp lookup": Bounds(1 / 3, 1),
    "1 KB batches: load after a crash": Bounds(2, 4),
    "16 KB batches of 100-byte records: load after a crash": Bounds(2, 4),
}


def goals(results: Results) -> Iterator[Goal]:
    """Yield each goal for which there is a measurement."""
    for name, of_sides in SPEED_GOALS.items():
        yield from _speeds(results, name, "warm", of_sides)
    for name, of_sides in COLD_SPEED_GOALS.items():
        yield from _speeds(results, name, "cold", of_sides)
    yield from _small(results)
    yield from _many_logs(results)
    for side, bounds in SEGMENTS_GOALS.items():
        times = segments_ratio(results, side)
        if times is not None:
            what = f"CPU seconds, {MANY_SEGMENTS} ÷ {FEW_SEGMENTS}"
            yield Goal(what, _engine(side), times, bounds, "×")
    for kind, what in ((WORKERS, "largest worker"), (DRIVER, "driver")):
        for engine, sides in ENGINES.items():
            peak = peak_mib(results, kind, sides)
            if peak is not None:
                yield Goal(f"{what}, resident, over all logs", engine, peak, PEAK_MIB, "MiB")
    for long, short in GROWTH_PAIRS:
        for side in (LOCAL, WARM):
            growth = growth_percent(results, side, (long, short))
            if growth is not None:
                what = f"CPU seconds per GB, {long} ÷ {short}: growth"
                yield Goal(what, _engine(side), growth, GROWTH_PERCENT, "%")
    yield from _of_fleets(results)
    for what, speed in results.tables.items():
        name = f"tables: {what}, million records of 100 bytes a CPU second"
        yield Goal(name, None, speed, TABLE_SPEED, "M/s", more_is_better=True)
    for operation in results.engine:
        name = f"{operation.log}: {operation.what}"
        bounds_of = (b for start, b in ENGINE_GOALS.items() if name.startswith(start))
        if (engine_bounds := next(bounds_of, None)) is not None:
            faster = operation.ratio(KAFKA, OURS).of_medians
            yield Goal(f"engine, {name}", None, faster, engine_bounds, "× Kafka", True)
    if results.executors:
        used = [middle(samples).cpu_seconds for samples in results.executors.values()]
        what = "CPU seconds of the same work by 1, 2 and 4 executors and local: most ÷ least"
        yield Goal(what, None, max(used) / min(used), EXECUTORS_TIMES, "×")
    for a_group, more in swap_growth_percent(results).items():
        what = f"swap, {a_group} a group: CPU seconds a segment, longest log against shortest"
        yield Goal(what, None, more, Bounds(20, 5), "%")


def _engine(side: str) -> str:
    return next(engine for engine, sides in ENGINES.items() if side in sides)


def _speeds(
    results: Results, name: str, start: str, of_sides: Mapping[str, Bounds]
) -> Iterator[Goal]:
    log = results.log(name)
    for side, bounds in of_sides.items():
        ratio = log.ratio(KAFKA, side) if log else None
        if ratio:
            what = f"{name}, {start}"
            yield Goal(what, _engine(side), ratio.of_medians, bounds, "× Kafka", True)


def _small(results: Results) -> Iterator[Goal]:
    log = results.log(SMALL)
    taken = {side: sample for side in SMALL_GOALS if log and (sample := log.middle(side))}
    for side, sample in taken.items():
        what = "small, from pressing Enter to the report"
        yield Goal(what, _engine(side), sample.seconds, SMALL_GOALS[side][0], "s")
    for side, sample in taken.items():
        what = "small, the same: CPU seconds"
        yield Goal(what, _engine(side), sample.cpu_seconds, SMALL_GOALS[side][1], "s")


def _many_logs(results: Results) -> Iterator[Goal]:
    for side, (what, engine, bounds) in MANY_LOGS_GOALS.items():
        if many := results.many_logs.get(side):
            name = f"{many.partitions:,} small logs: {what}"
            yield Goal(name, engine, middle(many.samples).seconds, bounds, "s")


def _of_fleets(results: Results) -> Iterator[Goal]:
    opening = "a log manager opens {:,} partitions"
    for found, what, bounds in (
        (results.plan, "plan over {:,} partitions", Bounds(1.2, 0.8)),
        (results.configs, "configs over {:,} partitions", Bounds(0.5)),
        (results.explain, "explain over {:,} partitions", Bounds(0.3)),
        (results.recovery, "recovery of {:,} partitions after a kill", Bounds(20, 10)),
        (results.opening, opening, Bounds(5, 4)),
    ):
        if found:
            seconds = middle(found.samples).seconds
            yield Goal(what.format(found.partitions), None, seconds, bounds, "s")
    if results.opening:
        what = f"{opening.format(results.opening.partitions)}: resident"
        peak = results.opening.peak_rss_bytes / MIB
        yield Goal(what, None, peak, Bounds(500, 300), "MiB")


def segments_ratio(results: Results, side: str) -> float | None:
    """Return how many times the CPU seconds the bytes take in a thousand times the segments."""
    growth = growth_percent(results, side, (MANY_SEGMENTS, FEW_SEGMENTS))
    return None if growth is None else 1 + growth / 100


def swap_growth_percent(results: Results) -> dict[int, float]:
    """Return how much more a segment of the longest log costs than one of the shortest.

    By the number of segments in a group.
    """
    by_shape: dict[int, list[SwapResult]] = {}
    for swap in sorted(results.swaps, key=lambda swap: swap.segments):
        by_shape.setdefault(swap.segments_a_group, []).append(swap)
    return {
        a_group: 100 * (swaps[-1].cpu_ms_a_segment() / swaps[0].cpu_ms_a_segment() - 1)
        for a_group, swaps in by_shape.items()
        if swaps[0].segments < swaps[-1].segments
    }


def peak_mib(results: Results, kind: str, sides: Sequence[str]) -> float | None:
    """Return what the largest process of a kind held, of these sides."""
    peaks = [log.memory.get(side, {}).get(kind) for log in results.logs for side in sides]
    return max((peak.rss_bytes / MIB for peak in peaks if peak), default=None)


def growth_percent(results: Results, side: str, pair: tuple[str, str]) -> float | None:
    """Return how much more CPU a gigabyte of the first takes than one of the second."""
    after, before = (
        log.cpu_seconds_per_gb(side) if (log := results.log(name)) else None for name in pair
    )
    return None if not before or after is None else 100 * (after / before - 1)
