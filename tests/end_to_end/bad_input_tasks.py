"""Tasks of a real session that misbehave: what those of a stage do is replaced in the workers."""

import json
import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import TaskContext

from cleaner_jobs.local import worker_pool
from cleaner_jobs.spark import task_job
from cleaner_jobs.staging import STAGED_MARKER
from cleaner_jobs.tasks import task as tasks

STALLS = "TEST_STALLS"  # of the environment
Found = Iterator[tuple[str, tuple[Any, ...]]]
Behaviour = Callable[[Found, str, str], Found]  # what a task finds, work directory, attempt


@dataclass(frozen=True)
class Die:
    """The worker is gone, as when the kernel kills it for its memory."""

    def __call__(self, found: Found, _work_dir: str, _attempt: str) -> Found:
        yield from found
        os._exit(9)


@dataclass(frozen=True)
class FailUnforeseen:
    """A mistake of our own."""

    def __call__(self, found: Found, _work_dir: str, _attempt: str) -> Found:
        yield next(found)
        raise ZeroDivisionError("division\nby zero")


@dataclass(frozen=True)
class RunOutOfSpace:
    """No file grows past so many bytes: the nearest thing to a full disk that needs no root."""

    file_bytes: int

    def __call__(self, found: Found, _work_dir: str, _attempt: str) -> Found:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.file_bytes, hard))
        try:
            yield from found
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@dataclass(frozen=True)
class AsUser:
    """As somebody who may not read or write everything."""

    user_id: int

    def __call__(self, found: Found, _work_dir: str, _attempt: str) -> Found:
        before = os.geteuid()
        os.seteuid(self.user_id)
        try:
            yield from found
        finally:
            os.seteuid(before)


@dataclass(frozen=True)
class Stall:
    """Do the task, but never end: go on writing staged files, and files of the run's own."""

    partitions: tuple[str, ...]
    mark: str  # a file that says that it has come so far

    def __call__(self, found: Found, work_dir: str, attempt: str) -> Found:
        yield from found
        number = 0
        while True:
            for folder in (*self.partitions, os.path.join(work_dir, "pieces")):
                name = f"{number % 50:020}.log{STAGED_MARKER}{attempt}"
                Path(folder, name).write_bytes(b"more")
            number += 1
            if number == 50:
                Path(self.mark).touch()
            time.sleep(0.001 if number < 50 else 0.01)  # while others get so far


@dataclass(frozen=True)
class DieWhileOthersWrite:
    """One worker dies, the others do not know yet: they go on staging files for some seconds."""

    partition: str

    def __call__(self, found: Found, _work_dir: str, attempt: str) -> Found:
        yield from found
        mark = Path(self.partition, f"written{STAGED_MARKER}")
        if attempt.split("-")[1] == "0":
            while not mark.exists():
                time.sleep(0.001)
            os._exit(9)
        for number in range(1000):
            Path(self.partition, f"{number:020}.log{STAGED_MARKER}{attempt}").write_bytes(b"more")
            mark.touch()
            time.sleep(0.003)


@dataclass(frozen=True)
class _Hook:
    """In the place of TaskContext: a task that asks for its context gets a behaviour with it."""

    stage: str
    behaviour: Behaviour

    def get(self) -> TaskContext | None:
        original = tasks._STAGES[self.stage]

        def once(task: dict[str, Any], tried: Any) -> Found:
            tasks._STAGES[self.stage] = original  # workers are reused
            found = original(task, tried)
            yield from self.behaviour(found, tried.settings.work_dir, tried.attempt)

        tasks._STAGES[self.stage] = once
        return TaskContext.get()


@contextmanager
def misbehaving_workers(stage: str, stall: Stall) -> Iterator[None]:
    """Let the tasks of a stage stall in worker processes that are started inside of the block."""
    pool: Any = worker_pool
    host, pool.HOST_MODULE = pool.HOST_MODULE, "tests.end_to_end.stalling_host"
    os.environ[STALLS] = json.dumps([stage, stall.partitions, stall.mark])
    try:
        yield
    finally:
        pool.HOST_MODULE = host
        del os.environ[STALLS]


def stall_here() -> None:
    """Let the tasks of a stage stall in this process, as the environment says."""
    stage, partitions, mark = json.loads(os.environ[STALLS])
    original, stall = tasks._STAGES[stage], Stall(tuple(partitions), mark)
    tasks._STAGES[stage] = lambda task, tried: stall(
        original(task, tried), tried.settings.work_dir, tried.attempt
    )


@contextmanager
def misbehaving(stage: str, behaviour: Behaviour) -> Iterator[None]:
    """Let the tasks of a stage behave so, in every round inside of the block."""
    jobs: Any = task_job
    run_stage = jobs.run_stage

    def run_hooked(spark: Any, job: task_job.StageJob, *given: Any) -> Any:
        if job.stage != stage:
            return run_stage(spark, job, *given)
        jobs.TaskContext = _Hook(stage, behaviour)
        jobs._tasks_of_any_stage.cache_clear()  # the hook travels with what Java is told
        try:
            return run_stage(spark, job, *given)
        finally:
            jobs.TaskContext = TaskContext
            jobs._tasks_of_any_stage.cache_clear()

    jobs.run_stage = run_hooked
    try:
        yield
    finally:
        jobs.run_stage = run_stage
