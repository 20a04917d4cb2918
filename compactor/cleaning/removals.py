"""Remove what was replaced: the originals of a log, for which its swap waits, and its pieces."""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial

from storage.errors import CorruptFileError
from storage.files.disk_hints import Close, can_remove_while_open, close_in_background
from storage.files.files import Disk

LARGE_BYTES = 8 << 20  # of a file, on average: from there on its room takes longer than its name
REMOVED_AT_ONCE_BYTES = 16 << 20  # by one thread, one after the other: a few small files
SMALL_FILES_AT_ONCE = 512  # by one thread, before it takes others
SMALL_FILES_THREADS = 2  # one has the directory, the other prepares its next call
OPEN_AT_ONCE = 16  # of large files, by one thread

_Job = Callable[[], None]


class Removals:
    """Files of one log that are being removed. Those that are gone take no memory any more."""

    def __init__(self, threads: ThreadPoolExecutor, disk: Disk) -> None:
        self._threads, self._disk = threads, disk
        self._begun: deque[Future[None]] = deque()
        self._failed: list[Future[None]] = []
        self._frees_later: dict[str, bool] = {}  # by directory

    def remove(self, log_bytes: int, paths: Sequence[str]) -> None:
        """Come back when all their names are gone; the room of large files may come back later.

        paths: in one directory. log_bytes: of all of them, about. Raise, at the end, the OSError of
        the first that could not be removed.
        """
        jobs, threads = self._jobs(log_bytes, paths)
        left = deque(jobs)
        helping = [
            self._threads.submit(_work_through, left) for _ in range(min(len(jobs), threads) - 1)
        ]
        try:
            _work_through(left)
        finally:
            left.clear()  # where this is cut short
            helping = [helper for helper in helping if not helper.cancel()]
            wait(helping)
        for helper in helping:
            helper.result()

    def begin(self, log_bytes: int, paths: Sequence[str]) -> None:
        """Begin to remove files, and return at once. `finish` raises what goes wrong."""
        while self._begun and self._begun[0].done():
            self._take(self._begun.popleft())
        for job in self._jobs(log_bytes, paths)[0]:
            self._begun.append(self._threads.submit(job))

    def finish(self) -> None:
        """Wait for all that was begun. Raise the OSError of the first that could not be removed."""
        while self._begun:
            self._take(self._begun.popleft())
        for removal in self._failed:
            removal.result()

    def _take(self, removal: Future[None]) -> None:
        if removal.exception() is not None:
            self._failed.append(removal)

    def _jobs(self, log_bytes: int, paths: Sequence[str]) -> tuple[list[_Job], int]:
        """What threads do, and how many of them at once."""
        if not paths:
            return [], 0
        are_large = log_bytes >= len(paths) * LARGE_BYTES
        at_once = max(1, len(paths) * REMOVED_AT_ONCE_BYTES // max(1, log_bytes))
        remove, threads = _remove_each, len(paths)
        are_few = not are_large and len(paths) <= at_once  # whatever file system they are on
        if not are_few and self._may_close_in_background(os.path.dirname(paths[0])):
            if are_large:
                remove, at_once = _remove_open, OPEN_AT_ONCE
            else:  # on a disk one thread has the directory: others wait for it, and for Python
                at_once, threads = SMALL_FILES_AT_ONCE, SMALL_FILES_THREADS
        return [partial(remove, self._disk, some) for some in _runs(paths, at_once)], threads

    def _may_close_in_background(self, directory: str) -> bool:
        if directory not in self._frees_later:
            self._frees_later[directory] = can_remove_while_open(self._disk, directory)
        return self._frees_later[directory]


def _work_through(jobs: deque[_Job]) -> None:
    """Do those that nobody else does. Raise, at the end, the OSError of the first that failed."""
    failed: OSError | None = None
    while True:
        try:
            job = jobs.popleft()
        except IndexError:
            break
        try:
            job()
        except OSError as error:
            failed = failed or error
    if failed is not None:
        raise failed


def _runs(paths: Sequence[str], length: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(paths), length):
        yield paths[start : start + length]


def _remove_each(disk: Disk, paths: Sequence[str]) -> None:
    """Raise, at the end, the OSError of the first that could not be removed."""
    failed: OSError | None = None
    with disk.kept_open(os.path.dirname(paths[0])):
        for path in paths:
            try:
                disk.remove(path)
            except OSError as error:
                failed = failed or error
    if failed is not None:
        raise failed


def _remove_open(disk: Disk, paths: Sequence[str]) -> None:
    """Remove open files, and let their room come back later."""
    held: list[Close] = []
    try:
        for path in paths:
            # what cannot be opened, or is no file, is removed all the same
            with suppress(OSError, CorruptFileError):
                held.append(disk.open(path).__exit__)
        _remove_each(disk, paths)
    finally:
        close_in_background(held)
