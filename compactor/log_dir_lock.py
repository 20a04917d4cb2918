"""Kafka's own lock of a log directory, held for as long as a run may change anything in it.

A POSIX record lock on `.lock`, as a broker takes: a running broker makes us refuse, and we make a
starting one refuse. Such a lock keeps nobody out who is in the same process, and closing any
descriptor of the file there would drop it: so nothing else here opens it, and of two calls at once
in one process the second is refused by what is noted here. The file can be removed all the same,
and be made anew and locked by somebody else: so it is looked at, by its name, before each change.
Source: log-format F-15.1; Kafka, LogManager.lockLogDirs.
"""

import contextlib
import fcntl
import os
import sys
import threading
from collections.abc import Collection, Iterator, Sequence
from struct import Struct

from compactor.errors import LockLostError, RefusedError
from compactor.lock_support import require_working_locks
from storage.files import filesystem
from storage.files.files import Entry
from storage.files.filesystem import naming
from storage.files.held_directories import hold_log_dir
from storage.formats import clean_shutdown

LOCK_FILE = ".lock"
_FLOCK = Struct("@hhqqi4x")  # of Linux: type, whence, start, length, process
_held: set[tuple[int, int]] = set()  # device and inode of each lock of this process
_one_at_a_time = threading.Lock()  # of them is taken or given back
UNTIL_A_CLEAN_SHUTDOWN = "until a broker has started and stopped cleanly there"


@contextlib.contextmanager
def lock_log_dirs(
    log_dirs: Sequence[str],
    allowed_file_systems: Collection[str] = (),
    after_unclean_shutdown: bool = False,
) -> Iterator[None]:
    """Hold the locks of all these directories, or raise RefusedError and hold none.

    While they are held, a change by `storage.files` in one of them raises LockLostError if its lock
    is another's, and DirectoryExchangedError if the directory that it is in is another.
    allowed_file_systems: types beside the local ones on which a lock is said to be good.
    after_unclean_shutdown: whether a directory that no broker has left in good order is taken too.
    """
    require_working_locks(log_dirs, allowed_file_systems)
    with contextlib.ExitStack() as locks:
        for log_dir in log_dirs:
            locks.enter_context(_lock(log_dir))
            if not after_unclean_shutdown:
                require_clean_shutdown(log_dir)
        yield


def require_free(log_dir: str) -> None:
    """Raise RefusedError where another process holds the lock. Takes none, and so keeps nobody out.

    What this process holds is not looked at: to close the file would give it away.
    """
    if not sys.platform.startswith("linux"):  # where the answer may be laid out otherwise
        return
    path = os.path.join(log_dir, LOCK_FILE)
    try:
        found = os.lstat(path)
        if (found.st_dev, found.st_ino) in _held:
            return
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return
    try:
        with naming(path):
            answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, _FLOCK.pack(fcntl.F_WRLCK, 0, 0, 0, 0))
    finally:
        os.close(descriptor)
    if _FLOCK.unpack(answer)[0] != fcntl.F_UNLCK:
        raise _in_use(path)


def require_clean_shutdown(log_dir: str) -> None:
    """Raise RefusedError where the broker that was last at work did not stop cleanly."""
    if not clean_shutdown.exists(log_dir):
        raise RefusedError(
            f"{log_dir}: no {clean_shutdown.CLEAN_SHUTDOWN}: the broker did not stop cleanly, and "
            "its last segments may be torn. Give each run --recover-first "
            f"{UNTIL_A_CLEAN_SHUTDOWN}: it checks and rebuilds what a starting broker would; "
            "compactor recover does the same, but does not write that file. Nothing was changed"
        )


@contextlib.contextmanager
def _lock(log_dir: str) -> Iterator[None]:
    path = os.path.join(log_dir, LOCK_FILE)
    with _one_at_a_time:
        found = filesystem.look_up(path)
        if found is not None and (found.device, found.inode) in _held:
            raise _in_use(path, "this process works in this log directory already")
        descriptor, own = _locked(log_dir, path)
        _held.add((own.device, own.inode))
    try:
        with hold_log_dir(log_dir, lambda: _require_own(descriptor, path)):
            yield
    finally:
        with _one_at_a_time:  # until it is closed nobody else of this process may take it
            try:
                if found is None and _is_named(descriptor, path):
                    os.unlink(path)  # as a broker that stops cleanly; while the lock is still held
            finally:
                _held.discard((own.device, own.inode))
                with naming(path):
                    os.close(descriptor)


def _locked(log_dir: str, path: str) -> tuple[int, Entry]:
    """The descriptor that the lock is on, and which file that is."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        try:
            with naming(path):
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as error:
            raise _in_use(path) from error
        if not _is_named(descriptor, path):
            # a stopping broker unlinks it: then this is a file that no broker will look at
            raise RefusedError(
                f"{path}: removed while it was being locked: a broker is stopping. "
                "Nothing was changed"
            )
        with naming(path):
            _give_to_owner_of(log_dir, descriptor)
        return descriptor, filesystem.look_at(descriptor, path)
    except BaseException:
        with naming(path):
            os.close(descriptor)
        raise


def _in_use(
    path: str, doing: str = "a broker or another run works in this log directory"
) -> RefusedError:
    return RefusedError(f"{path}: locked: {doing}. Nothing was changed")


def _give_to_owner_of(log_dir: str, descriptor: int) -> None:
    """Let the broker open a lock file that we made, should we be killed before we remove it."""
    model, made = os.stat(log_dir), os.fstat(descriptor)
    if made.st_uid == os.geteuid() != model.st_uid:
        with contextlib.suppress(PermissionError):  # only root may give files away
            os.fchown(descriptor, model.st_uid, model.st_gid)


def _require_own(descriptor: int, path: str) -> None:
    if not _is_named(descriptor, path):
        raise LockLostError(
            f"{path}: not the file that was locked at the beginning: it was removed or made anew. "
            "A broker or another run may be at work in this log directory, so nothing more is "
            "changed there. Find out who works there first. What was cut short is settled by a "
            "starting broker, by compactor recover, or by the next run"
        )


def _is_named(descriptor: int, path: str) -> bool:
    """Whether a path is that of an open file. It is not opened: see above."""
    with naming(path):
        held = os.fstat(descriptor)
    try:
        named = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino)
