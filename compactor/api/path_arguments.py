"""Checks the directories of a command: where it works, where it copies to, where its own files go.

This module creates and changes nothing. Every refusal is a UsageError, but for a log directory on a
backend without a stated promise, and for one that `directory_state` forbids to change.

No file of ours goes into a log directory: a directory in it that is not named like a partition ends
a broker that starts (log-format F-1.4). Temporary files, Spark's and our own, go to TMPDIR; Spark's
blocks to SPARK_LOCAL_DIRS, or to the spark.local.dir of a Spark that somebody else started;
compiled kernels and Java's classes to the user's cache directory, which lies in a log directory
where that is the user's home.
"""

import contextlib
import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from cleaner_jobs.spark.callers_session import LOCAL_DIR
from compactor.api.arguments import Paths, path_texts
from compactor.command_context import current_context
from compactor.errors import RefusedError, UsageError
from compactor.host.printable import counted
from compactor.host.shell_commands import tool
from compactor.host.suggestions import above, below, near_path
from compactor.log_dirs.directory_state import (
    MANIFEST,
    NO_BROKER,
    TEXT_FILE,
    UNFINISHED,
    require_may_change,
    require_whole,
)
from compactor.log_dirs.locked_log_dirs import require_free
from compactor.log_dirs.set_aside_memory import SET_ASIDE
from compactor.originals.kept_manifest import DISCARDED_FILE, RUN_FILE
from compactor.reason_codes import ReasonCode
from storage.arguments import PathArg
from storage.file_names import LOG, is_special_dir, offset_of, parse_partition_dir
from storage.files.backends import require_in_place
from storage.files.local import LOCAL
from storage.formats import checkpoint, clean_shutdown
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.meta_properties import META_PROPERTIES
from storage.formats.partition_metadata import PARTITION_METADATA
from storage.log.log_dir_lock import LOCK_FILE
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
        raise UsageError("none was given", "log_dirs")
    try:
        found = other_log_dirs(given, to_write)
    except BaseException:
        current_context().note_log_dirs(given)  # as they were given
        raise
    current_context().note_log_dirs(found)
    return found


def other_log_dirs(paths: Paths, to_write: bool, name: str = "log_dirs") -> tuple[str, ...]:
    """Check log directories that a command is not about, such as a copy.

    name: of the argument, for the message.
    """
    found = tuple(in_place(name, path) for path in path_texts(paths))
    for path in found:
        _check_log_dir(path, to_write, name)
    by_place: dict[tuple[int, int], str] = {}
    for path in found:
        place = LOCAL.status(path)  # not by name: links, and mounts of one directory at two places
        first = by_place.setdefault((place.st_dev, place.st_ino), path)
        if first is not path:
            raise UsageError(f"given twice (also as {first})", name, path)
    require_elsewhere(os.environ, found)
    return found


def require_another(name: str, path: PathArg, log_dir: str) -> None:
    """Raise UsageError where a path is the log directory, be it by a link or another mount."""
    if LOCAL.is_same(require_in_place(os.fspath(path), LOCAL), log_dir):
        raise UsageError("is {} itself", name, os.fspath(path), ["log_dir"])


def in_place(name: str, path: PathArg) -> str:
    """Return the local path of an argument. An empty one would mean the current directory.

    Raise UsageError if it is empty, and what `require_in_place` raises.
    """
    text = os.fspath(path)
    if not text.strip():
        raise UsageError("is empty; is a variable of the shell not set?", name, repr(text))
    local = require_in_place(text, LOCAL)
    try:
        LOCAL.status(local, follow=False)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise UsageError(error.strerror or "", name, text) from error
    return local


def require_writable(name: str, path: str) -> None:
    """Raise UsageError where a file cannot be written."""
    folder = os.path.dirname(os.path.abspath(path))
    if LOCAL.is_directory(path):
        raise UsageError("is a directory", name, path)
    if not LOCAL.is_directory(folder):
        raise UsageError(f"there is no directory {folder}", name, path)
    if not LOCAL.is_permitted(folder, os.W_OK | os.X_OK):
        raise UsageError(f"no permission to write in {folder}", name, path)


def work_dir(path: str | None, in_log_dirs: Sequence[str]) -> str | None:
    """Check the directory for the run's own files, never in a log directory (F-1.4)."""
    if path is None:
        return None
    if "://" in path and not path.startswith("file://"):
        raise UsageError("expected a path that driver and executors all reach", "work_dir", path)
    return _own_directory("work_dir", path, in_log_dirs)


def keep_originals(path: str | None, in_log_dirs: Sequence[str]) -> str | None:
    """Check the directory for what a run replaces; never in a log directory either."""
    return None if path is None else _own_directory("keep_originals", path, in_log_dirs)


def kept_run(path: PathArg, to_discard: bool = False) -> str:
    """Check the directory of a run's originals. to_discard: a discard may have begun."""
    path = os.fspath(path)
    local = in_place("run_dir", path)
    try:
        names = _names_in(local)
    except OSError as error:
        hint = near_path(path) if isinstance(error, FileNotFoundError) else ""
        raise UsageError(f"{error.strerror}{hint}", "run_dir", path) from error
    if RUN_FILE not in names and not (to_discard and DISCARDED_FILE in names):
        hint = below(path, _is_kept_run)
        own = "give the directory of one run, which has its RUN_ID for a name"
        problem = f"no {RUN_FILE} in it; {own}{hint}"
        raise UsageError(problem, "run_dir", path)
    return local


def _is_kept_run(path: str) -> bool:
    return LOCAL.is_directory(path) and LOCAL.exists(os.path.join(path, RUN_FILE))


def _own_directory(name: str, path: str, in_log_dirs: Sequence[str]) -> str:
    local = in_place(name, path)
    if LOCAL.exists(local) and not LOCAL.is_directory(local):
        raise UsageError("is not a directory", name, path)
    found = log_dir_around(local, in_log_dirs)
    if found is not None:
        raise UsageError(f"inside of log directory {found}; {PROBLEM}", name, path)
    existing = _nearest_existing(local)
    if not LOCAL.is_permitted(existing, os.W_OK | os.X_OK):
        raise UsageError(f"no permission to write in {existing}", name, path)
    return local


def _check_log_dir(path: str, to_write: bool, name: str) -> None:
    try:
        names = _names_in(path)
    except OSError as error:
        hint = near_path(path) if isinstance(error, FileNotFoundError) else above(path, is_log_dir)
        raise UsageError(f"{error.strerror}{hint}", name, path) from error
    if not LOCAL.is_permitted(path, os.X_OK):
        raise UsageError("Permission denied", name, path)
    if not _has_logs(path, names):
        raise UsageError(_why_not_log_dir(path, names), name, path)
    if to_write and not LOCAL.is_permitted(path, os.W_OK | os.X_OK):
        problem = "no permission to write; {} and plan only read"
        raise UsageError(problem, name, path, ["dry_run"])
    if to_write:
        require_may_change(path)


def is_log_dir(path: str) -> bool:
    """Return whether a broker, or somebody who copied logs, has used a path as log directory."""
    try:
        names = _names_in(path)
    except OSError:
        return False
    return _has_logs(path, names)


def _has_logs(path: str, names: Sequence[str]) -> bool:
    return META_PROPERTIES in names or any(_is_partition(path, name) for name in names)


def _is_partition(path: str, name: str) -> bool:
    """Return whether a name is a partition's and has a log's files: `/etc` has `X11-6` too."""
    if parse_partition_dir(name) is None:
        return False
    try:
        return any(map(_is_of_log, _names_in(os.path.join(path, name))))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return False


def _names_in(path: str) -> list[str]:
    return [*chain(*LOCAL.list_names(path))]


def _is_of_log(name: str) -> bool:
    return name in _PARTITION_FILES or (name.endswith(LOG) and offset_of(name) is not None)


def _why_not_log_dir(path: str, names: list[str]) -> str:
    if any(name.endswith(LOG) for name in names) and parse_partition_dir(os.path.basename(path)):
        return f"is a partition directory; give the log directory, {os.path.dirname(path)}"
    hint = below(path, is_log_dir) or above(path, is_log_dir)
    missing = f"no {META_PROPERTIES}, and nothing named TOPIC-PARTITION in it"
    return f"not a log directory: {missing}{hint}"


def _nearest_existing(path: str) -> str:
    while not LOCAL.exists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def require_elsewhere(environ: Mapping[str, str], log_dirs: Sequence[str]) -> None:
    """Raise UsageError, by the name of the variable, where one of them leads to a log directory."""
    for name, path in _own_places(environ):
        _require_elsewhere(name, path, log_dirs)


def require_temporary_elsewhere(log_dirs: Sequence[str]) -> None:
    """Raise UsageError where temporary directories, ours or Spark's, would be in a log directory.

    Where neither a variable nor /tmp and its like name a directory that takes a byte, they are
    made in the current one.
    """
    with contextlib.suppress(FileNotFoundError):  # nor does that: who needs one will say so
        name = "TMPDIR names no directory to write in: the temporary directory"
        _require_elsewhere(name, LOCAL.temporary_directory(), log_dirs)


def require_blocks_elsewhere(local_dirs: Sequence[str], log_dirs: Sequence[str]) -> None:
    """Raise UsageError where the blocks of a running Spark are in a log directory."""
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
        raise UsageError(f"inside of log directory {found}; {PROBLEM}", name, path)


def log_dir_around(path: str, log_dirs: Sequence[str]) -> str | None:
    """Return the log directory that a path is in, or is, links followed; None: in none."""
    real = LOCAL.resolve(path)
    for log_dir in log_dirs:
        around = LOCAL.resolve(log_dir)
        if os.path.commonpath([real, around]) == around:
            return log_dir
    return None


OUTPUT = "output"  # the name of the parameter
_MARKS = (UNFINISHED, NO_BROKER)
_FILES = (  # of a log directory, that a copy has, too; others may be somebody's own
    *checkpoint.ALL,
    clean_shutdown.CLEAN_SHUTDOWN,
    META_PROPERTIES,
    "bootstrap.checkpoint",  # what `kafka-storage format` leaves
    LOCK_FILE,
    MANIFEST,
    SET_ASIDE,
)


def output_dirs(paths: Sequence[str], log_dirs: Sequence[str]) -> tuple[str, ...]:
    """Check where copies are to be made: one place for each log directory, empty or missing.

    Raise UsageError for an impossible place, RefusedError for one that is in use.
    """
    if paths and len(paths) != len(log_dirs):
        count = counted(len(log_dirs), "log directory", "log directories")
        raise UsageError(
            f"given {counted(len(paths), 'time')} for {count}: give it once for each, in "
            "their order",
            OUTPUT,
        )
    found = tuple(in_place(OUTPUT, path) for path in paths)
    for number, path in enumerate(found):
        for other in (*log_dirs, *found[:number]):
            if _is_in(path, other) or _is_in(other, path):
                problem = f"is {other} itself, or one of the two lies in the other"
                raise UsageError(problem, OUTPUT, path)
        _require_place(path)
    for log_dir in log_dirs if paths else ():
        require_whole(log_dir)
    return found


def _require_place(path: str) -> None:
    if not LOCAL.exists(path):
        parent = os.path.dirname(path)
        if not LOCAL.is_directory(parent):
            raise UsageError(f"there is no directory {parent}", OUTPUT, path)
        if not LOCAL.is_permitted(parent, os.W_OK | os.X_OK):
            raise UsageError(f"no permission to write in {parent}", OUTPUT, path)
        return
    if not LOCAL.is_directory(path):
        raise UsageError("is not a directory", OUTPUT, path)
    if not LOCAL.is_permitted(path, os.R_OK | os.W_OK | os.X_OK):
        raise UsageError("no permission to write there", OUTPUT, path)
    require_free(path)
    require_empty(path)


def require_empty(path: str, is_locked: bool = False) -> None:
    """Raise RefusedError where anything stands in a directory; but a lock, if that is our own."""
    names = [name for name in _names_in(path) if not (is_locked and name == LOCK_FILE)]
    if not names:
        return
    if UNFINISHED in names:
        problem = (
            f"holds a copy that was never finished: a run was killed or failed. {_way_on(path)}"
        )
    elif names == [LOCK_FILE]:
        problem = (
            f"holds {LOCK_FILE} alone: a run was killed, or a broker was here. If nobody needs the "
            "directory, remove that file and run again, or give another directory"
        )
    elif MANIFEST in names:
        problem = "holds a finished copy already. Give another directory"
    else:
        what = "is a log directory" if is_log_dir(path) else "is not empty"
        problem = f"{what}; a copy goes into a new or an empty directory. Give another one"
    raise RefusedError(f"{OUTPUT} {path}: {problem}. Nothing was changed", ReasonCode.OUTPUT_IN_USE)


def _way_on(path: str) -> str:
    """What to do about an unfinished copy. To remove it is advice only if nothing else is lost."""
    foreign = _foreign_in(path)
    if foreign is not None:
        return f"But {foreign} may be somebody's own: look whose it is, or give another directory"
    remove = tool("rm", "-r", path)
    return f"It is of no use. Remove it ({remove}) and run again, or give another directory"


def _foreign_in(path: str) -> str | None:
    """Return something in an unfinished copy that no run may have written; None: nothing.

    It is looked at closely, as a user may remove the copy on our word.
    """
    for entry in LOCAL.list_directory(path):
        own = os.path.join(path, entry.name)
        if entry.special or not (entry.is_dir or entry.name.removesuffix(".tmp") in _FILES):
            return own
        if entry.is_dir and not _may_be_ours(entry.name):
            return own
        for within in LOCAL.list_directory(own) if entry.is_dir else ():
            is_text = entry.name not in _MARKS or within.name.removesuffix(".tmp") == TEXT_FILE
            if not is_text or within.is_dir or within.special:
                return os.path.join(own, within.name)
    return None


def _may_be_ours(name: str) -> bool:
    is_log = parse_partition_dir(name) is not None or is_special_dir(name)
    return name in _MARKS or is_log


def _is_in(path: str, other: str) -> bool:
    inner, outer = LOCAL.resolve(path), LOCAL.resolve(other)
    return os.path.commonpath([inner, outer]) == outer


def require_linkable(log_dirs: Sequence[str], copies: Sequence[str], recovers: bool) -> None:
    """Raise UsageError where hard links to log files cannot be made, or would change with them.

    A recovery after an unclean shutdown changes files in place.
    """
    if not copies:
        raise UsageError("goes with {}", "link", None, [OUTPUT])
    if recovers:
        raise UsageError(
            "not with {}, which would change linked files", "link", None, ["recover_first"]
        )
    for log_dir, copy in zip(log_dirs, copies, strict=True):
        place = copy if LOCAL.exists(copy) else os.path.dirname(copy)
        if LOCAL.status(place).st_dev != LOCAL.status(log_dir).st_dev:
            raise UsageError(f"{copy} is on another file system than {log_dir}", "link")
        if not clean_shutdown.exists(log_dir, LOCAL):
            raise UsageError(
                f"{log_dir} has no {clean_shutdown.CLEAN_SHUTDOWN}, and what is recovered would "
                "change linked files; leave it out",
                "link",
            )
