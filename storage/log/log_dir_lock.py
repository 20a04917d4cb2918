"""Kafka's own lock of a log directory, so that a broker and whoever works here keep each other out.

A POSIX record lock on `.lock`, as a broker takes: a running broker makes us refuse, and we make a
starting one refuse. Such a lock keeps nobody out who is in the same process, and closing any
descriptor of the file there would drop it: so nothing else opens it, and of two calls at once in
one process the second is refused by what is noted here. Source: log-format F-15.1; Kafka,
LogManager.lockLogDirs.
"""

import contextlib
import errno
import fcntl
import os
import stat
import threading
from collections.abc import Callable, Iterator

from storage.errors import LogCompactionError
from storage.files import filesystem
from storage.files.files import Entry
from storage.files.filesystem import naming
from storage.formats import checkpoint
from storage.formats.meta_properties import META_PROPERTIES
from storage.log import lock_holder

LOCK_FILE = ".lock"
_held: set[tuple[int, int]] = set()  # device and inode of each lock of this process
_one_at_a_time = threading.Lock()  # of them is taken, looked at or given back
_ONLY_TO_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


class LogDirLockedError(LogCompactionError):
    """Somebody else works in a log directory; the message says who may. Nothing was changed."""

    reason_code = "lock-held"

    def __init__(self, path: str, problem: str, remedy: str) -> None:
        super().__init__(path, problem, remedy)  # all three, so that it can be pickled
        self.path, self.problem, self.remedy = path, problem, remedy

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}. {self.remedy}. Nothing was changed"


@contextlib.contextmanager
def lock_log_dir(log_dir: str) -> Iterator[Callable[[], bool]]:
    """Hold the lock of a directory, or raise LogDirLockedError.

    Yields what tells whether the lock is still the one that is looked at by name: `.lock` can be
    removed, and be made anew and locked by somebody else.
    """
    path = os.path.join(log_dir, LOCK_FILE)
    with _one_at_a_time:
        found = filesystem.look_up(path)
        _require_not_ours(found, path)
        descriptor, own = _locked(log_dir, path)
        _held.add((own.device, own.inode))
    try:
        yield lambda: _is_named(own, path)
    finally:
        with _one_at_a_time:  # until it is closed nobody else of this process may take it
            try:
                if found is None and _is_named(own, path):
                    os.unlink(path)  # as a broker that stops cleanly; while the lock is still held
            finally:
                _held.discard((own.device, own.inode))
                with naming(path):
                    os.close(descriptor)


def require_free(log_dir: str) -> None:
    """Raise LogDirLockedError where another process holds the lock. Takes none, and so keeps
    nobody out.

    OSError where the file system has no locks, or the file could not be opened to be locked.
    What this process holds is not looked at: to close the file would give it away.
    """
    path = os.path.join(log_dir, LOCK_FILE)
    _require_locks(log_dir)
    with _one_at_a_time:  # to close it drops a lock that another thread has taken meanwhile
        try:
            found = filesystem.look_up(path)
            if found is not None and (found.device, found.inode) in _held:
                return
            # opened also where it was not seen: a file system may refuse this name before it looks
            descriptor = os.open(path, _ONLY_TO_LOOK)
        except FileNotFoundError:
            return
        try:
            with naming(path):
                if lock_holder.is_locked(descriptor):
                    raise _in_use(path, descriptor)
                if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
                # nothing is held, so nothing is given away: it asks whether there are locks at all
                fcntl.lockf(descriptor, fcntl.LOCK_UN)
        finally:
            os.close(descriptor)
    if not os.access(path, os.W_OK) and filesystem.exists(path):  # a broker may remove it just now
        code = errno.EROFS if os.statvfs(log_dir).f_flag & os.ST_RDONLY else errno.EACCES
        raise OSError(code, os.strerror(code), path)


def require_nobody(log_dir: str) -> None:
    """Raise LogDirLockedError where this process or another one holds the lock. Takes none.

    Where that cannot be found out, nobody is known to.
    """
    path = os.path.join(log_dir, LOCK_FILE)
    with _one_at_a_time:  # as in `require_free`
        try:
            found = filesystem.look_up(path)
            _require_not_ours(found, path)
            descriptor = os.open(path, _ONLY_TO_LOOK)
        except OSError:
            return
        try:
            with contextlib.suppress(OSError):  # there are no locks
                if lock_holder.is_locked(descriptor):
                    raise _in_use(path, descriptor)
        finally:
            os.close(descriptor)


def _require_not_ours(found: Entry | None, path: str) -> None:
    """Raise LogDirLockedError where this process holds that lock."""
    if found is not None and (found.device, found.inode) in _held:
        raise LogDirLockedError(
            path,
            "locked: this process works in this log directory already",
            "Wait until the other call has ended",
        )


def _require_locks(log_dir: str) -> None:
    """Raise OSError where the file system has no locks.

    Asked of a small file of the directory on which no broker takes a lock, so that nobody is kept
    out. Where there is none that may be read, nothing is asked.
    """
    for name in (META_PROPERTIES, checkpoint.REPLICATION):
        path = os.path.join(log_dir, name)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue
        try:
            with naming(os.path.join(log_dir, LOCK_FILE)):
                fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        finally:
            os.close(descriptor)
        return


def _locked(log_dir: str, path: str) -> tuple[int, Entry]:
    """The descriptor that the lock is on, and which file that is."""
    descriptor, is_new = _opened(path)
    try:
        try:
            with naming(path):
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as error:
            with naming(path):
                raise _in_use(path, descriptor) from error
        except OSError:  # there are no locks, so it is nobody's
            if is_new and _is_named(filesystem.look_at(descriptor, path), path):
                os.unlink(path)
            raise
        own = filesystem.look_at(descriptor, path)
        if not _is_named(own, path):
            # a stopping broker unlinks it: then this is a file that no broker will look at
            raise LogDirLockedError(
                path,
                "removed while it was being locked: a broker is stopping",
                "Wait until it has stopped",
            )
        with naming(path):
            _give_to_owner_of(log_dir, descriptor)
        return descriptor, own
    except BaseException:
        with naming(path):
            os.close(descriptor)
        raise


def _opened(path: str) -> tuple[int, bool]:
    """The lock file, and whether it was made here."""
    flags = os.O_RDWR | os.O_NOFOLLOW
    try:
        return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644), True
    except FileExistsError:
        return os.open(path, flags | os.O_CREAT, 0o644), False  # a broker may remove it just now


def _in_use(path: str, descriptor: int) -> LogDirLockedError:
    """Say what another process does here, by its name where it can be had."""
    holder = lock_holder.holder_of(descriptor)
    doing = "locked: a broker or another run works in this log directory"
    return LogDirLockedError(
        path,
        f"{doing}: {holder}" if holder else doing,
        "Stop the broker, or wait until the run has ended",
    )


def _give_to_owner_of(log_dir: str, descriptor: int) -> None:
    """Let the broker open a lock file that we made, should we be killed before we remove it."""
    model, made = os.stat(log_dir), os.fstat(descriptor)
    if made.st_uid == os.geteuid() != model.st_uid:
        with contextlib.suppress(PermissionError):  # only root may give files away
            os.fchown(descriptor, model.st_uid, model.st_gid)


def _is_named(own: Entry, path: str) -> bool:
    """Whether a path is that of a file that is open here: so no other has its device and inode.

    It is not opened: see above.
    """
    try:
        named = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return (own.device, own.inode) == (named.st_dev, named.st_ino)
