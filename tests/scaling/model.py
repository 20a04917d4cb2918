"""The processor seconds of a round as a sum: so much for each unit of each thing. Pure.

The weights are those, none below zero, by which the squares of the relative errors over all
measured rounds are least. One sum is of the tasks, which share the cores, one of the driver.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

UNITS = {  # of what is counted, in the sums
    "round": 1.0,
    "GB": 1e9,
    "million records": 1e6,
    "million keys": 1e6,
    "thousand segments": 1e3,
    "thousand logs": 1e3,
    "thousand transactions": 1e3,
}
OF_TASKS = tuple(UNITS)[1:]
OF_DRIVER = ("round", "GB", "thousand segments", "thousand logs", "thousand transactions")


class Size(NamedTuple):
    """What a round is over."""

    log_bytes: int
    records: int
    keys: int  # different ones
    segments: int
    logs: int = 1
    transactions: int = 0

    def counts(self) -> dict[str, float]:
        """In the units of the sums."""
        return dict(
            zip(
                UNITS,
                (count / unit for count, unit in zip((1, *self), UNITS.values(), strict=True)),
                strict=True,
            )
        )


class Point(NamedTuple):
    """A measured round."""

    name: str
    size: Size
    task_seconds: float  # of the processor
    driver_seconds: float


Weights = Mapping[str, float]  # processor seconds a unit


class Model(NamedTuple):
    of_tasks: Weights
    of_driver: Weights

    def task_seconds(self, size: Size) -> float:
        return _sum(self.of_tasks, size)

    def driver_seconds(self, size: Size) -> float:
        return _sum(self.of_driver, size)

    def seconds(self, size: Size, cores: int) -> float:
        """Of waiting, if the tasks keep all cores busy and the driver has nobody beside it."""
        return self.driver_seconds(size) + self.task_seconds(size) / cores


def fit(points: Sequence[Point]) -> Model:
    sizes = [point.size for point in points]
    return Model(
        _fitted(OF_TASKS, sizes, [point.task_seconds for point in points]),
        _fitted(OF_DRIVER, sizes, [point.driver_seconds for point in points]),
    )


def _sum(weights: Weights, size: Size) -> float:
    counts = size.counts()
    return sum(weight * counts[name] for name, weight in weights.items())


def _fitted(names: Sequence[str], sizes: Sequence[Size], seconds: Sequence[float]) -> Weights:
    """Of every choice of names with weights above zero, the one with the least error."""
    measured = np.array(seconds)
    rows = np.array([[size.counts()[name] for name in names] for size in sizes])
    relative = rows / measured[:, None]
    best, least = dict.fromkeys(names, 0.0), float("inf")
    for count in range(1, len(names) + 1):
        for chosen in combinations(range(len(names)), count):
            own = relative[:, chosen]
            weights = np.linalg.lstsq(own, np.ones(len(measured)), rcond=None)[0]
            error = float(((own @ weights - 1) ** 2).sum())
            if (weights >= 0).all() and error < least:
                least = error
                found = dict(zip((names[n] for n in chosen), weights.tolist(), strict=True))
                best = dict.fromkeys(names, 0.0) | found
    return best
