"""Where a command may leave something beside what it is told to write: never in a log directory.

A directory there that is not named like a partition ends a broker that starts (log-format F-1.4).
Temporary files, Spark's and our own, go where TMPDIR says; compiled kernels and Java's classes to
the user's cache directory, which may be that of a user whose home is the log directory.
"""

import os
from collections.abc import Mapping, Sequence

from compactor.exit_codes import UsageError

_TEMPORARY = ("TMPDIR", "TEMP", "TMP")  # in the order in which Python's tempfile looks
_CACHES = ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR")
PROBLEM = "a broker that starts there would fail"


def require_elsewhere(environ: Mapping[str, str], log_dirs: Sequence[str]) -> None:
    """Raise UsageError, by the name of the variable, where one of them leads to a log directory."""
    places = {name: environ[name] for name in (*_TEMPORARY, *_CACHES) if environ.get(name)}
    if "XDG_CACHE_HOME" not in places:
        home = environ.get("HOME") or os.path.expanduser("~")
        places["XDG_CACHE_HOME is not set: the cache directory"] = os.path.join(home, ".cache")
    for name, path in places.items():
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
