"""For all tests: no example of Hypothesis is too slow because a kernel is compiled meanwhile."""

from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.local_round import LocalRound, open_local_round

settings.register_profile("kernels", deadline=None)
settings.load_profile("kernels")


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalRound:
    """Rounds in this process and without Spark, with `tmp_path / "work"` to work in."""
    return open_local_round(tmp_path / "work", monkeypatch)
