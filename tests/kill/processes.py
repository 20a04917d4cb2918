"""The processes of a run: they share the session that it was started in, and end with it.

Executors of a cluster are children of its workers, in sessions of their own.
"""

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

LINGER_SECONDS = 60.0  # that Spark's processes may take to end behind a driver
LOCAL_LINGER_SECONDS = 3.0  # those of the local engine: one, and two for a busy machine
_LOOK_SECONDS = 0.02
_HOST = b"cleaner_jobs.local.worker_host"
_PARENTS = (b"cleaner_jobs.spark.worker_daemon", b"pyspark.daemon", _HOST)  # of workers


class Target(StrEnum):
    DRIVER = "driver"
    JVM = "driver's Java"
    HOST = "workers' host"
    WORKER = "Python worker"
    EXECUTOR = "executor"
    ALL = "everything"


class Process(NamedTuple):
    pid: int
    parent: int
    command: bytes

    @property
    def program(self) -> bytes:
        return self.command.partition(b"\0")[0]

    @property
    def is_executor(self) -> bool:
        return b"CoarseGrainedExecutorBackend" in self.command


def of_session(session: int) -> list[Process]:
    """Every living process of a session."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        state, parent, _, of = stat[stat.rindex(")") + 2 :].split()[:4]
        if int(of) == session and state not in "ZX":
            found.append(Process(int(entry.name), int(parent), command))
    return found


def kill(session: int, executors: Sequence[int], target: Target) -> bool:
    """SIGKILL what is aimed at; whether there was any.

    session: that of the driver. executors: of the cluster's workers; none without a cluster.
    """
    aimed_at = _aimed_at(session, executors, target)
    for pid in aimed_at:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(aimed_at)


def _aimed_at(session: int, executors: Sequence[int], target: Target) -> list[int]:
    own = of_session(session)
    working = [p for worker in executors for p in of_session(worker)] or own
    parents = {p.pid for p in working if any(name in p.command for name in _PARENTS)}
    match target:
        case Target.DRIVER:
            return [p.pid for p in own if b"python" in p.program and b"victim" in p.command]
        case Target.JVM:
            return [p.pid for p in own if b"java" in p.program]
        case Target.HOST:  # a worker has its command, and it for a parent
            return [p.pid for p in own if _HOST in p.command and p.parent not in parents]
        case Target.WORKER:
            return [p.pid for p in working if p.parent in parents][:1]
        case Target.EXECUTOR:
            return [p.pid for p in working if p.is_executor][:1]
        case Target.ALL:
            return [p.pid for p in {*own, *(p for p in working if p.is_executor)}]


def wait_until_gone(
    session: int, executors: Sequence[int], seconds: float = LINGER_SECONDS
) -> bool:
    """Whether a driver's processes and its executors end by themselves; else they are killed."""
    deadline = time.monotonic() + seconds
    while of_session(session) or any(p.is_executor for w in executors for p in of_session(w)):
        if time.monotonic() > deadline:
            kill(session, executors, Target.ALL)
            return False
        time.sleep(_LOOK_SECONDS)
    return True
