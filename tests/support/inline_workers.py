"""Workers of the local engine that are none: they do each task in this process, when asked for it.

So the engine's own steps, and those of its tasks, can be recorded, cut short and made fail by what
watches this process.
"""

from collections.abc import Iterator, Sequence
from typing import cast

from cleaner_jobs.local.local_engine import LocalEngine
from cleaner_jobs.local.worker_host import Work, outcome_of
from cleaner_jobs.local.worker_pool import Answer, Workers


class InlineWorkers:
    """In the place of `Workers`: one, which does its task once its answer is looked for."""

    processes = 1

    def __init__(self) -> None:
        self._pool = _InlinePool()

    def pool(self) -> "_InlinePool":
        return self._pool

    def close(self) -> None:
        self._pool = _InlinePool()


class _InlinePool:
    def __init__(self) -> None:
        self._work: Work | None = None

    @property
    def idle(self) -> int:
        return 0 if self._work else 1

    @property
    def unfinished(self) -> Sequence[Work]:
        return [self._work] if self._work else []

    def give(self, work: Work) -> None:
        self._work = work

    def answers(self, _: float) -> Iterator[Answer]:
        assert self._work is not None
        answer = Answer(self._work, outcome_of(self._work))
        self._work = None
        yield answer


def inline_local_engine() -> LocalEngine:
    """Return a local engine whose tasks run in this process."""
    return LocalEngine(cast(Workers, InlineWorkers()))
