"""Java for a session, started here and connected to by pyspark, and the early daemon beside it.

The first session of a machine goes through Spark's launcher, and so does one with options that are
not ours; the others start Java with what the launcher added then.
"""

import os
import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from pyspark.java_gateway import launch_gateway

from cleaner_jobs.spark import early_daemon
from cleaner_jobs.spark.class_archive import SUBMITTED_VARIABLE, spark_home
from cleaner_jobs.spark.early_daemon import SOCKET_VARIABLE, EarlyDaemon
from cleaner_jobs.spark.first_use import FEWEST_CORES, cores
from cleaner_jobs.spark.kept_launch import Launch, command, keep_launch, kept_launch
from cleaner_jobs.spark.started_java import StartedJava, Waiting, end_java, start_java

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
DRIVER_MEMORY = "spark.driver.memory"
UNIX_SOCKETS_DIR = "spark.python.unix.domain.socket.dir"


def start_gateway(
    options: Mapping[str, str], source: str, log: IO[bytes], by_launcher: bool, waiting: Waiting
) -> Any:  # untyped in pyspark, as py4j is
    """Start Java for the options of a session; what pyspark calls it by.

    source: where this package is. by_launcher: ask Spark's launcher in any case.
    """
    launch = None if by_launcher else kept_launch(os.environ)
    if launch is not None:
        return _started(launch, options, source, log, waiting)
    gateway = _connected(start_java(_launcher_command(options), os.environ, log, waiting))
    gateway.early_daemon = None
    if not by_launcher:
        with suppress(OSError):  # then the next session asks again
            keep_launch(os.environ, _launch_of(gateway))
    return gateway


def _launcher_command(options: Mapping[str, str]) -> list[str]:
    """Source: pyspark, launch_gateway, which would wait for ever for a Java that cannot write."""
    given = [word for name, value in options.items() for word in ("--conf", f"{name}={value}")]
    submit = spark_home(os.environ) / "bin" / "spark-submit"
    asked = os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    return [str(submit), *given, *shlex.split(asked)]


def end_early_daemon(gateway: Any) -> None:
    """After Java, whose daemon it may be."""
    daemon: EarlyDaemon | None = gateway.early_daemon  # py4j makes something up of what is not set
    if daemon is not None:
        daemon.end()


def _started(
    launch: Launch, options: Mapping[str, str], source: str, log: IO[bytes], waiting: Waiting
) -> Any:
    """Without the launcher: Java alone, to which pyspark connects as under spark-submit."""
    ours = [f"-Xmx{options[DRIVER_MEMORY]}", *shlex.split(options[JAVA_OPTIONS])]
    environ, daemon = dict(os.environ), _early_daemon(options, source, log)
    if daemon is not None:
        environ[SOCKET_VARIABLE] = str(daemon.socket_path)
    try:
        gateway = _connected(start_java(command(launch, ours, environ), environ, log, waiting))
    except BaseException:
        if daemon is not None:
            daemon.end()
        raise
    gateway.early_daemon = daemon
    return gateway


def _early_daemon(options: Mapping[str, str], source: str, log: IO[bytes]) -> EarlyDaemon | None:
    """None where its socket has no place, or where it would have no core to itself."""
    directory = options.get(UNIX_SOCKETS_DIR)
    is_ours = os.environ["PYSPARK_PYTHON"] == sys.executable
    if directory is None or not is_ours or cores() < FEWEST_CORES:
        return None
    return early_daemon.start(Path(directory), source, os.environ, log)


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
    """What the launcher has added to our options, as the Java knows that came of it."""
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
