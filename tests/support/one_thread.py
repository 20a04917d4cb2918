"""A run in one thread: what is given to another one is done at once, and so in the same order."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from cleaner_jobs.tasks import task
from compactor.cleaning import assembly, stages, swapper
from compactor.copying import copier, manifest
from compactor.jobs import engines
from compactor.recovery import log_dir_recovery

NEVER_SECONDS = 3600.0


class _AtOnce:
    """Takes the place of a ThreadPoolExecutor."""

    def __init__(self, _: int | None = None) -> None:
        pass

    def __enter__(self) -> "_AtOnce":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, work: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        try:
            future.set_result(work(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future

    def map(self, work: Callable[[Any], Any], values: Iterable[Any]) -> Iterator[Any]:
        return map(work, values)

    def shutdown(self, cancel_futures: bool = False) -> None:
        del cancel_futures


def use_one_thread(patch: pytest.MonkeyPatch) -> None:
    """Until the patches are undone."""
    for module in (task, assembly, stages, swapper, log_dir_recovery, manifest, copier):
        patch.setattr(module, "ThreadPoolExecutor", _AtOnce)
    locks = SimpleNamespace(Lock=threading.RLock, Event=threading.Event)
    patch.setattr(swapper, "threading", locks)  # a group is swapped in while it is being given
    patch.setattr(engines, "POLL_SECONDS", NEVER_SECONDS)
