"""The class archive of Spark's Java: its classes parsed and checked once, then mapped from a file.

It halves the processor time of a start. It fits one Java and one set of jars only, so its name
has both, and Java ignores one that does not fit. It lies on top of the archive that a Java
brings of its own classes; a trimmed one brings none. Source: JEP 350.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from storage.user_home import home_of

CACHE_FOLDER = "log-compactor"
MAKER_MODULE = "cleaner_jobs.spark.class_archive_job"
MAKING_SECONDS = 180
SUBMITTED_VARIABLE = "PYSPARK_GATEWAY_PORT"  # set by spark-submit for the Python that it starts


def cache_dir(environ: Mapping[str, str]) -> Path:
    """The user's folder for what can be made again."""
    base = environ.get("XDG_CACHE_HOME") or Path(home_of(environ)) / ".cache"
    return Path(base) / CACHE_FOLDER


def archive_path(environ: Mapping[str, str]) -> Path:
    """The archive for the Java that JAVA_HOME or PATH name, whether it is there or not.

    environ: the one that Spark is started in (`environment.own_environ`).
    """
    jars = spark_home(environ) / "jars"
    state = [_identity(java_path(environ)), _identity(jars), environ.get("SPARK_CONF_DIR", "")]
    return kept_file(environ, "spark", jars, state, ".jsa")


def can_be_made(environ: Mapping[str, str]) -> bool:
    """Whether Java brings the archive that ours lies on."""
    home = java_path(environ).resolve().parent.parent
    return is_kept(home / "lib" / "server" / "classes.jsa")


def kept_file(
    environ: Mapping[str, str], kind: str, owner: Path, state: Sequence[str], suffix: str = ""
) -> Path:
    """Name a file of the cache after the folder that it belongs to and what it depends on."""
    names = (sha256(text.encode()).hexdigest()[:12] for text in (str(owner), "\n".join(state)))
    return cache_dir(environ) / f"{kind}-{'-'.join(names)}{suffix}"


def is_kept(path: Path) -> bool:
    """Whether a file of the cache is there; not if the cache cannot be read."""
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
    """Where Spark's jars are: SPARK_HOME, or else the pyspark package."""
    if environ.get("SPARK_HOME"):
        return Path(environ["SPARK_HOME"])
    package = find_spec("pyspark")
    assert package and package.origin, "pyspark is a dependency of this project"
    return Path(package.origin).parent


def java_path(environ: Mapping[str, str]) -> Path:
    """The Java that JAVA_HOME names, or else the one in PATH."""
    home = environ.get("JAVA_HOME")
    return Path(home) / "bin" / "java" if home else Path(which("java") or "java")


def _identity(path: Path) -> str:
    try:
        real = path.resolve(strict=True)
        return f"{real} {real.stat().st_mtime_ns}"
    except OSError:
        return str(path)
