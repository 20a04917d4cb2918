"""What a round asks of whoever runs its tasks: Spark, or this process."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from cleaner_jobs.messages import Row


class TaskRunner(Protocol):
    """Runs stages, one at a time."""

    def core_count(self) -> int:
        """How many tasks work at once."""
        ...

    def run_stage(
        self,
        work_dir: str,
        stage: str,
        tasks: list[dict[str, Any]],
        take: Callable[[Sequence[Row]], None],
    ) -> list[Row]:
        """Run the tasks of a stage, and return their rows, those of a task once.

        take: is called every so often with the partial results that have come since, if any.
        What it raises ends the stage.
        """
        ...
