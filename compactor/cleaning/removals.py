"""Removes what was replaced, while other swaps go on: the originals of a log, and its pieces."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from storage.errors import CorruptFileError
from storage.files.files import Files
from storage.files.freed_behind import Close, close_behind, frees_behind
from storage.files.held_directories import kept_open

LARGE_BYTES = 8 << 20  # of a file, on average: from there on its room takes longer than its name
REMOVED_AT_ONCE_BYTES = 16 << 20  # by one thread, one after the other: a few small files
SMALL_FILES_AT_ONCE = 512  # by one thread, before others have a turn
SMALL_FILES_THREADS = 2  # one has the directory, the other prepares its next call
OPEN_AT_ONCE = 16  # of large files, by one thread


class Removals:
    """Files of one log that are being removed. Those that are gone take no memory any more."""

    def __init__(self, threads: ThreadPoolExecutor, files: Files) -> None:
        self._threads, self._files = threads, files
        self._begun: deque[Future[None]] = deque()
        self._failed: list[Future[None]] = []
        self._frees_behind: dict[str, bool] = {}  # by directory
        self._lock = threading.Lock()
        self._small: deque[Sequence[str]] = deque()  # runs of small files that wait for a thread
        self._small_threads = 0  # that remove such runs

    def begin(self, log_bytes: int, paths: Sequence[str]) -> None:
        """paths: in one directory. log_bytes: of all of them, about. What goes wrong is for
        `finish`, which does not wait for the room of large files.
        """
        while self._begun and self._begun[0].done():
            self._take(self._begun.popleft())
        if not paths:
            return
        are_large = log_bytes >= len(paths) * LARGE_BYTES
        at_once = max(1, len(paths) * REMOVED_AT_ONCE_BYTES // max(1, log_bytes))
        are_few = not are_large and len(paths) <= at_once  # whatever file system they are on
        if are_few or not self._may_free_behind(os.path.dirname(paths[0])):
            self._begin_each(_remove_each, paths, at_once)
        elif are_large:
            self._begin_each(_remove_open, paths, OPEN_AT_ONCE)
        else:
            self._begin_small(paths)

    def _begin_each(
        self, remove: Callable[[Files, Sequence[str]], None], paths: Sequence[str], at_once: int
    ) -> None:
        for some in _runs(paths, at_once):
            self._begun.append(self._threads.submit(remove, self._files, some))

    def _begin_small(self, paths: Sequence[str]) -> None:
        """On a disk one thread has the directory, and the others wait for it, and for Python."""
        runs = list(_runs(paths, SMALL_FILES_AT_ONCE))
        with self._lock:
            self._small.extend(runs)
            more = min(len(runs), SMALL_FILES_THREADS - self._small_threads)
            self._small_threads += more
        for _ in range(more):
            self._begun.append(self._threads.submit(self._remove_small))

    def _remove_small(self) -> None:
        """Raise, at the end, the OSError of the first that could not be removed."""
        failed: OSError | None = None
        while paths := self._next_small():
            try:
                _remove_each(self._files, paths)
            except OSError as error:
                failed = failed or error
        if failed is not None:
            raise failed

    def _next_small(self) -> Sequence[str]:
        """Those that a thread removes next; none where it is to end."""
        with self._lock:
            if self._small:
                return self._small.popleft()
            self._small_threads -= 1
            return ()

    def _may_free_behind(self, directory: str) -> bool:
        if directory not in self._frees_behind:
            self._frees_behind[directory] = frees_behind(directory)
        return self._frees_behind[directory]

    def finish(self) -> None:
        """Wait for all of them. Raise the OSError of the first that could not be removed."""
        while self._begun:
            self._take(self._begun.popleft())
        for removal in self._failed:
            removal.result()

    def _take(self, removal: Future[None]) -> None:
        if removal.exception() is not None:
            self._failed.append(removal)


def _runs(paths: Sequence[str], length: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(paths), length):
        yield paths[start : start + length]


def _remove_each(files: Files, paths: Sequence[str]) -> None:
    """Raise, at the end, the OSError of the first that could not be removed."""
    failed: OSError | None = None
    with kept_open(os.path.dirname(paths[0])):
        for path in paths:
            try:
                files.remove(path)
            except OSError as error:
                failed = failed or error
    if failed is not None:
        raise failed


def _remove_open(files: Files, paths: Sequence[str]) -> None:
    """Likewise, and let their room come back later."""
    held: list[Close] = []
    try:
        for path in paths:
            # what cannot be opened, or is no file, is removed all the same
            with suppress(OSError, CorruptFileError):
                held.append(files.open(path).__exit__)
        _remove_each(files, paths)
    finally:
        close_behind(held)
