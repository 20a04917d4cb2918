"""A disk that does not answer when it is asked whether a file is there."""

import errno
import os
from collections.abc import Callable
from typing import Any

import pytest


def fail_to_look_up(patch: pytest.MonkeyPatch, is_meant: Callable[[str], bool]) -> None:
    """Every stat of a path that is meant fails; of a name in a directory, by the whole path."""
    for call in ("stat", "lstat"):
        original = getattr(os, call)

        def failing(
            path: Any, *, dir_fd: int | None = None, _call: Any = original, **named: Any
        ) -> Any:
            whole = str(path)
            if dir_fd is not None:
                whole = os.path.join(os.readlink(f"/proc/self/fd/{dir_fd}"), whole)
                named["dir_fd"] = dir_fd
            if not isinstance(path, int) and is_meant(whole):
                raise OSError(errno.EIO, os.strerror(errno.EIO), path)
            return _call(path, **named)

        patch.setattr(os, call, failing)
