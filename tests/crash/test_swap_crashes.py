"""A sample of the crash states of real runs, brought up as Kafka's loader does it: nothing is lost.

All of them, with Kafka's own loader and cleaner: `make test-crash`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.crash.matrix import (
    OURS,
    OURS_UNCLEAN,
    Matrix,
    Recorded,
    Recovery,
    crashes_of_recovery,
    recorded,
    sample,
)
from tests.crash.slow_loader import load_log_dir
from tests.crash.states import STAGED, TEMPORARY, CrashState, crash_states, kill_states
from tests.crash.stories import STORIES, Story

SAMPLE = 12  # of the power cuts of each story, and as many of its kills; `.ci/run` has 25


def load_all(story: Story, root: Path) -> Mapping[str, str]:
    del story
    errors = {}
    for log_dir in root.iterdir():
        try:
            load_log_dir(log_dir)
        except Exception as error:  # of a segment that is no segment
            errors[log_dir.name] = repr(error)
    return errors


SLOW_LOADER = Recovery("the slow loader", load_all, (STAGED, TEMPORARY))


class Cut(NamedTuple):
    """A story, and every state in which a crash can leave it."""

    run: Recorded
    states: list[CrashState]


@pytest.fixture(scope="module", params=STORIES, ids=lambda story: story.name)
def cut(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Cut:
    run = recorded(request.param, tmp_path_factory.mktemp("recorded"))
    return Cut(run, list(crash_states(run.record)))


@pytest.mark.parametrize("recovery", [SLOW_LOADER, OURS, OURS_UNCLEAN], ids=lambda r: r.name)
def test_no_crash_of_a_run_loses_anything(cut: Cut, recovery: Recovery, tmp_path: Path) -> None:
    """C-15, C-16.5, C-18.4."""
    kills = list(kill_states(cut.run.record))
    matrix = Matrix(cut.run, tmp_path, next_rounds=False)
    matrix.try_states([*sample(kills, SAMPLE), *sample(cut.states, SAMPLE)], recovery)
    assert matrix.result.lost == []
    assert len(cut.states) > 50


def test_our_recovery_may_be_cut_short_itself(cut: Cut, tmp_path: Path) -> None:
    """By a kill or a power cut after some of its operations; then it is run again, twice."""
    later = (
        crashes_of_recovery(cut.run, state, tmp_path)
        for state in cut.states[len(cut.states) // 2 :]
    )
    again = next(crashes for crashes in later if len(crashes) > 2)  # of a state with work to do
    matrix = Matrix(cut.run, tmp_path, next_rounds=False)
    matrix.try_states(sample(again, 2 * SAMPLE), OURS)
    assert matrix.result.lost == []
