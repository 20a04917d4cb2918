"""Why a run on log directories would be refused, for commands that only read: no lock is taken.

In the words of the run itself, which stops at the first of them.
"""

import errno
import os
from collections.abc import Callable, Collection, Sequence
from functools import partial

from compactor.errors import ConfigError, RefusedError
from compactor.exit_codes import error_line
from compactor.high_watermarks import require_high_watermarks
from compactor.host import descriptor_limit
from compactor.lock_support import require_working_locks
from compactor.log_dir_lock import LOCK_FILE, require_clean_shutdown, require_free
from storage.files import filesystem

_UNCHANGED = ". Nothing was changed"


def refusals(
    log_dirs: Sequence[str],
    allowed_file_systems: Collection[str] = (),
    after_unclean_shutdown: bool = False,
    assume_fully_replicated: bool = False,
) -> list[str]:
    """A line for each reason, without a full stop; of a run with the same arguments."""
    found = messages_of(descriptor_limit.require_enough)
    for log_dir in log_dirs:
        found += messages_of(partial(require_working_locks, [log_dir], allowed_file_systems))
        of_lock = messages_of(partial(_require_lock, log_dir))
        if not (of_lock or after_unclean_shutdown):  # a running broker has taken the marker away
            found += messages_of(partial(require_clean_shutdown, log_dir))
        found += of_lock
    return found + messages_of(partial(require_high_watermarks, log_dirs, assume_fully_replicated))


def messages_of(check: Callable[[], object]) -> list[str]:
    """The message with which a check of the run refuses it, if it does."""
    try:
        check()
    except (RefusedError, ConfigError, OSError) as error:
        return [error_line(error).removesuffix(_UNCHANGED)]
    return []


def _require_lock(log_dir: str) -> None:
    """Whether it could be had. OSError where it could not even be asked for, as of the run."""
    path = os.path.join(log_dir, LOCK_FILE)
    require_free(log_dir)  # which does not follow a link
    if filesystem.is_directory(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if filesystem.exists(path) and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
