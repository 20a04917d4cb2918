"""A sample of the lies; `make test-lies` tells 5,000. And the score is seen to sink."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from compactor.verification.overdue import Overdue
from tests.golden import corpora
from tests.lies.campaign import Campaign, differences, judged_again
from tests.lies.judged import IN_PROCESS, LOCAL, Finder, Judged
from tests.lies.liar import lies
from tests.lies.lie import Case, Lie, Place
from tests.lies.score import SURVIVED, Score, Survivor, listed_survivors, no_longer_survive
from tests.support.local_round import LocalRound

LOGS = (
    *(f"e23-first-dropped-{codec}-0" for codec in ("none", "gzip", "zstd")),
    "c11.7-horizon-outlives-tombstone-zstd-0",
    "e41-committed-partly-superseded-0",
    "e44-aborted-first-round-0",
    "e47-one-open-one-aborted-0",
    "e50-pairs-0",
    "c8.2-checkpoint-3-0",  # with an offset index
    "random-30-0",
)
COUNT = 40
DECIDED = "what the latest record of a key is: a superseded record stays"


def test_no_lie_of_a_sample_survives_but_those_that_are_listed(
    local: LocalRound, tmp_path: Path
) -> None:
    campaign = Campaign(local, tmp_path / "rounds")
    campaign.run(COUNT, 0, LOGS, lambda _: None)
    assert campaign.problems(listed_survivors()) == []
    assert {*campaign.scores} == {IN_PROCESS, LOCAL}
    for score in campaign.scores.values():
        assert score.lies >= COUNT
        assert score.first and score.caught(Finder.RUN) > 0.3


def test_there_are_logs_to_lie_about() -> None:
    assert {*LOGS} <= {*corpora.partitions()}


def told(name: str, local: LocalRound, root: Path) -> Mapping[str, Score]:
    """What came of one kind of lie, by engine."""
    found = [Survivor(name, "", source, 0) for source in LOGS if not source.startswith("c8.2-")]
    scores = {IN_PROCESS: Score(), LOCAL: Score()}
    for engine, of_engine in judged_again(found, local, root).items():
        for judged in of_engine:
            scores[engine].take(judged)
        assert scores[engine].lies
    return scores


def no_findings(*_: object) -> SimpleNamespace:
    return SimpleNamespace(findings=[])


@pytest.mark.parametrize(
    ("name", "switch_off"),
    [
        (DECIDED, lambda patch: patch.setattr(Overdue, "findings", lambda *_, **__: [])),
        (
            "what the latest record of a key is: a latest record goes",
            lambda patch: patch.setattr("tests.lies.judged.verify_against", no_findings),
        ),
    ],
)
def test_a_proof_that_is_switched_off_lets_lies_survive(
    local: LocalRound,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    switch_off: Callable[[pytest.MonkeyPatch], None],
) -> None:
    for score in told(name, local, tmp_path / "whole").values():
        assert score.problems([]) == []
    with monkeypatch.context() as patch:
        switch_off(patch)
        scores = told(name, local, tmp_path / "without")
    for score in scores.values():
        found = score.problems([])
        assert any(f"survived and is not listed: {name}" in problem for problem in found), found
        assert any("lies were caught" in problem for problem in found)


class TestScore:
    LIE = Lie("a name", Place.LOG, lambda *_: None)

    def judged(self, *finders: Finder, effect: bool = True, end: bool = False) -> Judged:
        case = Case(self.LIE, "log-0", 7)
        return Judged(case, True, effect, frozenset(finders), "told", is_end=end)

    def test_the_first_that_catches_it_is_counted(self) -> None:
        score = Score()
        assert score.take(self.judged(Finder.AGAINST, Finder.RUN))
        assert score.take(self.judged(Finder.VERIFY, Finder.REPORT))
        assert score.first[str(self.LIE)] == {Finder.RUN: 1, Finder.VERIFY: 1}
        assert (score.caught(Finder.RUN), score.problems([])) == (0.5, [])

    def test_what_changes_nothing_is_no_lie(self) -> None:
        score = Score()
        assert not score.take(self.judged(effect=False))
        assert (score.lies, score.cases) == (0, 1)

    def test_a_survivor_is_listed_or_wrong(self) -> None:
        score = Score()
        for _ in range(99):
            score.take(self.judged(Finder.RUN))
        score.take(self.judged())
        assert score.first[str(self.LIE)][SURVIVED] == 1
        [problem] = score.problems([])
        assert problem == "survived and is not listed: the cleaned segment: a name (log-0, seed 7)"
        listed = [Survivor(str(self.LIE), "why", "log-0", 7)]
        assert score.problems(listed) == []
        score.take(self.judged())
        assert score.problems(listed) == ["only 98.02 % of 101 lies were caught"]
        score.take(self.judged(end=True))
        assert any(problem.startswith("ended the whole round") for problem in score.problems([]))

    def test_engines_that_make_something_else_of_the_same_lie_are_a_problem(self) -> None:
        one, other, unnoticed = self.judged(Finder.RUN), self.judged(Finder.AGAINST), self.judged()
        assert differences([one, other], [other, one]) == []
        [problem] = differences([one, one], [one, unnoticed])
        assert problem == (
            "the engines differ: the cleaned segment: a name (log-0, seed 7): told True, effect "
            "True, run noticed: told; told True, effect True, nobody noticed: told"
        )
        [problem] = differences([unnoticed], [replace(unnoticed, left="other files")])
        assert problem.startswith("the engines differ: ")

    def test_a_listed_one_that_is_caught_now_leaves_the_list(self) -> None:
        listed = [Survivor(str(self.LIE), "why", "log-0", 7)]
        assert no_longer_survive(listed, [self.judged()]) == []
        for judged in (self.judged(Finder.RUN), self.judged(effect=False)):
            [problem] = no_longer_survive(listed, [judged])
            assert "is caught now, or changes nothing, and is still listed" in problem


def test_every_listed_survivor_has_a_kind_and_a_reason() -> None:
    names = {str(lie) for lie in lies()}
    assert len(names) == len(lies())
    for survivor in listed_survivors():
        assert survivor.lie in names
        assert len(survivor.reason) > 20
