"""What the results are held against. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from tests.bench.results import WORKERS, Results, SwapResult
from tests.bench.workloads import COLD, GROWTH_LONG, GROWTH_SHORT, KAFKA, MAIN, SMALL, TXN, WARM

MIB = 1024 * 1024


class Goal(NamedTuple):
    what: str
    measured: float
    at_least: float
    aim: float
    unit: str
    more_is_better: bool = False

    def numbers(self) -> tuple[float, float, float]:
        return self.measured, self.at_least, self.aim

    def rating(self) -> str:
        """Whether the measured value, as it stands there, is as good as these."""
        if self._is_reached(self.aim):
            return "aim reached"
        return "reached" if self._is_reached(self.at_least) else "missed"

    def _is_reached(self, bound: float) -> bool:
        return self.measured >= bound if self.more_is_better else self.measured <= bound


SPEED_GOALS = {  # times faster than Kafka's cleaner: at least, aim
    MAIN: (4, 10),
    "1000b-none": (2.5, 5),
    "100b-lz4": (4, 10),
    "100b-zstd": (4, 10),
    TXN: (4, 10),
}


def goals(results: Results) -> Iterator[Goal]:
    """Each goal for which there is a measurement."""
    for name, (at_least, aim) in SPEED_GOALS.items():
        log = results.log(name)
        ratio = log.ratio(KAFKA, WARM) if log else None
        if ratio:
            what = f"{name}: warm round against Kafka's cleaner"
            yield Goal(what, ratio.of_medians, at_least, aim, "× faster", more_is_better=True)
    small = results.log(SMALL)
    seconds = small.seconds(COLD) if small else None
    if seconds is not None:
        yield Goal("small log, from the shell's prompt to the report", seconds, 15, 8, "s")
    if results.plan:
        what = f"plan over {results.plan.partitions:,} partitions"
        yield Goal(what, results.plan.seconds(), 15, 5, "s")
    if results.recovery:
        what = f"recovery of {results.recovery.partitions:,} partitions after a kill"
        yield Goal(what, results.recovery.seconds(), 20, 10, "s")
    for a_group, more in swap_growth_percent(results).items():
        what = f"swap, {a_group} a group: CPU seconds a segment, longest log against shortest"
        yield Goal(what, more, 20, 5, "%")
    workers = worker_peak_mib(results)
    if workers is not None:
        yield Goal("largest Python worker, resident, over all logs", workers, 700, 400, "MiB")
    growth = growth_percent(results, WARM)
    if growth is not None:
        what = f"CPU seconds per GB, {GROWTH_LONG} against {GROWTH_SHORT}: growth"
        yield Goal(what, growth, 20, 5, "%")


def swap_growth_percent(results: Results) -> dict[int, float]:
    """How much more a segment of the longest log costs than one of the shortest, by their number
    in a group."""
    by_shape: dict[int, list[SwapResult]] = {}
    for swap in sorted(results.swaps, key=lambda swap: swap.segments):
        by_shape.setdefault(swap.segments_a_group, []).append(swap)
    return {
        a_group: 100 * (swaps[-1].cpu_ms_a_segment() / swaps[0].cpu_ms_a_segment() - 1)
        for a_group, swaps in by_shape.items()
        if swaps[0].segments < swaps[-1].segments
    }


def worker_peak_mib(results: Results) -> float | None:
    peaks = [
        peaks[WORKERS].rss_bytes / MIB
        for log in results.logs
        for peaks in log.memory.values()
        if WORKERS in peaks
    ]
    return max(peaks, default=None)


def growth_percent(results: Results, side: str) -> float | None:
    """How much more CPU a gigabyte of the long log takes than one of the short; below 0: less."""
    short, long = results.log(GROWTH_SHORT), results.log(GROWTH_LONG)
    before = short.cpu_seconds_per_gb(side) if short else None
    after = long.cpu_seconds_per_gb(side) if long else None
    return None if not before or after is None else 100 * (after / before - 1)
