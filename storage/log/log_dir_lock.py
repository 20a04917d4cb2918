"""Kafka's own lock of a log directory, so that a broker and our commands keep each other out.

A POSIX record lock on `.lock`, as a broker takes: a running broker makes us refuse, and we make a
starting one refuse. Such a lock keeps nobody out who is in the same process, and closing any
descriptor of the file there would drop it: so nothing else opens it, and of two calls at once in
one process the second is refused by what is noted here.

Who holds it is said in words: the kernel names the process to one that asks (F_GETLK),
and /proc the command. Of a process in another container, or on another host, neither is known.

Source: log-format F-15.1; Kafka, LogManager.lockLogDirs.
"""

import contextlib
import errno
import fcntl
import os
import re
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from struct import Struct

from storage.errors import LogCompactionError
from storage.files.descriptors import look_at, naming
from storage.files.files import Entry
from storage.files.local import LOCAL
from storage.formats import checkpoint
from storage.formats.meta_properties import META_PROPERTIES

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

    Yields a function that says whether the lock is still the one of that name: `.lock` can be
    removed, and be made and locked once more by somebody else.
    """
    path = os.path.join(log_dir, LOCK_FILE)
    with _one_at_a_time:
        found = LOCAL.look_up(path)
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
    """Raise LogDirLockedError where another process holds the lock.

    Takes none, and so keeps nobody out. Raise OSError where the file system has no locks, or the
    file could not be opened to be locked. What this process holds is not looked at: to close the
    file would give it away.
    """
    path = os.path.join(log_dir, LOCK_FILE)
    _require_locks(log_dir)
    with _one_at_a_time:  # to close it drops a lock that another thread has taken meanwhile
        try:
            found = LOCAL.look_up(path)
            if found is not None and (found.device, found.inode) in _held:
                return
            # opened also where it was not seen: a file system may refuse this name before it looks
            descriptor = os.open(path, _ONLY_TO_LOOK)
        except FileNotFoundError:
            return
        try:
            with naming(path):
                if is_locked(descriptor):
                    raise _in_use(path, descriptor)
                if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
                # nothing is held, so nothing is given away: it asks whether there are locks at all
                fcntl.lockf(descriptor, fcntl.LOCK_UN)
        finally:
            os.close(descriptor)
    if not os.access(path, os.W_OK) and LOCAL.exists(path):  # a broker may remove it just now
        code = errno.EROFS if os.statvfs(log_dir).f_flag & os.ST_RDONLY else errno.EACCES
        raise OSError(code, os.strerror(code), path)


def require_nobody(log_dir: str) -> None:
    """Raise LogDirLockedError where this process or another one holds the lock. Takes none.

    Where that cannot be asked, nobody is known to.
    """
    path = os.path.join(log_dir, LOCK_FILE)
    with _one_at_a_time:  # as in `require_free`
        try:
            found = LOCAL.look_up(path)
            _require_not_ours(found, path)
            descriptor = os.open(path, _ONLY_TO_LOOK)
        except OSError:
            return
        try:
            with contextlib.suppress(OSError):  # there are no locks
                if is_locked(descriptor):
                    raise _in_use(path, descriptor)
        finally:
            os.close(descriptor)


def _require_not_ours(entry: Entry | None, path: str) -> None:
    """Raise LogDirLockedError where this process holds that lock."""
    if entry is not None and (entry.device, entry.inode) in _held:
        raise LogDirLockedError(
            path,
            "locked: this process works in this log directory already",
            "Wait until the other call has ended",
        )


def _require_locks(log_dir: str) -> None:
    """Raise OSError where the file system has no locks.

    Asked of a small file of the directory on which no broker takes a lock, so that nobody is kept
    out. Where none may be read, nothing is asked.
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
            if is_new and _is_named(look_at(descriptor, path), path):
                os.unlink(path)
            raise
        own = look_at(descriptor, path)
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
    """Open the lock file; return it, and whether it was made by this."""
    flags = os.O_RDWR | os.O_NOFOLLOW
    try:
        return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644), True
    except FileExistsError:
        return os.open(path, flags | os.O_CREAT, 0o644), False  # a broker may remove it just now


def _in_use(path: str, descriptor: int) -> LogDirLockedError:
    """Say what another process does in the directory, by its name where it can be had."""
    holder = holder_of(descriptor)
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
    """Return whether a path is that of an open file: so no other has its device and inode.

    It is not opened: see above.
    """
    try:
        named = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return (own.device, own.inode) == (named.st_dev, named.st_ino)


_FLOCK = Struct("@hhqqi4x")  # of Linux: type, whence, start, length, process
_START_TIME = 19  # among the fields of /proc/…/stat after the command, which are 3 to 52
_LONGEST = 100  # characters of a command
_TAKES_A_VALUE = ("-cp", "-classpath", "--class-path", "-p", "--module-path", "-m", "-c")
_SECRET = re.compile(r"(?i)(pass|secret|token|credential)[^=]*=")


def is_locked(descriptor: int) -> bool:
    """Whether another process holds a lock on an open file. On another system than Linux: False."""
    return _asked(descriptor) is not None


def holder_of(descriptor: int) -> str | None:
    """Return the holder of a lock in words; None where it is not known.

    As `process 4711 (java kafka.Kafka server.properties), which runs since 2026-11-23T03:00:00Z`.
    """
    process = _asked(descriptor)
    if process is None or process <= 0:
        return None
    try:
        words = LOCAL.read_bytes(f"/proc/{process}/cmdline").split(b"\0")[:-1]
    except OSError:  # it has ended, or is another user's whose commands are hidden
        return f"process {process}"
    command = shown_command([os.fsdecode(word) for word in words])
    named = f"process {process} ({command})" if command else f"process {process}"
    began = _began(process)
    return named if began is None else f"{named}, which runs since {began}"


def _began(process: int) -> str | None:
    """When a process began, as an ISO time; None where the system does not say."""
    try:
        fields = LOCAL.read_bytes(f"/proc/{process}/stat").rpartition(b")")[2].split()
        boot = re.search(rb"^btime (\d+)$", LOCAL.read_bytes("/proc/stat"), re.MULTILINE)
    except OSError:
        return None
    if boot is None or len(fields) <= _START_TIME:
        return None
    ticks = int(fields[_START_TIME])
    began = datetime.fromtimestamp(int(boot[1]) + ticks // os.sysconf("SC_CLK_TCK"), UTC)
    return began.strftime("%Y-%m-%dT%H:%M:%SZ")


def shown_command(words: list[str]) -> str:
    """A command without its options: what a person knows it by."""
    if not words:
        return ""
    kept, skip = [os.path.basename(words[0])], False
    for word in words[1:]:
        if skip or word.startswith("-"):
            skip = word in _TAKES_A_VALUE
        elif not _SECRET.search(word):
            kept.append(word)
    text = " ".join(kept)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _asked(descriptor: int) -> int | None:
    """The process that holds a lock; None: nobody else does. 0 or less: one that is not known."""
    if not sys.platform.startswith("linux"):  # where the answer may be laid out otherwise
        return None
    wanted = _FLOCK.pack(fcntl.F_WRLCK, 0, 0, 0, 0)
    kind, *_, process = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, wanted))
    return None if kind == fcntl.F_UNLCK else process
