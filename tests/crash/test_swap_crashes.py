"""Crash states of real runs, brought up as Kafka's loader does it: nothing is lost.

All of them, with Kafka's own loader and cleaner: `make test-crash`.
"""

from collections.abc import Mapping
from pathlib import Path

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
from tests.crash.states import STAGED, TEMPORARY, crash_states, kill_states
from tests.crash.stories import STORIES, Story

SAMPLE = 60  # of each story
RECOVERIES_CUT_SHORT = 4


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


@pytest.fixture(scope="module", params=STORIES, ids=lambda story: story.name)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded(request.param, tmp_path_factory.mktemp("recorded"))


@pytest.mark.parametrize("recovery", [SLOW_LOADER, OURS, OURS_UNCLEAN], ids=lambda r: r.name)
def test_no_crash_of_a_run_loses_anything(
    run: Recorded, recovery: Recovery, tmp_path: Path
) -> None:
    """C-15, C-16.5, C-18.4."""
    states = list(crash_states(run.record))
    matrix = Matrix(run, tmp_path, next_rounds=False)
    matrix.try_states([*kill_states(run.record), *sample(states, SAMPLE)], recovery)
    assert matrix.result.lost == []
    assert len(states) > 50


def test_our_recovery_may_be_cut_short_itself(run: Recorded, tmp_path: Path) -> None:
    """By a kill or a power cut after any of its operations; then it is run again, twice."""
    states = sample(list(crash_states(run.record)), RECOVERIES_CUT_SHORT)
    again = [left for state in states for left in crashes_of_recovery(run, state, tmp_path)]
    matrix = Matrix(run, tmp_path, next_rounds=False)
    matrix.try_states(again, OURS)
    assert matrix.result.lost == []
    assert len(again) > 2 * len(states)
