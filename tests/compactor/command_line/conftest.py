"""What several tests of commands begin with."""

from collections.abc import Callable

import pytest

from compactor.cleaning import cleaner_manager
from compactor.outcome.round_report import CleaningReport


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Callable[[CleaningReport], None]:
    """Let every round end with a made-up report."""
    return lambda made_up: monkeypatch.setattr(cleaner_manager, "run_round", lambda *_: made_up)
