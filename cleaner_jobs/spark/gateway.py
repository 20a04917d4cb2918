"""Starts Java for a session and the prestarted daemon beside it; pyspark connects to that Java.

The first session of a machine uses Spark's launcher, and so does one with options that are not
ours. The others start Java with what the launcher added then.

Java writes where it listens to a file. Where it cannot write the file, its main thread ends, but
Java does not: so each wait also checks whether the file could be written, and has a bound.
"""

import os
import shlex
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple

from pyspark.java_gateway import launch_gateway

from cleaner_jobs.spark import prestarted_daemon
from cleaner_jobs.spark.java_cache import (
    SUBMITTED_VARIABLE,
    Launch,
    command,
    read_launch,
    save_launch,
    spark_home,
)
from cleaner_jobs.spark.local_size import cores
from cleaner_jobs.spark.patience import LOOK_SECONDS, Wait, end_processes, processes_below
from cleaner_jobs.spark.prestarted_daemon import SOCKET_VARIABLE, PrestartedDaemon
from cleaner_jobs.spark.warm_up import FEWEST_CORES

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
    """End Java at once, with what it has started: a launcher, too, is a Java of its own."""
    _, *below = processes_below([process.pid])
    end_processes(below)
    process.kill()
    process.communicate()


def _wait_for(info_file: Path, process: "subprocess.Popen[bytes]", waiting: Waiting) -> None:
    """Wait until Java has moved the file there, whole."""
    wait, looked = Wait(waiting.say), time.monotonic()
    while not info_file.exists():
        waiting.let_signals_through()
        if process.poll() is not None:
            raise JavaStartError("Java ended before it listened")
        time.sleep(_EXISTS_SECONDS)
        if time.monotonic() - looked >= LOOK_SECONDS:
            looked = time.monotonic()
            _require_room(info_file.with_name("probe"))
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
    """Ignore Ctrl-C in the child: it is for the driver, which ends Java when it is ready."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _connection(data: bytes) -> tuple[int, str]:
    """Source: PythonGatewayServer: two integers, the second one the length of what follows it."""
    port, length = struct.unpack_from(">ii", data)
    return port, data[8 : 8 + length].decode()


JAVA_OPTIONS = "spark.driver.extraJavaOptions"
DRIVER_MEMORY = "spark.driver.memory"
UNIX_SOCKETS_DIR = "spark.python.unix.domain.socket.dir"


def start_gateway(
    options: Mapping[str, str], source: str, log: IO[bytes], by_launcher: bool, waiting: Waiting
) -> Any:  # untyped in pyspark, as py4j is
    """Start Java for the options of a session; what pyspark calls it by.

    source: where this package is. by_launcher: ask Spark's launcher in any case.
    """
    launch = None if by_launcher else read_launch(os.environ)
    if launch is not None:
        return _started(launch, options, source, log, waiting)
    gateway = _connected(start_java(_launcher_command(options), os.environ, log, waiting))
    gateway.prestarted_daemon = None
    if not by_launcher:
        with suppress(OSError):  # then the next session asks again
            save_launch(os.environ, _launch_of(gateway))
    return gateway


def _launcher_command(options: Mapping[str, str]) -> list[str]:
    """Source: pyspark, launch_gateway, which would wait forever for a Java that cannot write."""
    given = [word for name, value in options.items() for word in ("--conf", f"{name}={value}")]
    submit = spark_home(os.environ) / "bin" / "spark-submit"
    asked = os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    return [str(submit), *given, *shlex.split(asked)]


def end_prestarted_daemon(gateway: Any) -> None:
    """End the prestarted daemon, after Java, whose daemon it may be."""
    daemon: PrestartedDaemon | None = (
        gateway.prestarted_daemon
    )  # py4j makes something up of what is not set
    if daemon is not None:
        daemon.end()


def _started(
    launch: Launch, options: Mapping[str, str], source: str, log: IO[bytes], waiting: Waiting
) -> Any:
    """Start Java without the launcher; pyspark connects to it as under spark-submit."""
    ours = [f"-Xmx{options[DRIVER_MEMORY]}", *shlex.split(options[JAVA_OPTIONS])]
    environ, daemon = dict(os.environ), _prestarted_daemon(options, source, log)
    if daemon is not None:
        environ[SOCKET_VARIABLE] = str(daemon.socket_path)
    try:
        gateway = _connected(start_java(command(launch, ours, environ), environ, log, waiting))
    except BaseException:
        if daemon is not None:
            daemon.end()
        raise
    gateway.prestarted_daemon = daemon
    return gateway


def _prestarted_daemon(
    options: Mapping[str, str], source: str, log: IO[bytes]
) -> PrestartedDaemon | None:
    """Start a daemon; None where its socket has no place, or it would have no core to itself."""
    directory = options.get(UNIX_SOCKETS_DIR)
    is_ours = os.environ["PYSPARK_PYTHON"] == sys.executable
    if directory is None or not is_ours or cores() < FEWEST_CORES:
        return None
    return prestarted_daemon.start(Path(directory), source, os.environ, log)


def _connected(java: StartedJava) -> Any:
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


def _launch_of(gateway: Any) -> Launch:
    """Return what the launcher has added to our options, as the Java knows that came of it."""
    jvm = gateway.jvm
    module_options = jvm.org.apache.spark.launcher.JavaModuleOptions.defaultModuleOptions()
    return Launch(
        jvm.java.lang.System.getProperty("java.class.path"), tuple(module_options.split())
    )


def _drop_numpy_converters(gateway: Any) -> None:
    """Let py4j not ask of each argument whether numpy made it.

    To find out, pyspark 4 imports its own tests, and with them pandas where it is installed: half a
    second. No argument of ours is numpy's.
    """
    client = gateway._gateway_client
    client.converters = [c for c in client.converters if "Numpy" not in type(c).__name__]
