"""What this machine gives a command: open files, a temporary directory, users, compiled kernels.

Java has each of Spark's jars open, some 300. Where it meets the limit of open files, it reports
something else: a missing logging provider, a calendar that cannot be read. So the limit
(`ulimit -n`) is raised as far as it may be, and then checked. A container may have no directory
for temporary files.
"""

import contextlib
import os
import pwd
import resource
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache

from compactor.errors import CleaningFailedError, RefusedError
from compactor.reason_codes import ReasonCode
from storage.files.local import LOCAL

MIN_OPEN_FILES = 1024  # with 300 a session of two cores did not start, with 400 it did


def raise_open_file_limit() -> None:
    """Raise the limit of open files to the hard one, where that is allowed."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # then the limit is what it was
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def open_file_limit() -> int | None:
    """Return how many files may be open; None: any number."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def require_open_files() -> None:
    """Raise RefusedError where too few files may be open for Spark."""
    found = open_file_limit()
    if found is not None and found < MIN_OPEN_FILES:
        raise RefusedError(
            f"no more than {found:,} files may be open at once (ulimit -n), and a run with Spark "
            f"needs {MIN_OPEN_FILES:,}",
            ReasonCode.TOO_FEW_OPEN_FILES,
            remedy="Raise the hard limit where it is started: ulimit -n 4096 as root, "
            "LimitNOFILE=4096 in a unit of systemd, nofile in /etc/security/limits.conf. "
            "Nothing was changed",
        )


def user_name(number: int) -> str:
    """Return a user's name; without one, the number as `sudo -u` takes it: '#1001'."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"'#{number}'"


DISTRIBUTION = "log-compactor"


@cache
def version() -> str:
    """Return the version of this project; `unknown` where it is not installed."""
    from importlib import metadata  # only here: most commands do not say it

    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "unknown"


_VARIABLE = "NUMBA_DISABLE_JIT"
UNSET_IT = f"Unset {_VARIABLE}: it is for looking for faults in kernels."


def why_not_compiled(environ: Mapping[str, str]) -> str | None:
    """Return why kernels run as plain Python, without a full stop; None: they are compiled."""
    value = environ.get(_VARIABLE, "")
    if value.strip() in ("", "0"):
        return None
    return f"{_VARIABLE}={value}: no kernel is compiled, and all takes hundreds of times as long"


def temporary_directory() -> str:
    """Return the directory for temporary files. Raise CleaningFailedError without one."""
    try:
        return LOCAL.temporary_directory()
    except FileNotFoundError as error:
        raise CleaningFailedError(
            "no directory for temporary files can be written to: set TMPDIR to one that this user "
            "can write to, or give --work-dir"
        ) from error


@contextmanager
def temporary_files(instead: str) -> Iterator[None]:
    """Make temporary files in another directory for a block, where the machine has none."""
    try:
        LOCAL.temporary_directory()
    except FileNotFoundError:
        before = os.environ.get("TMPDIR")
        os.environ["TMPDIR"] = tempfile.tempdir = instead
        try:
            yield
        finally:
            tempfile.tempdir = None
            del os.environ["TMPDIR"]
            if before is not None:
                os.environ["TMPDIR"] = before
    else:
        yield
