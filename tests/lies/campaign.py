"""Which lies are told about which logs, and what comes of them."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import cycle, islice
from pathlib import Path

from tests.conformance.fleet import Kafkas
from tests.golden import corpora
from tests.lies.about_batches import batch_lies
from tests.lies.about_decisions import decision_lies
from tests.lies.about_indexes import index_lies
from tests.lies.about_rows import row_lies
from tests.lies.judged import Judge, Judged
from tests.lies.lie import Case, Lie
from tests.lies.score import Score, Survivor
from tests.support.local_round import LocalRound

CASES_A_ROUND = 200
TRIES = 20  # of a kind of lie, before it is given up that only one log in ten has a place for


@cache
def lies() -> tuple[Lie, ...]:
    return (*batch_lies(), *index_lies(), *decision_lies(), *row_lies())


@cache
def sources() -> tuple[str, ...]:
    """The golden logs that Kafka's cleaner changes."""
    fleet = corpora.extracted()
    return tuple(
        name
        for name, outcome in sorted(corpora.outcomes().items())
        if outcome is Kafkas.CLEANED and _files(fleet.before / name) != _files(fleet.after / name)
    )


def _files(partition: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in partition.iterdir()}


@dataclass
class _Told:
    """How a kind of lie has done so far."""

    lie: Lie
    untried: list[str]  # sources
    tries: int = 0
    counted: int = 0

    @property
    def goes_on(self) -> bool:
        return bool(self.untried) and (self.tries < TRIES or self.counted * 10 >= self.tries)


@dataclass
class Campaign:
    """Tells lies of all kinds in turn, so that there are about as many of each."""

    local: LocalRound
    root: Path
    score: Score = field(default_factory=Score)

    def run(self, count: int, seed: int, logs: Sequence[str], say: Callable[[str], object]) -> None:
        """Until so many were counted, or none is left to tell about these logs."""
        chance = random.Random(seed)
        told = {
            str(lie): _Told(lie, chance.sample(list(logs), len(logs)))
            for lie in chance.sample(lies(), len(lies()))
        }
        judge = Judge(self.local, self.root)
        while (left := count - self.score.lies) > 0 and (cases := _next(told, left, seed)):
            seen = len(self.score.survived)
            for judged in judge.judge(cases):
                told[str(judged.case.lie)].counted += self.score.take(judged)
            for judged in self.score.survived[seen:]:
                say(f"survived: {judged.case}")
            say(f"{self.score.lies} lies of {self.score.cases} tried")


def _next(told: dict[str, _Told], left: int, seed: int) -> list[Case]:
    """Of each kind in turn, those first of which fewest have counted."""
    some = sorted((each for each in told.values() if each.goes_on), key=lambda e: e.counted)
    cases = []
    for each in islice(cycle(some), min(CASES_A_ROUND, 2 * left)):
        if each.untried:
            each.tries += 1
            cases.append(Case(each.lie, each.untried.pop(), seed))
    return cases


def judged_again(listed: Sequence[Survivor], local: LocalRound, root: Path) -> list[Judged]:
    """What comes of the examples of survivors. KeyError where there is no such kind of lie."""
    by_name = {str(lie): lie for lie in lies()}
    cases = [Case(by_name[each.lie], each.source, each.seed) for each in listed]
    return Judge(local, root).judge(cases) if cases else []
