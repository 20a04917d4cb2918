"""Runs a command to its end and says what all of it took: itself and whatever it started.

A process that is waited for hands over the CPU seconds of all descendants that it waited for
itself. Those that outlive their parent come to us, if we say that we want them (subreaper); so none
is lost, however short it lived, and nothing has to be polled while the clock runs.
Source: prctl(2), PR_SET_CHILD_SUBREAPER; wait4(2).
"""

import ctypes
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import IO, NamedTuple

from tests.bench.errors import BenchError
from tests.bench.process_tree import KIB, MemoryWatch
from tests.bench.results import Peak, Sample

PR_SET_CHILD_SUBREAPER = 36
ORPHANS_SECONDS = 60  # a daemon notices the end of its parent within a second or so
SOURCES = Path(__file__).resolve().parent.parent.parent


class Measured(NamedTuple):
    sample: Sample
    exit_code: int
    stdout: str
    stderr: str
    peak_rss_bytes: int  # of the largest process
    memory: dict[str, Peak]  # by kind of process, if it was asked for


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
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=SOURCES
        )
        watch = MemoryWatch(process.pid) if watch_memory else None
        try:
            with watch or nullcontext():
                usage = wait(process)
        finally:
            end(process)
        seconds = time.monotonic() - began
        cpu_seconds = usage.ru_utime + usage.ru_stime + _wait_for_orphans()
        return Measured(
            Sample(seconds, cpu_seconds),
            process.returncode,
            _text(out),
            _text(err),
            usage.ru_maxrss * KIB,
            watch.peaks() if watch else {},
        )


def run_to_success(argv: Sequence[str], watch_memory: bool = False) -> Measured:
    """Run a command; BenchError, with the last it said, unless it ends with 0."""
    done = run(argv, watch_memory)
    if done.exit_code:
        said = (done.stderr or done.stdout)[-2000:].strip()
        raise BenchError(f"{' '.join(argv[:5])} … ended with {done.exit_code}: {said}")
    return done


def wait(process: "subprocess.Popen[bytes]") -> resource.struct_rusage:
    """Wait for the end of a process; what it and all that it waited for used."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage


def end(process: "subprocess.Popen[bytes]") -> None:
    """Stop a process that is still running, because something went wrong here."""
    if process.returncode is None:
        process.send_signal(signal.SIGTERM)
        wait(process)


def _wait_for_orphans() -> float:
    """CPU seconds of the processes that outlived the command; they have a while to end."""
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


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")
