"""This machine: its Python, memory, cores, clock, room for temporary files, open files.

Reads what the system says of itself, and writes nothing.
"""

import ctypes
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata

from cleaner_jobs.machine_size import cores, memory
from cleaner_jobs.spark.local_size import local_size, size_within
from cleaner_jobs.user_cache import cache_dir
from compactor.diagnosis.checks import Check, fail, ok, warn
from compactor.host import machine
from compactor.host.clock import now_ms
from compactor.host.machine import version
from compactor.host.printable import counted, iso_time, size_text
from compactor.reason_codes import error_text
from storage.files.local import LOCAL
from storage.user_home import (
    NOWHERE,
    HomeTakenError,
    has_name,
    home_of,
    is_stand_in,
    name_of_user,
)

PACKAGES = ("pyspark", "pyarrow", "numba", "numpy", "fsspec", "xxhash", "click", "rich")
FEWEST_TEMPORARY_BYTES = 1 << 30
_CLOCK_ERROR = 5  # TIME_ERROR of adjtimex: nothing keeps the clock right
_TIMEX_BYTES = 1024  # more than struct timex has anywhere


def machine_checks(environ: Mapping[str, str]) -> list[Check]:
    """Look at all of them, in the order in which they are shown."""
    return [
        _versions(),
        _packages(),
        _memory(),
        _user(environ),
        _open_files(),
        _temporary(),
        *_caches(environ),
        _clock(),
    ]


def _versions() -> Check:
    found = (
        f"compactor {version()}, Python {platform.python_version()}, {os.uname().sysname} "
        f"{platform.release()}, {platform.machine()}"
    )
    if sys.platform.startswith("linux"):
        return ok("system", found)
    return fail("system", found, "Run it on Linux: locks and syncs are only known there.")


def _packages() -> Check:
    absent, versions = [], []
    for name in PACKAGES:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            absent.append(name)
    if absent:
        return fail("packages", f"not installed: {', '.join(absent)}", "pip install log-compactor")
    return ok("packages", ", ".join(versions))


def _user(environ: Mapping[str, str]) -> Check:
    subject = "user"
    try:
        home = home_of(environ)
    except HomeTakenError as error:
        return fail(subject, str(error))
    if has_name():
        return ok(subject, f"{name_of_user()}, whose home is {home}")
    found = f"user {name_of_user()} has no name here (/etc/passwd), and its home is {home}"
    if home != NOWHERE and not is_stand_in(home):
        return ok(subject, found)
    return warn(
        subject,
        found,
        "Set HOME to a directory that this user can write to and that lasts: what the first run "
        "prepares is kept there.",
    )


def _memory() -> Check:
    subject = "memory and cores"
    there = memory()
    size = local_size(there)
    found = f"{counted(cores(), 'core')}, {size_text(there.free_bytes)} free"
    if there.limit is not None:
        found += f" of the {size_text(there.limit.value)} that {there.limit.group} allows"
    tasks = counted(size.tasks, "task")
    needs = f"a run needs up to {size_text(size.needed_bytes)}, {tasks} at once"
    if there.free_bytes >= size.needed_bytes:
        return ok(subject, f"{found}; {needs}")
    fewer = size_within(there.free_bytes, cores())
    if fewer.needed_bytes <= there.free_bytes:
        advice = f"Run with --master 'local[{fewer.tasks}]', or stop the broker first: its memory "
        return warn(subject, f"{found}; {needs}", f"{advice}counts.")
    least = size_text(fewer.needed_bytes)
    return warn(
        subject,
        f"{found}; {needs}",
        f"Give it {least} or more: with less the kernel may kill a process of the run.",
    )


def _open_files() -> Check:
    found = machine.open_file_limit()
    text = "any number of files may be open" if found is None else f"{found:,} may be open at once"
    if found is None or found >= machine.MIN_OPEN_FILES:
        return ok("open files", text)
    return fail(
        "open files",
        f"{text} (ulimit -n), and Spark needs {machine.MIN_OPEN_FILES:,}",
        "Raise the hard limit where it is started: ulimit -n 4096 as root, LimitNOFILE=4096 in a "
        "unit of systemd, nofile in /etc/security/limits.conf.",
    )


def _temporary() -> Check:
    try:
        directory = LOCAL.temporary_directory()
    except FileNotFoundError:
        return fail(
            "temporary files",
            "there is no directory for them that can be written to",
            "Set TMPDIR to one, or make room in /tmp.",
        )
    state = LOCAL.file_system_status(directory)
    free = state.f_bavail * state.f_frsize
    found = f"{directory}, {size_text(free)} free"
    if free >= FEWEST_TEMPORARY_BYTES:
        return ok("temporary files", found)
    return warn(
        "temporary files",
        found,
        "Set TMPDIR or --work-dir to a directory with more room: a run keeps an entry for each key "
        "of the logs there until it ends.",
    )


def _caches(environ: Mapping[str, str]) -> Iterator[Check]:
    """Check where a run keeps what makes the next start fast. No run fails without it."""
    named = environ.get("NUMBA_CACHE_DIR")
    if named:
        yield _cache("kernels' cache", named, "NUMBA_CACHE_DIR")
    try:
        yield _cache("cache", str(cache_dir(environ)), "HOME or XDG_CACHE_HOME")
    except HomeTakenError:
        return  # which the check of the user says


def _cache(subject: str, directory: str, variables: str) -> Check:
    problem = why_not_kept_in(directory)
    if problem is None:
        return ok(subject, directory)
    return warn(
        subject,
        problem,
        f"Set {variables} to a directory of this user with room: without what is kept there each "
        "start takes longer, up to half a minute.",
    )


def _exists(path: str) -> bool:
    try:
        return LOCAL.exists(path)
    except NotADirectoryError:
        return False


def why_not_kept_in(directory: str) -> str | None:
    """What keeps files from being made in a directory that may be yet to be made; None: nothing."""
    existing = os.path.abspath(directory)
    try:
        while not _exists(existing):
            existing = os.path.dirname(existing)
        if not LOCAL.is_directory(existing):
            return f"{existing} is no directory"
        state = LOCAL.file_system_status(existing)
    except OSError as error:
        return error_text(error)
    if state.f_flag & os.ST_RDONLY:
        return f"{existing} is on a read-only file system"
    if not LOCAL.is_permitted(existing, os.W_OK | os.X_OK):
        return f"no permission to write in {existing}"
    if state.f_bavail == 0:
        return f"no room on the file system of {existing}"
    if state.f_files and state.f_favail == 0:
        return f"no inode is free on the file system of {existing}"
    return None


def _clock() -> Check:
    time = iso_time(now_ms())
    if _is_kept_right():
        return ok("clock", f"{time}, kept right by a time server")
    return warn(
        "clock",
        f"{time}; this system does not say that a time server keeps it right",
        "Compare it with the brokers' (timedatectl): tombstones go by it. In a container, look at "
        "the host.",
    )


def _is_kept_right() -> bool:
    """What the kernel knows of it, asked without changing anything (adjtimex(2), modes 0)."""
    try:
        adjtimex = ctypes.CDLL(None).adjtimex
    except (OSError, AttributeError):
        return False
    state = int(adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES)))
    return 0 <= state < _CLOCK_ERROR
