"""Runs each stage of a round in worker processes of this host: a task at a time in each.

A worker that dies is noticed at once. Whatever it was about is tried again, with what the others
were about, by workers that are all started anew: up to three times, as on a cluster.
"""

import itertools
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

from cleaner_jobs.local.worker_host import Failed, Work
from cleaner_jobs.local.worker_pool import DRIVER_BYTES, WorkerDiedError, Workers
from cleaner_jobs.machine_size import WORKER_BYTES, KillWatch
from cleaner_jobs.messages import REWRITE, Row, save_task, task_file
from cleaner_jobs.problems import StageFailedError
from cleaner_jobs.tasks.partial_results import PartialResults
from storage.files.files import Disk
from storage.files.local import LOCAL

MOST_TRIES = 4  # of a task whose worker dies, as Spark's spark.task.maxFailures on a cluster
RESULT_LOOK_SECONDS = 0.02  # between two looks for partial results
ALLOW_MORE = "Allow more, or leave fewer cores to the run (taskset, a quota of the control group)"


class TaskError(Exception):
    """The traceback of a task that failed in a worker: `--debug` shows it as the cause."""


class LocalEngine:
    """Runs the tasks of a round in processes of this host."""

    def __init__(
        self,
        workers: Workers,
        say: Callable[[str], None] = lambda _: None,
        disk: Disk = LOCAL,
    ) -> None:
        """say: what went wrong, and is tried again."""
        self._workers, self._say, self._disk = workers, say, disk
        self._attempts = itertools.count()
        self._kills = KillWatch(DRIVER_BYTES + WORKER_BYTES, ALLOW_MORE)

    def core_count(self) -> int:
        return self._workers.processes

    def run_stage(
        self,
        work_dir: str,
        stage: str,
        tasks: Sequence[dict[str, Any]],
        take: Callable[[Sequence[Row]], None],
    ) -> list[Row]:
        """Run the tasks of a stage, and return their rows, a retried task's only once.

        take: is called every so often with the partial results that have come since, if any. Where
        a task is tried twice, it may get those of both tries. What it raises ends the stage, as an
        interrupt does: no task goes on after that.
        Raise StageFailedError where a task fails, or where its workers die again and again.
        """
        for number, task in enumerate(tasks):
            save_task(task_file(work_dir, stage, number), task, self._disk)
        partial_results = PartialResults(work_dir, stage, files=self._disk)
        rows: list[list[Row]] = [[] for _ in tasks]
        waiting, tries = deque(range(len(tasks))), Counter[int]()
        try:
            while waiting or self._workers.pool().unfinished:
                pool = self._workers.pool()
                try:
                    while waiting and pool.idle:
                        number = waiting[0]
                        attempt = f"{stage}-{number}-{next(self._attempts)}"
                        pool.give(Work(work_dir, stage, number, attempt))
                        waiting.popleft()
                    for work, answer in pool.answers(RESULT_LOOK_SECONDS):
                        if isinstance(answer, Failed):
                            problem = f"{stage}: a task failed: {answer.cause}"
                            raise StageFailedError(problem) from TaskError(answer.traceback)
                        rows[work.number] = answer
                except WorkerDiedError as error:
                    unfinished = [work.number for work in pool.unfinished]
                    self._workers.close()  # before another try: nobody is to write beside it
                    tries.update(unfinished)
                    self._require_another(f"{stage}: {error}", tries)
                    waiting.extend(number for number in unfinished if number not in waiting)
                take(list(partial_results.new()) if stage == REWRITE else [])
        except BaseException:
            self._workers.close()
            raise
        return [row for of_task in rows for row in of_task]

    def _require_another(self, problem: str, tries: Counter[int]) -> None:
        """Say that tasks are tried again. Raise StageFailedError where one was often enough."""
        cause = f"{problem}{self._kills.words()}"
        if max(tries.values()) >= MOST_TRIES:
            raise StageFailedError(f"{cause}. Its task was tried {MOST_TRIES} times")
        self._say(f"{cause}. Its task is tried again")
