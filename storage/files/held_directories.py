"""Directories that work changes something in: each is held to be the one that it was at first.

Between a look at a directory and a change in it somebody may put a link in its place, or another
directory, or take the log directory over. So the work first holds the directories that it is going
to change. From then on a file in one of them is reached by its name and a descriptor of the
directory (`RelativePath`), which is opened without following a link and compared with what was
noted; and before each change the owner is asked whether it still owns the log directory.

The directory is opened for each operation: ten thousand directories take no descriptors. Work that
does thousands of operations in one directory keeps that one open (`kept_open`). A directory that
nobody holds, such as a run's own work directory, is reached by its path.
"""

import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from storage.errors import CorruptFileError
from storage.files.descriptors import look_at
from storage.files.files import Entry

EXCHANGED = (
    "another directory, or a link, has taken its place since the work began, and was left alone"
)
CAME_LATER = "this directory has come since the work began, and was left alone"


class DirectoryExchangedError(OSError):
    """Another directory, or a link, stands in the place of one that is held, or it came later."""

    reason_code = "changed-meanwhile"


class _Held(NamedTuple):
    inode: int
    device: int | None  # None: not known; on another host it has another number
    is_log_dir: bool  # its name may be that of a link
    require_owner: Callable[[], object]


_held: dict[str, _Held] = {}  # by path, as whoever holds it names it
_log_dirs: set[str] = set()  # of which every directory in it is held


class _Kept(threading.local):
    """The directory that a thread keeps open."""

    path: str | None = None
    held: "_Held | None" = None
    descriptor: int = -1


_kept = _Kept()


@contextmanager
def hold_log_dir(path: str, require_owner: Callable[[], object]) -> Iterator[None]:
    """Hold a log directory and every directory in it now; of later ones, those that we make.

    require_owner: is called before each change, and raises where nothing may be changed any more.
    """
    found = os.stat(path)
    held = {path: _Held(found.st_ino, found.st_dev, True, require_owner)}
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                try:
                    found = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                own = _Held(found.st_ino, found.st_dev, False, require_owner)
                held[os.path.join(path, entry.name)] = own
    _held.update(held)
    _log_dirs.add(path)
    try:
        yield
    finally:
        _log_dirs.remove(path)
        for name in [each for each in _held if path in (each, os.path.dirname(each))]:
            del _held[name]


def note_made(path: str) -> None:
    """Hold a directory that we have just made in a log directory that is held."""
    owner = _held.get(os.path.dirname(path))
    if owner is not None and owner.is_log_dir:
        found = os.lstat(path)
        _held[path] = _Held(found.st_ino, found.st_dev, False, owner.require_owner)


def note_renamed(source: str, target: str) -> None:
    """Know a directory that we have just renamed by its new name."""
    if source in _held:
        _held[target] = _held.pop(source)


def note_removed(path: str) -> None:
    """Hold a directory no longer that we have just removed."""
    _held.pop(path, None)


@contextmanager
def hold_directory(path: str, inode: int | None) -> Iterator[None]:
    """Hold one directory, known by an inode alone, unless it is held already, or is not known."""
    if inode is None or path in _held:
        yield
        return
    _held[path] = _Held(inode, None, False, lambda: None)
    try:
        yield
    finally:
        del _held[path]


@contextmanager
def kept_open(path: str) -> Iterator[None]:
    """Open a directory that is held once for all that this thread does in it meanwhile.

    Before each operation its name is looked up, and owners are asked before each change: that takes
    one call of the system, and not three.
    """
    descriptor = open_directory(path)
    if descriptor is None:  # nobody holds it
        yield
        return
    before = _kept.path, _kept.held, _kept.descriptor
    _kept.path, _kept.held, _kept.descriptor = path, _held.get(path), descriptor
    try:
        yield
    finally:
        _kept.path, _kept.held, _kept.descriptor = before
        os.close(descriptor)


def kept_descriptor(path: str, to_change: bool) -> int | None:
    """That of a directory, if this thread keeps it open; not to be closed. As `open_directory`."""
    if path != _kept.path:
        return None
    held = _held.get(path)
    if held is None or held is not _kept.held:  # it was renamed, removed or made by us meanwhile
        raise DirectoryExchangedError(errno.ESTALE, EXCHANGED, path)
    _require_same(path, held, os.stat(path, follow_symlinks=held.is_log_dir))
    if to_change:
        held.require_owner()
    return _kept.descriptor


def _require_same(path: str, held: _Held, status: os.stat_result) -> None:
    if status.st_ino != held.inode or held.device not in (None, status.st_dev):
        raise DirectoryExchangedError(errno.ESTALE, EXCHANGED, path)


def is_any_held() -> bool:
    """Whether there is a directory that `open_directory` gives a descriptor of."""
    return bool(_held)


def inode_of(path: str) -> int | None:
    """What a held directory is known by on any host; None for one that is not held."""
    held = _held.get(path)
    return None if held is None else held.inode


def require_unchanged(path: str) -> None:
    """Raise DirectoryExchangedError, or OSError, where a directory is not the one that is held."""
    descriptor = open_directory(path)
    if descriptor is not None:
        os.close(descriptor)


def open_directory(path: str, to_change: bool = False) -> int | None:
    """A descriptor of a held directory, for the caller to close; None for one that nobody holds.

    to_change: whether the owner is asked. Raise what he raises, DirectoryExchangedError or OSError:
    that, too, where a log directory that is held has no such directory.
    """
    kept = kept_descriptor(path, to_change)
    if kept is not None:
        return os.dup(kept)
    held = _held.get(path)
    if held is None:
        if _log_dirs and os.path.dirname(path) in _log_dirs:
            os.lstat(path)  # raises where there is none
            raise DirectoryExchangedError(errno.ESTALE, CAME_LATER, path)
        return None
    flags = os.O_RDONLY | os.O_DIRECTORY | (0 if held.is_log_dir else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        raise DirectoryExchangedError(errno.ESTALE, EXCHANGED, path) from error
    try:
        _require_same(path, held, os.fstat(descriptor))
        if to_change:
            held.require_owner()
    except BaseException as error:
        os.close(descriptor)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = path
        raise
    return descriptor


def split(path: str) -> tuple[str, str]:
    """Split as os.path.split does, which takes five times as long for an ordinary path."""
    directory, _, name = path.rpartition("/")
    if not directory or directory.endswith("/"):
        return os.path.split(path)
    return directory, name


class RelativePath:
    """A context that gives a file's name and the descriptor of the directory it is relative to.

    Where no directory is held, it gives the path and None. An error of the call in the context gets
    the file's path. to_change: whether the owner of the directory is asked first.
    """

    __slots__ = ("_name", "_opened", "_path", "_to_change")

    def __init__(self, path: str, to_change: bool) -> None:
        self._path, self._to_change = path, to_change
        self._opened: int | None = None

    def __enter__(self) -> tuple[str, int | None]:
        self._name = self._path
        if not is_any_held():  # so for each file of a plan
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


def call_with_both_paths(
    call: Callable[..., None], source: str, target: str, **named: bool
) -> None:
    """Make a system call that takes two names and changes both, relative to their directories.

    Two names in one directory, as nearly always, open it once.
    """
    of_source, old_name = split(source)
    if of_source != split(target)[0]:
        with (
            RelativePath(source, True) as (old, of_old),
            RelativePath(target, True) as (new, of_new),
        ):
            try:
                call(old, new, src_dir_fd=of_old, dst_dir_fd=of_new, **named)
            except OSError as error:
                error.filename, error.filename2 = source, target
                raise
        return
    with RelativePath(target, True) as (name, held):
        old = source if held is None else old_name
        try:
            call(old, name, src_dir_fd=held, dst_dir_fd=held, **named)
        except OSError as error:
            error.filename, error.filename2 = source, target
            raise


_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


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


def open_to_sync(path: str) -> int:
    """Open a file for a sync of its bytes; its descriptor."""
    with RelativePath(path, False) as (name, directory):
        return os.open(name, _READING, dir_fd=directory)


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
