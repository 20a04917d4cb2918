"""Asks the executors, before work begins, whether they can do it, and on which host one cannot.

Each has to have a Python with the driver's packages, its work directory, and the log directories.
Otherwise the first tasks would report what is missing, once they have been tried four times, and
for each log again. An executor that comes later is asked the same by its first task.
"""

import json
import os
import secrets
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from typing import Any, NamedTuple

from pyspark import SparkContext

from cleaner_jobs.messages import Row, Source
from cleaner_jobs.problems import StageFailedError
from cleaner_jobs.spark.environment import is_local
from cleaner_jobs.spark.spark_session import (
    DEFAULT_MASTER,
    SPARK_ERRORS,
    cause_of_failure,
)
from cleaner_jobs.spark.task_failure import PYTHON_DIED, failure_cause
from cleaner_jobs.spark.task_job import (
    RESULT_LOOK_SECONDS,
    ExecutorWatch,
    JobGroup,
    NoExecutorError,
    one_a_task,
    running_job,
)
from cleaner_jobs.tasks.executor_paths import Asked, ExecutorProblem, Lack, Names, package_versions
from storage.files.local import LOCAL

_TOKEN = "token"
_PASSING = ("ExecutorLostFailure", "TaskKilled", "Resubmitted")
_TASKS_LOOKED_AT = 10_000
_LISTENER_MS = 5_000


class Samples(NamedTuple):
    """What an executor has to find of the logs: directories, and files as they were."""

    directories: list[str]
    files: list[Source]


def what_to_ask(
    spark: SparkContext, work_dir: str, samples: Samples, to_write: bool, names: Names = ()
) -> Asked | None:
    """Return what executors are asked for; None where tasks run in the driver's own Java.

    to_write: whether files are put into the directories. names: those that executors have for
    directories of the driver's. The work directory gets a token.
    """
    if is_local(spark.master or DEFAULT_MASTER):
        return None
    token_path, token = os.path.join(work_dir, _TOKEN), secrets.token_hex(16)
    LOCAL.replace_file(token_path, token.encode())
    files = [(s.path, s.log_bytes, s.log_mtime_ns, s.log_inode) for s in samples.files]
    found = ((path, LOCAL.look_up(path)) for path in samples.directories)
    directories = [(path, entry.inode) for path, entry in found if entry and entry.is_dir]
    return Asked(
        token_path=token_path,
        token=token,
        directories=directories,
        files=files,
        to_write=to_write,
        packages=package_versions(),
        names=list(names),
    )


def executor_problems(
    spark: SparkContext, work_dir: str, asked: Asked, say: Callable[[str], None] = lambda _: None
) -> list[ExecutorProblem]:
    """Return what executors lack. A job of a task for each core asks them.

    Where Spark tried a task again, and it answered then, the failure may have been a passing one: a
    second job shows whether it comes again.
    Raise StageFailedError where Spark fails for another reason.
    """
    reported, failed = _ask(spark, work_dir, asked, "can every executor do its part", say)
    if failed and not reported:
        reported, failed = _ask(spark, work_dir, asked, "does an executor fail again", say)
    return _by_problem(reported) + failed


def _ask(
    spark: SparkContext, work_dir: str, asked: Asked, what: str, say: Callable[[str], None]
) -> tuple[list[tuple[str, str, str]], list[ExecutorProblem]]:
    """Return what executors answer, and why tasks failed before they could answer."""
    group = JobGroup(f"{work_dir}: {what}", f"compactor: {what}")
    try:
        with running_job(spark, group, lambda: _answers(spark, asked)) as outcome:
            executors = ExecutorWatch(spark, say, work_dir, stage=None)
            while not wait([outcome], RESULT_LOOK_SECONDS).done:
                executors.look()
            answers = outcome.result()
    except NoExecutorError as error:
        raise StageFailedError(f"first job: {error}") from error
    except SPARK_ERRORS as error:
        found = _python_problems(spark, group.name)
        if found:
            return [], found
        raise StageFailedError(f"first job: {cause_of_failure(error)}") from error
    reported = [(host, *problem) for host, value in answers for problem in json.loads(value)]
    return reported, _python_problems(spark, group.name)


def _by_problem(reported: Sequence[tuple[str, str, str]]) -> list[ExecutorProblem]:
    hosts: dict[tuple[str, str], set[str]] = {}
    for host, lack, problem in reported:
        hosts.setdefault((lack, problem), set()).add(host)
    return [
        ExecutorProblem(Lack(lack), problem, tuple(sorted(of_problem)))
        for (lack, problem), of_problem in hosts.items()
    ]


def _python_problems(spark: SparkContext, group: str) -> list[ExecutorProblem]:
    """Return why tasks of the job failed before they could answer.

    Spark names a host together with a cause only in its own records.
    """
    reported = []
    try:
        context: Any = spark._jsc.sc()
        context.listenerBus().waitUntilEmpty(_LISTENER_MS)
        tracker = spark.statusTracker()
        for job in tracker.getJobIdsForGroup(group):
            info = tracker.getJobInfo(job)
            for stage in info.stageIds if info else ():
                tasks = context.statusStore().taskList(stage, 0, _TASKS_LOOKED_AT)
                for number in range(tasks.size()):
                    task = tasks.apply(number)
                    message = task.errorMessage()
                    if message.isDefined() and _is_of_its_host(message.get()):
                        reported.append(
                            (task.host(), Lack.PYTHON.value, failure_cause(message.get()))
                        )
    except SPARK_ERRORS:  # an older Spark keeps other books, or Java has gone
        return []
    return _by_problem(reported)


def _is_of_its_host(message: str) -> bool:
    """Return whether a task failed for what would fail there again: a lost executor is replaced."""
    return not message.startswith(_PASSING) and failure_cause(message) != PYTHON_DIED


def _answers(spark: SparkContext, asked: Asked) -> list[Row]:
    return one_a_task(spark, spark.defaultParallelism, answering(asked))


def answering(asked: Asked) -> Callable[[int], Iterator[Row]]:
    """Return what a task does to give the name of its host and, as JSON, what it finds wrong there.

    It travels as it is, with the values that it names: none may be a function or class of ours.
    """
    given: Any = tuple(asked)
    python = Lack.PYTHON.value

    def work(_: int) -> Iterator[Row]:
        try:
            from cleaner_jobs.tasks.executor_paths import Asked, find_problems
            from cleaner_jobs.tasks.task import run_task  # noqa: F401
            from storage.files.local import LOCAL

            problems = find_problems(Asked(*given), LOCAL)
        except Exception as error:
            problems = [(python, f"{type(error).__name__}: {error}")]
        yield socket.gethostname(), json.dumps(problems)

    return work
