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
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import NamedTuple

from storage.user_home import home_of

CACHE_FOLDER = "log-compactor"
MAKER_MODULE = "cleaner_jobs.spark.class_archive_job"
MAKING_SECONDS = 180
SUBMITTED_VARIABLE = "PYSPARK_GATEWAY_PORT"  # set by spark-submit for the Python that it starts


def cache_dir(environ: Mapping[str, str]) -> Path:
    """Return the user's folder for what can be made again."""
    base = environ.get("XDG_CACHE_HOME") or Path(home_of(environ)) / ".cache"
    return Path(base) / CACHE_FOLDER


def archive_path(environ: Mapping[str, str]) -> Path:
    """Return the archive for the Java that JAVA_HOME or PATH name, whether it is there or not.

    environ: the one that Spark is started in (`environment.own_environ`).
    """
    jars = spark_home(environ) / "jars"
    state = [_identity(java_path(environ)), _identity(jars), environ.get("SPARK_CONF_DIR", "")]
    return kept_file(environ, "spark", jars, state, ".jsa")


def can_be_made(environ: Mapping[str, str]) -> bool:
    """Return whether Java has its own class archive, which ours extends."""
    home = java_path(environ).resolve().parent.parent
    return is_kept(home / "lib" / "server" / "classes.jsa")


def kept_file(
    environ: Mapping[str, str], kind: str, owner: Path, state: Sequence[str], suffix: str = ""
) -> Path:
    """Name a file of the cache after the folder that it belongs to and what it depends on."""
    names = (sha256(text.encode()).hexdigest()[:12] for text in (str(owner), "\n".join(state)))
    return cache_dir(environ) / f"{kind}-{'-'.join(names)}{suffix}"


def is_kept(path: Path) -> bool:
    """Return whether a file of the cache is there; not if the cache cannot be read."""
    try:
        return path.exists()
    except OSError:
        return False


def forget_older(kept: Path) -> None:
    """Remove what the cache has of the same folder in an earlier state."""
    owner = kept.name.rpartition("-")[0]
    for other in kept.parent.glob(f"{owner}-*"):
        if other != kept:
            other.unlink(missing_ok=True)


def spark_home(environ: Mapping[str, str]) -> Path:
    """Return where Spark's jars are: SPARK_HOME, or else the pyspark package."""
    if environ.get("SPARK_HOME"):
        return Path(environ["SPARK_HOME"])
    package = find_spec("pyspark")
    assert package and package.origin, "pyspark is a dependency of this project"
    return Path(package.origin).parent


def java_path(environ: Mapping[str, str]) -> Path:
    """Return the Java that JAVA_HOME names, or else the one in PATH."""
    home = environ.get("JAVA_HOME")
    return Path(home) / "bin" / "java" if home else Path(which("java") or "java")


def _identity(path: Path) -> str:
    try:
        real = path.resolve(strict=True)
        return f"{real} {real.stat().st_mtime_ns}"
    except OSError:
        return str(path)


MAIN_CLASS = "org.apache.spark.api.python.PythonGatewayServer"  # as for spark-submit pyspark-shell

MAX_WORD_BYTES = 100_000  # of one word of a command line; Linux takes 131,071


class Launch(NamedTuple):
    """What the launcher adds to our options."""

    class_path: str
    options: tuple[str, ...]


def launch_path(environ: Mapping[str, str]) -> Path:
    """Return the file for the Java and the jars of environ, whether it is there or not."""
    return kept_file(environ, "launch", spark_home(environ) / "jars", [str(archive_path(environ))])


def read_launch(environ: Mapping[str, str]) -> Launch | None:
    """Return what an earlier session wrote down, if it may be used."""
    try:
        match json.loads(launch_path(environ).read_text("utf-8")):
            case [str(class_path), [*options]] if all(isinstance(word, str) for word in options):
                return Launch(class_path, tuple(options))
    except (OSError, ValueError):
        pass
    return None  # there is none, or it cannot be read: the launcher knows it, too


def save_launch(environ: Mapping[str, str], launch: Launch) -> None:
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
    """Return the command line of a Java. options: ours, before those of the launch."""
    words = [*options, "-cp", launch.class_path, *launch.options, MAIN_CLASS]
    return [str(java_path(environ)), *words]
