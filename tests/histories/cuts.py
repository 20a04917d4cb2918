"""Kills a command without ending the process: from some moment on nothing more reaches the disk.

Of many logs that share a round, a kill at one moment would find one in the middle of its swap. So
each log has a moment of its own, counted in changes to its files; what comes later does not happen,
and what is written later goes nowhere. Whatever belongs to all logs, a checkpoint above all, is not
changed any more once one log has stopped: so each log is in a state in which a kill can leave it.
"""

import builtins
import contextlib
import io
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

LOCK_FILE = ".lock"
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
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
        self._roots = [os.path.realpath(root) for root in roots]
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
        replaced = [
            (os, "open", self._opening(os.open)),
            (builtins, "open", self._opening(builtins.open)),
            (io, "open", self._opening(io.open)),
            *(
                (os, name, self._changing(getattr(os, name)))
                for name in ("remove", "unlink", "mkdir", "rmdir", "utime", "truncate")
            ),
            *(
                (os, name, self._naming(getattr(os, name)))
                for name in ("rename", "replace", "link")
            ),
        ]
        with contextlib.ExitStack() as stack:
            for where, name, function in replaced:
                stack.enter_context(mock.patch.object(where, name, function))
            yield
        shutil.rmtree(self._trash)

    def _owner(self, path: Any) -> str | None:
        """The partition whose file it is, "" for what belongs to all; None: elsewhere."""
        if not isinstance(path, str | os.PathLike):
            return None
        absolute = os.path.abspath(os.fspath(path))
        for root in self._roots:
            if absolute.startswith(root + os.sep):
                names = absolute[len(root) + 1 :].split(os.sep)
                if names[-1] == LOCK_FILE:
                    return None
                return next((name for name in names if name in self._by_log), "")
        return None

    def _happens(self, path: Any) -> bool:
        """Whether a change to a file still reaches the disk."""
        owner = self._owner(path)
        if owner is None:
            return True
        if self._over or owner in self._stopped:
            return False
        if owner == "":
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

    def _opening(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def opening(path: Any, *arguments: Any, **named: Any) -> Any:
            how = arguments[0] if arguments else named.get("flags", named.get("mode", "r"))
            writes = how & WRITING if isinstance(how, int) else set(how) & set("wax+")
            if not writes or self._happens(path):
                return original(path, *arguments, **named)
            elsewhere = self._trash / "written"
            with contextlib.suppress(FileNotFoundError):
                elsewhere.rename(self._trash / "before")
            if isinstance(how, int):
                arguments = (how | os.O_CREAT, *arguments[1:])
            return original(elsewhere, *arguments, **named)

        return opening

    def _changing(self, original: Callable[..., None]) -> Callable[..., None]:
        def changing(path: Any, *arguments: Any, **named: Any) -> None:
            if self._happens(path):
                original(path, *arguments, **named)

        return changing

    def _naming(self, original: Callable[..., None]) -> Callable[..., None]:
        def naming(source: Any, target: Any, **named: Any) -> None:
            if self._happens(target):
                original(source, target, **named)
                if self._counts_from and os.path.basename(target) == self._counts_from:
                    self._counts_from = ""

        return naming
