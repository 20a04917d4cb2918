"""What goes wrong at a stage: disks without room or inodes, processes, connections."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.stages.held_run import CHECKPOINT, JAVA, STAGES

FILLING = "filling"
BLOCK_BYTES = 1 << 16


@dataclass(frozen=True)
class Scene:
    """A run, and the small disks that it uses."""

    run: psutil.Process
    logs: Path  # a disk of their own for the log directory,
    work: Path  # and for the work directory and all temporary files

    def java(self) -> list[psutil.Process]:
        return [process for process in self._below() if process.name() == "java"]

    def workers(self) -> list[psutil.Process]:
        """Python's, and the daemon that they come from."""
        return [process for process in self._below() if process.name().startswith("python")]

    def _below(self) -> Iterator[psutil.Process]:
        for process in self.run.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                process.name()
                yield process


@dataclass(frozen=True)
class Fault:
    """What is done to a run, and what it has to say of that."""

    name: str
    make: Callable[[Scene], bool]  # whether there was anything to hit
    named: str  # a pattern, in the message of a run that failed
    waits: bool = False  # for somebody to mend it, up to the bound
    stages: tuple[str, ...] = STAGES  # at which there is something to hit
    engines: tuple[str, ...] = ("spark", "local")

    def engines_at(self, stage: str) -> tuple[str, ...]:
        """Return the engines on which a run comes to a stage, and has something to hit there."""
        engines = self.engines if stage in self.stages else ()
        return tuple(engine for engine in engines if engine == "spark" or stage != JAVA)


def _sent(number: int, processes: list[psutil.Process]) -> bool:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
    return bool(processes)


def _without_room(disk: Path) -> bool:
    with (disk / FILLING).open("wb", buffering=0) as out, suppress(OSError):
        while out.write(b"\0" * BLOCK_BYTES):
            pass
    return True


def _without_inodes(disk: Path) -> bool:
    directory = disk / FILLING
    directory.mkdir()
    with suppress(OSError):
        for number in range(os.statvfs(disk).f_ffree + 1):
            (directory / str(number)).touch()
    return True


def _disconnected(scene: Scene) -> bool:
    scene.run.send_signal(signal.SIGUSR1)
    return bool(scene.java())


def _to_java(number: int) -> Callable[[Scene], bool]:
    return lambda scene: _sent(number, scene.java())


def _to_workers(number: int) -> Callable[[Scene], bool]:
    return lambda scene: _sent(number, scene.workers())


NO_ROOM = r"[Nn]o (space|room|inode)|inodes?|disk"
JAVA_GONE, WORKER_GONE = "Java process is gone|Java ended", "Python process died"
JAVA_STOPPED, WORKER_STOPPED = r"\(java\) was stopped", r"\(python\S*\) was stopped"
SPARK = ("spark",)
WITH_JAVA = STAGES[STAGES.index(JAVA) : STAGES.index(CHECKPOINT)]
FAULTS = (
    Fault("no room for work", lambda scene: _without_room(scene.work), NO_ROOM),
    Fault("no inodes for work", lambda scene: _without_inodes(scene.work), NO_ROOM),
    Fault("no room for logs", lambda scene: _without_room(scene.logs), NO_ROOM),
    Fault("no inodes for logs", lambda scene: _without_inodes(scene.logs), NO_ROOM),
    Fault("Java killed", _to_java(signal.SIGKILL), JAVA_GONE, stages=WITH_JAVA, engines=SPARK),
    Fault("worker killed", _to_workers(signal.SIGKILL), WORKER_GONE, stages=WITH_JAVA),
    Fault("connections dropped", _disconnected, "connection", stages=WITH_JAVA, engines=SPARK),
    Fault("Java stopped", _to_java(signal.SIGSTOP), JAVA_STOPPED, True, WITH_JAVA, SPARK),
    Fault("worker stopped", _to_workers(signal.SIGSTOP), WORKER_STOPPED, True, WITH_JAVA),
)
