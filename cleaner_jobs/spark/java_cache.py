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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from importlib.util import find_spec
from shutil import which
from typing import NamedTuple

from storage.files.local import LOCAL
from storage.user_home import home_of

CACHE_FOLDER = "log-compactor"
MAKER_MODULE = "cleaner_jobs.spark.class_archive_job"
MAKING_SECONDS = 180
SUBMITTED_VARIABLE = "PYSPARK_GATEWAY_PORT"  # set by spark-submit for the Python that it starts


def cache_dir(environ: Mapping[str, str]) -> str:
    """Return the user's folder for what can be made again."""
    base = environ.get("XDG_CACHE_HOME") or os.path.join(home_of(environ), ".cache")
    return os.path.join(base, CACHE_FOLDER)


def archive_path(environ: Mapping[str, str]) -> str:
    """Return the archive for the Java that JAVA_HOME or PATH name, whether it is there or not.

    environ: the one that Spark is started in (`environment.own_environ`).
    """
    jars = os.path.join(spark_home(environ), "jars")
    state = [_identity(java_path(environ)), _identity(jars), environ.get("SPARK_CONF_DIR", "")]
    return kept_file(environ, "spark", jars, state, ".jsa")


def can_be_made(environ: Mapping[str, str]) -> bool:
    """Return whether Java has its own class archive, which ours extends."""
    home = os.path.dirname(os.path.dirname(LOCAL.resolve(java_path(environ))))
    return is_kept(os.path.join(home, "lib", "server", "classes.jsa"))


def kept_file(
    environ: Mapping[str, str], kind: str, owner: str, state: Sequence[str], suffix: str = ""
) -> str:
    """Name a file of the cache after the folder that it belongs to and what it depends on."""
    names = (sha256(text.encode()).hexdigest()[:12] for text in (owner, "\n".join(state)))
    return os.path.join(cache_dir(environ), f"{kind}-{'-'.join(names)}{suffix}")


def is_kept(path: str) -> bool:
    """Return whether a file of the cache is there; not if the cache cannot be read."""
    try:
        return LOCAL.exists(path)
    except OSError:
        return False


def forget(path: str) -> None:
    """Remove a file, if it is there."""
    with suppress(FileNotFoundError):
        LOCAL.remove(path)


def forget_older(kept: str) -> None:
    """Remove what the cache has of the same folder in an earlier state."""
    directory, name = os.path.split(kept)
    owner = name.rpartition("-")[0]
    _, names = LOCAL.list_names(directory)
    for other in names:
        if other != name and other.startswith(f"{owner}-"):
            forget(os.path.join(directory, other))


def text_of(path: str) -> str | None:
    """Return the text of a file of this machine, be it by a link; None where it cannot be read."""
    try:
        with LOCAL.open_named(path) as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return None


@contextmanager
def temporary_directory(prefix: str, parent: str | None = None) -> Iterator[str]:
    """Make a directory for this user alone, and remove it at the end."""
    path = LOCAL.make_temporary_directory(prefix, parent)
    try:
        yield path
    finally:
        LOCAL.discard_directory(path)


def spark_home(environ: Mapping[str, str]) -> str:
    """Return where Spark's jars are: SPARK_HOME, or else the pyspark package."""
    if environ.get("SPARK_HOME"):
        return environ["SPARK_HOME"]
    package = find_spec("pyspark")
    assert package and package.origin, "pyspark is a dependency of this project"
    return os.path.dirname(package.origin)


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
