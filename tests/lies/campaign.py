"""Which lies are told about which logs, and what comes of them."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import cycle, islice
from pathlib import Path

from tests.conformance.fleet import Kafkas
from tests.golden import corpora
from tests.lies.judged import IN_PROCESS, LOCAL, Judge, Judged, judges
from tests.lies.liar import lies
from tests.lies.lie import Case, Lie
from tests.lies.score import Score, Survivor
from tests.support.local_round import LocalRound

CASES_A_ROUND = 200
TRIES = 20  # of a kind of lie, before it is given up that only one log in ten has a place for


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
    """Tells lies of all kinds in turn, so that there are about as many of each, on both engines."""

    local: LocalRound
    root: Path
    scores: Mapping[str, Score] = field(
        default_factory=lambda: {IN_PROCESS: Score(), LOCAL: Score()}
    )  # by engine
    different: list[str] = field(default_factory=list)  # what the engines made of the same lie

    def run(self, count: int, seed: int, logs: Sequence[str], say: Callable[[str], object]) -> None:
        """Until so many were counted, or none is left to tell about these logs."""
        chance = random.Random(seed)
        told = {
            str(lie): _Told(lie, chance.sample(list(logs), len(logs)))
            for lie in chance.sample(lies(), len(lies()))
        }
        score = self.scores[IN_PROCESS]
        with judges(self.local, self.root) as by_engine:
            while (left := count - score.lies) > 0 and (cases := _next(told, left, seed)):
                seen = len(score.survived)
                for judged in self._judge(cases, by_engine):
                    told[str(judged.case.lie)].counted += judged.counts
                for judged in score.survived[seen:]:
                    say(f"survived: {judged.case}")
                say(f"{score.lies} lies of {score.cases} tried")

    def _judge(self, cases: Sequence[Case], by_engine: Mapping[str, Judge]) -> list[Judged]:
        """Let all engines meet the same lies; return what came of them in this process."""
        found = {name: judge.judge(cases) for name, judge in by_engine.items()}
        for name, score in self.scores.items():
            for judged in found[name]:
                score.take(judged)
        self.different += differences(found[IN_PROCESS], found[LOCAL])
        return found[IN_PROCESS]

    def problems(self, listed: Sequence[Survivor]) -> list[str]:
        """What is not as it has to be, on each engine."""
        of_scores = [
            f"{name}: {problem}"
            for name, score in self.scores.items()
            for problem in score.problems(listed)
        ]
        return [*of_scores, *self.different]


def _next(told: dict[str, _Told], left: int, seed: int) -> list[Case]:
    """Of each kind in turn, those first of which fewest have counted."""
    some = sorted((each for each in told.values() if each.goes_on), key=lambda e: e.counted)
    cases = []
    for each in islice(cycle(some), min(CASES_A_ROUND, 2 * left)):
        if each.untried:
            each.tries += 1
            cases.append(Case(each.lie, each.untried.pop(), seed))
    return cases


def differences(one: Sequence[Judged], other: Sequence[Judged]) -> list[str]:
    """What two engines made of the same lies where it is not the same.

    Whether a round notices a lie itself, or leaves it to `verify`, may hang on whether a group was
    swapped in before the next one was looked at. So it has to be noticed on both, by whomever.
    """
    return [
        f"the engines differ: {a.case}: {_said(a)}; {_said(b)}"
        for a, b in zip(one, other, strict=True)
        if _outcome(a) != _outcome(b)
    ]


def _outcome(judged: Judged) -> tuple[bool, bool, bool, str]:
    """Return whether a lie was told, ended the round, was noticed, and what it left if not."""
    is_noticed = bool(judged.finders)
    return judged.is_told, judged.is_end, is_noticed, "" if is_noticed else judged.left


def _said(judged: Judged) -> str:
    finders = ", ".join(sorted(judged.finders)) or "nobody"
    return f"told {judged.is_told}, effect {judged.has_effect}, {finders} noticed: {judged.told}"


def judged_again(
    listed: Sequence[Survivor], local: LocalRound, root: Path
) -> Mapping[str, list[Judged]]:
    """What comes of the examples of survivors, by engine. KeyError for an unknown kind of lie."""
    by_name = {str(lie): lie for lie in lies()}
    cases = [Case(by_name[each.lie], each.source, each.seed) for each in listed]
    with judges(local, root) as by_engine:
        return {name: judge.judge(cases) for name, judge in by_engine.items() if cases}
