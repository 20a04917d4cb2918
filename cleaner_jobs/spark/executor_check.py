"""Asks the executors, before work begins, whether they can do it, and on which host one cannot.

Each has to have a Python with this package, the driver's work directory, and the log directories
under the paths that the driver has. Otherwise the first tasks would report what is missing, once
they have been tried four times, and for each log again.
"""

import json
import os
import secrets
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from pyspark import SparkContext

from cleaner_jobs.spark.executor_problem import ExecutorProblem, Lack
from cleaner_jobs.spark.job_description import JobGroup
from cleaner_jobs.spark.spark_session import (
    DEFAULT_MASTER,
    SPARK_ERRORS,
    cause_of_failure,
    is_local,
)
from cleaner_jobs.spark.task_failure import PYTHON_DIED, failure_cause
from cleaner_jobs.spark.task_job import StageFailedError, one_a_task, running_job
from cleaner_jobs.task_values import Row, Source
from storage.files import filesystem

# By value in what travels, where a class of ours would not be known.
_PYTHON, _WORK_DIR, _LOG_DIR = (lack.value for lack in Lack)
_TOKEN = "token"
_PASSING = ("ExecutorLostFailure", "TaskKilled", "Resubmitted")
_TASKS_LOOKED_AT = 10_000
_LISTENER_MS = 5_000


class Asked(NamedTuple):
    """What an executor is asked for: plain values, since it may not have this package."""

    token_path: str
    token: str
    samples: list[tuple[str, int, int, int]]  # path, size, modification time and inode
    to_write: bool


def executor_problems(
    spark: SparkContext, work_dir: str, samples: Sequence[Source], to_write: bool
) -> list[ExecutorProblem]:
    """What executors lack. A job of a task for each core asks them.

    samples: one file of each log directory. to_write: whether files are put beside those. Where
    tasks run in the driver's own Java, nobody is asked. Raise StageFailedError where Spark fails
    for another reason.
    """
    if is_local(spark.master or DEFAULT_MASTER):
        return []
    token_path, token = os.path.join(work_dir, _TOKEN), secrets.token_hex(16)
    filesystem.replace_file(token_path, token.encode())
    files = [(s.path, s.log_bytes, s.log_mtime_ns, s.log_inode) for s in samples]
    asked = Asked(token_path, token, files, to_write)
    group = JobGroup(work_dir, "compactor: can every executor do its part")
    try:
        with running_job(spark, group, lambda: _answers(spark, asked)) as outcome:
            answers = outcome.result()
    except SPARK_ERRORS as error:
        found = _python_problems(spark, work_dir)
        if found:
            return found
        raise StageFailedError(f"first job: {cause_of_failure(error)}") from error
    reported = [(host, *problem) for host, value in answers for problem in json.loads(value)]
    return _by_problem(reported) + _python_problems(spark, work_dir)


def _by_problem(reported: Sequence[tuple[str, str, str]]) -> list[ExecutorProblem]:
    hosts: dict[tuple[str, str], set[str]] = {}
    for host, lack, problem in reported:
        hosts.setdefault((lack, problem), set()).add(host)
    return [
        ExecutorProblem(Lack(lack), problem, tuple(sorted(of_problem)))
        for (lack, problem), of_problem in hosts.items()
    ]


def _python_problems(spark: SparkContext, group: str) -> list[ExecutorProblem]:
    """Why tasks of the job failed before they could answer, though others have done their work.

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
                        reported.append((task.host(), _PYTHON, failure_cause(message.get())))
    except SPARK_ERRORS:  # an older Spark keeps other books, or Java has gone
        return []
    return _by_problem(reported)


def _is_of_its_host(message: str) -> bool:
    """Whether a task failed for what would fail there again: a lost executor is replaced."""
    return not message.startswith(_PASSING) and failure_cause(message) != PYTHON_DIED


def _answers(spark: SparkContext, asked: Asked) -> list[Row]:
    return one_a_task(spark, spark.defaultParallelism, answering(asked))


def answering(asked: Asked) -> Callable[[int], Iterator[Row]]:
    """What a task does to give the name of its host and, as JSON, what it finds wrong there.

    It travels as it is, with the values that it names: none may be a function or class of ours.
    """
    token_path, token, samples, to_write = asked

    def work(_: int) -> Iterator[Row]:
        def problems() -> Iterator[tuple[str, str]]:
            try:
                from cleaner_jobs.tasks.task import run_task  # noqa: F401
            except Exception as error:
                yield _PYTHON, f"{type(error).__name__}: {error}"
            try:
                with open(token_path) as file:
                    is_shared = file.read() == token
            except OSError:
                is_shared = False
            if not is_shared:
                yield _WORK_DIR, os.path.dirname(token_path)
            for path, *facts in samples:
                try:
                    found = os.stat(path)
                    if [found.st_size, found.st_mtime_ns, found.st_ino] != facts:
                        yield _LOG_DIR, f"{path}: is another file there"
                    elif to_write and not os.access(os.path.dirname(path), os.W_OK | os.X_OK):
                        yield _LOG_DIR, f"{os.path.dirname(path)}: no permission to write there"
                except OSError as error:
                    yield _LOG_DIR, f"{path}: {error.strerror}"

        yield socket.gethostname(), json.dumps(list(problems()))

    return work
