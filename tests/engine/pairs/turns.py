"""Threads of which one runs at a time: a seed says where which one goes on, so that a run of them
can be had again.

A thread may lose its turn at each operation on a file and each lock of `storage`. One that has to
wait for a lock gives its turn away until it gets it.
"""

import random
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace, TracebackType
from typing import Any

MOST_WAITS = 20_000  # one after the other: then nobody can go on
PAUSES = (0, 50, 500, 5000)
ROOMS = ("storage.log.", "storage.files.file_pool")


class DeadlockError(Exception):
    """Every thread waits for a lock that another one holds."""


class Turns:
    """Runs jobs, each in a thread of its own."""

    def __init__(self, chance: random.Random) -> None:
        self._chance, self._often = chance, chance.choice((0.02, 0.1, 0.4))
        self._own = threading.local()
        self._go: list[threading.Semaphore] = []
        self._alive: list[int] = []
        self._waits = self._points = 0
        self._held: dict[int, int] = {}  # threads that stay where they are up to a point
        self._over = threading.Event()

    def run(self, jobs: Sequence[Callable[[], None]]) -> list[BaseException]:
        """Until all have ended; the errors that ended one."""
        errors: list[BaseException] = []
        self._go = [threading.Semaphore(0) for _ in jobs]
        self._alive = list(range(len(jobs)))

        def do(number: int) -> None:
            self._own.number = number
            self._go[number].acquire()
            try:
                jobs[number]()
            except Exception as error:
                errors.append(error)
            finally:
                self._alive.remove(number)
                if self._alive:
                    self._go[self._chance.choice(self._alive)].release()
                else:
                    self._over.set()

        threads = [threading.Thread(target=do, args=(n,), daemon=True) for n in self._alive]
        for thread in threads:
            thread.start()
        self._go[self._chance.choice(self._alive)].release()
        if not self._over.wait(120):
            errors.append(DeadlockError("no thread has ended within two minutes"))
        return errors

    @property
    def is_one(self) -> bool:
        """Whether the caller is one of the threads."""
        return hasattr(self._own, "number")

    def may_change(self, is_shared: bool = False) -> None:
        """Let another thread go on, if it so happens. is_shared: the caller works on what all of
        them write to: more often, and then for longer, so that others come to it meanwhile."""
        if not self.is_one:
            return
        self._waits, self._points = 0, self._points + 1
        if len(self._alive) > 1 and self._chance.random() < (0.5 if is_shared else self._often):
            if is_shared:
                self._held[self._own.number] = self._points + self._chance.choice(PAUSES)
            free = [each for each in self._alive if self._held.get(each, 0) <= self._points]
            if free:
                self._to(self._chance.choice(free))

    def wait(self) -> None:
        """Let another thread go on: this one cannot."""
        self._waits += 1
        others = [number for number in self._alive if number != self._own.number]
        if not others or self._waits > MOST_WAITS:
            raise DeadlockError("no thread can go on")
        self._to(self._chance.choice(others))

    def _to(self, number: int) -> None:
        own: int = self._own.number
        if number != own:
            self._go[number].release()
            self._go[own].acquire()


class _Lock:
    def __init__(self, turns: Turns, real: Any) -> None:
        self._turns, self._real = turns, real

    def acquire(self, blocking: bool = True) -> bool:
        if not self._turns.is_one or not blocking:
            return bool(self._real.acquire(blocking))
        self._turns.may_change()
        while not self._real.acquire(False):
            self._turns.wait()
        return True

    def release(self) -> None:
        self._real.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.release()


class _Condition(_Lock):
    """Who waits looks again and again, as it has to anyway."""

    def __init__(self, turns: Turns) -> None:
        super().__init__(turns, threading.Lock())

    def wait(self) -> None:
        self._real.release()
        self._turns.wait()
        while not self._real.acquire(False):
            self._turns.wait()

    def notify(self) -> None:
        pass

    def notify_all(self) -> None:
        pass


class _AtOnce:
    """A pool of no threads: it works in that of its caller, which has the turn."""

    def __enter__(self) -> "_AtOnce":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        return [work(item) for item in items]


@contextmanager
def locks_of(turns: Turns) -> Iterator[None]:
    """Locks that `storage` makes meanwhile are those of the turns."""
    mine: dict[object, Any] = {
        threading.Lock: lambda: _Lock(turns, threading.Lock()),
        threading.RLock: lambda: _Lock(turns, threading.RLock()),
    }
    mine[threading] = SimpleNamespace(
        **{**vars(threading), "Lock": mine[threading.Lock], "RLock": mine[threading.RLock]}
        | {"Condition": lambda: _Condition(turns)}
    )
    replaced: list[tuple[Any, str, Any]] = []
    for name, module in list(sys.modules.items()):
        if name.startswith(ROOMS):
            for attribute, value in list(vars(module).items()):
                if attribute in ("threading", "Lock", "RLock") and value in mine:
                    replaced.append((module, attribute, value))
                    setattr(module, attribute, mine[value])
    of_manager = sys.modules["storage.log.log_manager"]
    pool = of_manager.ThreadPoolExecutor
    replaced.append((of_manager, "ThreadPoolExecutor", pool))

    def pool_of_caller(threads: int, name: str = "") -> Any:
        return pool(threads, name) if name else _AtOnce()  # logs are loaded by threads with a name

    of_manager.ThreadPoolExecutor = pool_of_caller  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module, attribute, value in replaced:
            setattr(module, attribute, value)
