"""Workers that were started early serve the round, and end with the command."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cleaner_jobs.patience import processes_below
from compactor import api
from compactor.api import early_workers
from compactor.api.early_workers import workers_started_early
from compactor.command_context import current_context, open_context
from compactor.jobs.engine_choice import is_probably_local
from compactor.settings.rules import EngineChoice, RunOptions


@pytest.fixture(autouse=True)
def _of_a_command(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(early_workers, "is_probably_local", is_probably_local)
    with open_context():
        yield


def below() -> set[int]:
    return {*processes_below([os.getpid()])}


def test_a_round_takes_them_and_they_end_with_the_command(log_dir: Path) -> None:
    rules = api.Rules(
        include=".*", settings={"cleanup.policy": "compact"}, assume_fully_replicated=True
    )
    before = below()
    with workers_started_early(RunOptions()):
        workers = current_context().workers
        assert workers is not None
        pool = workers.pool()
        assert pool.host_pid in below() - before
        report = api.run([str(log_dir)], rules)
        assert report.engine is None or report.engine.name == "local"
        assert workers.pool() is pool, "none were started beside them"
    assert below() <= before


@pytest.mark.parametrize("engine", [EngineChoice.SPARK, EngineChoice.AUTO])
def test_none_are_started_for_spark_or_where_kernels_are_to_be_compiled(
    engine: EngineChoice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(early_workers, "are_kernels_compiled", lambda _: False)
    before = below()
    with workers_started_early(RunOptions(engine=engine)):
        assert current_context().workers is None
        assert below() == before
