"""Files of this machine, and of what it has mounted with the semantics of POSIX.

In-place work needs three promises: a rename replaces its target in one step, bytes that were synced
outlive a power cut, and so do names once their directory was synced. Local file systems (network
ones with POSIX semantics included) give them through the calls below, which are the operating
system's own: fsspec's local backend never syncs, and its move may copy. No other fsspec backend
states these promises, so none is taken for in-place work (`backends`; spec C-15.4, F-13.3).
"""

import contextlib
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from io import BufferedReader, BufferedWriter, FileIO
from typing import BinaryIO, Self

from storage.files import backends, cloning, file_attributes, held_directories
from storage.files.descriptors import entry_with, naming, read_from, special_kind
from storage.files.files import (
    ChangingFile,
    Entry,
    HeldFile,
    Opened,
    OpenFile,
)
from storage.files.held_directories import (
    RelativePath,
    call_with_both_paths,
    note_made,
    note_removed,
    note_renamed,
    open_directory,
    open_file,
    open_known,
    open_to_change,
    open_to_sync,
    private,
    public,
    split,
)

_READ_BYTES = 16 * 1024


def make_own(descriptor: int, path: str) -> None:
    """Let an open file be the only one that has its bytes; the descriptor stays the same number.

    A file that has other names, such as one in a backup by hard links, gets bytes of its own before
    it is written or cut in place: else the backup would change with it.

    1. The bytes are copied to `<path>.tmp`, with owner, mode, time and extended attributes, and
       synced.
    2. The copy takes the name, which is synced. The other names keep the old file.

    A crash leaves the file as it was, and perhaps the `.tmp`, which the next change replaces.
    Raise OSError where that cannot be, as for want of room; then nothing has changed.
    """
    with naming(path):
        found = os.fstat(descriptor)
    if found.st_nlink < 2:
        return
    temporary = f"{path}.tmp"
    with contextlib.suppress(FileNotFoundError):
        LOCAL.remove(temporary)
    try:
        if not _is_at(found, LOCAL.look_up(path)):
            raise _nameless(path)
        cloned = cloning.clone_file(path, temporary, lambda _: None)
        if not _is_at(found, cloned.source):  # since the look
            raise _nameless(path)
        if not cloned.has_owner:
            problem = "has other names (hard links), and a copy cannot be given to its owner"
            raise PermissionError(errno.EPERM, problem, path)
        copy = open_to_change(temporary, create=False)
        try:
            with naming(temporary):
                os.fsync(copy)
            LOCAL.rename(temporary, path)
            with naming(path):
                os.dup2(copy, descriptor, inheritable=False)
        finally:
            os.close(copy)
    except OSError:
        with contextlib.suppress(OSError):  # the first error counts
            LOCAL.remove(temporary)
        raise
    LOCAL.sync_directory(os.path.dirname(path))


def _is_at(status: os.stat_result, named: Entry | None) -> bool:
    return named is not None and (named.device, named.inode) == (status.st_dev, status.st_ino)


def _nameless(path: str) -> OSError:
    return OSError(errno.EMLINK, "has other names (hard links), and has lost this one", path)


class LocalFiles:
    """A `Disk` by the calls of the operating system, with every sync that they promise.

    A file in a directory that is held is reached in that very directory or not at all
    (`held_directories`). One that has other names, by hard links, gets bytes of its own before it
    is written or cut in place (`make_own`).
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Callable[[], "LocalFiles"], tuple[()]]:
        return _local, ()  # what is pickled is the one there is, as it has no state

    def list_directory(self, path: str) -> list[Entry]:
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

    def list_names(self, path: str) -> tuple[list[str], list[str]]:
        directories: list[str] = []
        others: list[str] = []
        with _listed(path) as names:
            for item in names:
                (directories if item.is_dir(follow_symlinks=False) else others).append(item.name)
        return directories, others

    def look_up(self, path: str) -> Entry | None:
        try:
            with RelativePath(path, False) as (reached, directory):
                found = os.stat(reached, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            return None
        _, name = split(path)
        if stat.S_ISDIR(found.st_mode):
            return Entry(name, True, 0, 0, found.st_ino)
        return entry_with(name, found)

    def exists(self, path: str) -> bool:
        return self.look_up(path) is not None

    def is_directory(self, path: str) -> bool:
        try:
            return stat.S_ISDIR(os.stat(path).st_mode)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                return False
            raise

    def read_bytes(self, path: str) -> bytes:
        descriptor, found = open_known(path)
        left, pieces = found.size_bytes, []
        try:
            # until nothing comes: a file in /proc has no size
            while piece := os.read(descriptor, max(left + 1, _READ_BYTES)):
                pieces.append(piece)
                left -= len(piece)
        except OSError as error:
            error.filename = path
            raise
        finally:
            os.close(descriptor)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def read_range(self, path: str, position: int, length: int) -> bytes:
        descriptor = open_file(path)
        try:
            return read_from(descriptor, position, length)
        except OSError as error:
            error.filename = path
            raise
        finally:
            os.close(descriptor)

    def open(self, path: str) -> OpenFile:
        return _LocalFile(path)

    def open_to_change(self, path: str, create: bool = False) -> ChangingFile:
        return _LocalChangingFile(path, create)

    def replace_file(self, path: str, data: bytes) -> None:
        temporary = f"{path}.tmp"  # beside its target, so that the rename stays on one file system
        try:
            with contextlib.suppress(FileNotFoundError):
                self.remove(temporary)  # it could be a link, or have another name somewhere else
            with naming(temporary), open(temporary, "xb", opener=public) as out:
                out.write(data)
                out.flush()
                _adopt(out.fileno(), path)
                os.fsync(out.fileno())  # the bytes, before the name points at them
            self.rename(temporary, path)
        except OSError:
            with contextlib.suppress(OSError):  # the first error counts
                self.remove(temporary)
            raise
        self.sync_directory(os.path.dirname(path))  # the name

    def truncate_file(self, path: str, size_bytes: int) -> None:
        file = _LocalChangingFile(path, create=False)
        try:
            file.truncate(size_bytes)
            file.sync()
        finally:
            file.close()

    def rename(self, source: str, target: str) -> None:
        call_with_both_paths(os.replace, source, target)
        note_renamed(source, target)

    def link(self, source: str, target: str) -> None:
        call_with_both_paths(os.link, source, target, follow_symlinks=False)

    def remove(self, path: str) -> None:
        with RelativePath(path, True) as (name, directory):
            os.remove(name, dir_fd=directory)

    def make_directory(self, path: str) -> None:
        with RelativePath(path, True) as (name, directory):
            os.mkdir(name, 0o700, dir_fd=directory)
        note_made(path)
        self.sync_directory(os.path.dirname(path))

    def remove_directory(self, path: str) -> None:
        with RelativePath(path, True) as (name, directory):
            os.rmdir(name, dir_fd=directory)
        note_removed(path)

    def set_modified(self, path: str, time_ms: int) -> None:
        self.set_times(path, time_ms * 1_000_000)

    def sync_file(self, path: str) -> None:
        _sync(path, open_to_sync(path))

    def sync_directory(self, path: str) -> None:
        descriptor = open_directory(path)
        if descriptor is None:
            descriptor = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY)
        _sync(path, descriptor)

    def resolve(self, path: str) -> str:
        return os.path.realpath(path)

    def is_same(self, path: str, other: str) -> bool:
        return os.path.samefile(path, other)

    def status(self, path: str, follow: bool = True) -> os.stat_result:
        return os.stat(path) if follow else os.lstat(path)

    def file_system_status(self, path: str) -> os.statvfs_result:
        return os.statvfs(path)

    mount_of = staticmethod(backends.mount_of)

    def is_permitted(self, path: str, rights: int) -> bool:
        return os.access(path, rights)

    may_give = staticmethod(file_attributes.may_give)
    require_replaceable = staticmethod(file_attributes.require_replaceable)

    def make_directories(self, path: str) -> None:
        os.makedirs(path, mode=0o700, exist_ok=True)

    def temporary_directory(self) -> str:
        return tempfile.gettempdir()

    def make_temporary_directory(self, prefix: str, parent: str | None = None) -> str:
        return tempfile.mkdtemp(prefix=prefix, dir=parent)

    def remove_tree(self, path: str) -> None:
        shutil.rmtree(path)

    def discard_directory(self, path: str) -> None:
        with contextlib.suppress(OSError):  # rmtree raises what its own open directories meet
            shutil.rmtree(path, ignore_errors=True)

    def open_raw(self, path: str, mode: str, is_private: bool = True) -> FileIO:
        opener = private if is_private else public
        raw = open(path, mode, buffering=0, opener=opener)  # noqa: SIM115  # the caller closes it
        assert isinstance(raw, FileIO)
        return raw

    def open_named(self, path: str, mode: str = "rb") -> BinaryIO:
        file = open(path, mode)  # noqa: SIM115  # the caller closes it
        assert isinstance(file, BufferedReader | BufferedWriter)
        return file

    def open_descriptor(self, path: str, flags: int, mode: int = 0o600) -> int:
        return os.open(path, flags, mode)

    def open_to_read(self, path: str) -> Opened:
        return Opened(*open_known(path))

    def sync_descriptor(self, descriptor: int) -> None:
        os.fsync(descriptor)

    attributes_of = staticmethod(file_attributes.attributes_of)
    give_attributes = staticmethod(file_attributes.give_attributes)

    def set_times(self, file: str | int, time_ns: int | None) -> None:
        if time_ns is None:
            os.utime(file)
        else:
            os.utime(file, ns=(time_ns, time_ns))

    allocated_bytes = staticmethod(cloning.allocated_bytes)
    clone_file = staticmethod(cloning.clone_file)
    clone_directory = staticmethod(cloning.clone_directory)
    can_share = staticmethod(cloning.can_share)
    sync_file_system = staticmethod(cloning.sync_file_system)
    hold_log_dir = staticmethod(held_directories.hold_log_dir)
    hold_directory = staticmethod(held_directories.hold_directory)
    kept_open = staticmethod(held_directories.kept_open)
    require_unchanged = staticmethod(held_directories.require_unchanged)
    inode_of = staticmethod(held_directories.inode_of)


@contextlib.contextmanager
def _listed(path: str) -> Iterator["Iterator[os.DirEntry[str]]"]:
    descriptor = open_directory(path)
    try:
        with naming(path), os.scandir(path if descriptor is None else descriptor) as names:
            yield names
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _adopt(descriptor: int, path: str) -> None:
    try:
        model = file_attributes.attributes_of(path)
    except FileNotFoundError:
        _adopt_owner_of_directory(descriptor, os.path.dirname(path) or ".")
    else:
        file_attributes.give_attributes(descriptor, model)


def _adopt_owner_of_directory(descriptor: int, path: str) -> None:
    model, mine = os.stat(path), os.fstat(descriptor)
    if (mine.st_uid, mine.st_gid) != (model.st_uid, model.st_gid):
        with contextlib.suppress(PermissionError):  # only root may give files away
            os.fchown(descriptor, model.st_uid, model.st_gid)


def _sync(path: str, descriptor: int) -> None:
    try:
        with naming(path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _LocalFile:
    __slots__ = ("_descriptor", "_path", "entry")

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor, self.entry = open_known(path)

    def read(self, position: int, length: int) -> bytes:
        try:
            return read_from(self._descriptor, position, length)
        except OSError as error:
            error.filename = self._path  # the system knows of a descriptor only
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


class _LocalChangingFile:
    __slots__ = ("_path", "descriptor")

    def __init__(self, path: str, create: bool) -> None:
        self._path = path
        self.descriptor = open_to_change(path, create)

    def held(self) -> HeldFile:
        return self  # it is open until it is closed

    def read(self, position: int, length: int) -> bytes:
        try:
            return read_from(self.descriptor, position, length)
        except OSError as error:
            error.filename = self._path
            raise

    def write(self, position: int, data: bytes | bytearray | memoryview) -> None:
        make_own(self.descriptor, self._path)
        try:
            written = os.pwrite(self.descriptor, data, position)
            while written < len(data):  # a signal, or a limit of the system
                rest = memoryview(data)[written:]
                written += os.pwrite(self.descriptor, rest, position + written)
        except OSError as error:
            error.filename = self._path
            raise

    def truncate(self, size_bytes: int) -> None:
        make_own(self.descriptor, self._path)
        with naming(self._path):
            os.ftruncate(self.descriptor, size_bytes)

    @property
    def is_open(self) -> bool:
        return self.descriptor >= 0

    def size(self) -> int:
        with naming(self._path):
            return os.fstat(self.descriptor).st_size

    def sync(self) -> None:
        with naming(self._path):
            os.fsync(self.descriptor)

    def renamed(self, path: str) -> None:
        self._path = path

    def close(self) -> None:
        descriptor, self.descriptor = self.descriptor, -1  # soon that of another file
        os.close(descriptor)


def _local() -> LocalFiles:
    return LOCAL


LOCAL = LocalFiles()  # it has no state
