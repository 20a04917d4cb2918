"""Work on files that are open: by their descriptors, without a look at any name.

The system knows of such a file by a number only, so its errors name no file: `naming` does.
"""

import os
import stat

from storage.files.files import Entry


def naming(path: str) -> "_Naming":
    """Name the file in an OSError that does not: reads and writes know of descriptors only.

    A context, for `with`.
    """
    return _Naming(path)


def look_at(descriptor: int, path: str) -> Entry:
    """Return what a listing would say of an open file, without its name.

    path: for errors.
    """
    try:
        return entry_with("", os.fstat(descriptor))
    except OSError as error:
        error.filename = path
        raise


def read_from(descriptor: int, position: int, length: int) -> bytes:
    """Return length bytes from a position of an open file; fewer only where the file ends."""
    pieces: list[bytes] = []
    while length > 0 and (piece := os.pread(descriptor, length, position)):  # may give less
        if len(piece) == length and not pieces:
            return piece
        pieces.append(piece)
        position += len(piece)
        length -= len(piece)
    return b"".join(pieces)


def read_into(descriptor: int, position: int, target: memoryview) -> int:
    """Fill target with what an open file has from there on; how many bytes that is."""
    got = 0
    while got < len(target) and (count := os.preadv(descriptor, [target[got:]], position + got)):
        got += count
    return got


def entry_with(name: str, status: os.stat_result) -> Entry:
    """Make the entry of a name that is no directory's."""
    mode = status.st_mode
    values = (  # not by the fields' names, which takes as long as the look at the file
        name,
        False,
        status.st_size,
        status.st_mtime_ns,
        status.st_ino,
        "" if stat.S_ISREG(mode) else special_kind(mode),
        status.st_ctime_ns,
        status.st_dev,
    )
    return tuple.__new__(Entry, values)


def special_kind(mode: int) -> str:
    """Say in words what a name is that has no bytes of its own."""
    kinds = {stat.S_IFLNK: "a symbolic link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    kinds[stat.S_IFDIR] = "a directory"
    return kinds.get(stat.S_IFMT(mode), "a device")


class _Naming:
    """No generator, nor is the next one: both are passed at every look and at every change."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, OSError) and not isinstance(error.filename, str):
            error.filename = self._path
