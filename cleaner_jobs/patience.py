"""How long a run waits for other processes: for executors, and for a process that was stopped.

Each such wait is said after some seconds and ends after a bound, ten minutes unless the variable
COMPACTOR_WAIT_SECONDS says otherwise. Time in which this process was stopped itself, or the machine
slept, does not count: a wait counts the looks at it, each with a second or two at most.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from cleaner_jobs.user_cache import text_of
from storage.files.local import LOCAL

VARIABLE, DEFAULT_SECONDS = "COMPACTOR_WAIT_SECONDS", 600.0
SAID_SECONDS = 15.0
LOOK_SECONDS = 1.0
_MOST_COUNTED_SECONDS = 2.0
PROC = "/proc"

_ended: list[str] = []  # why processes were ended, since the last watch began


def bound_seconds(environ: Mapping[str, str]) -> float:
    """Return how long to wait. What is no number above 0 counts as not set."""
    with suppress(ValueError):
        seconds = float(environ.get(VARIABLE, ""))
        if 0 < seconds < float("inf"):
            return seconds
    return DEFAULT_SECONDS


class Wait:
    """Counts how long a run has been kept waiting without a break."""

    def __init__(self, say: Callable[[str], None], bound: float | None = None) -> None:
        self._say = say
        self.bound = bound_seconds(os.environ) if bound is None else bound  # seconds
        self._waited, self._last, self._is_said = 0.0, time.monotonic(), False

    def look(self, cause: str | None) -> bool:
        """Count the time since the last look; whether the bound is reached. None: no wait."""
        now = time.monotonic()
        passed, self._last = min(now - self._last, _MOST_COUNTED_SECONDS), now
        if cause is None:
            self._waited, self._is_said = 0.0, False
            return False
        self._waited += passed
        if self._waited >= min(SAID_SECONDS, self.bound) and not self._is_said:
            self._is_said = True
            self._say(f"waiting: {cause}. The run ends after {self.bound:,.0f} s ({VARIABLE})")
        return self._waited >= self.bound


def why_ended() -> str:
    """Return what to say after the cause of a failure; empty where no process was ended here."""
    return f": {_ended[0]}" if _ended else ""


@contextmanager
def ending_stopped_processes(
    say: Callable[[str], None], others: Sequence[int] = (), own: Sequence[int] = ()
) -> Iterator[None]:
    """End each process of this run that stays stopped (SIGSTOP) for longer than the bound.

    What waits for it then sees that it has gone. A child that this process has already belongs
    to its caller, with all that the child starts. others: processes of this run above this one.
    own: children that were started before, and are the run's.
    """
    _ended.clear()
    over = threading.Event()
    _, *children = processes_below([os.getpid()])
    of_run = {*processes_below(own)}
    callers = [child for child in children if child not in of_run]
    arguments = Wait(say), over, (os.getpid(), *others), callers
    thread = threading.Thread(target=_watch, args=arguments, name="stopped", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _watch(wait: Wait, over: threading.Event, top: Sequence[int], callers: Sequence[int]) -> None:
    while not over.wait(LOOK_SECONDS):
        # first those that are stopped: a caller's child may start one between the two looks
        found = stopped_processes(top=top)
        left_out = set(processes_below(callers))
        stopped = [process for process in found if process[0] not in left_out]
        cause = None
        if stopped:
            pid, name = stopped[0]
            cause = f"process {pid} ({name}) is stopped, and goes on at a SIGCONT"
        if wait.look(cause):
            pid, name = stopped[0]
            _ended.append(f"process {pid} ({name}) was stopped for {wait.bound:,.0f} s, and ended")
            end_processes(pid for pid, _ in stopped)


def end_processes(pids: Iterable[int]) -> None:
    """Kill processes; one that has ended already is no error."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def stopped_processes(proc: str = PROC, top: Sequence[int] = ()) -> list[tuple[int, str]]:
    """Return the stopped processes below this one, or of others and their children, with names."""
    found = []
    for pid in processes_below(top or [os.getpid()], proc):
        known = _process(f"{proc}/{pid}")
        if known is not None and known.state == "T" and pid != os.getpid():
            found.append((pid, known.name))
    return sorted(found)


def processes_below(top: Sequence[int], proc: str = PROC) -> Iterator[int]:
    """These, and all that descend from them."""
    parents = None if _has_children(proc) else _parents(proc)
    reached = list(dict.fromkeys(top))
    for pid in reached:  # it grows meanwhile
        yield pid
        if parents is None:
            below = _children(f"{proc}/{pid}")
        else:
            below = [child for child, parent in parents.items() if parent == pid]
        reached += [child for child in below if child not in reached]


def _has_children(proc: str) -> bool:
    """Return whether this kernel lists children; if not, all processes have to be asked."""
    own = str(os.getpid())
    return LOCAL.exists(f"{proc}/{own}/task/{own}/children")


def _children(of: str) -> list[int]:
    """Return the children of a process, by the threads that have started them."""
    found: list[int] = []
    with suppress(OSError):  # the process has ended
        threads, _ = LOCAL.list_names(f"{of}/task")
        for thread in threads:
            found += map(int, (text_of(f"{of}/task/{thread}/children") or "").split())
    return found


def _parents(proc: str) -> dict[int, int]:
    names, _ = LOCAL.list_names(proc)
    known = {int(name): _process(f"{proc}/{name}") for name in names if name.isdigit()}
    return {pid: process.parent for pid, process in known.items() if process is not None}


class _Process(NamedTuple):
    name: str
    state: str
    parent: int


def _process(of: str) -> _Process | None:
    """Return a process, or None: it has ended."""
    text = text_of(f"{of}/stat")
    if text is None:
        return None
    begin, end = text.index("("), text.rindex(")")
    state, parent = text[end + 2 :].split()[:2]
    return _Process(text[begin + 1 : end], state, int(parent))
