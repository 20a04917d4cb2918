"""Two halves of a work done at the same time: one here, one in a process forked for it.

The other process has everything as it stood here, and gives its half back through a pipe. It only
saves time: where there can be none, or it ends early or hangs, whoever asks does without it.
"""

import os
import select
import signal
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO, NoReturn, TypeVar

LEAST_PATIENCE_SECONDS = 5.0
PATIENCE = 3.0  # for the other half, in times that the own half took; added to the least
_ENDING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
_PART_BYTES = 1 << 20

Own = TypeVar("Own")


def side_by_side(
    ours: Callable[[], Own], theirs: Callable[[BinaryIO], None]
) -> tuple[Own, bytes] | None:
    """What ours gives, and the bytes that theirs, in a process of its own, has written meanwhile.

    They are cut short where that process ends early. None where it cannot be started, or is not
    done long after ours. To be called where no thread of ours holds a lock. Raises what ours does.
    """
    former = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    second = None
    try:
        # from the fork on, whatever ends this process ends the other one; which has no signal to
        # unwind by what was begun here, and keeps them blocked
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        second = _started(theirs)
        signal.pthread_sigmask(signal.SIG_SETMASK, former)
        if second is None:
            return None
        began = time.monotonic()
        own = ours()
        took_seconds = time.monotonic() - began
        others = second.read(LEAST_PATIENCE_SECONDS + PATIENCE * took_seconds)
        return None if others is None else (own, others)
    finally:
        if second is not None:
            second.end()
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


@dataclass(slots=True)
class _Second:
    pid: int
    reader: int  # the end of the pipe that is this process's
    is_at_end: bool = False  # of what it writes: it is ending, or has ended

    def read(self, seconds: float) -> bytes | None:
        """All that it writes; None if it has not come to an end after so many seconds."""
        deadline = time.monotonic() + seconds
        waiting = select.poll()  # of whatever descriptor: select has none above 1023
        waiting.register(self.reader, select.POLLIN)
        parts = []
        while waiting.poll(1000 * max(0.0, deadline - time.monotonic())):
            parts.append(os.read(self.reader, _PART_BYTES))
            if not parts[-1]:
                self.is_at_end = True
                return b"".join(parts)
        return None

    def end(self) -> None:
        """Leave no process behind; this host may have taken note of its end itself."""
        os.close(self.reader)
        if not self.is_at_end:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def _started(theirs: Callable[[BinaryIO], None]) -> _Second | None:
    """None where this host has no descriptor, process or memory left for it."""
    try:
        reader, writer = os.pipe()
    except OSError:
        return None
    try:
        pid = _fork()
    except OSError:
        os.close(reader)
        os.close(writer)
        return None
    if not pid:
        _end_as_second(theirs, reader, writer)
    os.close(writer)
    return _Second(pid, reader)


def _fork() -> int:
    with warnings.catch_warnings():  # of threads, which libraries have started: idle, without locks
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _end_as_second(theirs: Callable[[BinaryIO], None], reader: int, writer: int) -> NoReturn:
    """Write the other half to the pipe; nothing that was begun before the fork is ended here."""
    try:
        os.close(reader)  # so that the pipe breaks, and this ends, where the first is killed
        with open(writer, "wb") as out:
            theirs(out)
    finally:
        os._exit(0)  # whatever went wrong: the first process meets it, too, and says so
