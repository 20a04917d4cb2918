"""Hold Kafka's own lock of a log directory for as long as a run may change anything in it.

The lock itself is `storage.log.log_dir_lock`. Somebody may remove `.lock` all the same, and another
process make it again and lock it: so it is looked at, by its name, before each change.

Whether a broker sees the lock is known by the type of the file system. On a local one the kernel
holds POSIX locks, and every process that reaches the directory asks the same kernel. On a network
file system another host can reach it, and whether that host sees the lock depends on servers,
versions and mount options; on one made by a program, on the program. A type that is not known to be
local is refused until the operator, who knows, names it (`require_working_locks`).
"""

import contextlib
import errno
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from compactor.errors import LockLostError, RefusedError
from compactor.host.machine import user_name
from compactor.host.shell_commands import compactor, named, owner_of
from compactor.log_dirs.directory_state import require_may_change
from compactor.reason_codes import ReasonCode, reason_code_of
from storage.files.files import LOCAL_TYPES, Mount
from storage.files.local import LOCAL
from storage.formats import checkpoint, clean_shutdown
from storage.log import log_dir_lock
from storage.log.log_dir_lock import LOCK_FILE as LOCK_FILE
from storage.log.log_dir_lock import LogDirLockedError, lock_log_dir

_RETRY_SECONDS = 0.5
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
NO_LOCKS_REMEDY = (
    "Mount it so that it has locks (NFS: with lockd, without nolock), or work on a copy: "
    f"{named('run')} --output DIR makes one, with DIR on a local disk, and changes nothing here"
)
UNTIL_A_CLEAN_SHUTDOWN = "until a broker has started and stopped cleanly there"
UNKNOWN_TYPE = "unknown"  # where the system does not say
_HOST_ONLY = frozenset(("nolock", "local_lock=all", "local_lock=posix", "nobrl", "localflocks"))


class Patience(NamedTuple):
    """How long to wait for a lock that somebody else holds."""

    seconds: float
    tell: Callable[[str], object]  # whoever waits too: once, who holds it


class _LockHeldError(RefusedError):
    """The lock of a log directory is another's."""


@contextlib.contextmanager
def lock_log_dirs(
    log_dirs: Sequence[str],
    allowed_file_systems: Collection[str] = (),
    after_unclean_shutdown: bool = False,
    patience: Patience | None = None,
) -> Iterator[None]:
    """Hold the locks of all these directories, or raise RefusedError and hold none.

    While they are held, a change by `storage.files` in one of them raises LockLostError if its lock
    is another's, and DirectoryExchangedError if the directory that it is in is another.
    allowed_file_systems: types beside the local ones on which a lock is said to be good.
    after_unclean_shutdown: whether a directory that no broker has left in good order is taken too.
    patience: for locks that somebody else holds; without it they are a refusal at once.
    """
    require_working_locks(log_dirs, allowed_file_systems)
    with contextlib.ExitStack() as locks:
        deadline_s = time.monotonic() + (patience.seconds if patience else 0)
        has_told = False
        while True:
            try:
                locks.enter_context(_locked_now(log_dirs, after_unclean_shutdown))
                break
            except _LockHeldError as error:
                left_s = deadline_s - time.monotonic()
                if patience is None or left_s <= 0:
                    raise
                if not has_told:
                    patience.tell(f"Waiting up to {patience.seconds:g} s: {error.problem}")
                    has_told = True
            time.sleep(min(_RETRY_SECONDS, left_s))
        yield


def conditions_of(
    log_dir: str, after_unclean_shutdown: bool = False
) -> Iterator[Callable[[], None]]:
    """Give what a log directory must be for a command that changes it, as checks, in their order.

    Each raises RefusedError. They take no lock, so a command that only looks may ask them, too.
    """
    yield partial(require_free, log_dir)
    if not after_unclean_shutdown:
        yield partial(require_clean_shutdown, log_dir)
    yield partial(require_replaceable_checkpoints, log_dir)


def require_free(log_dir: str) -> None:
    """Raise RefusedError where the lock could not be had. Takes none, and so keeps nobody out.

    What this process holds is not looked at: to close the file would give it away.
    """
    with _refusing(log_dir):
        log_dir_lock.require_free(log_dir)


def require_clean_shutdown(log_dir: str) -> None:
    """Raise RefusedError where the broker that was last at work did not stop cleanly."""
    if not clean_shutdown.exists(log_dir, LOCAL):
        raise RefusedError(
            f"{log_dir}: no {clean_shutdown.CLEAN_SHUTDOWN}: the broker did not stop cleanly, and "
            "its last segments may be torn",
            ReasonCode.UNCLEAN_SHUTDOWN,
            path=os.path.join(log_dir, clean_shutdown.CLEAN_SHUTDOWN),
            remedy=f"Give each run --recover-first {UNTIL_A_CLEAN_SHUTDOWN}: it checks and "
            f"rebuilds what a starting broker would. {compactor('recover', log_dir)} does the "
            "same, but does not write that file. Nothing was changed",
        )


def require_replaceable_checkpoints(log_dir: str) -> None:
    """Raise RefusedError where a round could not write what it has done, and would do it again."""
    for name in (checkpoint.CLEANER_OFFSET, checkpoint.LOG_START):
        path = os.path.join(log_dir, name)
        try:
            LOCAL.require_replaceable(path)
        except OSError as error:
            raise RefusedError(
                f"{path}: could not be replaced once the logs are cleaned: {error.strerror}",
                reason_code_of(error),
                path=path,
                errno=error.errno,
                remedy=f"{_what_helps(error, path, log_dir)}. Nothing was changed",
            ) from error


def require_working_locks(log_dirs: Iterable[str], allowed_types: Collection[str]) -> None:
    """Raise RefusedError for the first directory where a lock may not exclude a broker.

    allowed_types: file systems that the operator has named, beside LOCAL_TYPES.
    """
    for log_dir in log_dirs:
        reason = why_locks_may_fail(LOCAL.mount_of(log_dir), allowed_types)
        if reason is not None:
            problem = f"{log_dir}: {reason}. Nothing was changed"
            raise RefusedError(problem, ReasonCode.FILE_SYSTEM, path=log_dir)


def why_locks_may_fail(mount: Mount | None, allowed_types: Collection[str]) -> str | None:
    """The reason in words; None where the lock is good. mount: None where it is not known."""
    kind = mount.type if mount else UNKNOWN_TYPE
    if kind in LOCAL_TYPES or kind in allowed_types:
        return None
    where = f"on {kind}, mounted at {mount.mount_point}" if mount else "on an unknown file system"
    own = sorted(mount.options & _HOST_ONLY) if mount else []
    doubt = (
        f"where the mount option {own[0]} hides locks from other hosts"
        if own
        else "where a lock may not exclude a broker on another host"
    )
    allow = f"--allow-file-system {kind} if no broker can be started on it"
    return f"{where}, {doubt}; give {allow}"


@contextlib.contextmanager
def _locked_now(log_dirs: Sequence[str], after_unclean_shutdown: bool) -> Iterator[None]:
    """All of them or none: who waits holds none, so that two never wait for each other."""
    for log_dir in log_dirs:  # else the free ones would be held for a moment at each try
        for require in conditions_of(log_dir, after_unclean_shutdown):
            require()
    with contextlib.ExitStack() as locks:
        for log_dir in log_dirs:
            with _refusing(log_dir):
                is_own = locks.enter_context(lock_log_dir(log_dir))
            locks.enter_context(LOCAL.hold_log_dir(log_dir, _owner_of(log_dir, is_own)))
            require_may_change(log_dir)
            if not after_unclean_shutdown:
                require_clean_shutdown(log_dir)
        yield


@contextlib.contextmanager
def _refusing(log_dir: str) -> Iterator[None]:
    path = os.path.join(log_dir, LOCK_FILE)
    try:
        yield
    except LogDirLockedError as error:
        # a broker takes the mark of a clean shutdown away when it starts; our own runs leave it
        code = (
            ReasonCode.LOCK_HELD
            if clean_shutdown.exists(log_dir, LOCAL)
            else ReasonCode.BROKER_RUNNING
        )
        raise _LockHeldError(
            f"{error.path}: {error.problem}",
            code,
            path=path,
            remedy=f"{error.remedy}. Nothing was changed",
        ) from error
    except OSError as error:
        code = ReasonCode.FILE_SYSTEM if error.errno in _NO_LOCKS else reason_code_of(error)
        remedy = NO_LOCKS_REMEDY
        if code is not ReasonCode.FILE_SYSTEM:
            remedy = _what_helps(error, path, log_dir)
        raise RefusedError(
            f"{path}: cannot be locked, and nothing else keeps a broker out: {error.strerror}",
            code,
            path=path,
            errno=error.errno,
            remedy=f"{remedy}. Nothing was changed",
        ) from error


def _what_helps(error: OSError, path: str, log_dir: str) -> str:
    """Say what to do about a file that cannot be written or replaced."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"Make room at {log_dir}, or for inodes there (df, df -i, quota)"
    if error.errno == errno.EROFS:
        copied = f"{named('run')} --output DIR"
        return f"Mount {log_dir} so that it can be written, or work on a copy: {copied}"
    if error.errno == errno.EIO:
        return f"Look at the disk of {log_dir} (dmesg)"
    return _how_to_own(path, log_dir)


def _how_to_own(path: str, log_dir: str) -> str:
    """Say what to do about a file that this user may not write or replace."""
    try:
        owner, own = LOCAL.status(log_dir).st_uid, LOCAL.status(path, follow=False).st_uid
    except OSError:
        return f"Look at the owner and the mode of {path}, and at its mount"
    if own != owner:
        words = owner_of(log_dir, path)
        return f"Give it to the owner of the log directory: {words}"
    if owner != os.geteuid():
        return f"Run it as the owner of the log directory, user {user_name(owner)}"
    return f"Look at what {path} is, at its mode, and at its mount"


def _owner_of(log_dir: str, is_own: Callable[[], bool]) -> Callable[[], None]:
    path = os.path.join(log_dir, LOCK_FILE)

    def require_own() -> None:
        if not is_own():
            recover = compactor("recover", log_dir)
            raise LockLostError(
                f"{path}: not the file that was locked at the beginning: it was removed or made "
                "anew. A broker or another run may be at work in this log directory, so nothing "
                "more is changed there. Find out who works there first. What was cut short is "
                f"settled by a starting broker, by the next run, or by: {recover}"
            )

    return require_own
