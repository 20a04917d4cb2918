"""A limit on what the processes of a host read and write together in a second.

All of them go by one small file, which holds the time when what was asked for until now will have
been read and written at that rate. Who asks moves that time on, and waits until it was reached by
those before. So nobody has to run for the others, and who dies owes nothing.

Bytes count whether they come from the disk or out of the page cache, which nobody can tell
beforehand. There is one limit in a process at a time; where there is none, asking costs a look.
"""

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from struct import Struct

from storage.files.files import Disk

IDLE_SECONDS = 0.25  # of the rate that may be made up for after less was asked for
PATIENCE_SECONDS = 1.0  # with a process that holds the lock, and may have been stopped
_PAID_AT = Struct("<d")  # seconds of the monotonic clock, which is one for all processes of a host


class _Limit:
    def __init__(self, path: str | None, bytes_per_second: int, disk: Disk | None) -> None:
        assert path is None or disk is not None, path
        self._seconds_a_byte = 1 / bytes_per_second
        self._descriptor = (
            os.memfd_create("io-limit")
            if path is None or disk is None
            else disk.open_descriptor(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
        )
        self._threads = threading.Lock()  # a lock on the file is one of the process
        self._lifted = threading.Event()
        self._patience = PATIENCE_SECONDS

    def take(self, size_bytes: int) -> None:
        now = time.monotonic()
        begin = self._move_on(now, size_bytes * self._seconds_a_byte)
        if begin > now:
            self._lifted.wait(begin - now)

    def _move_on(self, now: float, seconds: float) -> float:
        """When the caller may begin, if others have to be waited for."""
        with self._threads:
            if self._descriptor < 0:  # it has ended since: the number may be another file's
                return now
            with self._locked():
                data = os.pread(self._descriptor, _PAID_AT.size, 0)
                paid_at = _PAID_AT.unpack(data)[0] if len(data) == _PAID_AT.size else now
                begin: float = max(paid_at, now - IDLE_SECONDS)
                os.pwrite(self._descriptor, _PAID_AT.pack(begin + seconds), 0)
        return begin

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with contextlib.suppress(OSError):  # a file system without locks: now and then one forgets
            self._lock()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _lock(self) -> None:
        """Or go on without, where another does not let go of it: nobody hangs by a limit."""
        give_up_at = time.monotonic() + self._patience
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if self._lifted.is_set() or time.monotonic() >= give_up_at:
                    self._patience = 0.0  # until it is free again
                    return
                self._lifted.wait(0.001)
            else:
                self._patience = PATIENCE_SECONDS
                return

    def lift(self) -> None:
        self._lifted.set()

    def close(self) -> None:
        """Who still asks does not wait."""
        self.lift()
        with self._threads:
            own, self._descriptor = self._descriptor, -1
            os.close(own)


_changing = threading.Lock()
_limits: list[_Limit] = []  # which begin and end in any order, where several threads begin some
_current: _Limit | None = None  # the last of them


@contextlib.contextmanager
def limited(
    bytes_per_second: int | None, path: str | None = None, disk: Disk | None = None
) -> Iterator[None]:
    """A limit of this process meanwhile. None: there is none, or the one that is there goes on.

    path: of the file that the processes of this host share; None: there is no other.
    disk: that it is on.
    """
    global _current
    if bytes_per_second is None:
        yield
        return
    own = _Limit(path, bytes_per_second, disk)
    with _changing:
        _limits.append(own)
        _current = own
    try:
        yield
    finally:
        with _changing:
            _limits.remove(own)
            _current = _limits[-1] if _limits else None
        own.close()


def take(size_bytes: int) -> None:
    """Wait until so many bytes may be read or written, if there is a limit."""
    limit = _current
    if limit is not None and size_bytes > 0:
        limit.take(size_bytes)


def is_limited() -> bool:
    """Whether there is a limit: then it is asked for little at a time."""
    return _current is not None


@contextlib.contextmanager
def lifted_by_errors() -> Iterator[None]:
    """Lift the limit when an error or a signal comes.

    Then the work that has begun is finished in no more time than without a limit.
    """
    try:
        yield
    except BaseException:
        limit = _current
        if limit is not None:
            limit.lift()
        raise
