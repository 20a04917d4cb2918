"""Workers that were started early serve the round, and end with the command."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cleaner_jobs.patience import processes_below
from cleaner_jobs.spark.environment import SUBMITTED_VARIABLE
from compactor import api
from compactor.jobs import early_workers as under_test
from compactor.jobs.early_workers import early_workers, workers_started_early


@pytest.fixture(autouse=True)
def _not_submitted_and_not_for_the_first_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SUBMITTED_VARIABLE, raising=False)
    monkeypatch.setattr(under_test, "are_kernels_compiled", lambda _: True)


def below() -> set[int]:
    return {*processes_below([os.getpid()])}


def test_a_round_takes_them_and_they_end_with_the_command(log_dir: Path) -> None:
    rules = api.Rules(
        include=".*", settings={"cleanup.policy": "compact"}, assume_fully_replicated=True
    )
    before = below()
    with workers_started_early(["run", str(log_dir)]):
        workers = early_workers()
        assert workers is not None
        pool = workers.pool()
        assert pool.host_pid in below() - before
        report = api.run([str(log_dir)], rules)
        assert report.engine is None or report.engine.name == "local"
        assert workers.pool() is pool, "none were started beside them"
    assert below() <= before
    assert early_workers() is None


@pytest.mark.parametrize(
    "words",
    [
        "plan /data",
        "",
        "--help",
        "run --help",
        "run /data --master local[2]",
        "run /data --master=local[2]",
        "run /data --engine spark",
        "run /data --engine=spark",
        "--version",
    ],
)
def test_none_are_started_where_none_will_be_needed(words: str) -> None:
    before = below()
    with workers_started_early(words.split()):
        assert early_workers() is None
        assert below() == before


@pytest.mark.parametrize("words", ["run /data", "run --engine local /data", "inspect /data"])
def test_none_are_started_for_spark_submit_or_where_kernels_are_to_be_compiled(
    words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patches:
        patches.setattr(under_test, "are_kernels_compiled", lambda _: False)
        with workers_started_early(words.split()):
            assert early_workers() is None
    monkeypatch.setenv(SUBMITTED_VARIABLE, "12345")
    with workers_started_early(words.split()):
        assert early_workers() is None


def test_a_command_that_ends_at_once_leaves_none(tmp_path: Path) -> None:
    words = "run", tmp_path / "none", "--nonsense"
    done = subprocess.run(
        [sys.executable, "-m", "compactor", *words], capture_output=True, check=False
    )
    assert done.returncode == 2
    assert b"no such option" in done.stderr.lower()
