"""Rounds from Python in a session that stays open: one that its listener ends, and the next."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from cleaner_jobs.patience import VARIABLE
from cleaner_jobs.spark import callers_session
from cleaner_jobs.spark.spark_trial import seconds_to_start
from compactor import api
from compactor.jobs import engine_choice
from compactor.log_dirs.locked_log_dirs import LOCK_FILE
from tests.support.file_states import state_of
from tests.support.made_log import batches_of, keyed, make_partition

pytestmark = pytest.mark.spark

SESSION = r"^options\.session: this process has a Spark session, which is used only if you pass it"
RULES = api.Rules(
    settings={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"},
    include="orders",
    assume_fully_replicated=True,
)


class EnoughError(Exception):
    """Of the caller's own."""


@pytest.mark.parametrize("stage", ["scan", "rewrite"])
def test_a_listener_ends_a_round_and_the_session_does_the_next(
    spark: SparkSession, tmp_path: Path, stage: str
) -> None:
    segments = {0: [keyed(0, "abab")], 4: [keyed(4, "abcd")], 8: [keyed(8, "a")]}
    partition = make_partition(tmp_path / "logs", segments)
    log_dir, work_dir = str(partition.parent), tmp_path / "work"
    work_dir.mkdir()
    options = api.RunOptions(work_dir=str(work_dir), session=spark)
    before = state_of(partition)

    def stop(progress: api.Progress) -> None:
        if (progress.event, progress.stage) == (api.Event.ADVANCE, stage):
            raise EnoughError

    with pytest.raises(EnoughError):
        api.run([log_dir], RULES, options, stop)
    assert os.listdir(work_dir) == []
    assert not os.path.exists(f"{log_dir}/{LOCK_FILE}")
    if stage == "scan":
        assert state_of(partition) == before
    [log] = api.run([log_dir], RULES, options).logs
    assert (log.status, log.counts.records_kept) == (api.LogStatus.CLEANED, 4)
    assert len(batches_of(partition, 0)) == 1  # of the other one nothing is left


def test_stopped_workers_of_a_session_end_a_round_after_the_bound(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "2")
    partition = make_partition(tmp_path / "logs", {0: [keyed(0, "abab")], 4: [keyed(4, "a")]})
    options, before = api.RunOptions(session=spark), state_of(partition)
    assert spark.sparkContext.parallelize([1]).map(str).count() == 1  # so that there are workers
    java: Any = spark.sparkContext._gateway
    below = psutil.Process(java.proc.pid).children(recursive=True)
    workers = [process for process in below if process.name().startswith("python")]
    assert len(workers) > 1  # the daemon, too

    def stop(progress: api.Progress) -> None:
        if (progress.event, progress.stage) == (api.Event.STAGE, "scan"):
            for worker in workers:
                worker.suspend()

    try:
        with pytest.raises(api.LogCompactionError, match="scan: no task gives a sign of life"):
            api.run([str(partition.parent)], RULES, options, stop)
    finally:
        for worker in filter(psutil.Process.is_running, workers):
            worker.resume()
    assert state_of(partition) == before
    _let_spark_lose_workers(spark, workers)
    assert api.run([str(partition.parent)], RULES, options).logs[0].counts.records_kept == 2


def _let_spark_lose_workers(spark: SparkSession, workers: list[psutil.Process]) -> None:
    """Wait until the session has none of the workers left that Spark kills after a cancelled task.

    It kills them 2 s after the task was cancelled, also one that has ended it and waits for another
    by then, and notices that only by the task that it gives to it.
    """
    psutil.wait_procs(workers, timeout=5)
    for _ in range(5):
        with suppress(Py4JJavaError):
            assert spark.sparkContext.parallelize([1, 2], 2).map(str).count() == 2
            return


def test_a_session_that_was_not_handed_in_is_left_alone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_choice, "has_session", callers_session.has_session)
    segments = {0: [keyed(0, "abab")], 4: [keyed(4, "a")]}
    partition = make_partition(tmp_path / "logs", segments)
    before = state_of(partition.parent)
    small = api.run([str(partition.parent)], RULES, api.RunOptions(dry_run=True))
    assert small.engine is not None and small.engine.name == "local"
    monkeypatch.setattr(engine_choice, "SPARK_FROM_BYTES", 0)
    for call in (
        lambda: api.run([str(partition.parent)], RULES),
        lambda: api.run([str(partition.parent)], RULES, api.RunOptions(dry_run=True)),
        lambda: api.inspect(str(partition.parent)),
    ):
        with pytest.raises(api.ConfigError, match=SESSION) as refused:
            call()
        assert api.what_was_changed(refused.value) in (None, "Nothing was changed.")
    assert state_of(partition.parent) == before
    assert isinstance(seconds_to_start(str(tmp_path)), str)  # as doctor --start-spark does
    assert spark.sparkContext.parallelize([1, 2, 3]).count() == 3
