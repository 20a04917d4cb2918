"""Work that a second process does meanwhile: half of what a command reads of many logs.

The other process is forked: it has all values that this process had at that moment, and returns its
half through a pipe. It only saves time: where it cannot be started, ends early or hangs, the caller
does without it.
"""

import os
import pickle
import select
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO, NoReturn, TypeVar

from storage.files.files import Files
from storage.files.local import LOCAL

LEAST_PATIENCE_SECONDS = 5.0
PATIENCE = 3.0  # for the other half, in times that the own half took; added to the least
FEWEST_FOR_TWO = 2000  # logs: what the second process costs is then a tenth of what it saves
_ENDING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
_PART_BYTES = 1 << 20

Own = TypeVar("Own")
Item = TypeVar("Item")


def is_for_two(logs: int, files: Files) -> bool:
    """Say whether a second process saves time, can read the same files, and has what this one has.

    That is so for many logs, on Linux, with two cores, and without a thread of ours, which a fork
    does not take along.
    """
    return (
        logs >= FEWEST_FOR_TWO
        and files is LOCAL
        and sys.platform == "linux"
        and threading.active_count() == 1
        and len(os.sched_getaffinity(0)) > 1
    )


def map_in_two(function: Callable[[Item], Own], items: Sequence[Item], files: Files) -> list[Own]:
    """Apply a function to each log, in two processes where there are many.

    function: reads by `files`, and returns what can be pickled. Raises what it raises.
    """
    if not is_for_two(len(items), files):
        return list(map(function, items))
    half = len(items) // 2

    def write_others(out: BinaryIO) -> None:
        write_value(list(map(function, items[half:])), out)

    halves = run_forked(lambda: list(map(function, items[:half])), write_others)
    if halves is None:
        return list(map(function, items))
    own, data = halves
    others: list[Own] | None = value_in(data)
    return own + (list(map(function, items[half:])) if others is None else others)


def write_value(value: object, out: BinaryIO) -> None:
    """Write what the second process has come to."""
    pickle.dump(value, out, pickle.HIGHEST_PROTOCOL)


def value_in(data: bytes) -> Any:
    """Return what it has come to; None where it has ended early. data: as `run_forked` gives it."""
    try:
        return pickle.loads(data)  # noqa: S301  # of our own, by a pipe of our own
    except (EOFError, pickle.UnpicklingError):
        return None


def run_forked(
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
        second = _start(theirs)
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
class _ForkedProcess:
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
        """Leave no process; this host may have taken note of its end itself."""
        os.close(self.reader)
        if not self.is_at_end:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def _start(theirs: Callable[[BinaryIO], None]) -> _ForkedProcess | None:
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
        _write_and_exit(theirs, reader, writer)
    os.close(writer)
    return _ForkedProcess(pid, reader)


def _fork() -> int:
    with warnings.catch_warnings():  # of threads, which libraries have started: idle, without locks
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _write_and_exit(theirs: Callable[[BinaryIO], None], reader: int, writer: int) -> NoReturn:
    """Write the other half to the pipe; nothing that was begun before the fork is ended."""
    try:
        os.close(reader)  # so that the pipe breaks, and this ends, where the first is killed
        with open(writer, "wb") as out:
            theirs(out)
    finally:
        os._exit(0)  # whatever went wrong: the first process meets it, too, and says so
