"""What the results are held against. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from tests.bench.results import DRIVER, WORKERS, Results, SwapResult, middle
from tests.bench.workloads import (
    COLD,
    FEW_SEGMENTS,
    FEWER_KEYS,
    GROWTH_LONG,
    GROWTH_SHORT,
    KAFKA,
    MAIN,
    MANY_KEYS,
    MANY_SEGMENTS,
    MANY_TXN,
    OURS,
    SMALL,
    TXN,
    WARM,
)

MIB = 1024 * 1024


class Goal(NamedTuple):
    what: str
    measured: float
    at_least: float
    aim: float
    unit: str
    more_is_better: bool = False

    def rating(self) -> str:
        """Return whether the measured value is as good as these."""
        if self._is_reached(self.aim):
            return "aim reached"
        return "reached" if self._is_reached(self.at_least) else "missed"

    def _is_reached(self, bound: float) -> bool:
        return self.measured >= bound if self.more_is_better else self.measured <= bound


SPEED_GOALS = {  # times faster than Kafka's cleaner: at least, aim
    MAIN: (6.5, 10),
    GROWTH_LONG: (8.5, 10),
    "1000b-none": (2, 3),
    "100b-lz4": (6.5, 9),
    "100b-zstd": (6, 8),
    TXN: (6, 8),
    MANY_TXN: (2, 4),
    "100b-v1": (2, 4),
    "100b-v1-gzip": (2, 4),
    MANY_KEYS: (15, 25),
}
GROWTH_PAIRS = (GROWTH_LONG, GROWTH_SHORT), (MANY_KEYS, FEWER_KEYS)
TABLE_SPEED = 2, 4  # at least, aim
ENGINE_GOALS = {  # times faster than Kafka's engine, by the beginning of log and operation
    "16 KB batches of 100-byte records: append, many": (1, 1.5),
    "16 KB batches of 100-byte records: append": (1 / 5, 1),
    "1 KB batches: append, many": (1, 3),
    "1 KB batches: append": (1 / 5, 1),
    "1 KB batches: read": (1, 1.5),
    "16 KB batches of 100-byte records: read": (1, 1.5),
    "1 KB batches: offset lookup": (1 / 3, 1),
    "16 KB batches of 100-byte records: offset lookup": (1 / 3, 1),
    "1 KB batches: timestamp lookup": (1 / 3, 1),
    "16 KB batches of 100-byte records: timestamp lookup": (1 / 3, 1),
    "1 KB batches: load after a crash": (2, 4),
    "16 KB batches of 100-byte records: load after a crash": (2, 4),
}
MANY_LOGS_SECONDS = 12, 6  # at most, aim: of a dry run, and of a run


def goals(results: Results) -> Iterator[Goal]:
    """Yield each goal for which there is a measurement."""
    yield from _of_logs(results)
    yield from _of_fleets(results)
    for what, speed in results.tables.items():
        name = f"tables: {what}, million records of 100 bytes a CPU second"
        yield Goal(name, speed, *TABLE_SPEED, "M/s", more_is_better=True)
    for operation in results.engine:
        name = f"{operation.log}: {operation.what}"
        bounds = next((b for start, b in ENGINE_GOALS.items() if name.startswith(start)), None)
        if bounds is not None:
            faster = operation.ratio(KAFKA, OURS).of_medians
            yield Goal(f"engine, {name}", faster, *bounds, "× faster", more_is_better=True)
    times = segments_ratio(results)
    if times is not None:
        what = f"CPU seconds, {MANY_SEGMENTS} against {FEW_SEGMENTS}"
        yield Goal(what, times, 1.5, 1.2, "×")
    for a_group, more in swap_growth_percent(results).items():
        what = f"swap, {a_group} a group: CPU seconds a segment, longest log against shortest"
        yield Goal(what, more, 20, 5, "%")
    for kind, what, at_most, aim in (
        (WORKERS, "largest Python worker", 400, 300),
        (DRIVER, "driver", 1024, 256),
    ):
        peak = peak_mib(results, kind)
        if peak is not None:
            yield Goal(f"{what}, resident, over all logs", peak, at_most, aim, "MiB")
    for long, short in GROWTH_PAIRS:
        growth = growth_percent(results, WARM, (long, short))
        if growth is not None:
            yield Goal(f"CPU seconds per GB, {long} against {short}: growth", growth, 10, 5, "%")


def _of_logs(results: Results) -> Iterator[Goal]:
    for name, bounds in SPEED_GOALS.items():
        log = results.log(name)
        ratio = log.ratio(KAFKA, WARM) if log else None
        if ratio:
            what = f"{name}: warm round against Kafka's cleaner"
            yield Goal(what, ratio.of_medians, *bounds, "× faster", more_is_better=True)
    small = results.log(SMALL)
    cold = small.middle(COLD) if small else None
    if cold:
        yield Goal("small log, from the shell's prompt to the report", cold.seconds, 5.5, 4, "s")
        yield Goal("small log, the same: CPU seconds", cold.cpu_seconds, 5.5, 4, "s")


def _of_fleets(results: Results) -> Iterator[Goal]:
    opening = "a log manager opens {:,} partitions"
    for found, what, at_most, aim in (
        (results.plan, "plan over {:,} partitions", 2, 1),
        (results.recovery, "recovery of {:,} partitions after a kill", 20, 10),
        (results.opening, opening, 5, 4),
    ):
        if found:
            seconds = middle(found.samples).seconds
            yield Goal(what.format(found.partitions), seconds, at_most, aim, "s")
    if results.opening:
        what = f"{opening.format(results.opening.partitions)}: resident"
        yield Goal(what, results.opening.peak_rss_bytes / MIB, 500, 300, "MiB")
    for side, many in results.many_logs.items():
        if side != KAFKA:
            what = f"{many.partitions:,} small logs: {side}"
            yield Goal(what, middle(many.samples).seconds, *MANY_LOGS_SECONDS, "s")


def segments_ratio(results: Results) -> float | None:
    """Return how many times the CPU seconds the bytes take in a thousand times the segments."""
    growth = growth_percent(results, WARM, (MANY_SEGMENTS, FEW_SEGMENTS))
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


def peak_mib(results: Results, kind: str) -> float | None:
    """Return what the largest process of a kind held."""
    peaks = [peaks for log in results.logs for peaks in log.memory.values() if kind in peaks]
    return max((peak[kind].rss_bytes / MIB for peak in peaks), default=None)


def growth_percent(results: Results, side: str, pair: tuple[str, str]) -> float | None:
    """Return how much more CPU a gigabyte of the first takes than one of the second."""
    after, before = (
        log.cpu_seconds_per_gb(side) if (log := results.log(name)) else None for name in pair
    )
    return None if not before or after is None else 100 * (after / before - 1)
