"""Something done by a user who may not read or write everything, in a process of its own.

Tests often run as root, whom no permission stops. `os.seteuid` is not enough: `os.access` asks for
the real user. What has been loaded and compiled here is there in the other process, too.
"""

import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

USER = 54321 if os.geteuid() == 0 else os.geteuid()
GROUP = 54321 if os.geteuid() == 0 else os.getegid()

Found = TypeVar("Found")


def give(root: Path, uid: int = USER, gid: int = GROUP) -> None:
    """Let a directory and all that is in it belong to the user."""
    for path in (root, *root.rglob("*")):
        os.chown(path, uid, gid, follow_symlinks=False)


@contextmanager
def directory_for_all() -> Iterator[Path]:
    """A new directory that every user may enter; pytest closes its own with each new session."""
    with tempfile.TemporaryDirectory(prefix="compactor-") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


def as_user(call: Callable[[], Found]) -> Found:
    """What the call returns, which can be pickled; AssertionError with what it raised."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(GROUP, GROUP, GROUP)
                os.setresuid(USER, USER, USER)
            outcome: tuple[bool, object] = True, call()
        except BaseException as error:  # whatever it is, the test says so
            outcome = False, f"{type(error).__name__}: {error}"
        with os.fdopen(writing, "wb") as out:
            pickle.dump(outcome, out)
        sys.stdout.flush()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as found:
        data = found.read()
    os.waitpid(child, 0)
    is_done, value = pickle.loads(data)  # noqa: S301  # of our own, by a pipe of our own
    assert is_done, value
    return value  # type: ignore[no-any-return]
