"""The command line that Spark's launcher made up for an earlier start, to start Java without it.

The launcher is a shell script and a Java of its own, and the class that it names reads all options
once more: half a second of processor time at every start. What it adds to our own options depends
on Java and Spark's jars alone, since a local session starts without settings that only the launcher
reads (`environment.own_environ`). The first session asks it, and writes down what came of it.
Source: Spark, bin/spark-class, SparkSubmitCommandBuilder, PythonGatewayServer.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from cleaner_jobs.spark.class_archive import (
    archive_path,
    forget_older,
    java_path,
    kept_file,
    spark_home,
)

MAIN_CLASS = "org.apache.spark.api.python.PythonGatewayServer"  # as for spark-submit pyspark-shell

MAX_WORD_BYTES = 100_000  # of one word of a command line; Linux takes 131,071


class Launch(NamedTuple):
    """What the launcher adds to our options."""

    class_path: str
    options: tuple[str, ...]


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


def command(launch: Launch, options: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """The command line of a Java. options: ours, before those of the launch."""
    words = [*options, "-cp", launch.class_path, *launch.options, MAIN_CLASS]
    return [str(java_path(environ)), *words]
