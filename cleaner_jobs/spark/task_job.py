"""Runs each stage of a round as one Spark job: a Spark task for each of our tasks.

Only the names of its work directory and stage and its number travel to a task, and one row a part,
verdict or piece comes back. A watch notices a job that waits for executors that do not come (a
master that has lost its workers), and tasks that give no sign of life (an executor or its Python
worker is stopped, or its host is cut off) long before Spark does.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, NamedTuple

from pyspark import RDD, SparkContext, TaskContext

from cleaner_jobs.messages import REWRITE, Row, save_task, task_file
from cleaner_jobs.patience import LOOK_SECONDS, Wait
from cleaner_jobs.problems import StageFailedError
from cleaner_jobs.spark.environment import is_local
from cleaner_jobs.spark.spark_session import SPARK_ERRORS, cause_of_failure, end_stopped_java
from cleaner_jobs.tasks.executor_paths import UNFIT, Asked, UnfitExecutorError
from cleaner_jobs.tasks.heartbeat import Sign, signs_of_life
from cleaner_jobs.tasks.partial_results import PartialResults
from storage.errors import LogCompactionError
from storage.files.local import LOCAL

SHOWN_LOGS = 5


class JobGroup(NamedTuple):
    """What jobs are cancelled by, and what they are shown as."""

    name: str  # the work directory of their run, and what they do
    description: str


class RunDescription(NamedTuple):
    """A run, as its jobs are shown."""

    run_id: str
    logs: Mapping[int, str]  # TOPIC-PARTITION by log id

    def of_stage(self, stage: str, tasks: Sequence[Mapping[str, Any]]) -> str:
        """Like `compactor 5c0d7f21 scan: orders-0, orders-1 and 40 more`."""
        ids = log_ids_of(tasks)
        shown = ", ".join(self.logs[log_id] for log_id in ids[:SHOWN_LOGS])
        more = f" and {len(ids) - SHOWN_LOGS:,} more" if len(ids) > SHOWN_LOGS else ""
        return f"compactor {self.run_id} {stage}: {shown}{more}"


def log_ids_of(tasks: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the ids of the logs that tasks are about, each once, in order.

    Whatever a task has of a log begins with its id: a stretch, rules, or parts and their log.
    """
    found: dict[int, None] = {}
    for task in tasks:
        for value in (*task.get("stretches", ()), *task.get("logs", ())):
            while not isinstance(value, int):
                value = value[0]
            found[value] = None
    return list(found)


CANCEL_SECONDS = 0.5  # between two tries to cancel a job that has perhaps not begun yet
GIVE_UP_SECONDS = 60.0  # of trying; the thread that waits for the job does not hold up the end
# what a task finds in its context
WORK_DIR, STAGE = "compactor.work-dir", "compactor.stage"
RESULT_LOOK_SECONDS = 0.02  # between two looks for partial results


def core_count(spark: SparkContext) -> int:
    """Return how many tasks work at once. Raise StageFailedError where Java has gone already."""
    try:
        return spark.defaultParallelism
    except SPARK_ERRORS as error:
        raise StageFailedError(f"first job: {cause_of_failure(error)}") from error


class SparkEngine:
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

    take: is called every so often with the partial results that have come since, if any. Where a
    task is tried twice, it may get those of both tries. What it raises ends the stage, as an
    interrupt does.
    Raise StageFailedError where Spark gives up. An interrupt cancels the job, but tasks that run
    may go on for a while.
    """
    work_dir, stage, description, say, is_watched = job
    for number, task in enumerate(tasks):
        save_task(task_file(work_dir, stage, number), task, LOCAL)
    try:
        group = JobGroup(f"{work_dir}: {stage}", description)  # a late cancel hits no later stage
        with running_job(
            spark, group, lambda: _rows(spark, (work_dir, stage), len(tasks), asked)
        ) as outcome:
            partial_results = PartialResults(work_dir, stage, files=LOCAL)
            watch = ExecutorWatch(spark, say, work_dir, stage) if is_watched else None
            while not wait([outcome], RESULT_LOOK_SECONDS).done:
                take(list(partial_results.new()) if stage == REWRITE else [])
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
    """Cancel a job until it has ended; on another thread, since Java may be stopped."""

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
def _tasks_of_any_stage(spark: SparkContext, tasks: int, asked: str | None) -> "RDD[Row]":
    """Return what the stages of most rounds have in common.

    To describe it to Java again takes Java a hundredth of a second each time, in which the cores
    idle. asked: what is asked of executors, as Python writes it.
    """

    def work(number: int) -> Iterator[Row]:
        from ast import literal_eval

        from cleaner_jobs.tasks.executor_paths import Asked, require_fit_executor
        from cleaner_jobs.tasks.task import run_task  # the kernels, which the driver has no use for
        from storage.files.local import LOCAL

        paths = require_fit_executor(None if asked is None else Asked(*literal_eval(asked)), LOCAL)
        context = TaskContext.get()
        assert context is not None, "runs in a Spark task only"
        work_dir, stage = context.getLocalProperty(WORK_DIR), context.getLocalProperty(STAGE)
        if work_dir is None or stage is None:
            # py4j repeats a call whose connection breaks, on a Java thread that knows neither
            raise ConnectionAbortedError("the connection between Spark's Java and Python broke")
        attempt = f"{stage}-{number}-{context.taskAttemptId()}"
        return run_task(paths.to_executor(work_dir), stage, number, attempt, paths, LOCAL)

    return _of_tasks(spark, tasks, work)


def one_a_task(spark: SparkContext, tasks: int, work: Callable[[int], Iterator[Row]]) -> list[Row]:
    """Return the rows that work makes of the number of each task, in a Spark task of its own.

    work travels by value, as the functions do that stand in functions.
    """
    return _of_tasks(spark, tasks, work).collect()


def _of_tasks(spark: SparkContext, tasks: int, work: Callable[[int], Iterator[Row]]) -> "RDD[Row]":
    """Return an RDD of the rows of tasks.

    The same job takes Spark twice as long as a DataFrame, which SQL's planner has to plan.
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


_DRIVER = 1  # Spark counts it among the executors


class NoExecutorError(LogCompactionError):
    """Executors have done nothing for as long as a run waits. Nothing of the stage counts."""

    reason_code = "spark-failed"


class ExecutorWatch:
    """Looks from time to time while a job goes on. Java is asked on another thread: it may hang."""

    def __init__(
        self, spark: SparkContext, say: Callable[[str], None], work_dir: str, stage: str | None
    ) -> None:
        """stage: whose tasks give signs of life; None: of a job that is short."""
        self._spark, self._wait = spark, Wait(say)
        self._has_executors = not is_local(spark.master or "")
        self._work_dir, self._stage = work_dir, stage
        self._signs: list[Sign] | None = None
        self._executors: int | None = None  # None: not known yet
        self._asking: threading.Thread | None = None
        self._last = time.monotonic()

    def look(self) -> None:
        """Raise NoExecutorError where nothing has been done for too long."""
        now = time.monotonic()
        if now - self._last < LOOK_SECONDS:
            return
        self._last = now
        if self._has_executors and (self._asking is None or not self._asking.is_alive()):
            self._asking = threading.Thread(target=self._ask, name="executors", daemon=True)
            self._asking.start()
        cause, advice = self._cause()
        if self._wait.look(cause):
            raise NoExecutorError(
                f"{cause}, and the run has waited for {self._wait.bound:,.0f} s. {advice}"
            )

    def _cause(self) -> tuple[str | None, str]:
        """Return what is being waited for, and what to do about it; None: nothing."""
        if self._executors == 0:
            return (
                f"{self._spark.master} has no executor for this run",
                "Look whether its workers run, are registered with it and have free cores and "
                "memory",
            )
        before = self._signs
        if self._stage is None:
            who = "no executor has answered"
        else:
            with suppress(OSError):  # what cannot be looked at gives no sign
                self._signs = signs_of_life(self._work_dir, self._stage, LOCAL)
            if self._signs != before:
                return None, ""
            at_work = ", ".join(sign.who for sign in (self._signs or ())[:3] if sign.who)
            who = f"no task gives a sign of life{at_work and f' ({at_work})'}"
        return who, "Look whether the executors and their Python workers run or are stopped"

    def _ask(self) -> None:
        try:
            known = self._spark._jsc.sc().statusTracker().getExecutorInfos()
            self._executors = len(known) - _DRIVER
        except SPARK_ERRORS:  # the job itself says that Java has gone
            self._executors = None
