"""CPU seconds and memory of a process and all its descendants, by kind of process.

CPU seconds: a process has its own, and those of its descendants that ended and were waited for.
The sum of both over all that live never loses any, whatever ended in between.

Memory: VmHWM is the most that a process had resident. PSS and USS have no such mark, so they are
polled. Source: proc_pid_stat(5), proc_pid_status(5), proc_pid_smaps(5).
"""

import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from cleaner_jobs.local.worker_pool import HOST_MODULE
from tests.bench.results import ALL, DRIVER, JVM, WORKERS, Peak

DAEMON_MODULES = (HOST_MODULE, "cleaner_jobs.spark.worker_daemon", "pyspark.daemon")
POLL_SECONDS = 0.02
KIB = 1024


class Process(NamedTuple):
    process: psutil.Process
    kind: str  # DRIVER, JVM or WORKERS
    is_daemon: bool  # of the workers: the one that forks them


def processes(root: int) -> Iterator[Process]:
    """Yield the process and its descendants as they are now, parents first."""
    kinds: dict[int, str] = {}
    with suppress(psutil.NoSuchProcess):
        top = psutil.Process(root)
        for process in (top, *top.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                above = kinds.get(process.ppid(), DRIVER)
                kind = kinds[process.pid] = _kind(process, above)
                yield Process(process, kind, kind == WORKERS != above)


def cpu_seconds(root: int) -> dict[str, float]:
    """Return CPU seconds so far, by kind and of ALL. Ended processes count with their parent's."""
    used = dict.fromkeys((DRIVER, JVM, WORKERS, ALL), 0.0)
    for process, kind, _ in processes(root):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            own = times.user + times.system
            seconds = own + times.children_user + times.children_system
            used[kind] += seconds
            used[ALL] += seconds
    return used


class MemoryWatch:
    """Polls the memory of a tree of processes while it is entered."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._peaks: dict[str, Peak] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)

    def __enter__(self) -> "MemoryWatch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def peaks(self) -> dict[str, Peak]:
        """Return the largest of each kind; of ALL the most that they held at one moment."""
        return dict(self._peaks)

    def _poll(self) -> None:
        while True:
            together = Peak()
            for process, kind, is_daemon in processes(self._root):
                with suppress(psutil.Error, OSError):  # it has ended, or is another user's
                    now = process.memory_full_info()
                    held = Peak(now.rss, now.pss, now.uss)
                    together = Peak(*(a + b for a, b in zip(together, held, strict=True)))
                    if not is_daemon:  # it holds what its workers share, and does no work
                        self._raise(kind, held._replace(rss_bytes=_most_resident(process.pid)))
            self._raise(ALL, together)
            if self._stop.wait(POLL_SECONDS):
                return

    def _raise(self, kind: str, memory: Peak) -> None:
        self._peaks[kind] = self._peaks.get(kind, Peak()).or_more(memory)


def _kind(process: psutil.Process, kind_above: str) -> str:
    if kind_above == WORKERS:
        return WORKERS
    if kind_above == DRIVER and process.name() == "java":
        return JVM
    command: list[str] = []
    with suppress(psutil.ZombieProcess, psutil.AccessDenied):
        command = process.cmdline()
    return WORKERS if any(module in command for module in DAEMON_MODULES) else kind_above


def _most_resident(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text("utf-8", "replace")
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.M)
    return int(found[1]) * KIB if found else 0
