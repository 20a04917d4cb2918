"""What can happen to a log, and in which order: every short sequence, and seeded longer ones."""

import random
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import product
from typing import NamedTuple


class Step(StrEnum):
    RUN = "run"  # that keeps what it replaces
    LATER = "later run"  # by a clock past every horizon, that keeps nothing
    APPEND = "append"  # of a broker, with a roll
    RETAIN = "retain"  # of a broker: its first segment goes
    LOSE = "lose the checkpoint"
    ANEW = "delete and create anew"
    RECOVER = "recover"
    KILL = "kill"  # a run that keeps what it replaces, before one of its changes
    UNDO = "undo"
    DISCARD = "discard"


class Sequence(NamedTuple):
    """A kind of log, what happens to it, and what is left to chance."""

    kind: str
    steps: tuple[Step, ...]
    seed: int

    def __str__(self) -> str:
        return f"{self.kind}, seed {self.seed}: {', '.join(self.steps)}"


def every(kinds: tuple[str, ...], up_to: int) -> Iterator[Sequence]:
    """All of up to so many steps, for each kind of log."""
    for length in range(1, up_to + 1):
        for steps in product(Step, repeat=length):
            for kind in kinds:
                yield Sequence(kind, steps, 0)


def seeded(kinds: tuple[str, ...], seeds: Iterable[int]) -> Iterator[Sequence]:
    """One of four or five steps for each seed. Most begin with a run."""
    for seed in seeds:
        rng = random.Random(seed)
        steps = rng.choices(list(Step), k=rng.choice((4, 5)))
        if rng.random() < 0.5:
            steps[0] = rng.choice((Step.RUN, Step.KILL))
        yield Sequence(rng.choice(kinds), tuple(steps), seed)
