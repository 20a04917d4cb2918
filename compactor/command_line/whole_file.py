"""A file that a command leaves for others: checked before it begins, and written in one step."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from compactor.outcome.exit_codes import UsageError
from storage.files.filesystem import is_directory


def require_writable(option: str, path: str) -> None:
    """Raise UsageError where the file of an option could not be written."""
    folder = os.path.dirname(os.path.abspath(path))
    if not is_directory(folder):
        raise UsageError(f"{option} {path}: there is no directory {folder}")
    if is_directory(path):
        raise UsageError(f"{option} {path}: is a directory")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{option} {path}: no permission to write in {folder}")


@contextmanager
def replacing(path: str) -> Iterator[str]:
    """The name to write it under: whoever collects such files never sees half of one."""
    temporary = f"{path}.tmp"
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.remove(temporary)
        raise
