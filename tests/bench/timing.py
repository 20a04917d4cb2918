"""The one timer: what a call takes in this process, and what a command takes with all it starts.

A process that is waited for hands over the CPU seconds of all descendants that it waited for
itself. Those that outlive their parent come to us, if we say that we want them (subreaper); so none
is lost, however short it lived, and nothing has to be polled while the clock runs.
Source: prctl(2), PR_SET_CHILD_SUBREAPER; wait4(2).
"""

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

from tests.bench.process_tree import KIB, MemoryWatch
from tests.bench.results import BenchError, Peak, Sample

PR_SET_CHILD_SUBREAPER = 36
ORPHANS_SECONDS = 60  # a daemon notices the end of its parent within a second or so
SOURCES = Path(__file__).resolve().parent.parent.parent
Process = subprocess.Popen[bytes]
NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
Value = TypeVar("Value")


class Measured(NamedTuple):
    """What a command took, and what it wrote."""

    sample: Sample
    exit_code: int
    stdout: str
    stderr: str
    peak_rss_bytes: int  # of the largest process
    memory: dict[str, Peak]  # by kind of process, if it was asked for

    def answer(self) -> dict[str, Any]:
        """Return the JSON object of the last line."""
        answer: dict[str, Any] = json.loads(self.stdout.splitlines()[-1])
        return answer


class Answers(NamedTuple):
    """The JSON objects that a process wrote, a line each."""

    lines: list[dict[str, Any]]
    peak_rss_bytes: int
    memory: dict[str, Peak]


def timed(call: Callable[[], Value]) -> tuple[Sample, Value]:
    """Return what a call took of the clock and of this process's processors, and its value."""
    began, used = time.monotonic(), time.process_time()
    value = call()
    return Sample(time.monotonic() - began, time.process_time() - used), value


def module(name: str, *words: str) -> list[str]:
    """Return the command line of a Python module."""
    return [sys.executable, "-m", name, *words]


def adopt_orphans() -> None:
    """Become the parent of every descendant that loses its own. Linux alone knows how."""
    if not sys.platform.startswith("linux"):
        raise BenchError("the benchmark reads /proc and adopts orphans: it needs Linux")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise BenchError(f"prctl: {os.strerror(ctypes.get_errno())}")


def run(argv: Sequence[str], watch_memory: bool = False) -> Measured:
    """Run a command. Nothing else may be running that this process started.

    watch_memory: poll its memory, which makes its times worthless.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.monotonic()
        with _started(argv, out, err) as process:
            watch = MemoryWatch(process.pid)
            with ExitStack() as stack:
                if watch_memory:
                    stack.enter_context(watch)
                usage = _wait(process)
        seconds = time.monotonic() - began
        cpu_seconds = usage.ru_utime + usage.ru_stime + _wait_for_orphans()
        sample, peak = Sample(seconds, cpu_seconds), usage.ru_maxrss * KIB
        code = process.returncode
        return Measured(sample, code, _text(out), _text(err), peak, watch.peaks())


def run_to_success(argv: Sequence[str], watch_memory: bool = False) -> Measured:
    """Run a command; BenchError, with the last it wrote, unless it ends with 0."""
    done = run(argv, watch_memory)
    if done.exit_code:
        raise _ended_badly(argv, done.exit_code, done.stderr or done.stdout)
    return done


def run_session(argv: Sequence[str], count: int, watched_after: int | None = None) -> Answers:
    """Run a command that measures itself and writes so many answers; BenchError if it does not.

    watched_after: poll its memory after so many of them.
    """
    lines: list[dict[str, Any]] = []
    with tempfile.TemporaryFile() as err:
        with _started(argv, subprocess.PIPE, err) as process, ExitStack() as stack:
            assert process.stdout is not None
            watch = MemoryWatch(process.pid)
            for line in stack.enter_context(process.stdout):
                if line.startswith(b"{"):
                    lines.append(json.loads(line))
                    if len(lines) == watched_after:
                        stack.enter_context(watch)
            usage = _wait(process)
        _wait_for_orphans()
        if process.returncode or len(lines) != count:
            raise _ended_badly(argv, process.returncode, _text(err))
    return Answers(lines, usage.ru_maxrss * KIB, watch.peaks())


@contextmanager
def _started(argv: Sequence[str], out: int | IO[bytes], err: IO[bytes]) -> Iterator[Process]:
    """Start a process; end it if something goes wrong here before it has been waited for."""
    # modules that are compiled at each start would count as the command's time
    environ = {name: value for name, value in os.environ.items() if name != NO_BYTECODE}
    process = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=SOURCES, env=environ
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            _wait(process)


def _wait(process: Process) -> resource.struct_rusage:
    """Wait for the end of a process; return what it and all that it waited for used."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage


def _wait_for_orphans() -> float:
    """Return the CPU seconds of what outlived the command; it has a while to end."""
    deadline, cpu_seconds = time.monotonic() + ORPHANS_SECONDS, 0.0
    while True:
        try:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return cpu_seconds
        if pid:
            cpu_seconds += usage.ru_utime + usage.ru_stime
        elif time.monotonic() > deadline:
            raise BenchError("the command ended and left a process behind that does not end")
        else:
            time.sleep(0.01)


def _ended_badly(argv: Sequence[str], code: int, said: str) -> BenchError:
    return BenchError(f"{' '.join(argv[:5])} … ended with {code}: {said[-2000:].strip()}")


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")
