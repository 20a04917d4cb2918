"""`python -m tests.disturbed.faulty_host`: the local engine's host of workers, with a fault.

The environment names the fault and a directory, in which each time that it happens leaves a file:
after so many times all is as it should be.
"""

import errno
import os
import resource
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

from cleaner_jobs.local import worker_host
from cleaner_jobs.local.worker_host import Failed, Work

FAULT, MARKS, TIMES = "FAULT", "FAULT_MARKS", "FAULT_TIMES"
DESCRIPTORS = 3  # more than none: those of its standard streams
Outcome = Any  # a list of rows, a Failed, or a lie


def happens() -> bool:
    """Whether it happens now; processes of several hosts may ask."""
    for number in range(int(os.environ[TIMES])):
        with suppress(FileExistsError):
            Path(os.environ[MARKS], str(number)).touch(exist_ok=False)
            return True
    return False


def forks_fail(error: int, at: int) -> None:
    """Let the fork of one worker fail."""
    fork, count = os.fork, 0

    def failing() -> int:
        nonlocal count
        count += 1
        if count == at and happens():
            raise OSError(error, os.strerror(error))
        return fork()

    vars(os)["fork"] = failing


def outcomes_are(changed: Callable[[Work, Outcome], Outcome]) -> None:
    """Change what a worker returns for a task."""
    outcome_of = worker_host.outcome_of
    vars(worker_host)["outcome_of"] = lambda work: changed(work, outcome_of(work))


def sent_is(changed: Callable[[Connection, Any], Any]) -> None:
    """Change what a worker sends."""
    send = Connection.send

    def changing(connection: Connection, said: Any) -> None:
        if isinstance(said, tuple) and not isinstance(said, worker_host.Ended) and happens():
            changed(connection, said)
        else:
            send(connection, said)

    Connection.send = changing  # type: ignore[assignment,method-assign]


def _out_of_memory() -> None:
    def failing(*_: object) -> Any:
        raise MemoryError

    from cleaner_jobs.tasks import task

    run_task = task.run_task
    vars(task)["run_task"] = lambda *of: failing() if happens() else run_task(*of)


def _out_of_descriptors() -> None:
    from cleaner_jobs.tasks import task

    run_task = task.run_task

    def with_few(*of: Any) -> Any:
        if not happens():
            yield from run_task(*of)
            return
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, hard))
        try:
            yield from run_task(*of)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    vars(task)["run_task"] = with_few


def _host_ends() -> None:
    if happens():
        sys.exit("no room for this process")


_earlier: list[Outcome] = []


def _of_the_task_before(_: Work, outcome: Outcome) -> Outcome:
    said = _earlier[-1] if _earlier and happens() else outcome
    _earlier.append(outcome)
    return said


def _send_twice(connection: Connection, said: Any) -> None:
    data = ForkingPickler.dumps(said)
    connection.send_bytes(data)
    connection.send_bytes(data)


FAULTS: Mapping[str, Callable[[], None]] = {
    "no process for a worker": lambda: forks_fail(errno.EAGAIN, 1),
    "no process for another worker": lambda: forks_fail(errno.EAGAIN, 2),
    "no memory for a worker": lambda: forks_fail(errno.ENOMEM, 1),
    "no room for the host": _host_ends,
    "no memory for a task": _out_of_memory,
    "no descriptors for a task": _out_of_descriptors,
    "nothing is returned": lambda: outcomes_are(lambda _, rows: [] if happens() else rows),
    "a row is missing": lambda: outcomes_are(lambda _, rows: rows[:-1] if happens() else rows),
    "each row comes twice": lambda: outcomes_are(lambda _, rows: rows * 2 if happens() else rows),
    "rows of the task before": lambda: outcomes_are(_of_the_task_before),
    "a good task is said to have failed": lambda: outcomes_are(
        lambda _, rows: Failed("OSError: a lie", "") if happens() else rows
    ),
    "no pickle": lambda: sent_is(lambda connection, _: connection.send_bytes(b"\x80\x05no pickle")),
    "no rows": lambda: outcomes_are(lambda _, rows: [("part", 7)] if happens() else rows),
    "no answer": lambda: outcomes_are(lambda _, rows: None if happens() else rows),
    "an answer twice": lambda: sent_is(_send_twice),
    "an answer to another try": lambda: sent_is(
        lambda connection, said: connection.send_bytes(ForkingPickler.dumps(("scan-0-99", said[1])))
    ),
}


def main() -> None:
    driver, control, *workers = map(int, sys.argv[1:])
    FAULTS[os.environ[FAULT]]()
    worker_host.main(driver, Connection(control), [Connection(each) for each in workers])


if __name__ == "__main__":
    main()
