"""Starts Java for a session by Spark's launcher; pyspark connects to that Java.

Java writes where it listens to a file. Where it cannot write the file, its main thread ends, but
Java does not: so each wait also checks whether the file could be written, and has a bound.

Under `spark-submit` Java is the parent, and gets the signals of Airflow, systemd and timeout(1). A
shutdown hook in it does two things, one after the other:

1. It writes a byte to a pipe. A thread here reads it, and sends this process a SIGTERM.
2. It waits until this process has ended, since Java carries its output on.

A Java that is killed runs no hook: the pipe is closed without a byte, and the call that fails says
that Java has gone.
"""

import os
import shlex
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, NamedTuple

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.java_gateway import launch_gateway

from cleaner_jobs.patience import LOOK_SECONDS, Wait, end_processes, processes_below
from cleaner_jobs.signals import deferred_signals
from cleaner_jobs.spark.environment import SUBMITTED_VARIABLE, spark_home
from cleaner_jobs.user_cache import temporary_directory
from storage.errors import LogCompactionError
from storage.files.local import LOCAL

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
    with temporary_directory("connection-", os.path.dirname(log.name)) as directory:
        told = os.path.join(directory, "connection")
        process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env={
                **environ,
                "PYTHONHASHSEED": "0",
                "SPARK_CONNECT_MODE": "0",
                CONNECTION_VARIABLE: told,
            },
            preexec_fn=_ignore_interrupts,
        )
        try:
            _wait_for(told, process, waiting)
            port, secret = _connection(LOCAL.read_bytes(told))
        except BaseException:
            end_java(process)
            raise
    return StartedJava(process, port, secret)


def end_java(process: "subprocess.Popen[bytes]") -> None:
    """End Java at once, with what it has started: a launcher, too, is a Java of its own."""
    _, *below = processes_below([process.pid])
    end_processes(below)
    process.kill()
    process.communicate()


def _wait_for(info_file: str, process: "subprocess.Popen[bytes]", waiting: Waiting) -> None:
    """Wait until Java has moved the file there, whole."""
    wait, looked = Wait(waiting.say), time.monotonic()
    while not LOCAL.exists(info_file):
        waiting.let_signals_through()
        if process.poll() is not None:
            raise JavaStartError("Java ended before it listened")
        time.sleep(_EXISTS_SECONDS)
        if time.monotonic() - looked >= LOOK_SECONDS:
            looked = time.monotonic()
            _require_room(os.path.dirname(info_file))
            if wait.look("Java, which was started, does not listen yet"):
                raise JavaStartError(f"Java has not come to listen within {wait.bound:,.0f} s")


def _require_room(directory: str) -> None:
    """Raise OSError, with the directory above, where a file cannot be written."""
    path = os.path.join(directory, "probe")
    try:
        with LOCAL.open_named(path, "wb") as probe:
            probe.write(_PROBE)
        LOCAL.remove(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.path.dirname(directory)) from error


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C in the child: it is for the driver, which ends Java when it is ready."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _connection(data: bytes) -> tuple[int, str]:
    """Source: PythonGatewayServer: two integers, the second one the length of what follows it."""
    port, length = struct.unpack_from(">ii", data)
    return port, data[8 : 8 + length].decode()


def start_gateway(options: Mapping[str, str], log: IO[bytes], waiting: Waiting) -> Any:
    """Start Java with the options of a session, and return the gateway by which pyspark calls it.

    It is untyped in pyspark, as py4j is.
    """
    java = start_java(_launcher_command(options), os.environ, log, waiting)
    address = {SUBMITTED_VARIABLE: str(java.port), "PYSPARK_GATEWAY_SECRET": java.secret}
    connect: Any = launch_gateway
    os.environ.update(address)
    try:
        gateway = connect()
    except BaseException:
        end_java(java.process)
        raise
    finally:
        for name in address:
            del os.environ[name]
    gateway.proc = java.process
    _drop_numpy_converters(gateway)
    return gateway


def _launcher_command(options: Mapping[str, str]) -> list[str]:
    """Return the command line of Spark's launcher, which ends as the Java that is wanted.

    Source: pyspark, launch_gateway, which would wait forever for a Java that cannot write.
    """
    ours = [word for name, value in options.items() for word in ("--conf", f"{name}={value}")]
    submit = os.path.join(spark_home(os.environ), "bin", "spark-submit")
    asked = os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    return [submit, *ours, *shlex.split(asked)]


def _drop_numpy_converters(gateway: Any) -> None:
    """Let py4j not ask of each argument whether numpy made it.

    To find out, pyspark 4 imports its own tests, and with them pandas where it is installed: half a
    second. No argument of ours is numpy's.
    """
    client = gateway._gateway_client
    client.converters = [c for c in client.converters if "Numpy" not in type(c).__name__]


_ENDS = b"1"
_kept_open: list[int] = []  # until this process ends: so long does Java wait


class JavaIsGoneError(LogCompactionError):
    """Spark's Java does not answer. Nothing was changed."""

    reason_code = "spark-failed"


def connect_to_java() -> None:
    """Connect to the Java of spark-submit, and follow it to its end. Raise LogCompactionError."""
    try:
        SparkContext._ensure_initialized()
    except (Py4JError, ConnectionError, KeyError, ValueError) as error:
        raise JavaIsGoneError(
            f"the Java of spark-submit does not answer at {SUBMITTED_VARIABLE}="
            f"{os.environ.get(SUBMITTED_VARIABLE)}: it has ended. If spark-submit did not start "
            "this command, unset that variable"
        ) from error
    with suppress(OSError):  # no room for a pipe: then its end is noticed by the next call
        _follow_to_its_end(SparkContext._jvm)


def _follow_to_its_end(jvm: Any) -> None:
    """Let Java's orderly end be a SIGTERM here; once in a process, and where one is waited for."""
    if _kept_open or signal.getsignal(signal.SIGTERM) in (signal.SIG_DFL, signal.SIG_IGN):
        return
    with temporary_directory("compactor-") as directory, deferred_signals():
        told, alive = os.path.join(directory, "told"), os.path.join(directory, "alive")
        for path in (told, alive):
            os.mkfifo(path, 0o600)
        reading = LOCAL.open_descriptor(told, os.O_RDONLY | os.O_NONBLOCK)
        _kept_open.append(
            LOCAL.open_descriptor(alive, os.O_RDWR)
        )  # or Java would wait for somebody to write
        with suppress(Py4JError, TypeError):  # another Spark may have other insides
            _add_hook(jvm, told, alive)
    os.set_blocking(reading, True)
    threading.Thread(target=_wait_for_end, args=(reading,), name="Java's end", daemon=True).start()


def _add_hook(jvm: Any, pipe: str, alive: str) -> None:
    """RedirectThread copies what it reads: here a byte, and then nothing until the pipe's end."""
    java = jvm.java.io
    begun = java.ByteArrayInputStream(_ENDS)
    source = java.SequenceInputStream(begun, java.FileInputStream(alive))
    hook = jvm.org.apache.spark.util.RedirectThread(
        source, java.FileOutputStream(pipe), "compactor", False
    )
    jvm.java.lang.Runtime.getRuntime().addShutdownHook(hook)


def _wait_for_end(reading: int) -> None:
    if os.read(reading, 1) == _ENDS:
        os.kill(os.getpid(), signal.SIGTERM)
