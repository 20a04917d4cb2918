"""CPU seconds and memory of a process and all its descendants, by kind of process, out of /proc.

CPU seconds: a process has its own, and those of its descendants that ended and were waited for.
The sum of both over all that live never loses any, whatever ended in between.

Memory: VmHWM is the most that a process ever had resident. PSS and USS have no such mark, so they
are polled. Source: proc_pid_stat(5), proc_pid_status(5), proc_pid_smaps(5).
"""

import os
import re
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.bench.results import ALL, DRIVER, JVM, WORKERS, Peak

PROC = Path("/proc")
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
DAEMON_MODULES = (
    b"cleaner_jobs.spark.worker_daemon",
    b"cleaner_jobs.spark.prestarted_daemon",  # a child of the driver
    b"pyspark.daemon",
)
POLL_SECONDS = 0.02
KIB = 1024
# of the fields after the name: state, ppid, and from the twelfth on utime, stime, cutime, cstime
_PARENT, _OWN, _REAPED = 1, slice(11, 13), slice(13, 15)


class Stat(NamedTuple):
    name: str
    parent: int
    own_seconds: float
    reaped_seconds: float  # of descendants that ended and were waited for


def parse_stat(text: str) -> Stat:
    """One line of /proc/PID/stat. The name may hold blanks and brackets."""
    name_end = text.rindex(")")
    fields = text[name_end + 2 :].split()
    own, reaped = (sum(map(int, fields[part])) / TICKS_A_SECOND for part in (_OWN, _REAPED))
    return Stat(text[text.index("(") + 1 : name_end], int(fields[_PARENT]), own, reaped)


def parse_kib(text: str, name: str) -> int:
    """Bytes of one line `Name:   123 kB`; 0 if it is not there. Lines of one name add up."""
    return sum(int(kib) for kib in re.findall(rf"^{name}:\s+(\d+) kB$", text, re.M)) * KIB


class Process(NamedTuple):
    pid: int
    kind: str  # DRIVER, JVM or WORKERS
    is_daemon: bool  # of the workers: the one that forks them
    stat: Stat


def processes(root: int) -> Iterator[Process]:
    """The process and its descendants as they are now, parents first."""
    stats = dict(_all_stats())
    children = defaultdict(list)
    for pid, stat in stats.items():
        children[stat.parent].append(pid)
    waiting = [(root, DRIVER)] if root in stats else []
    while waiting:
        pid, kind_above = waiting.pop()
        kind = _kind(pid, stats[pid].name, kind_above)
        is_daemon = kind == WORKERS and kind_above != WORKERS
        yield Process(pid, kind, is_daemon, stats[pid])
        waiting += [(child, kind) for child in children[pid]]


def cpu_seconds(root: int) -> dict[str, float]:
    """CPU seconds so far, by kind and of ALL. Ended processes count with their parent's kind."""
    used = dict.fromkeys((DRIVER, JVM, WORKERS, ALL), 0.0)
    for process in processes(root):
        seconds = process.stat.own_seconds + process.stat.reaped_seconds
        used[process.kind] += seconds
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
        """The largest of each kind; under ALL the most that all together held at one moment."""
        return dict(self._peaks)

    def _poll(self) -> None:
        while True:
            together = Peak()
            for process in processes(self._root):
                memory, resident_bytes = _memory(process.pid)
                now = memory._replace(rss_bytes=resident_bytes)
                together = Peak(*(a + b for a, b in zip(together, now, strict=True)))
                if not process.is_daemon:  # it holds what its workers share, and does no work
                    self._raise(process.kind, memory)
            self._raise(ALL, together)
            if self._stop.wait(POLL_SECONDS):
                return

    def _raise(self, kind: str, memory: Peak) -> None:
        self._peaks[kind] = self._peaks.get(kind, Peak()).or_more(memory)


def _kind(pid: int, name: str, kind_above: str) -> str:
    if kind_above == WORKERS:
        return WORKERS
    if kind_above == DRIVER and name == "java":
        return JVM
    command = _read(pid, "cmdline")
    return WORKERS if any(module in command for module in DAEMON_MODULES) else kind_above


def _all_stats() -> Iterator[tuple[int, Stat]]:
    for entry in os.scandir(PROC):
        if entry.name.isdigit():
            text = _read(int(entry.name), "stat")
            if text:
                yield int(entry.name), parse_stat(text.decode("utf-8", "replace"))


def _memory(pid: int) -> tuple[Peak, int]:
    """The peak of RSS with what PSS and USS are now, and what RSS is now."""
    status = _read(pid, "status").decode("utf-8", "replace")
    rollup = _read(pid, "smaps_rollup").decode("utf-8", "replace")
    unshared = sum(parse_kib(rollup, name) for name in ("Private_Clean", "Private_Dirty"))
    peak = Peak(parse_kib(status, "VmHWM"), parse_kib(rollup, "Pss"), unshared)
    return peak, parse_kib(status, "VmRSS")


def _read(pid: int, name: str) -> bytes:
    """Nothing, if the process has ended meanwhile or is another user's."""
    try:
        return (PROC / str(pid) / name).read_bytes()
    except OSError:
        return b""
