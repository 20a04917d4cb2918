"""Access to files, and what each operation promises.

In-place work needs three promises: a rename replaces its target in one step, bytes that were synced
outlive a power cut, and so do names once their directory was synced. Local file systems (network
ones with POSIX semantics included) give them through the calls below, which are the operating
system's own: fsspec's local backend never syncs, and its move may copy. No other fsspec backend
states these promises, so none is taken for in-place work (`backends`; spec C-15.4, F-13.3).

A file in a directory that is held (`held_directories`) is reached in that very directory or not at
all: nothing is listed, read or changed in what was put in its place.

Errors are the operating system's (OSError, with the path in it), but for CorruptFileError where
something stands in the place of a file, and for what the owner of a held directory raises.
"""

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator

from storage.errors import CorruptFileError
from storage.files.descriptors import entry_with, look_at, naming, read_from, special_kind
from storage.files.file_attributes import attributes_of, give_attributes
from storage.files.files import Entry
from storage.files.held_directories import (
    RelativePath,
    call_with_both_paths,
    note_made,
    note_removed,
    note_renamed,
    open_directory,
    split,
)

_READ_BYTES = 16 * 1024
_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


@contextlib.contextmanager
def _listed(path: str) -> Iterator["Iterator[os.DirEntry[str]]"]:
    descriptor = open_directory(path)
    try:
        with naming(path), os.scandir(path if descriptor is None else descriptor) as names:
            yield names
    finally:
        if descriptor is not None:
            os.close(descriptor)


def list_directory(path: str) -> list[Entry]:
    """List a directory, in no order. No link is followed; what vanishes meanwhile is left out.

    Promises no snapshot: a name that comes or goes during the call may be there or not.
    """
    entries: list[Entry] = []
    add, new_tuple, is_file = entries.append, tuple.__new__, stat.S_ISREG
    with _listed(path) as names:
        for item in names:
            try:
                if item.is_dir(follow_symlinks=False):
                    add(Entry(item.name, True, 0, 0, item.inode()))
                    continue
                found = item.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            values = (  # those of entry_with, without its two calls: a plan lists 200,000 files
                item.name,
                False,
                found.st_size,
                found.st_mtime_ns,
                found.st_ino,
                "" if is_file(found.st_mode) else special_kind(found.st_mode),
                found.st_ctime_ns,
                found.st_dev,
            )
            add(new_tuple(Entry, values))
    return entries


def look_up(path: str) -> Entry | None:
    """Give what a listing of its directory would say of a name; None if there is no such name."""
    try:
        with RelativePath(path, False) as (reached, directory):
            found = os.stat(reached, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _, name = split(path)
    if stat.S_ISDIR(found.st_mode):
        return Entry(name, True, 0, 0, found.st_ino)
    return entry_with(name, found)


def exists(path: str) -> bool:
    """Say whether there is such a name; OSError where that cannot be found out.

    `os.path` would say no: what is taken for gone then is left where it has to go, or made again.
    """
    return look_up(path) is not None


def is_directory(path: str) -> bool:
    """Say whether a path leads to a directory, be it by a link; OSError where that is unknown.

    A link that leads to itself leads to none.
    """
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return False
        raise


def list_names(path: str) -> tuple[list[str], list[str]]:
    """Give the names in a directory, those of directories apart: first they, then the others.

    In no order. Looks at nothing but the directory itself; a link is no directory.
    """
    directories: list[str] = []
    others: list[str] = []
    with _listed(path) as names:
        for item in names:
            (directories if item.is_dir(follow_symlinks=False) else others).append(item.name)
    return directories, others


def open_file(path: str) -> int:
    """Open a file of a log directory for reading; its descriptor. Raise as `open_known` does."""
    return open_known(path)[0]


def open_known(path: str) -> tuple[int, Entry]:
    """Open a file of a log directory for reading; its descriptor, and its entry without the name.

    CorruptFileError where it is anything else: nothing that a link leads to is read, and nobody
    waits for the other end of a pipe.
    """
    try:
        with RelativePath(path, False) as (name, directory):
            descriptor = os.open(name, _READING, dir_fd=directory)
    except OSError as error:
        special = {errno.ELOOP: "a symbolic link", errno.ENXIO: "a socket"}.get(error.errno or 0)
        if special is None:
            raise
        raise CorruptFileError(path, 0, f"is {special}, not a file") from error
    try:
        found = look_at(descriptor, path)
        if found.special:
            raise CorruptFileError(path, 0, f"is {found.special}, not a file")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, found


def private(path: str, flags: int) -> int:
    """An opener: what it makes only this user can read, until it is given another mode."""
    return _open_to_change(path, flags, 0o600)


def public(path: str, flags: int) -> int:
    """An opener: what it makes has the mode of other new files of this user."""
    return _open_to_change(path, flags, 0o666)


def _open_to_change(path: str, flags: int, mode: int) -> int:
    with RelativePath(path, True) as (name, directory):
        return os.open(name, flags, mode, dir_fd=directory)


def open_to_change(path: str, create: bool) -> int:
    """Open a file of a log directory for reading and writing; its descriptor.

    create: an empty one where there is none. OSError where the name is that of a link.
    """
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | (os.O_CREAT if create else 0)
    return _open_to_change(path, flags, 0o644)


def read_bytes(path: str) -> bytes:
    """Give the whole file."""
    descriptor, found = open_known(path)
    left, pieces = found.size_bytes, []
    try:
        while piece := os.read(descriptor, max(left + 1, _READ_BYTES)):  # one in /proc has no size
            pieces.append(piece)
            left -= len(piece)
    except OSError as error:
        error.filename = path
        raise
    finally:
        os.close(descriptor)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def read_range(path: str, position: int, length: int) -> bytes:
    """Give length bytes from position; fewer only where the file ends before."""
    descriptor = open_file(path)
    try:
        return read_from(descriptor, position, length)
    except OSError as error:
        error.filename = path
        raise
    finally:
        os.close(descriptor)


def replace_file(path: str, data: bytes) -> None:
    """Make path hold exactly data. After a crash it holds the old bytes or the new, never a mix.

    The new file has the owner, mode and extended attributes of the old one, or else PermissionError
    is raised; where there was none, the owner of its directory, if it can be given away. A crash
    may leave `<path>.tmp`, which Kafka overwrites too; here it is replaced, whatever it was.
    """
    temporary = f"{path}.tmp"  # beside its target, so that the rename stays on one file system
    try:
        with contextlib.suppress(FileNotFoundError):
            remove(temporary)  # it could be a link, or have another name somewhere else
        with naming(temporary), open(temporary, "xb", opener=public) as out:
            out.write(data)
            out.flush()
            _adopt(out.fileno(), path)
            os.fsync(out.fileno())  # the bytes, before the name points at them
        rename(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):  # the first error counts
            remove(temporary)
        raise
    sync_directory(os.path.dirname(path))  # the name


def _adopt(descriptor: int, path: str) -> None:
    try:
        model = attributes_of(path)
    except FileNotFoundError:
        _adopt_owner_of_directory(descriptor, os.path.dirname(path) or ".")
    else:
        give_attributes(descriptor, model)


def _adopt_owner_of_directory(descriptor: int, path: str) -> None:
    model, mine = os.stat(path), os.fstat(descriptor)
    if (mine.st_uid, mine.st_gid) != (model.st_uid, model.st_gid):
        with contextlib.suppress(PermissionError):  # only root may give files away
            os.fchown(descriptor, model.st_uid, model.st_gid)


def sync_file(path: str) -> None:
    """Return once the bytes of the file are on disk. Says nothing of its name."""
    with RelativePath(path, False) as (name, directory):
        descriptor = os.open(name, _READING, dir_fd=directory)
    _sync(path, descriptor)


def sync_directory(path: str) -> None:
    """Return once the names in the directory are on disk, with every rename and removal so far."""
    descriptor = open_directory(path)
    if descriptor is None:
        descriptor = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY)
    _sync(path, descriptor)


def _sync(path: str, descriptor: int) -> None:
    try:
        with naming(path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def rename(source: str, target: str) -> None:
    """Rename in one step, over target if it exists. On disk only after sync_directory.

    Both must be on one file system: across two the call fails and changes nothing.
    """
    call_with_both_paths(os.replace, source, target)
    note_renamed(source, target)


def link(source: str, target: str) -> None:
    """Give a file a second name, which must be new. On disk only after sync_directory.

    OSError where the file system has no hard links, or the names are on two.
    """
    call_with_both_paths(os.link, source, target, follow_symlinks=False)


def make_directory(path: str) -> None:
    """Make a directory that this user alone may enter. It is on disk, and so is its name."""
    with RelativePath(path, True) as (name, directory):
        os.mkdir(name, 0o700, dir_fd=directory)
    note_made(path)
    sync_directory(os.path.dirname(path))


def remove_directory(path: str) -> None:
    """Remove an empty directory. On disk only after sync_directory of the one it was in."""
    with RelativePath(path, True) as (name, directory):
        os.rmdir(name, dir_fd=directory)
    note_removed(path)


def remove(path: str) -> None:
    """Remove a file. On disk only after sync_directory; FileNotFoundError if it is not there."""
    with RelativePath(path, True) as (name, directory):
        os.remove(name, dir_fd=directory)


def discard_directory(path: str) -> None:
    """Remove a directory with all that is in it. Nothing is raised, and part of it may stay."""
    with contextlib.suppress(OSError):  # rmtree raises what goes wrong at its own open directories
        shutil.rmtree(path, ignore_errors=True)
