"""How large a Spark on this machine is: Java's heap, and how many tasks work at once.

Without a limit of a control group it has 1 GiB of heap and a task for each core. Below a limit, all
of its processes have to fit, or the kernel kills one of them, most often Java.
"""

from typing import NamedTuple

from cleaner_jobs.machine_size import MIB, WORKER_BYTES, KillWatch, Memory, cores, memory

FEWER_TASKS = "Allow more, or have fewer tasks work at once: --master 'local[1]'"
MOST_HEAP_BYTES = 1024 * MIB  # plans and outcomes; no record ever comes to the driver
FEWEST_HEAP_BYTES = 256 * MIB
BESIDE_BYTES = 350 * MIB  # Java's classes, code and threads; Python's driver
_MOST_YOUNG_BYTES = 192 * MIB  # the first few rounds fit it


class LocalSize(NamedTuple):
    """Of a session on this machine."""

    heap_bytes: int
    tasks: int  # that work at once

    @property
    def needed_bytes(self) -> int:
        """Return the most that all of its processes take together."""
        return BESIDE_BYTES + self.heap_bytes + self.tasks * WORKER_BYTES

    @property
    def heap(self) -> str:
        """Return the heap size as Java's options write it."""
        return f"{self.heap_bytes // MIB}m"

    @property
    def young(self) -> str:
        """Its young generation: at most a third, or what lives longer has no room."""
        return f"{min(_MOST_YOUNG_BYTES, self.heap_bytes // 3) // MIB}m"


def size_within(limit_bytes: int | None, most_tasks: int) -> LocalSize:
    """Return the largest size that fits, or the least that works. None: there is no limit."""
    if limit_bytes is None:
        return LocalSize(MOST_HEAP_BYTES, most_tasks)
    rest = limit_bytes - BESIDE_BYTES
    heap = min(MOST_HEAP_BYTES, max(FEWEST_HEAP_BYTES, rest // 3))
    return LocalSize(heap, max(1, min(most_tasks, (rest - heap) // WORKER_BYTES)))


def local_size(found: Memory | None = None) -> LocalSize:
    """Return the size of a session that is started here and now."""
    limit = (found or memory()).limit
    return size_within(None if limit is None else limit.value, cores())


def kill_watch() -> KillWatch:
    """Watch from now on for processes of a Spark that the kernel kills for memory."""
    return KillWatch(size_within(0, 1).needed_bytes, FEWER_TASKS)
