"""Where `run --output` makes its copies: in places of their own, new or empty."""

import os
from collections.abc import Sequence

from compactor.api.path_arguments import in_place, is_log_dir
from compactor.errors import RefusedError
from compactor.host.printable import counted
from compactor.host.shell_commands import tool
from compactor.log_dirs.directory_state import (
    MANIFEST,
    NO_BROKER,
    TEXT_FILE,
    UNFINISHED,
    require_whole,
)
from compactor.log_dirs.log_dir_lock import require_free
from compactor.log_dirs.set_aside_memory import SET_ASIDE
from compactor.outcome.exit_codes import UsageError
from compactor.reason_codes import ReasonCode
from storage.file_names import is_special_dir, parse_partition_dir
from storage.files.filesystem import exists, is_directory
from storage.files.local import LOCAL
from storage.formats import checkpoint, clean_shutdown
from storage.formats.meta_properties import META_PROPERTIES
from storage.log.log_dir_lock import LOCK_FILE

OUTPUT = "--output"
_MARKS = (UNFINISHED, NO_BROKER)
_FILES = (  # of a log directory, that a copy has, too; others may be somebody's own
    checkpoint.CLEANER_OFFSET,
    checkpoint.LOG_START,
    checkpoint.RECOVERY_POINT,
    checkpoint.REPLICATION,
    clean_shutdown.CLEAN_SHUTDOWN,
    META_PROPERTIES,
    "bootstrap.checkpoint",  # what `kafka-storage format` leaves
    LOCK_FILE,
    MANIFEST,
    SET_ASIDE,
)


def output_dirs(paths: Sequence[str], log_dirs: Sequence[str]) -> tuple[str, ...]:
    """Check where copies are to be made: one place for each log directory, empty or not there.

    Raise UsageError for an impossible place, RefusedError for one that is in use.
    """
    if paths and len(paths) != len(log_dirs):
        count = counted(len(log_dirs), "log directory", "log directories")
        raise UsageError(
            f"{OUTPUT}: given {counted(len(paths), 'time')} for {count}: give it once for each, in "
            "their order"
        )
    found = tuple(in_place(OUTPUT, path) for path in paths)
    for number, path in enumerate(found):
        for other in (*log_dirs, *found[:number]):
            if _is_in(path, other) or _is_in(other, path):
                problem = f"is {other} itself, or one of the two lies in the other"
                raise UsageError(f"{OUTPUT} {path}: {problem}")
        _require_place(path)
    for log_dir in log_dirs if paths else ():
        require_whole(log_dir)
    return found


def _require_place(path: str) -> None:
    if not exists(path):
        parent = os.path.dirname(path)
        if not is_directory(parent):
            raise UsageError(f"{OUTPUT} {path}: there is no directory {parent}")
        if not os.access(parent, os.W_OK | os.X_OK):
            raise UsageError(f"{OUTPUT} {path}: no permission to write in {parent}")
        return
    if not is_directory(path):
        raise UsageError(f"{OUTPUT} {path}: is not a directory")
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise UsageError(f"{OUTPUT} {path}: no permission to write there")
    require_free(path)
    require_empty(path)


def require_empty(path: str, is_locked: bool = False) -> None:
    """Raise RefusedError where anything stands in a directory; but a lock, if that is our own."""
    names = [name for name in os.listdir(path) if not (is_locked and name == LOCK_FILE)]
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
    """Something in an unfinished copy that a run may not have put there; it is looked at closely,
    as a broker's user may remove it on our word.
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
    inner, outer = os.path.realpath(path), os.path.realpath(other)
    return os.path.commonpath([inner, outer]) == outer


def require_linkable(log_dirs: Sequence[str], copies: Sequence[str], recovers: bool) -> None:
    """Raise UsageError where hard links to the files of log directories cannot be made, or would
    be changed with their originals: what an unclean shutdown left is recovered in place.
    """
    if not copies:
        raise UsageError("--link: goes with --output")
    if recovers:
        raise UsageError("--link: not with --recover-first, which would change linked files")
    for log_dir, copy in zip(log_dirs, copies, strict=True):
        place = copy if exists(copy) else os.path.dirname(copy)
        if os.stat(place).st_dev != os.stat(log_dir).st_dev:
            raise UsageError(f"--link: {copy} is on another file system than {log_dir}")
        if not clean_shutdown.exists(log_dir):
            raise UsageError(
                f"--link: {log_dir} has no {clean_shutdown.CLEAN_SHUTDOWN}, and what is recovered "
                "would change linked files; leave --link out"
            )
