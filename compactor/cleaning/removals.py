"""Removes what was replaced, while other swaps go on: the originals of a log, and its pieces."""

import os
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from storage.errors import CorruptFileError
from storage.files.files import Files
from storage.files.freed_behind import Close, close_behind, frees_behind
from storage.files.held_directories import kept_open

REMOVED_AT_ONCE_BYTES = 16 << 20  # by one thread, one after the other: a few small files
OPEN_AT_ONCE = 16  # of large files, by one thread


class Removals:
    """Files of one log that are being removed. Those that are gone take no memory any more."""

    def __init__(self, threads: ThreadPoolExecutor, files: Files) -> None:
        self._threads, self._files = threads, files
        self._begun: deque[Future[None]] = deque()
        self._failed: list[Future[None]] = []
        self._frees_behind: dict[str, bool] = {}  # by directory

    def begin(self, log_bytes: int, paths: Sequence[str]) -> None:
        """paths: in one directory. log_bytes: of all of them, about. What goes wrong is for
        `finish`, which does not wait for the room of large files.
        """
        while self._begun and self._begun[0].done():
            self._take(self._begun.popleft())
        at_once = max(1, len(paths) * REMOVED_AT_ONCE_BYTES // max(1, log_bytes))
        remove = _remove_each
        if paths and self._may_free_behind(os.path.dirname(paths[0])):
            if at_once == 1:
                at_once, remove = OPEN_AT_ONCE, _remove_open
            else:
                at_once = len(paths)  # there one has the directory, and the others wait for it
        for start in range(0, len(paths), at_once):
            some = paths[start : start + at_once]
            self._begun.append(self._threads.submit(remove, self._files, some))

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
