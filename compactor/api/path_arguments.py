"""Directories of a command, checked: where it works, and where it puts its own files.

What is impossible is refused by the name that the command line has for it. Nothing is created or
changed here. Every refusal is a UsageError, but for a log directory on a backend without a stated
promise, and for one that `directory_state` forbids to change.

Nothing of ours goes into a log directory: a directory there that is not named like a partition ends
a broker that starts (log-format F-1.4). Temporary files, Spark's and our own, go where TMPDIR says;
Spark's blocks where SPARK_LOCAL_DIRS does, or the spark.local.dir of a Spark that is not started
here; compiled kernels and Java's classes to the user's cache directory, which may be that of a user
whose home is the log directory.
"""

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence

from cleaner_jobs.spark.callers_session import LOCAL_DIR
from compactor.api.arguments import Paths, path_texts
from compactor.command_context import current_context
from compactor.host.suggestions import above, below, near_path
from compactor.log_dirs.directory_state import require_may_change
from compactor.originals.kept_manifest import DISCARDED_FILE, RUN_FILE
from compactor.outcome.exit_codes import UsageError
from storage.arguments import PathArg
from storage.file_names import LOG, offset_of, parse_partition_dir
from storage.files.backends import require_in_place
from storage.files.filesystem import exists, is_directory
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.meta_properties import META_PROPERTIES
from storage.formats.partition_metadata import PARTITION_METADATA
from storage.user_home import home_of

_PARTITION_FILES = (LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA)
_TEMPORARY = ("TMPDIR", "TEMP", "TMP")  # in the order in which Python's tempfile looks
_CACHES = ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR")
# Spark asks them before spark.local.dir; with what stands between two directories (Utils.scala,
# getConfiguredLocalDirs).
_SPARK = {"SPARK_EXECUTOR_DIRS": os.pathsep, "SPARK_LOCAL_DIRS": ","}
PROBLEM = "a broker that starts there would fail"


def log_dirs(paths: Paths, to_write: bool) -> tuple[str, ...]:
    """Check the log directories that a command is about, and return their local paths.

    Each is one that this user may work in, and none holds a directory for the command's own files.
    """
    given = path_texts(paths)
    if not given:
        raise UsageError("LOG_DIR: none was given")
    try:
        found = other_log_dirs(given, to_write)
    except BaseException:
        current_context().note_log_dirs(given)  # as they were given
        raise
    current_context().note_log_dirs(found)
    return found


def other_log_dirs(paths: Paths, to_write: bool, name: str = "LOG_DIR") -> tuple[str, ...]:
    """Check log directories that a command is not about, such as a copy.

    name: of the argument, for the message.
    """
    found = tuple(in_place(name, path) for path in path_texts(paths))
    for path in found:
        _check_log_dir(path, to_write, name)
    by_place: dict[tuple[int, int], str] = {}
    for path in found:
        place = os.stat(path)  # not by name: links, and mounts of one directory at two places
        first = by_place.setdefault((place.st_dev, place.st_ino), path)
        if first is not path:
            raise UsageError(f"{name} {path}: given twice (also as {first})")
    require_elsewhere(os.environ, found)
    return found


def require_another(name: str, path: PathArg, log_dir: str) -> None:
    """Raise UsageError where a path is the log directory, be it by a link or another mount."""
    if os.path.samefile(require_in_place(os.fspath(path)), log_dir):
        raise UsageError(f"{name} {os.fspath(path)}: is LOG_DIR itself")


def in_place(name: str, path: PathArg) -> str:
    """The local path of an argument. An empty one would mean the current directory.

    Raise UsageError if it is empty, and what `require_in_place` raises.
    """
    text = os.fspath(path)
    if not text.strip():
        raise UsageError(f"{name} {text!r}: is empty; is a variable of the shell not set?")
    local = require_in_place(text)
    try:
        os.lstat(local)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise UsageError(f"{name} {text}: {error.strerror}") from error
    return local


def require_writable(name: str, path: str) -> None:
    """Raise UsageError where a file cannot be written."""
    folder = os.path.dirname(os.path.abspath(path))
    if is_directory(path):
        raise UsageError(f"{name} {path}: is a directory")
    if not is_directory(folder):
        raise UsageError(f"{name} {path}: there is no directory {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{name} {path}: no permission to write in {folder}")


def work_dir(path: str | None, in_log_dirs: Sequence[str]) -> str | None:
    """A directory for the run's own files, never in a log directory (F-1.4)."""
    if path is None:
        return None
    if "://" in path and not path.startswith("file://"):
        raise UsageError(f"--work-dir {path}: expected a path that driver and executors all reach")
    return _own_directory("--work-dir", path, in_log_dirs)


def keep_originals(path: str | None, in_log_dirs: Sequence[str]) -> str | None:
    """A directory for what a run replaces; never in a log directory either."""
    return None if path is None else _own_directory("--keep-originals", path, in_log_dirs)


def kept_run(path: PathArg, to_discard: bool = False) -> str:
    """The directory in which a run has kept its originals. to_discard: that may have begun."""
    path = os.fspath(path)
    local = in_place("RUN_DIR", path)
    try:
        names = os.listdir(local)
    except OSError as error:
        hint = near_path(path) if isinstance(error, FileNotFoundError) else ""
        raise UsageError(f"RUN_DIR {path}: {error.strerror}{hint}") from error
    if RUN_FILE not in names and not (to_discard and DISCARDED_FILE in names):
        hint = below(path, _is_kept_run)
        own = "give the directory of one run, which has its RUN_ID for a name"
        problem = f"no {RUN_FILE} in it; {own}{hint}"
        raise UsageError(f"RUN_DIR {path}: {problem}")
    return local


def _is_kept_run(path: str) -> bool:
    return is_directory(path) and exists(os.path.join(path, RUN_FILE))


def _own_directory(option: str, path: str, in_log_dirs: Sequence[str]) -> str:
    local = in_place(option, path)
    if exists(local) and not is_directory(local):
        raise UsageError(f"{option} {path}: is not a directory")
    found = log_dir_around(local, in_log_dirs)
    if found is not None:
        raise UsageError(f"{option} {path}: inside of log directory {found}; {PROBLEM}")
    existing = _nearest_existing(local)
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UsageError(f"{option} {path}: no permission to write in {existing}")
    return local


def _check_log_dir(path: str, to_write: bool, name: str) -> None:
    try:
        with os.scandir(path) as entries:
            names = [entry.name for entry in entries]
    except OSError as error:
        hint = near_path(path) if isinstance(error, FileNotFoundError) else above(path, is_log_dir)
        raise UsageError(f"{name} {path}: {error.strerror}{hint}") from error
    if not os.access(path, os.X_OK):
        raise UsageError(f"{name} {path}: Permission denied")
    if not _has_logs(path, names):
        raise UsageError(f"{name} {path}: {_why_not_log_dir(path, names)}")
    if to_write and not os.access(path, os.W_OK | os.X_OK):
        problem = "no permission to write; --dry-run and plan only read"
        raise UsageError(f"{name} {path}: {problem}")
    if to_write:
        require_may_change(path)


def is_log_dir(path: str) -> bool:
    """Whether a broker, or somebody who copied logs, has used it as one."""
    try:
        names = os.listdir(path)
    except OSError:
        return False
    return _has_logs(path, names)


def _has_logs(path: str, names: Sequence[str]) -> bool:
    return META_PROPERTIES in names or any(_is_partition(path, name) for name in names)


def _is_partition(path: str, name: str) -> bool:
    """Whether a name is a partition's, and something in it is a log's: `/etc` has `X11-6` too."""
    if parse_partition_dir(name) is None:
        return False
    try:
        with os.scandir(os.path.join(path, name)) as entries:
            return any(_is_of_log(entry.name) for entry in entries)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return False


def _is_of_log(name: str) -> bool:
    return name in _PARTITION_FILES or (name.endswith(LOG) and offset_of(name) is not None)


def _why_not_log_dir(path: str, names: list[str]) -> str:
    if any(name.endswith(LOG) for name in names) and parse_partition_dir(os.path.basename(path)):
        return f"is a partition directory; give the log directory, {os.path.dirname(path)}"
    hint = below(path, is_log_dir) or above(path, is_log_dir)
    missing = f"no {META_PROPERTIES}, and nothing named TOPIC-PARTITION in it"
    return f"not a log directory: {missing}{hint}"


def _nearest_existing(path: str) -> str:
    while not exists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def require_elsewhere(environ: Mapping[str, str], log_dirs: Sequence[str]) -> None:
    """Raise UsageError, by the name of the variable, where one of them leads to a log directory."""
    for name, path in _own_places(environ):
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


def _own_places(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
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
