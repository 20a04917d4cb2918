"""Where a command may leave something beside what it is asked to write: never in a log directory.

A directory there that is not named like a partition ends a broker that starts (log-format F-1.4).
Temporary files, Spark's and our own, go where TMPDIR says; Spark's blocks where SPARK_LOCAL_DIRS
does, or the spark.local.dir of a Spark that is not started here; compiled kernels and Java's
classes to the user's cache directory, which may be that of a user whose home is the log directory.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence

from cleaner_jobs.spark.local_dirs import LOCAL_DIR
from compactor.exit_codes import UsageError
from storage.user_home import home_of

_TEMPORARY = ("TMPDIR", "TEMP", "TMP")  # in the order in which Python's tempfile looks
_CACHES = ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR")
# Spark asks them before spark.local.dir; with what stands between two directories (Utils.scala,
# getConfiguredLocalDirs).
_SPARK = {"SPARK_EXECUTOR_DIRS": os.pathsep, "SPARK_LOCAL_DIRS": ","}
PROBLEM = "a broker that starts there would fail"


def require_elsewhere(environ: Mapping[str, str], log_dirs: Sequence[str]) -> None:
    """Raise UsageError, by the name of the variable, where one of them leads to a log directory."""
    for name, path in _places(environ):
        _require_elsewhere(name, path, log_dirs)


def require_temporary_elsewhere(log_dirs: Sequence[str]) -> None:
    """For what makes temporary directories, or starts Spark, whose gateway does.

    Where neither a variable nor /tmp and its like name a directory that takes a byte, they are
    made in the current one.
    """
    with contextlib.suppress(FileNotFoundError):  # nor does that: who needs one will say so
        name = "TMPDIR names no directory to write in: the temporary directory"
        _require_elsewhere(name, tempfile.gettempdir(), log_dirs)


def require_blocks_elsewhere(local_dirs: Sequence[str], log_dirs: Sequence[str]) -> None:
    """local_dirs: what a Spark that is not started here was given for its blocks."""
    for path in local_dirs:
        _require_elsewhere(LOCAL_DIR, path, log_dirs)


def _places(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in (*_TEMPORARY, *_CACHES):
        if environ.get(name):
            yield name, environ[name]
    if not environ.get("XDG_CACHE_HOME"):
        cache = os.path.join(home_of(environ), ".cache")
        yield "XDG_CACHE_HOME is not set: the cache directory", cache
    for name, separator in _SPARK.items():
        for path in filter(None, environ.get(name, "").split(separator)):
            yield name, path


def _require_elsewhere(name: str, path: str, log_dirs: Sequence[str]) -> None:
    found = log_dir_around(path, log_dirs)
    if found is not None:
        raise UsageError(f"{name} {path}: inside of log directory {found}; {PROBLEM}")


def log_dir_around(path: str, log_dirs: Sequence[str]) -> str | None:
    """The one of the log directories in which a path is, links followed; or which it is."""
    real = os.path.realpath(path)
    for log_dir in log_dirs:
        around = os.path.realpath(log_dir)
        if os.path.commonpath([real, around]) == around:
            return log_dir
    return None
