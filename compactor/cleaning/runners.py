"""Who runs the tasks of a round or an inspection: what is given, or a Spark of its own."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

from cleaner_jobs.messages import LogPlan, RoundSettings
from cleaner_jobs.signals import deferred_signals
from cleaner_jobs.spark import warm_up
from cleaner_jobs.spark.callers_session import HAS_SESSION, has_session, why_unusable
from cleaner_jobs.spark.environment import require_fit
from cleaner_jobs.spark.java_cache import SUBMITTED_VARIABLE, cache_dir
from cleaner_jobs.spark.patience import ending_stopped_processes
from compactor.cleaning.executors import require_able_executors
from compactor.cleaning.task_runner import TaskRunner
from compactor.errors import ConfigError
from compactor.host.java import use_java
from compactor.host.machine import temporary_files
from compactor.host.progress import ProgressSink
from compactor.outcome.round_report import FIRST_USE, SESSION, SESSION_END

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

Timed = Callable[[str], AbstractContextManager[None]]  # by the name of a phase


class RunnerChoice(NamedTuple):
    """What a caller has said about it."""

    master: str | None = None  # None: what spark-submit says, or else this machine's cores
    session: "SparkSession | None" = None  # to use, and to leave open
    runner: TaskRunner | None = None  # in the place of Spark
    executor_paths: tuple[tuple[str, str], ...] = ()  # a directory here, and its name on executors


def require_own_spark(session: "SparkSession | None", in_process: bool) -> None:
    """Raise ConfigError where Spark would have to start beside a session of the caller's, or the
    one that was handed in can do no job.
    """
    problem = None if session is None else why_unusable(session)
    if problem is not None:
        raise ConfigError(f"session: {problem}. Give one that runs, or none. Nothing was changed")
    if session is None and not in_process and has_session():
        raise ConfigError(
            f"session: {HAS_SESSION}, or in_process=True does without Spark. Nothing was changed"
        )


@contextmanager
def open_runner(
    choice: RunnerChoice,
    logs: Sequence[LogPlan],
    facts: RoundSettings,
    progress: ProgressSink,
    timed: Timed = lambda _: nullcontext(),
) -> Iterator[TaskRunner]:
    """The runner that is given, a Spark that is given, or one that ends with the context.

    timed: what times a start of Spark, and what the first use of a machine does, by phase.
    """
    if choice.runner is not None:
        yield choice.runner
        return
    if choice.session is None:
        require_fit(choice.master, os.environ)  # before another Spark's pyspark is loaded
    from cleaner_jobs.spark.task_job import RunDescription, SparkTasks

    session = choice.session
    given = None if session is None else nullcontext(session.sparkContext)
    with given or _spark(choice.master, facts, progress, timed) as spark:
        asked = require_able_executors(spark, logs, facts, choice.executor_paths, progress.message)
        names = {log.log_id: f"{log.topic}-{log.partition}" for log in logs}
        description, is_own = RunDescription(facts.run_id, names), session is None
        yield SparkTasks(spark, description, asked, progress.message, is_own)


@contextmanager
def _spark(
    master: str | None,
    facts: RoundSettings,
    progress: ProgressSink,
    timed: Timed,
) -> Iterator["SparkContext"]:
    """A Spark of its own."""
    with (
        temporary_files(facts.work_dir),
        ending_stopped_processes(progress.message),
        _started(master, facts, progress, timed) as spark,
    ):
        yield spark


@contextmanager
def _started(
    master: str | None,
    facts: RoundSettings,
    progress: ProgressSink,
    timed: Timed,
) -> Iterator["SparkContext"]:
    if SUBMITTED_VARIABLE not in os.environ:  # or Java is there already
        use_java(os.environ, cache_dir(os.environ), work_dir=facts.work_dir)
    environ = {**os.environ, warm_up.WORK_DIR_VARIABLE: facts.work_dir}
    warm_up.prepare(environ, progress.message, lambda: timed(FIRST_USE))
    with timed(SESSION):
        from cleaner_jobs.spark.spark_session import end_spark, start_spark

        spark = start_spark(master, "log-compactor", facts.work_dir, say=progress.message)
    try:
        yield spark
    finally:
        with deferred_signals(), timed(SESSION_END):
            end_spark(spark)
