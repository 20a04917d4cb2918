"""Kills a command without ending the process: from some moment on nothing more reaches the disk.

Of many logs that share a round, a kill at one moment would find one in the middle of its swap. So
each log has a moment of its own, counted in changes to its files; what comes later does not happen,
and what is written later goes nowhere. Whatever belongs to all logs, a checkpoint above all, is not
changed any more once one log has stopped: so each log is in a state in which a kill can leave it.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.file_operations import FileOperations, Operation

LOCK_FILE = ".lock"
KINDS = (
    *("open-to-write", "remove", "unlink", "mkdir", "rmdir", "utime", "truncate"),
    *("rename", "replace", "link"),
)
NEVER = 1 << 62


class Limits(NamedTuple):
    """Where the changes of one command end."""

    by_log: Mapping[str, int]  # how many to the files of a partition happen, by its name
    of_all: int = NEVER  # how many to what belongs to all
    counts_from: str = ""  # a file of all; changes to logs count once it is in place
    ends_at: str = ""  # likewise; nothing happens from its making on


class Cuts:
    """Ends the changes of one command, each log's by itself."""

    def __init__(self, roots: Sequence[Path], trash: Path, limits: Limits) -> None:
        """roots: under which changes count. trash: a directory for what goes nowhere."""
        self._operations = FileOperations(roots, self._before, self._after, KINDS)
        self._trash, self._by_log, self._of_all = trash, limits.by_log, limits.of_all
        self._counts_from, self._ends_at = limits.counts_from, limits.ends_at
        self._done: dict[str, int] = {}
        self._stopped: set[str] = set()
        self._over = False

    @property
    def happened(self) -> bool:
        return self._over or bool(self._stopped)

    @property
    def stopped_logs(self) -> int:
        """How many logs had changes that did not happen any more."""
        return len(self._stopped)

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        self._trash.mkdir(parents=True, exist_ok=True)
        with self._operations.listening():
            yield
        shutil.rmtree(self._trash)

    def _before(self, operation: Operation) -> Path | None:
        path = operation.path
        if operation.kind in ("rename", "replace", "link"):
            path = operation.target
        if not path or os.path.basename(path) == LOCK_FILE or self._happens(path):
            return None
        elsewhere = self._trash / "written"
        with contextlib.suppress(FileNotFoundError):
            elsewhere.rename(self._trash / "before")
        return elsewhere

    def _after(self, operation: Operation) -> None:
        if self._counts_from and os.path.basename(operation.target) == self._counts_from:
            self._counts_from = ""

    def _happens(self, path: str) -> bool:
        """Whether a change to a file still reaches the disk."""
        owner = next((name for name in path.split(os.sep) if name in self._by_log), "")
        if self._over or owner in self._stopped:
            return False
        if owner == "":  # it belongs to all
            self._of_all -= 1
            ends = bool(self._ends_at) and os.path.basename(path).startswith(self._ends_at)
            self._over = bool(self._stopped) or self._of_all < 0 or ends
            return not self._over
        if self._counts_from:
            return True
        self._done[owner] = self._done.get(owner, 0) + 1
        if self._done[owner] > self._by_log[owner]:
            self._stopped.add(owner)
            return False
        return True
