"""Spark: one job for each stage of a round, a Spark task for each task of ours.

Only the names of its work directory and stage and its number travel to a task, and one row a part,
verdict or piece comes back.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, NamedTuple

from pyspark import RDD, SparkContext, TaskContext

from cleaner_jobs.spark.executor_watch import ExecutorWatch, NoExecutorError
from cleaner_jobs.spark.job_description import JobGroup, RunDescription
from cleaner_jobs.spark.spark_session import SPARK_ERRORS, cause_of_failure, end_stopped_java
from cleaner_jobs.task_values import REWRITE, Row, save_task, task_file
from cleaner_jobs.tasks.early_rows import EarlyRows
from cleaner_jobs.tasks.ground import UNFIT, Asked, UnfitExecutorError
from storage.errors import LogCompactionError

CANCEL_SECONDS = 0.5  # between two tries to cancel a job that has perhaps not begun yet
GIVE_UP_SECONDS = 60.0  # of trying; the thread that waits for the job does not hold up the end
# what a task finds in its context
WORK_DIR, STAGE = "compactor.work-dir", "compactor.stage"
LOOK_SECONDS = 0.02  # between two looks for early rows


class StageFailedError(LogCompactionError):
    """A task was lost, or all of Spark: no log is to blame, and nothing of the stage counts."""

    reason_code = "spark-failed"


def core_count(spark: SparkContext) -> int:
    """How many tasks work at once. Raise StageFailedError where Java has gone already."""
    try:
        return spark.defaultParallelism
    except SPARK_ERRORS as error:
        raise StageFailedError(f"first job: {cause_of_failure(error)}") from error


class SparkTasks:
    """Runs the tasks of a round as tasks of Spark."""

    def __init__(
        self,
        spark: SparkContext,
        description: RunDescription,
        asked: Asked | None,
        say: Callable[[str], None] = lambda _: None,
        is_own: bool = True,
    ) -> None:
        """asked: what each process of an executor makes sure of; None: tasks are the driver's.

        say: what a stage waits for. is_own: whether Java is this run's to end.
        """
        self._spark, self._description, self._asked = spark, description, asked
        self._say, self._is_watched = say, asked is not None or not is_own

    def core_count(self) -> int:
        return core_count(self._spark)

    def run_stage(
        self,
        work_dir: str,
        stage: str,
        tasks: list[dict[str, Any]],
        take: Callable[[Sequence[Row]], None],
    ) -> list[Row]:
        description = self._description.of_stage(stage, tasks)
        job = StageJob(work_dir, stage, description, self._say, self._is_watched)
        return run_stage(self._spark, job, tasks, take, self._asked)


class StageJob(NamedTuple):
    """A stage of ours, which is a job of Spark's."""

    work_dir: str
    stage: str
    description: str
    say: Callable[[str], None] = lambda _: None  # what it waits for
    is_watched: bool = False  # whether its executors are looked after here


def run_stage(
    spark: SparkContext,
    job: StageJob,
    tasks: list[dict[str, Any]],
    take: Callable[[Sequence[Row]], None],
    asked: Asked | None = None,
) -> list[Row]:
    """Run the tasks of a stage, and return their rows, a retried task's only once.

    take: is called every so often with the early rows that have come since, if any; where a task
    is tried twice, perhaps with those of both tries. What it raises ends the stage, as an interrupt
    does.
    Raise StageFailedError where Spark gives up. An interrupt cancels the job, but tasks that run
    may go on for a while.
    """
    work_dir, stage, description, say, is_watched = job
    for number, task in enumerate(tasks):
        save_task(task_file(work_dir, stage, number), task)
    try:
        group = JobGroup(f"{work_dir}: {stage}", description)  # a late cancel hits no later stage
        with running_job(
            spark, group, lambda: _rows(spark, (work_dir, stage), len(tasks), asked)
        ) as outcome:
            early_rows = EarlyRows(work_dir, stage)
            watch = ExecutorWatch(spark, say, work_dir, stage) if is_watched else None
            while not wait([outcome], LOOK_SECONDS).done:
                take(list(early_rows.new()) if stage == REWRITE else [])
                if watch is not None:
                    watch.look()
            return outcome.result()
    except NoExecutorError as error:
        raise StageFailedError(f"{stage}: {error}") from error
    except SPARK_ERRORS as error:
        cause = cause_of_failure(error)
        if UNFIT in cause:
            raise UnfitExecutorError(f"{stage}: {cause}") from error
        raise StageFailedError(f"{stage}: {cause}") from error


@contextmanager
def running_job(
    spark: SparkContext, group: JobGroup, work: Callable[[], list[Row]]
) -> Iterator[Future[list[Row]]]:
    """Do work on another thread: where Java is being waited for, a signal would wait with it.

    Who leaves before it is done cancels it. The thread is a plain one: pyspark's InheritableThread
    asks Java before it does anything of ours, and if Java dies just then, nobody notices.
    """
    outcome: Future[list[Row]] = Future()

    def run() -> None:
        try:
            spark.setJobGroup(group.name, group.description, interruptOnCancel=True)
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)

    thread = threading.Thread(target=run, name="spark job", daemon=True)
    thread.start()
    try:
        yield outcome
    finally:
        _cancel(spark, group, outcome)


def _cancel(spark: SparkContext, group: JobGroup, outcome: Future[list[Row]]) -> None:
    """Until the job has ended. On another thread: Java may be stopped."""

    def cancel() -> None:
        with suppress(*SPARK_ERRORS):  # it has gone, and the job with it
            spark.cancelJobGroup(group.name)

    deadline = time.monotonic() + GIVE_UP_SECONDS
    canceling = None
    while not outcome.done() and time.monotonic() < deadline:
        end_stopped_java()
        if canceling is None or not canceling.is_alive():
            canceling = threading.Thread(target=cancel, name="cancel", daemon=True)
            canceling.start()
        wait([outcome], CANCEL_SECONDS)


def _rows(spark: SparkContext, of: tuple[str, str], tasks: int, asked: Asked | None) -> list[Row]:
    for name, value in zip((WORK_DIR, STAGE), of, strict=True):
        spark.setLocalProperty(name, value)
    given = None if asked is None else repr(tuple(asked))
    return _tasks_of_any_stage(spark, tasks, given).collect()


@lru_cache(maxsize=4)
def _tasks_of_any_stage(spark: SparkContext, tasks: int, given: str | None) -> "RDD[Row]":
    """What the stages of most rounds have in common: to tell Java of it anew takes it a hundredth
    of a second each time, in which the cores idle.

    given: what is asked of executors, as Python writes it.
    """

    def work(number: int) -> Iterator[Row]:
        from ast import literal_eval

        from cleaner_jobs.tasks.ground import Asked, ground_of
        from cleaner_jobs.tasks.task import run_task  # the kernels, which the driver has no use for

        ground = ground_of(None if given is None else Asked(*literal_eval(given)))
        context = TaskContext.get()
        assert context is not None, "runs in a Spark task only"
        work_dir, stage = context.getLocalProperty(WORK_DIR), context.getLocalProperty(STAGE)
        if work_dir is None or stage is None:
            # py4j repeats a call whose connection breaks, on a Java thread that knows neither
            raise ConnectionAbortedError("the connection between Spark's Java and Python broke")
        attempt = f"{stage}-{number}-{context.taskAttemptId()}"
        return run_task(ground.here(work_dir), stage, number, attempt, ground)

    return _of_tasks(spark, tasks, work)


def one_a_task(spark: SparkContext, tasks: int, work: Callable[[int], Iterator[Row]]) -> list[Row]:
    """The rows that work makes of the number of each task, in a Spark task of its own.

    work travels by value, as the functions do that stand in functions.
    """
    return _of_tasks(spark, tasks, work).collect()


def _of_tasks(spark: SparkContext, tasks: int, work: Callable[[int], Iterator[Row]]) -> "RDD[Row]":
    """An RDD: as a DataFrame the same job takes Spark twice as long, for SQL's planner has a part
    in it.
    """

    def of_partition(number: int, nothing: Iterable[object]) -> Iterator[Row]:
        for _ in nothing:  # read to its end: or the worker is not used again (SPARK-26549)
            pass
        return work(number)

    java, jvm = spark._jsc, spark._jvm
    assert jvm is not None, "Java is there as long as the context is"
    # made in Java: pyspark's own would first write a file for it, with nothing in it
    empty: RDD[object] = RDD(java.parallelize(jvm.java.util.ArrayList(), tasks), spark)
    return empty.mapPartitionsWithIndex(of_partition)
