"""How far a running task has come: a number in a file of its own that the driver looks at.

The task holds a lock on the file, which ends with its process at the latest: so the driver of a
round that failed can wait until nobody writes any more.
"""

import contextlib
import fcntl
import os
import struct
import time

_COUNT = struct.Struct("<q")
_LOOK_SECONDS = 0.05


def _directory(work_dir: str) -> str:
    return os.path.join(work_dir, "progress")


class Heartbeat:
    """Counts the bytes of log that a task has worked through."""

    def __init__(self, work_dir: str, stage: str, number: int, attempt: str) -> None:
        name = f"{stage}-{number}-{attempt}"
        self._path = os.path.join(_directory(work_dir), name)
        self._done_bytes = 0

    def __enter__(self) -> "Heartbeat":
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
        with contextlib.suppress(OSError):  # a file system without locks: nothing to wait for
            fcntl.flock(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # a full disk, say, is reported by what matters more
            os.close(self._descriptor)

    def advance(self, log_bytes: int) -> None:
        self._done_bytes += log_bytes
        with contextlib.suppress(OSError):  # likewise
            os.pwrite(self._descriptor, _COUNT.pack(self._done_bytes), 0)


def done_bytes(work_dir: str, stage: str) -> int:
    """The bytes that the tasks of a stage have worked through; of several attempts the furthest."""
    done: dict[str, int] = {}
    directory = _directory(work_dir)
    for name in os.listdir(directory):
        its_stage, number, _ = name.split("-", 2)
        if its_stage == stage:
            with open(os.path.join(directory, name), "rb") as source:
                data = source.read(_COUNT.size)
            if len(data) == _COUNT.size:
                done[number] = max(done.get(number, 0), _COUNT.unpack(data)[0])
    return sum(done.values())


def wait_for_silence(work_dir: str, seconds: float) -> bool:
    """Wait until no task's heart beats, but no longer than that; whether none does."""
    deadline = time.monotonic() + seconds
    for name in os.listdir(_directory(work_dir)):
        descriptor = os.open(os.path.join(_directory(work_dir), name), os.O_RDWR)
        try:
            while not _is_silent(descriptor):
                if time.monotonic() > deadline:
                    return False
                time.sleep(_LOOK_SECONDS)
        finally:
            os.close(descriptor)
    return True


def _is_silent(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
