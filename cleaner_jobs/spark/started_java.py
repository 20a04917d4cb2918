"""Starts a Java that pyspark connects to, and waits until it listens.

Java says where it listens in a file. Where it cannot write the file, its main thread ends, but Java
does not: so each wait also looks whether the file could be written, and has a bound.
"""

import os
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, NamedTuple

from cleaner_jobs.spark.patience import LOOK_SECONDS, Wait, end_processes, processes_below

CONNECTION_VARIABLE = "_PYSPARK_DRIVER_CONN_INFO_PATH"
_EXISTS_SECONDS = 0.01  # between two looks whether Java listens
_PROBE = b"\0" * 4096


class StartedJava(NamedTuple):
    """A Java that listens. It ends when its standard input does."""

    process: "subprocess.Popen[bytes]"
    port: int
    secret: str


class Waiting(NamedTuple):
    """What to do while Java starts."""

    say: Callable[[str], None] = lambda _: None  # what is waited for
    let_signals_through: Callable[[], None] = lambda: None  # may raise


class JavaStartError(OSError):
    """Java ended before it listened, or does not come to listen."""


def start_java(
    words: Sequence[str],
    environ: Mapping[str, str],
    log: IO[bytes],
    waiting: Waiting = Waiting(),  # noqa: B008  a value
) -> StartedJava:
    """Start Java by a command line, and wait until it listens.

    log: for its output, in the run's own directory, which is also the place of the file.
    Raise JavaStartError where it does not come to listen, and OSError where it cannot write there.
    Whatever is raised, nothing of it is left.
    """
    # for this user alone
    with TemporaryDirectory(prefix="connection-", dir=os.path.dirname(log.name)) as directory:
        told = Path(directory) / "connection"
        process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env={
                **environ,
                "PYTHONHASHSEED": "0",
                "SPARK_CONNECT_MODE": "0",
                CONNECTION_VARIABLE: str(told),
            },
            preexec_fn=_ignore_interrupts,
        )
        try:
            _wait_for(told, process, waiting)
            port, secret = _connection(told.read_bytes())
        except BaseException:
            end_java(process)
            raise
    return StartedJava(process, port, secret)


def end_java(process: "subprocess.Popen[bytes]") -> None:
    """At once, with what it has started: a launcher, too, is a Java of its own."""
    _, *below = processes_below([process.pid])
    end_processes(below)
    process.kill()
    process.communicate()


def _wait_for(told: Path, process: "subprocess.Popen[bytes]", waiting: Waiting) -> None:
    """Until Java has moved the file there, whole."""
    wait, looked = Wait(waiting.say), time.monotonic()
    while not told.exists():
        waiting.let_signals_through()
        if process.poll() is not None:
            raise JavaStartError("Java ended before it listened")
        time.sleep(_EXISTS_SECONDS)
        if time.monotonic() - looked >= LOOK_SECONDS:
            looked = time.monotonic()
            _require_room(told.with_name("probe"))
            if wait.look("Java, which was started, does not listen yet"):
                raise JavaStartError(f"Java has not come to listen within {wait.bound:,.0f} s")


def _require_room(path: Path) -> None:
    """Raise OSError, with the directory, where a file cannot be written."""
    try:
        path.write_bytes(_PROBE)
        path.unlink()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path.parent.parent)) from error


def _ignore_interrupts() -> None:
    """In the child: Ctrl-C is for the driver, which ends Java when it is ready to."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _connection(data: bytes) -> tuple[int, str]:
    """Source: PythonGatewayServer: two integers, the second one the length of what follows it."""
    port, length = struct.unpack_from(">ii", data)
    return port, data[8 : 8 + length].decode()
