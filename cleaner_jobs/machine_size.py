"""What this machine gives a process: memory and cores, by its control groups and its affinity.

A process is in a group of each hierarchy of control groups: of version 2, which has every
controller, or of version 1, which has one hierarchy each; systems with both use version 1 for
memory. A limit holds for a group and all below it, so the least one from the own group up to the
top counts. A container sees a part of the tree: what stands above its mount cannot be read, and is
not counted. Source: Linux, Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst;
proc(5), mountinfo.
"""

import os
import re
from collections.abc import Iterator
from math import ceil
from typing import NamedTuple

from cleaner_jobs.user_cache import text_of

MIB = 1 << 20
WORKER_BYTES = 400 * MIB  # the most that was seen of one worker, and each task has one
ROOT = "/"
_OCTAL = re.compile(r"\\([0-7]{3})")  # how mountinfo writes a blank in a path
_FEWEST_UNLIMITED = 1 << 62  # version 1 has no word for it: a number near the largest


class Limit(NamedTuple):
    """The least limit, and whose it is."""

    value: int  # bytes
    group: str


class Memory(NamedTuple):
    """What of memory this process and those that it starts may take."""

    total_bytes: int
    free_bytes: int  # what nobody has, or what can be taken from the page cache
    limit: Limit | None  # None: no group sets one below the machine's


def memory(root: str = ROOT) -> Memory:
    """root: of the trees /proc and /sys, for tests."""
    sizes = _numbers(os.path.join(root, "proc/meminfo"), ":")
    total, free = sizes["MemTotal"] * 1024, sizes["MemAvailable"] * 1024
    limits = [limit for group in _groups("memory", root) for limit in _memory_limit(group)]
    for group, limit in limits:
        free = min(free, max(limit - _used(group), 0))
    least = min((Limit(limit, group) for group, limit in limits), default=None)
    if least is None or least.value >= total:
        return Memory(total, free, None)
    return Memory(least.value, free, least)


def processors(root: str = ROOT) -> int | None:
    """Return how many processors the control group's quota allows, rounded up; None: no quota."""
    quotas = [quota for group in _groups("cpu", root) for quota in _quota(group)]
    return None if not quotas else max(1, ceil(min(quotas)))


def cores() -> int:
    """Return how many cores this process may use, by affinity and by its group's quota."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(own, processors() or own)


def memory_kills(root: str = ROOT) -> int | None:
    """Return how many processes of this group the kernel has killed for memory, if known."""
    own = next(_groups("memory", root), None)
    if own is not None:
        for name in ("memory.events", "memory.oom_control"):
            found = _numbers(os.path.join(own, name), " ").get("oom_kill")
            if found is not None:
                return found
    return _numbers(os.path.join(root, "proc/vmstat"), " ").get("oom_kill")  # of the whole machine


def _groups(controller: str, root: str) -> Iterator[str]:
    """Yield the directories of the groups that limit this process, its own first."""
    found = _hierarchy(controller, root)
    if found is None:
        return
    top, below = found
    while below:
        yield os.path.join(top, below)
        below = os.path.dirname(below)
    yield top


def _hierarchy(controller: str, root: str) -> tuple[str, str] | None:
    """Return where the hierarchy of a controller is mounted, and the own group below that."""
    version_2 = None
    for line in _lines(os.path.join(root, "proc/self/cgroup")):
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return _mounted(root, path, "cgroup", controller)
        if controllers == "":
            version_2 = path
    return None if version_2 is None else _mounted(root, version_2, "cgroup2", None)


def _mounted(root: str, path: str, kind: str, controller: str | None) -> tuple[str, str] | None:
    for line in _lines(os.path.join(root, "proc/self/mountinfo")):
        before, _, behind = line.partition(" - ")
        type_, _, options = behind.split(" ", 2)
        if type_ != kind or (controller and controller not in options.split(",")):
            continue
        of_tree, mount_point = (_OCTAL.sub(_unescaped, word) for word in before.split(" ")[3:5])
        below = os.path.relpath(path, of_tree)
        if below.startswith(".."):  # a group that this mount does not show: all that is seen is it
            below = "."
        return os.path.join(root, mount_point.lstrip("/")), below.removeprefix(".")
    return None


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1], 8))


def _memory_limit(group: str) -> Iterator[tuple[str, int]]:
    for name in ("memory.max", "memory.limit_in_bytes"):
        for word in _lines(os.path.join(group, name)):
            if word.isdigit() and int(word) < _FEWEST_UNLIMITED:
                yield group, int(word)


def _used(group: str) -> int:
    """Return the bytes in use, without page cache that is freed before anything is killed."""
    statistics = _numbers(os.path.join(group, "memory.stat"), " ")
    cache = statistics.get("total_inactive_file", statistics.get("inactive_file", 0))
    for name in ("memory.current", "memory.usage_in_bytes"):
        for word in _lines(os.path.join(group, name)):
            return max(int(word) - cache, 0)
    return 0


def _quota(group: str) -> Iterator[float]:
    words = [word for line in _lines(os.path.join(group, "cpu.max")) for word in line.split()]
    for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us"):
        words += _lines(os.path.join(group, name))
    if len(words) == 2 and all(word.isdigit() for word in words) and int(words[1]):
        yield int(words[0]) / int(words[1])  # "max" and -1 are none


def _numbers(path: str, separator: str) -> dict[str, int]:
    found = {}
    for line in _lines(path):
        name, _, value = line.partition(separator)
        if value.split():
            found[name] = int(value.split()[0])
    return found


def _lines(path: str) -> list[str]:
    return (text_of(path) or "").splitlines()  # none: not of this version, or not shown to us


class KillWatch:
    """Whether the kernel has killed a process of this control group for memory since."""

    def __init__(self, least_bytes: int, advice: str) -> None:
        """least_bytes: that a run needs. advice: where more than that is allowed; no full stop."""
        self._least_bytes, self._advice = least_bytes, advice
        self._before = memory_kills()

    def words(self) -> str:
        """Return what to say of it after a cause; empty where none was killed."""
        now = memory_kills()
        if now is None or self._before is None or now <= self._before:
            return ""
        limit = memory().limit
        of = f" ({limit.group} allows {limit.value / 1e6:,.0f} MB)" if limit else ""
        advice = self._advice
        if limit and limit.value < self._least_bytes:
            least = f"{self._least_bytes / 1e6:,.0f} MB"
            advice = f"A run on this machine needs {least} or more: allow that"
        return f": the kernel killed a process for want of memory{of}. {advice}"
