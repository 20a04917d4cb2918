"""The driver's end of a pool of workers: starts them, hands tasks out, learns who has died.

The workers are forked by a process of its own (`worker_host`), which ends with the pool and takes
them along.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import NamedTuple, cast

from cleaner_jobs.local.worker_host import Ended, Failed, Work
from cleaner_jobs.machine_size import MIB, WORKER_BYTES, cores, memory
from cleaner_jobs.messages import Row
from cleaner_jobs.signals import deferred_signals
from storage.errors import CleaningFailedError, ConfigError

HOST_MODULE = "cleaner_jobs.local.worker_host"
SAID_BYTES = 100_000  # that are read of what workers have written
DRIVER_BYTES = 300 * MIB  # the most that a driver takes, with the process that workers come from
NO_ANSWER = "a worker process returned something that is no answer to its task"
HOST_END_SECONDS = 10.0  # that it takes at most, once it has closed its end
NOTICE_SECONDS = 10.0  # that the host has to say how a worker ended


class WorkerDiedError(Exception):
    """A worker has ended or gives wrong answers, or the process they are forked from has ended."""


class Answer(NamedTuple):
    """What came of a task."""

    work: Work
    rows: list[Row] | Failed


class WorkerPool:
    """Workers that do one task each at a time, as many as there are processes."""

    def __init__(self, processes: int) -> None:
        """Start them. They load for a while; what they are given meanwhile waits.

        Raise CleaningFailedError where no process can be started.
        """
        pairs: list[tuple[socket.socket, socket.socket]] = []
        command = [sys.executable, "-P", "-X", "faulthandler", "-m", HOST_MODULE]
        with ExitStack() as if_it_fails:
            try:
                self._said = os.memfd_create("workers")  # what they write
                if_it_fails.callback(os.close, self._said)
                for _ in range(1 + processes):
                    pairs.append(socket.socketpair())
                    if_it_fails.enter_context(pairs[-1][0])
                theirs = [there.fileno() for _, there in pairs]
                with deferred_signals():
                    self._host = subprocess.Popen(
                        [*command, str(os.getpid()), *map(str, theirs)],
                        stdin=subprocess.DEVNULL,
                        stdout=self._said,
                        stderr=subprocess.STDOUT,
                        pass_fds=theirs,
                        env={
                            "OPENBLAS_NUM_THREADS": "1",  # numpy's, which no task uses
                            **os.environ,
                            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                        },
                    )
                    if_it_fails.pop_all()
            except OSError as error:
                program = sys.executable or "Python"
                raise CleaningFailedError(
                    f"no worker process can be started: {program}: {error.strerror}"
                ) from error
            finally:
                for _, there in pairs:
                    there.close()
        self._control, *self._workers = (Connection(ours.detach()) for ours, _ in pairs)
        self._busy: dict[Connection, Work] = {}

    @property
    def host_pid(self) -> int:
        """The process that the workers are forked from."""
        return self._host.pid

    @property
    def idle(self) -> int:
        """How many workers have no task."""
        return len(self._workers) - len(self._busy)

    @property
    def unfinished(self) -> Sequence[Work]:
        """The tasks that workers have."""
        return tuple(self._busy.values())

    def give(self, work: Work) -> None:
        """Give a task to an idle worker. Raise WorkerDiedError where it has ended."""
        worker = next(each for each in self._workers if each not in self._busy)
        self._busy[worker] = work
        try:
            worker.send(work)
        except OSError:
            raise WorkerDiedError(self._why_ended(worker)) from None

    def answers(self, seconds: float) -> Iterator[Answer]:
        """Wait until a task is done, or for some seconds, and yield those that are.

        Raise WorkerDiedError where a worker has ended, or where what it says is no answer to its
        task: it is not to be trusted with another.
        """
        for worker in wait([*self._busy], seconds):
            assert isinstance(worker, Connection)
            try:
                said = worker.recv()
            except (EOFError, OSError):
                raise WorkerDiedError(self._why_ended(worker)) from None
            except Exception as error:  # whatever pickle makes of bytes that are none of its own
                raise WorkerDiedError(NO_ANSWER) from error
            rows = _rows_in(said, self._busy[worker])
            if rows is None:
                raise WorkerDiedError(NO_ANSWER)
            yield Answer(self._busy.pop(worker), rows)

    def close(self) -> None:
        """End all workers, whatever they are about, and wait until they have ended."""
        with deferred_signals():
            for connection in (self._control, *self._workers):
                connection.close()
            self._host.wait()
            os.close(self._said)

    def _why_ended(self, worker: Connection) -> str:
        number = self._workers.index(worker)
        try:
            while self._control.poll(NOTICE_SECONDS):
                ended: Ended = self._control.recv()
                if ended.number == number:
                    return f"a worker process {_ended_by(ended.code)}{self._complaint()}"
        except (EOFError, OSError):  # the host is ending
            with suppress(subprocess.TimeoutExpired):
                self._host.wait(HOST_END_SECONDS)
        if self._host.poll() is None:
            return f"a worker process ended{self._complaint()}"
        return f"the workers' process {_ended_by(self._host.returncode)}{self._complaint()}"

    def _complaint(self) -> str:
        """Return what Python wrote before it ended: of a crash the first line, else the last."""
        lines = os.pread(self._said, SAID_BYTES, 0).decode(errors="replace").splitlines()
        crash = next((line for line in lines if line.startswith("Fatal Python error: ")), None)
        said = crash or (lines[-1].strip() if lines else "")
        return f": {said}" if said else ""


def _rows_in(said: object, work: Work) -> list[Row] | Failed | None:
    """Return the answer to a task in what a worker said; None if it is none."""
    match said:
        case (work.attempt, Failed() as failed):
            return failed
        case (work.attempt, [*rows]) if all(map(_is_row, rows)):
            return cast(list[Row], rows)
    return None


def _is_row(value: object) -> bool:
    match value:
        case (str(), str()):
            return True
    return False


def _ended_by(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"


class Workers:
    """Worker processes for the rounds and inspections of this process, started when first needed.

        with Workers() as workers:
            run(["/data/kafka"], options=RunOptions(workers=workers))

    Without them each call starts its own, which takes half a second. One call at a time uses them.
    A child that this process forks starts workers of its own.
    """

    def __init__(self, processes: int | None = None) -> None:
        """processes: how many work at once; None: one on each core, as far as memory suffices."""
        self.processes = process_count() if processes is None else processes
        self._pool: WorkerPool | None = None
        self._pid = os.getpid()  # of the process whose child the pool is
        self._in_use = threading.Lock()

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep other calls away. Raise ConfigError where one is using the workers already."""
        if not self._in_use.acquire(blocking=False):
            raise ConfigError("are in use by another call: give each its own", "workers")
        try:
            yield
        finally:
            self._in_use.release()

    @property
    def host_pids(self) -> Sequence[int]:
        """The process that the workers are forked from, if it has been started."""
        return [self._pool.host_pid] if self._pool and self._pid == os.getpid() else []

    def pool(self) -> WorkerPool:
        """Return the pool, started if need be. Raise CleaningFailedError where that fails."""
        if self._pool is None or self._pid != os.getpid():
            self._pool, self._pid = WorkerPool(self.processes), os.getpid()
        return self._pool

    def close(self) -> None:
        """End the processes. Another use starts others."""
        pool, self._pool = self._pool, None
        if pool is not None and self._pid == os.getpid():
            pool.close()


def process_count() -> int:
    """Return how many workers this process may start: a core and memory for each, at least one."""
    limit = memory().limit
    most = cores()
    if limit is None:
        return most
    return max(1, min(most, (limit.value - DRIVER_BYTES) // WORKER_BYTES))
