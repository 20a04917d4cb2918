"""What a file is called for a call of the system: its path, or its name in a held directory.

A file in a directory that is held (`held_directories`) is reached by a descriptor of that very
directory, for one call. An error of the call gets the file's path.
"""

import os
from collections.abc import Callable

from storage.files import held_directories
from storage.files.held_directories import kept_descriptor, open_directory


def split(path: str) -> tuple[str, str]:
    """As os.path.split, which takes five times as long for a path like any other."""
    directory, _, name = path.rpartition("/")
    if not directory or directory.endswith("/"):
        return os.path.split(path)
    return directory, name


class Reached:
    """A context: gives a name, and the descriptor of the directory that it is relative to.

    to_change: whether the owner of the directory is asked first.
    """

    __slots__ = ("_name", "_opened", "_path", "_to_change")

    def __init__(self, path: str, to_change: bool) -> None:
        self._path, self._to_change = path, to_change
        self._opened: int | None = None

    def __enter__(self) -> tuple[str, int | None]:
        self._name = self._path
        if not held_directories.is_any_held():  # so for each file of a plan
            return self._path, None
        directory, name = split(self._path)
        descriptor = kept_descriptor(directory, self._to_change)
        if descriptor is None:
            descriptor = self._opened = open_directory(directory, self._to_change)
        if descriptor is None:
            return self._path, None
        self._name = name
        return name, descriptor

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if self._opened is not None:
            os.close(self._opened)
        if isinstance(error, OSError) and error.filename == self._name:
            error.filename = self._path


def with_both(call: Callable[..., None], source: str, target: str, **named: bool) -> None:
    """Let a call of the system, which takes two names, reach both, to change them.

    Two names in one directory, as nearly always, reach it once.
    """
    of_source, old_name = split(source)
    if of_source != split(target)[0]:
        with Reached(source, True) as (old, of_old), Reached(target, True) as (new, of_new):
            try:
                call(old, new, src_dir_fd=of_old, dst_dir_fd=of_new, **named)
            except OSError as error:
                error.filename, error.filename2 = source, target
                raise
        return
    with Reached(target, True) as (name, held):
        old = source if held is None else old_name
        try:
            call(old, name, src_dir_fd=held, dst_dir_fd=held, **named)
        except OSError as error:
            error.filename, error.filename2 = source, target
            raise
