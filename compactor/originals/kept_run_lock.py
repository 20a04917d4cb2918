"""The lock on what a run has kept: shared by who needs it, the run and an undo; a discard's alone.

A lock (flock) on the manifest of the run, which ends with the process that has it. A discard gives
the manifest another name while it has the lock, so that who gets it afterwards sees that.
"""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from compactor.errors import RefusedError
from compactor.originals.kept_manifest import RUN_FILE
from compactor.reason_codes import ReasonCode
from storage.files.filesystem import naming

WAIT_SECONDS = 10.0  # who looks whether a run is at work has the lock for an instant
LOOK_SECONDS = 0.01
_WITHOUT_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)


def hold(path: str) -> int:
    """Let nobody discard what is kept at path for as long as the descriptor given back is open.

    Raise RefusedError where that is not to be had: nobody may go on without it.
    """
    manifest = os.path.join(path, RUN_FILE)
    descriptor = os.open(manifest, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        _share(descriptor, manifest, time.monotonic() + WAIT_SECONDS)
        _require_same_file(descriptor, manifest)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def held(path: str) -> Iterator[None]:
    """Likewise, for the length of a block."""
    descriptor = hold(path)
    try:
        yield
    finally:
        os.close(descriptor)


@contextmanager
def alone(path: str) -> Iterator[None]:
    """Let nobody hold what is kept at path meanwhile. RefusedError where somebody does."""
    manifest = os.path.join(path, RUN_FILE)
    # to be written to, or a network file system would not lock it for one alone
    descriptor = os.open(manifest, os.O_RDWR | os.O_NOFOLLOW)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            problem = "locked: its run, or an undo of it, is still at work"
            raise RefusedError(f"{manifest}: {problem}", ReasonCode.LOCK_HELD) from error
        except OSError as error:
            if error.errno not in _WITHOUT_LOCKS:  # there nobody can hold it
                raise
        yield
    finally:
        os.close(descriptor)


def is_held(path: str) -> bool:
    """Whether a run, or an undo, is at work on what is kept at path."""
    try:
        with alone(path):
            return False
    except RefusedError:
        return True


def _share(descriptor: int, manifest: str, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                problem = (
                    "another process keeps it locked, and may be discarding what is kept there"
                )
                raise RefusedError(f"{manifest}: {problem}", ReasonCode.LOCK_HELD) from error
        except OSError as error:
            problem = f"cannot be locked: {error.strerror}; keep originals where locks work"
            raise RefusedError(f"{manifest}: {problem}", ReasonCode.FILE_SYSTEM) from error
        time.sleep(LOOK_SECONDS)


def _require_same_file(descriptor: int, manifest: str) -> None:
    try:
        with naming(manifest):
            held = os.fstat(descriptor)
        if os.path.samestat(held, os.stat(manifest, follow_symlinks=False)):
            return
    except FileNotFoundError:
        pass
    problem = "discarded by another process while it was being locked"
    raise RefusedError(f"{manifest}: {problem}", ReasonCode.CHANGED_MEANWHILE)
