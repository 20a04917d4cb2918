"""Starts Spark's Java with the command line that Spark's launcher made up for an earlier start.

The launcher is a shell script and a Java of its own, and the class that it names reads all options
once more: half a second of processor time at every start. What it adds to our own options depends
on Java and Spark's jars alone, since a local session starts without settings that only the launcher
reads (`environment.own_environ`). The first session asks it, and writes down what came of it.
Source: Spark, bin/spark-class, SparkSubmitCommandBuilder, PythonGatewayServer.
"""

import json
import os
import signal
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, NamedTuple

from cleaner_jobs.spark.class_archive import (
    archive_path,
    forget_older,
    java_path,
    kept_file,
    spark_home,
)

MAIN_CLASS = "org.apache.spark.api.python.PythonGatewayServer"  # as for spark-submit pyspark-shell
CONNECTION_VARIABLE = "_PYSPARK_DRIVER_CONN_INFO_PATH"
LOOK_SECONDS = 0.01  # between two looks whether Java listens

MAX_WORD_BYTES = 100_000  # of one word of a command line; Linux takes 131,071


class Launch(NamedTuple):
    """What the launcher adds to our options."""

    class_path: str
    options: tuple[str, ...]


class StartedJava(NamedTuple):
    """A Java that listens. It ends when its standard input does."""

    process: "subprocess.Popen[bytes]"
    port: int
    secret: str


class JavaEndedError(OSError):
    """Java ended before it listened."""


def launch_path(environ: Mapping[str, str]) -> Path:
    """The file for the Java and the jars of environ, whether it is there or not."""
    return kept_file(environ, "launch", spark_home(environ) / "jars", [str(archive_path(environ))])


def kept_launch(environ: Mapping[str, str]) -> Launch | None:
    """What an earlier session wrote down, if it may be used."""
    try:
        match json.loads(launch_path(environ).read_text("utf-8")):
            case [str(class_path), [*options]] if all(isinstance(word, str) for word in options):
                return Launch(class_path, tuple(options))
    except (OSError, ValueError):
        pass
    return None  # there is none, or it cannot be read: the launcher knows it, too


def keep_launch(environ: Mapping[str, str], launch: Launch) -> None:
    """Write it down for later sessions. OSError where that fails."""
    if len(launch.class_path) > MAX_WORD_BYTES:
        return
    path = launch_path(environ)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(launch), "utf-8")
    temporary.replace(path)
    forget_older(path)


def start_java(
    launch: Launch,
    options: Sequence[str],
    environ: Mapping[str, str],
    log: IO[bytes],
    own_directory: str,
) -> StartedJava:
    """Start Java, and wait until it listens. JavaEndedError where it ends before.

    options: ours, before those of the launch. own_directory: removed some time if we are killed.
    """
    # for this user alone
    with TemporaryDirectory(prefix="connection-", dir=own_directory) as directory:
        told = Path(directory) / "connection"
        words = [*options, "-cp", launch.class_path, *launch.options, MAIN_CLASS]
        process = subprocess.Popen(
            [str(java_path(environ)), *words],
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
        while not told.exists():  # Java moves it there whole
            if process.poll() is not None:
                raise JavaEndedError("Java ended before it listened")
            time.sleep(LOOK_SECONDS)
        port, secret = _connection(told.read_bytes())
    return StartedJava(process, port, secret)


def _ignore_interrupts() -> None:
    """In the child: Ctrl-C is for the driver, which ends Java when it is ready to."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _connection(data: bytes) -> tuple[int, str]:
    """Source: PythonGatewayServer: two integers, the second one the length of what follows it."""
    port, length = struct.unpack_from(">ii", data)
    return port, data[8 : 8 + length].decode()
