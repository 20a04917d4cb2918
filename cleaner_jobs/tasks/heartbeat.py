"""How far a running task has come: a number in a file of its own that the driver looks at.

While the task lives the file's time changes every few seconds, even if the number does not: a task
whose process is stopped, or whose host is cut off, gives no such sign.

The task holds a lock on the file, which ends with its process at the latest: so the driver of a
round that failed can wait until nobody writes any more.
"""

import contextlib
import fcntl
import os
import socket
import struct
import threading
import time
from typing import NamedTuple

from storage.files.files import Disk, Files
from storage.files.local import LOCAL

_COUNT = struct.Struct("<q")
_LOOK_SECONDS = 0.05
BEAT_SECONDS = 5.0
_MOST_BYTES = 400


def _directory(work_dir: str) -> str:
    return os.path.join(work_dir, "progress")


class Heartbeat:
    """Counts the bytes of log that a task has worked through."""

    def __init__(
        self, work_dir: str, stage: str, number: int, attempt: str, disk: Disk = LOCAL
    ) -> None:
        self._disk = disk
        name = f"{stage}-{number}-{attempt}"
        self._path = os.path.join(_directory(work_dir), name)
        self._done_bytes = 0

    def __enter__(self) -> "Heartbeat":
        self._descriptor = self._disk.open_descriptor(self._path, os.O_WRONLY | os.O_CREAT)
        with contextlib.suppress(OSError):  # a file system without locks: nothing to wait for
            fcntl.flock(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        with contextlib.suppress(OSError):  # no room, which the task's own files will meet, too
            who = f"process {os.getpid()} on {socket.gethostname()}"
            os.pwrite(self._descriptor, who.encode(), _COUNT.size)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        with contextlib.suppress(RuntimeError):  # no thread can be had: advance() is a sign, too
            self._thread.start()
        return self

    def _beat(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            with contextlib.suppress(OSError):  # no sign is given then
                self._disk.set_times(self._descriptor, None)

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        with contextlib.suppress(OSError):  # likewise: who has ended is waited for by nobody
            os.ftruncate(self._descriptor, _COUNT.size)
        with contextlib.suppress(OSError):  # a full disk, say, is reported by what matters more
            os.close(self._descriptor)

    def advance(self, log_bytes: int) -> None:
        self._done_bytes += log_bytes
        with contextlib.suppress(OSError):  # the same
            os.pwrite(self._descriptor, _COUNT.pack(self._done_bytes), 0)


class Sign(NamedTuple):
    """What the file of an attempt at a task shows."""

    number: str  # of the task
    done_bytes: int
    changed_ns: int
    who: str  # works at it; empty where nobody does any more


def signs_of_life(work_dir: str, stage: str, files: Files = LOCAL) -> list[Sign]:
    """Return what every attempt at a task of a stage shows."""
    found, directory = [], _directory(work_dir)
    _, names = files.list_names(directory)
    for name in sorted(names):
        its_stage, number, _ = name.split("-", 2)
        if its_stage == stage:
            with files.open(os.path.join(directory, name)) as source:
                data, changed_ns = source.read(0, _MOST_BYTES), source.entry.mtime_ns
            done = _COUNT.unpack(data[: _COUNT.size])[0] if len(data) >= _COUNT.size else 0
            found.append(
                Sign(number, done, changed_ns, data[_COUNT.size :].decode(errors="replace"))
            )
    return found


def done_bytes(work_dir: str, stage: str, files: Files = LOCAL) -> int:
    """Return the bytes that a stage has worked through; of several attempts the furthest."""
    done: dict[str, int] = {}
    for sign in signs_of_life(work_dir, stage, files):
        done[sign.number] = max(done.get(sign.number, 0), sign.done_bytes)
    return sum(done.values())


def wait_for_silence(work_dir: str, seconds: float, disk: Disk = LOCAL) -> bool:
    """Wait until no task's heart beats, but no longer than that; whether none does."""
    deadline = time.monotonic() + seconds
    _, names = disk.list_names(_directory(work_dir))
    for name in names:
        descriptor = disk.open_descriptor(os.path.join(_directory(work_dir), name), os.O_RDWR)
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
