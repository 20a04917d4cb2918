"""Runs the tasks of a round in this process, one after another, without Spark and Java."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from cleaner_jobs.messages import REWRITE, Row, save_task, task_file
from cleaner_jobs.tasks.partial_results import PartialResults
from storage.files.files import Disk
from storage.files.local import LOCAL


class InProcessEngine:
    """For callers that want no other process, and for tests that hand in a disk of their own."""

    def __init__(self, disk: Disk = LOCAL) -> None:
        self._disk = disk
        self._attempts = itertools.count()

    def core_count(self) -> int:
        return 1

    def run_stage(
        self,
        work_dir: str,
        stage: str,
        tasks: Sequence[dict[str, Any]],
        take: Callable[[Sequence[Row]], None],
    ) -> list[Row]:
        """Run the tasks of a stage, and return their rows.

        take: is given the partial results of a task when it is over, not while it goes on. What it
        raises ends the stage.
        """
        from cleaner_jobs.tasks.task import run_task  # the kernels, which take time to load

        partial_results = PartialResults(work_dir, stage, files=self._disk)
        for number, task in enumerate(tasks):
            save_task(task_file(work_dir, stage, number), task, self._disk)
        rows: list[Row] = []
        for number in range(len(tasks)):
            attempt = f"{stage}-{number}-{next(self._attempts)}"
            rows += run_task(work_dir, stage, number, attempt, disk=self._disk)
            take(list(partial_results.new()) if stage == REWRITE else [])
        return rows
