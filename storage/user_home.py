"""The home of the user that this process runs as, for a user without one, too.

A container may run as a number that no passwd file knows, and without HOME. Then a directory of
this number's own takes the place of a home: private, and kept from run to run as long as the
temporary directory is.
"""

import os
import pwd
import stat
import tempfile
from collections.abc import Mapping

from storage.errors import LogCompactionError

NOWHERE = "/nonexistent"  # as in passwd files: nothing can be made below it


class HomeTakenError(LogCompactionError):
    """Another user could write where this one would keep its files. Nothing was changed."""

    reason_code = "no-permission"


def has_name() -> bool:
    """Whether the system knows the user of this process by a name."""
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return True


def name_of_user() -> str:
    """The user's name, or its number where it has none."""
    return pwd.getpwuid(os.geteuid()).pw_name if has_name() else str(os.geteuid())


def home_of(environ: Mapping[str, str]) -> str:
    """HOME; without it what the passwd file says; else a directory for temporary files.

    A user without a name often has HOME=/ and may not write there: that is none. Raise
    HomeTakenError where another user could write in the directory.
    """
    home = environ.get("HOME")
    if has_name():
        return home or pwd.getpwuid(os.geteuid()).pw_dir
    if home and os.access(home, os.W_OK | os.X_OK):
        return home
    return _own_directory()


def is_stand_in(home: str) -> bool:
    """Whether a home is a directory that takes the place of one."""
    return os.path.basename(home) == _own_name()


def _own_name() -> str:
    return f"log-compactor-{os.geteuid()}"


def _own_directory() -> str:
    try:
        path = os.path.join(tempfile.gettempdir(), _own_name())
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    except OSError:  # no directory for temporary files, or no room in it: nothing will be kept
        return NOWHERE
    found = os.lstat(path)  # kernels are loaded from there: nobody else may write them
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise HomeTakenError(
            f"{path}: user {os.geteuid()} has neither a name nor a HOME that it can write to, and "
            "another user can write here. Set HOME to a directory of this user, or remove "
            f"{path}. Nothing was changed"
        )
    return path
