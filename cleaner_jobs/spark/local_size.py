"""How large a session on this machine is: Java's heap, and how many tasks work at once.

Without a limit of a control group it has 1 GiB of heap and a task for each core. Below one, all of
its processes have to fit: or the kernel kills one of them, most often Java.
"""

from typing import NamedTuple

from cleaner_jobs.spark.control_groups import Memory, memory, memory_kills
from cleaner_jobs.spark.first_use import cores

MIB = 1 << 20
MOST_HEAP_BYTES = 1024 * MIB  # plans and outcomes; no record ever comes to the driver
FEWEST_HEAP_BYTES = 256 * MIB
BESIDE_BYTES = 350 * MIB  # Java's classes, code and threads; Python's driver
WORKER_BYTES = 400 * MIB  # the most that was seen of one worker, and each task has one
_MOST_YOUNG_BYTES = 192 * MIB  # the first few rounds fit it


class LocalSize(NamedTuple):
    """Of a session on this machine."""

    heap_bytes: int
    tasks: int  # that work at once

    @property
    def needed_bytes(self) -> int:
        """The most that all of its processes take together."""
        return BESIDE_BYTES + self.heap_bytes + self.tasks * WORKER_BYTES

    @property
    def heap(self) -> str:
        """As Java's options have it."""
        return f"{self.heap_bytes // MIB}m"

    @property
    def young(self) -> str:
        """Its young generation: at most a third, or what lives longer has no room."""
        return f"{min(_MOST_YOUNG_BYTES, self.heap_bytes // 3) // MIB}m"


def size_within(limit_bytes: int | None, most_tasks: int) -> LocalSize:
    """The largest that fits; the least that works, where nothing does. None: there is no limit."""
    if limit_bytes is None:
        return LocalSize(MOST_HEAP_BYTES, most_tasks)
    rest = limit_bytes - BESIDE_BYTES
    heap = min(MOST_HEAP_BYTES, max(FEWEST_HEAP_BYTES, rest // 3))
    return LocalSize(heap, max(1, min(most_tasks, (rest - heap) // WORKER_BYTES)))


def local_size(found: Memory | None = None) -> LocalSize:
    """Of a session that is started here and now."""
    limit = (found or memory()).limit
    return size_within(None if limit is None else limit.value, cores())


class KillWatch:
    """Whether the kernel has killed a process of this control group for memory since."""

    def __init__(self) -> None:
        self._before = memory_kills()

    def words(self) -> str:
        """What to say of it behind a cause; empty where none was killed."""
        now = memory_kills()
        if now is None or self._before is None or now <= self._before:
            return ""
        limit = memory().limit
        of = f" ({limit.group} allows {limit.value / 1e6:,.0f} MB)" if limit else ""
        least = size_within(0, 1).needed_bytes
        if limit and limit.value < least:
            advice = f"A run on this machine needs {least / 1e6:,.0f} MB or more: allow that"
        else:
            advice = "Allow more, or have fewer tasks work at once: --master 'local[1]'"
        return f": the kernel killed a process for want of memory{of}. {advice}"
