"""A sample of the drawings of `make test-obstacles`, the same ones each time."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.obstacles.loaded import load_all
from tests.obstacles.obstacles import Obstacle, few_descriptors, network_mount, no_locks
from tests.obstacles.verdicts import verdict_of
from tests.support.unprivileged import directory_for_all

SAMPLE = range(1, 26)


@pytest.fixture(scope="module")
def root() -> Iterator[Path]:
    with directory_for_all() as path:
        load_all(path / "loaded")
        yield path


@pytest.mark.parametrize("seed", SAMPLE)
def test_doctor_plan_and_run_say_the_same_of_a_run(root: Path, seed: int) -> None:
    place = root / str(seed)
    place.mkdir()
    verdict = verdict_of(seed, place)
    assert not verdict.problems, verdict


@pytest.mark.parametrize("obstacle", [few_descriptors, network_mount, no_locks])
def test_an_obstacle_that_is_a_patch_is_met(root: Path, obstacle: Obstacle) -> None:
    """A patch of what nobody calls any more would be no obstacle, and all three would agree."""
    place = root / obstacle.__name__
    place.mkdir()
    verdict = verdict_of(1, place, obstacle)
    assert {code for code, _ in verdict.endings.values()} == {3}, verdict
