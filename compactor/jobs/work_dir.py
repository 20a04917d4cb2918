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
from collections.abc import Iterator
from functools import partial

from cleaner_jobs.signals import deferred_signals
from compactor.errors import CleaningFailedError
from compactor.host.machine import temporary_directory
from storage.files.disk_hints import Close, can_remove_while_open, close_in_background
from storage.files.files import Disk
from storage.files.local import LOCAL

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
def open_work_dir(parent: str | None, run_id: str, disk: Disk = LOCAL) -> Iterator[str]:
    """Make a directory of this run's own, private to this user, and remove it afterwards.

    parent: made where it does not exist, as in a tmpfs after a reboot; it stays.
    """
    where = parent or temporary_directory()
    with contextlib.ExitStack() as made:
        try:
            if parent is not None:
                _make(disk, parent)
            with deferred_signals():  # or one that is made is not known of, and stays
                path = disk.make_temporary_directory(f"{PREFIX}{run_id}-", where)
                made.callback(_remove, disk, path)
            made.callback(_let_go, _own(disk, path))
            for name in SUBDIRECTORIES:
                disk.make_directories(os.path.join(path, name))
            _remove_left(disk, os.path.dirname(path))
        except OSError as error:
            raise CleaningFailedError(
                f"no work directory can be made in {where}: {error.strerror}"
            ) from error
        yield path


def _make(disk: Disk, parent: str) -> None:
    try:
        disk.status(parent)  # first, since makedirs would say that it exists where this fails
    except FileNotFoundError:
        disk.make_directories(parent)


def _own(disk: Disk, path: str) -> int:
    """Lock the file that says whose directory it is; the descriptor that holds the lock."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    descriptor = disk.open_descriptor(os.path.join(path, OWNER), flags)
    with contextlib.suppress(OSError):  # a file system without locks: nobody will remove it
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, socket.gethostname().encode())  # at last: an empty name is nobody's
    return descriptor


def _let_go(descriptor: int) -> None:
    with contextlib.suppress(OSError):  # the directory goes next
        os.close(descriptor)


def _remove_left(disk: Disk, parent: str) -> None:
    """Remove the directories of runs of this user on this host that are over."""
    names, _ = disk.list_names(parent)
    for name in names:
        path = os.path.join(parent, name)
        if name.startswith(PREFIX) and _is_left(disk, path):
            disk.discard_directory(path)


def _is_left(disk: Disk, path: str) -> bool:
    with contextlib.suppress(OSError), contextlib.ExitStack() as opened:
        found = disk.status(path, follow=False)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            return False
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = disk.open_descriptor(os.path.join(path, OWNER), flags)
        opened.callback(os.close, descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.read(descriptor, 1000) == socket.gethostname().encode()
    return False


def _remove(disk: Disk, path: str) -> None:
    with deferred_signals():
        closes = _held(disk, path) if can_remove_while_open(disk, path) else []
        disk.discard_directory(path)
        close_in_background(closes)


def _held(disk: Disk, path: str) -> list[Close]:
    """What closes files and directories that are open now: nobody is to wait for their room."""
    flags, closes = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, list[Close]()
    for directory, _, names in os.walk(path):
        for name in (".", *names)[: MOST_HELD - len(closes)]:
            with contextlib.suppress(OSError):
                descriptor = disk.open_descriptor(os.path.join(directory, name), flags)
                closes.append(partial(os.close, descriptor))
        if len(closes) == MOST_HELD:
            break
    return closes
