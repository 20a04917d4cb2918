"""What a log leaves to be done later: files to delete, segments to flush.

A log is given a `Scheduler`. `ManualScheduler` has no threads: what is due at once is done at once,
the rest when its owner says how late it is.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

Task = Callable[[], object]


class Scheduler(Protocol):
    """Runs tasks, each once."""

    def schedule_once(self, task: Task, delay_ms: int = 0) -> None: ...


class _Later(NamedTuple):
    due_ms: int
    task: Task


class ManualScheduler:
    """A scheduler whose time is its owner's: `tick` runs what is due, by time, then by order."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._later: list[_Later] = []

    def schedule_once(self, task: Task, delay_ms: int = 0) -> None:
        if delay_ms <= 0:
            task()
        else:
            self._later.append(_Later(self._now_ms() + delay_ms, task))

    def tick(self) -> None:
        """Run all that is due by now; a task may schedule another."""
        while due := [later for later in self._later if later.due_ms <= self._now_ms()]:
            first = min(due, key=lambda later: later.due_ms)
            self._later.remove(first)
            first.task()

    def forget(self) -> None:
        """Let go of all that is not done yet: files that were to be deleted stay."""
        self._later.clear()
