"""Many partitions listed by two processes at once, each half of them.

The second one is a fork that ends when it has told what it found, by a pipe. It takes a core that
would stand idle: a look at each of 200,000 files takes longer than all else that a plan does. What
comes back is held twice for a moment, about 100 bytes a file.

Without a second core, where other threads run (whose locks a fork would keep for ever), and where
the fork ends early for whatever reason, this process lists what is left itself.
"""

import contextlib
import marshal
import os
import signal
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

Work = TypeVar("Work")
Found = TypeVar("Found")

FEWEST = 1_000  # below that many a fork costs more than it spares


class Job(NamedTuple, Generic[Work, Found]):
    """What is done with each piece of work, and how what was found travels between processes."""

    do: Callable[[Work], Found]
    as_plain: Callable[[Found], Any]  # numbers, strings, and tuples of them
    from_plain: Callable[[Any], Found]


def in_two(job: Job[Work, Found], work: Sequence[Work]) -> list[Found]:
    """What was found for each piece of work, in its order; the rear half maybe by a fork."""
    if len(work) < FEWEST or not _may_fork():
        return [job.do(each) for each in work]
    middle = len(work) // 2
    receiving, sending = os.pipe()
    child = os.fork()
    if not child:
        _tell(sending, lambda: [job.as_plain(job.do(each)) for each in work[middle:]])
    os.close(sending)
    try:
        found = [job.do(each) for each in work[:middle]]
        with open(receiving, "rb", closefd=False) as source:
            told = source.read()
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        os.close(receiving)
        has_told_all = _ended_well(child)
    if has_told_all:
        return found + [job.from_plain(each) for each in marshal.loads(told)]
    return found + [job.do(each) for each in work[middle:]]


def _may_fork() -> bool:
    return hasattr(os, "fork") and threading.active_count() == 1 and _cores() > 1


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _tell(sending: int, found: Callable[[], Any]) -> None:
    """Write what was found and end this process, whatever goes wrong."""
    code = 1
    with contextlib.suppress(BaseException):
        with open(sending, "wb") as target:
            target.write(marshal.dumps(found()))
        code = 0
    os._exit(code)


def _ended_well(child: int) -> bool:
    try:
        _, status = os.waitpid(child, 0)
    except ChildProcessError:  # somebody else has waited for it
        return False
    return os.waitstatus_to_exitcode(status) == 0
