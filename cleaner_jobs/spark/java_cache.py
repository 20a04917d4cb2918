"""Files in the user's cache that make a start of Spark's Java faster.

*The class archive*: Spark's classes, parsed and checked once, then mapped from a file. It halves
the processor time of a start. It fits one Java and one set of jars only, so its name has both, and
Java ignores one that does not fit. It extends the archive that a Java brings of its own classes; a
trimmed Java brings none. Source: JEP 350.

*The command line* that Spark's launcher made for an earlier start. The launcher is a shell script
and a Java of its own, and the class that it names reads all options once more: half a second of
processor time at every start. What it adds to our options depends on Java and Spark's jars alone,
since a local session starts without settings that only the launcher reads
(`environment.own_environ`). Source: Spark, bin/spark-class, SparkSubmitCommandBuilder,
PythonGatewayServer.
"""

import json
import os
from collections.abc import Mapping, Sequence
from shutil import which
from signal import SIGINT
from typing import NamedTuple

from cleaner_jobs.first_use import ToMake, kernels_to_make, log_of
from cleaner_jobs.machine_size import cores
from cleaner_jobs.spark.environment import SUBMITTED_VARIABLE, own_environ, spark_home
from cleaner_jobs.user_cache import forget_older, is_kept, kept_file, text_of
from storage.files.local import LOCAL

MAKER_MODULE = "cleaner_jobs.spark.class_archive_job"
MAKING_SECONDS = 180
FEWEST_CORES = 2  # on one core, making the archive would lengthen the first run instead


def archive_path(environ: Mapping[str, str]) -> str:
    """Return the archive for the Java that JAVA_HOME or PATH name, whether it is there or not.

    environ: the one that Spark is started in (`environment.own_environ`).
    """
    jars = os.path.join(spark_home(environ), "jars")
    state = [_identity(java_path(environ)), _identity(jars), environ.get("SPARK_CONF_DIR", "")]
    return kept_file(environ, "spark", jars, state, ".jsa")


def to_make(environ: Mapping[str, str]) -> list[ToMake]:
    """Return what a local Spark needs and this machine has not: kernels, and the class archive."""
    return [*kernels_to_make(environ), *archive_to_make(environ)]


def archive_to_make(environ: Mapping[str, str]) -> list[ToMake]:
    """Return the class archive, unless it is there, cannot be made, or would not pay.

    environ: JAVA_HOME in it names the Java to be used, if it is not the one in PATH.
    """
    if SUBMITTED_VARIABLE in environ or cores() < FEWEST_CORES or not can_be_made(environ):
        return []  # of spark-submit, Java is there already
    archive = archive_path(own_environ(environ, local=True))
    log_path = log_of(archive)
    if LOCAL.exists(archive) or LOCAL.exists(log_path):
        return []
    return [
        ToMake(
            what="archiving Java classes",
            module=MAKER_MODULE,
            log_path=log_path,
            without="no archive of Java classes was made, so each start takes longer",
            ended_by=SIGINT,
            seconds=MAKING_SECONDS,
        )
    ]


def can_be_made(environ: Mapping[str, str]) -> bool:
    """Return whether Java has its own class archive, which ours extends."""
    home = os.path.dirname(os.path.dirname(LOCAL.resolve(java_path(environ))))
    return is_kept(os.path.join(home, "lib", "server", "classes.jsa"))


def java_path(environ: Mapping[str, str]) -> str:
    """Return the Java that JAVA_HOME names, or else the one in PATH."""
    home = environ.get("JAVA_HOME")
    return os.path.join(home, "bin", "java") if home else which("java") or "java"


def _identity(path: str) -> str:
    try:
        return f"{LOCAL.resolve(path)} {LOCAL.status(path).st_mtime_ns}"
    except OSError:
        return path


MAIN_CLASS = "org.apache.spark.api.python.PythonGatewayServer"  # as for spark-submit pyspark-shell

MAX_WORD_BYTES = 100_000  # of one word of a command line; Linux takes 131,071


class Launch(NamedTuple):
    """What the launcher adds to our options."""

    class_path: str
    options: tuple[str, ...]


def launch_path(environ: Mapping[str, str]) -> str:
    """Return the file for the Java and the jars of environ, whether it is there or not."""
    jars = os.path.join(spark_home(environ), "jars")
    return kept_file(environ, "launch", jars, [archive_path(environ)])


def read_launch(environ: Mapping[str, str]) -> Launch | None:
    """Return what an earlier session wrote down, if it may be used."""
    try:
        match json.loads(text_of(launch_path(environ)) or ""):
            case [str(class_path), [*options]] if all(isinstance(word, str) for word in options):
                return Launch(class_path, tuple(options))
    except ValueError:
        pass
    return None  # there is none, or it cannot be read: the launcher knows it, too


def save_launch(environ: Mapping[str, str], launch: Launch) -> None:
    """Write it down for later sessions. OSError where that fails."""
    if len(launch.class_path) > MAX_WORD_BYTES:
        return
    path = launch_path(environ)
    LOCAL.make_directories(os.path.dirname(path))
    LOCAL.replace_file(path, json.dumps(launch).encode())
    forget_older(path)


def command(launch: Launch, options: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Return the command line of a Java. options: ours, before those of the launch."""
    words = [*options, "-cp", launch.class_path, *launch.options, MAIN_CLASS]
    return [java_path(environ), *words]
