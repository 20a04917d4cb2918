"""Spark: one job for each stage of a round, a Spark task for each task of ours.

Only the number of a task travels to it, and one row a part, verdict or piece comes back.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from cleaner_jobs.spark.spark_session import SPARK_ERRORS, cause_of_failure
from cleaner_jobs.task_values import REWRITE, Row, save_task, task_file
from cleaner_jobs.tasks.early_rows import EarlyRows
from storage.errors import LogCompactionError

ROW_SCHEMA = "kind string, value string"
ARROW_SCHEMA = pa.schema([("kind", pa.string()), ("value", pa.string())])

_WORK_DIR, _STAGE = "compactor.work-dir", "compactor.stage"  # local properties of a job
CANCEL_SECONDS = 0.5  # between two tries to cancel a job that has perhaps not begun yet
GIVE_UP_SECONDS = 60.0  # of trying; the thread that waits for the job does not hold up the end
LOOK_SECONDS = 0.02  # between two looks for early rows


class StageFailedError(LogCompactionError):
    """A task was lost, or all of Spark: no log is to blame, and nothing of the stage counts."""


def core_count(spark: SparkSession) -> int:
    """How many tasks work at once. Raise StageFailedError where Java has gone already."""
    try:
        return spark.sparkContext.defaultParallelism
    except SPARK_ERRORS as error:
        raise StageFailedError(f"first job: {cause_of_failure(error)}") from error


def run_stage(
    spark: SparkSession,
    work_dir: str,
    stage: str,
    tasks: list[dict[str, Any]],
    take: Callable[[Sequence[Row]], None],
) -> list[Row]:
    """Run the tasks of a stage, and return their rows, a retried task's only once.

    take: is called every so often with the early rows that have come since, if any; where a task
    is tried twice, perhaps with those of both tries. What it raises ends the stage, as an interrupt
    does.
    Raise StageFailedError where Spark gives up. An interrupt cancels the job, but tasks that run
    may go on for a while.
    """
    for number, task in enumerate(tasks):
        save_task(task_file(work_dir, stage, number), task)
    try:
        with running_job(
            spark, work_dir, lambda: _rows(spark, work_dir, stage, len(tasks))
        ) as outcome:
            early_rows = EarlyRows(work_dir, stage)
            while not wait([outcome], LOOK_SECONDS).done:
                take(list(early_rows.new()) if stage == REWRITE else [])
            return outcome.result()
    except SPARK_ERRORS as error:
        raise StageFailedError(f"{stage}: {cause_of_failure(error)}") from error


@contextmanager
def running_job(
    spark: SparkSession, group: str, work: Callable[[], list[Row]]
) -> Iterator[Future[list[Row]]]:
    """Do work on another thread: where Java is being waited for, a signal would wait with it.

    Who leaves before it is done cancels it. The thread is a plain one: pyspark's InheritableThread
    asks Java before it does anything of ours, and if Java dies just then, nobody notices.
    """
    outcome: Future[list[Row]] = Future()

    def run() -> None:
        try:
            spark.sparkContext.setJobGroup(group, "log compaction", interruptOnCancel=True)
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)

    thread = threading.Thread(target=run, name="spark job", daemon=True)
    thread.start()
    try:
        yield outcome
    finally:
        deadline = time.monotonic() + GIVE_UP_SECONDS
        while not outcome.done() and time.monotonic() < deadline:
            spark.sparkContext.cancelJobGroup(group)
            thread.join(CANCEL_SECONDS)


def _rows(spark: SparkSession, work_dir: str, stage: str, tasks: int) -> list[Row]:
    spark.sparkContext.setLocalProperty(_WORK_DIR, work_dir)
    spark.sparkContext.setLocalProperty(_STAGE, stage)
    return collected(_stage_tasks(spark, tasks))


@lru_cache(maxsize=16)
def _stage_tasks(spark: SparkSession, tasks: int) -> DataFrame:
    """Tasks of ours, of the stage that the local properties of their job name.

    Kept for later stages and rounds: to plan such a job takes Spark longer than to run it.
    """

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from cleaner_jobs.tasks.task import run_task  # the kernels, which the driver has no use for

        context = TaskContext.get()
        assert context is not None, "runs in a Spark task only"
        work_dir, stage = context.getLocalProperty(_WORK_DIR), context.getLocalProperty(_STAGE)
        assert work_dir and stage, "the driver names them before it begins a job"
        for batch in batches:
            for number in batch.column(0).to_pylist():
                attempt = f"{stage}-{number}-{context.taskAttemptId()}"
                rows = list(run_task(work_dir, stage, number, attempt))
                columns = [list(column) for column in zip(*rows, strict=True)] or [[], []]
                yield pa.RecordBatch.from_arrays(
                    [pa.array(column, pa.string()) for column in columns], schema=ARROW_SCHEMA
                )

    return one_a_task(spark, tasks, work)


def one_a_task(
    spark: SparkSession,
    tasks: int,
    work: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
) -> DataFrame:
    """What work makes of the number of each task, in a Spark task of its own."""
    return spark.range(0, tasks, 1, tasks).mapInArrow(work, ROW_SCHEMA)


def collected(rows: DataFrame) -> list[Row]:
    table = rows.toArrow()
    return list(
        zip(table.column("kind").to_pylist(), table.column("value").to_pylist(), strict=True)
    )
