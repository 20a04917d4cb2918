"""Where `run --output` makes its copies: in places of their own, new or empty."""

import os
from collections.abc import Sequence

from compactor.api.places import in_place
from compactor.directory_state import MANIFEST, UNFINISHED, require_whole
from compactor.errors import RefusedError
from compactor.exit_codes import UsageError
from compactor.host.printable import counted, shell_word
from compactor.log_dir_lock import require_free
from compactor.reason_codes import ReasonCode
from storage.files.filesystem import exists, is_directory
from storage.formats import clean_shutdown
from storage.log.log_dir_lock import LOCK_FILE

OUTPUT = "--output"


def output_dirs(paths: Sequence[str], log_dirs: Sequence[str]) -> tuple[str, ...]:
    """Check where copies are to be made: one place for each log directory, empty or not there.

    Raise UsageError for an impossible place, RefusedError for one that is in use.
    """
    if paths and len(paths) != len(log_dirs):
        raise UsageError(
            f"{OUTPUT}: given {len(paths)} times for {counted(len(log_dirs), 'log directory')}: "
            "give it once for each, in their order"
        )
    found = tuple(in_place(OUTPUT, path) for path in paths)
    for number, path in enumerate(found):
        for other in (*log_dirs, *found[:number]):
            if _is_in(path, other) or _is_in(other, path):
                problem = "one of them would be in the other, or they are the same"
                raise UsageError(f"{OUTPUT} {path}: and {other}: {problem}")
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
    remove = f"Remove it (rm -r {shell_word(path)}) and run again, or give another directory"
    if UNFINISHED in names or names == [LOCK_FILE]:
        raise RefusedError(
            f"{OUTPUT} {path}: holds a copy that was never finished: a run was killed or failed. "
            f"It is of no use. {remove}. Nothing was changed",
            ReasonCode.OUTPUT_IN_USE,
        )
    if MANIFEST in names:
        raise RefusedError(
            f"{OUTPUT} {path}: holds a finished copy already. {remove}. Nothing was changed",
            ReasonCode.OUTPUT_IN_USE,
        )
    if names:
        raise RefusedError(
            f"{OUTPUT} {path}: is not empty; a copy goes into a new or an empty directory. "
            f"If a run that was killed has left this, remove it (rm -r {shell_word(path)}). "
            "Nothing was changed",
            ReasonCode.OUTPUT_IN_USE,
        )


def _is_in(path: str, other: str) -> bool:
    inner, outer = os.path.realpath(path), os.path.realpath(other)
    return os.path.commonpath([inner, outer]) == outer


def require_linkable(log_dirs: Sequence[str], copies: Sequence[str], recovers: bool) -> None:
    """Raise UsageError where hard links to the files of log directories cannot be made, or would
    be changed with their originals: what an unclean shutdown left is recovered in place."""
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
