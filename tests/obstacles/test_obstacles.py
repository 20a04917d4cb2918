"""A sample of the drawings of `make test-obstacles`, the same ones each time."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.obstacles.loaded import load_all
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
