"""Open the work directory of a run: task values, parts, verdicts, pieces; nothing that outlives it.

It must lie outside of every log directory: a broker that starts does not survive a directory in one
that is not named like a partition (log-format F-1.4).

The directory of a run that was killed remains, and the next run beside it removes it: a lock on
a file in it, which ends with the process that made it, distinguishes it from those of live runs.
"""

import contextlib
import fcntl
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from functools import partial

from cleaner_jobs.signals import deferred_signals
from compactor.errors import CleaningFailedError
from compactor.host.machine import temporary_directory
from storage.files.disk_hints import Close, can_remove_while_open, close_in_background
from storage.files.filesystem import discard_directory

SUBDIRECTORIES = (
    "tasks",
    "parts",
    "transactions",
    "verdicts",
    "pieces",
    "partial-results",
    "progress",
    "spark",
)
PREFIX = "compactor-"
MOST_HELD = 64
OWNER = "owner"  # holds the name of the host; locked for as long as the run lives


@contextlib.contextmanager
def open_work_dir(parent: str | None, run_id: str) -> Iterator[str]:
    """Make a directory of this run's own, private to this user, and remove it afterwards.

    parent: made where it does not exist, as in a tmpfs after a reboot; it stays.
    """
    where = parent or temporary_directory()
    with contextlib.ExitStack() as made:
        try:
            if parent is not None:
                _make(parent)
            with deferred_signals():  # or one that is made is not known of, and stays
                path = tempfile.mkdtemp(prefix=f"{PREFIX}{run_id}-", dir=where)
                made.callback(_remove, path)
            made.callback(_let_go, _own(path))
            for name in SUBDIRECTORIES:
                os.mkdir(os.path.join(path, name))
            _remove_left(os.path.dirname(path))
        except OSError as error:
            raise CleaningFailedError(
                f"no work directory can be made in {where}: {error.strerror}"
            ) from error
        yield path


def _make(parent: str) -> None:
    try:
        os.stat(parent)  # first, since makedirs would say that it exists where this fails
    except FileNotFoundError:
        os.makedirs(parent, mode=0o700, exist_ok=True)


def _own(path: str) -> int:
    """Lock the file that says whose directory it is; the descriptor that holds the lock."""
    descriptor = os.open(os.path.join(path, OWNER), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with contextlib.suppress(OSError):  # a file system without locks: nobody will remove it
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, socket.gethostname().encode())  # at last: an empty name is nobody's
    return descriptor


def _let_go(descriptor: int) -> None:
    with contextlib.suppress(OSError):  # the directory goes next
        os.close(descriptor)


def _remove_left(parent: str) -> None:
    """Remove the directories of runs of this user on this host that are over."""
    for name in os.listdir(parent):
        path = os.path.join(parent, name)
        if name.startswith(PREFIX) and _is_left(path):
            discard_directory(path)


def _is_left(path: str) -> bool:
    with contextlib.suppress(OSError), contextlib.ExitStack() as opened:
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            return False
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(os.path.join(path, OWNER), flags)
        opened.callback(os.close, descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.read(descriptor, 1000) == socket.gethostname().encode()
    return False


def _remove(path: str) -> None:
    with deferred_signals():
        closes = _held(path) if can_remove_while_open(path) else []
        discard_directory(path)
        close_in_background(closes)


def _held(path: str) -> list[Close]:
    """What closes files and directories that are open now: nobody is to wait for their room."""
    flags, closes = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, list[Close]()
    for directory, _, names in os.walk(path):
        for name in (".", *names)[: MOST_HELD - len(closes)]:
            with contextlib.suppress(OSError):
                closes.append(partial(os.close, os.open(os.path.join(directory, name), flags)))
        if len(closes) == MOST_HELD:
            break
    return closes
