"""Schedulers of what a log leaves to be done later: files to delete, segments to flush.

A log works with any `Scheduler`. `ManualScheduler` has no threads: what is due at once is done at
once, the rest when its owner says how late it is. `BackgroundScheduler` has a thread of its own,
which does what is due, one task after the other.
"""

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol, Self

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


_NS_PER_MS = 1_000_000
_LOGGER = logging.getLogger("compactor.log_manager")


class OwnTasks:
    """A scheduler of one user: what he has scheduled is not done any more once he has stopped."""

    def __init__(self, scheduler: Scheduler | None) -> None:
        """scheduler: None: a thread for this user, which ends with him."""
        self._own: BackgroundScheduler | None = None
        if scheduler is None:
            scheduler = self._own = BackgroundScheduler()
        self._scheduler = scheduler
        self._is_stopped = False

    def schedule_once(self, task: Task, delay_ms: int = 0) -> None:
        self._scheduler.schedule_once(lambda: None if self._is_stopped else task(), delay_ms)

    def stop(self) -> None:
        """Wait for a task that is being done in a thread of the user's own; do no other."""
        self._is_stopped = True
        if self._own is not None:
            self._own.close()


class _Due(NamedTuple):
    due_ns: int
    number: int  # of two at one time the first that was scheduled
    task: Task


def _log_error(error: BaseException) -> None:
    _LOGGER.error("a task in the background failed: %s", error, exc_info=error)


class BackgroundScheduler:
    """Tasks without a delay are done by the caller, at once; the others in the background.

    The thread begins with the first task that has to wait, and ends with `close`, which forgets
    what is not done yet. An error of a task is given to on_error, and the next task is done.
    """

    def __init__(
        self,
        on_error: Callable[[BaseException], object] = _log_error,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._on_error, self._clock_ns = on_error, clock_ns
        self._changed = threading.Condition()
        self._waiting: list[_Due] = []
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def schedule_once(self, task: Task, delay_ms: int = 0) -> None:
        if delay_ms <= 0:
            task()
            return
        with self._changed:
            if self._is_closed:
                return
            due_ns = self._clock_ns() + delay_ms * _NS_PER_MS
            heapq.heappush(self._waiting, _Due(due_ns, next(self._numbers), task))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="log-manager", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _run(self) -> None:
        while (task := self._next()) is not None:
            try:
                task()
            except (
                Exception
            ) as error:  # the thread lives on: other tasks have nothing to do with it
                self._on_error(error)

    def _next(self) -> Task | None:
        """Wait for the next task that is due; None once this is closed."""
        with self._changed:
            while not self._is_closed:
                if not self._waiting:
                    self._changed.wait()
                    continue
                wait_ns = self._waiting[0].due_ns - self._clock_ns()
                if wait_ns <= 0:
                    return heapq.heappop(self._waiting).task
                self._changed.wait(wait_ns / 1e9)
            return None

    def close(self) -> None:
        """Forget what is not done yet, and wait for the task that is being done."""
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
            self._changed.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
