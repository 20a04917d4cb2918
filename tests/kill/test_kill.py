"""A few of the kills of `make test-kill`, each time others."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.campaign import SEEDS
from tests.kill.__main__ import local_session
from tests.kill.kills import Range

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Range]:
    root = tmp_path_factory.mktemp("kill")
    with local_session(str(root)) as session:
        made = Range(Path(root), session, with_kafka=False)
        made.prepare()
        yield made


@pytest.mark.parametrize("number", range(5))
def test_nothing_is_lost_by_a_killed_run(field: Range, number: int) -> None:
    seed = random.randrange(0, SEEDS, 2) + number % 2  # of each engine in turn
    killed = field.kill_one(seed)
    assert killed.problems == [], f"kill {number}: python -m tests.kill --seed {seed}: {killed}"
