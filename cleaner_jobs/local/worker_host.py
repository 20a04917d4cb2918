"""The process that workers are forked from: of one thread, with what every round needs loaded.

A driver starts it as `python -m`, so that neither threads nor the `__main__` of the driver get into
a worker.

1. It loads what tasks need.
2. It forks a worker for each socket that it was started with. A worker does one task after another,
   until its driver closes the socket.
3. It tells the driver how a worker has ended, through the first socket.
4. Once the driver has closed that socket, or has ended, it kills every worker and ends.

No worker outlives the driver. Where this process ends first, the system kills the workers
(PR_SET_PDEATHSIG, prctl(2)). Ctrl-C and the signals that end a service reach a whole group of
processes; here they are ignored, since it is the driver that decides.
"""

import ctypes
import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import NamedTuple, NoReturn

from cleaner_jobs.messages import Row
from storage.gc_pause import collector_paused

LOOK_SECONDS = 0.1  # between two looks whether the driver lives
LOADING_LOOK_SECONDS = 0.02  # the same: who closes a pool early waits for it
_PR_SET_PDEATHSIG = 1
OF_DRIVER = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Work(NamedTuple):
    """A task for a worker."""

    work_dir: str
    stage: str
    number: int
    attempt: str


class Failed(NamedTuple):
    """What a worker returns for a task that raised an error, instead of rows."""

    cause: str  # in one line
    traceback: str


class Ended(NamedTuple):
    """A worker that has ended by itself, or was killed."""

    number: int  # of the worker
    code: int  # of its exit; negative: the signal that ended it


def main(driver: int, control: Connection, workers: Sequence[Connection]) -> None:
    """Fork the workers, and wait. driver: its process id."""
    for of_driver in OF_DRIVER:
        signal.signal(of_driver, signal.SIG_IGN)

    def is_over(wait_seconds: float = 0) -> bool:
        return os.getppid() != driver or control.poll(wait_seconds)

    with _ending_when(is_over):
        load()
    pids: dict[int, int] = {}
    for number, connection in enumerate(workers):
        pid = os.fork()
        if pid == 0:
            others = [other for other in workers if other is not connection]
            _be_worker(os.getppid(), connection, [control, *others])
        pids[pid] = number
    for connection in workers:
        connection.close()
    try:
        while not is_over(LOOK_SECONDS):
            _tell_of_ended(pids, control)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)  # one that has ended is a zombie until it is waited for
        for pid in pids:
            os.waitpid(pid, 0)


@contextmanager
def _ending_when(is_over: Callable[[], bool]) -> Iterator[None]:
    """End this process as soon as something is so: looked at by an alarm, again and again."""

    def look(*_: object) -> None:
        if is_over():
            os._exit(1)

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, LOADING_LOOK_SECONDS, LOADING_LOOK_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def load() -> None:
    """Load what tasks need, and keep the collector of garbage from looking at it again.

    Each kernel takes some milliseconds. Those that only some logs need, a worker loads itself.
    """
    with collector_paused():
        from cleaner_jobs.tasks import kernel_warm_up, task  # noqa: F401

        kernel_warm_up.warm_plain()
    gc.collect()
    gc.freeze()


def _tell_of_ended(pids: dict[int, int], control: Connection) -> None:
    while pids:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        number = pids.pop(pid)
        with suppress(OSError):  # the driver has gone, as the next look sees
            control.send(Ended(number, os.waitstatus_to_exitcode(status)))


def _be_worker(host: int, connection: Connection, others: Sequence[Connection]) -> NoReturn:
    code = 1
    try:
        _end_with(host)
        for other in others:
            other.close()
        _serve(connection)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)  # nothing of the host's is to be cleaned up


def _end_with(host: int) -> None:
    """Have the system kill this process when the host ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != host:  # it had ended already
        os._exit(1)


def _serve(connection: Connection) -> None:
    while True:
        try:
            work: Work = connection.recv()
        except (EOFError, ConnectionError):
            return
        connection.send((work.attempt, outcome_of(work)))


def outcome_of(work: Work) -> list[Row] | Failed:
    """Do a task, and return its rows, or the error that it raised."""
    from cleaner_jobs.tasks.task import run_task

    try:
        return list(run_task(*work))
    except Exception as error:
        cause = traceback.format_exception_only(error)[-1].strip()
        return Failed(cause, traceback.format_exc())


if __name__ == "__main__":
    from cleaner_jobs.local import worker_host  # under its own name, by which its values travel

    _driver, _control, *_workers = map(int, sys.argv[1:])
    worker_host.main(_driver, Connection(_control), [Connection(each) for each in _workers])
