"""Files of this machine, and of what it has mounted with the semantics of POSIX."""

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from io import BufferedReader, BufferedWriter, FileIO
from typing import BinaryIO, Self

from storage.files import backends, cloning, file_attributes, filesystem, held_directories
from storage.files.descriptors import naming, read_from
from storage.files.files import (
    ChangingFile,
    Cloned,
    Entry,
    FileAttributes,
    HeldFile,
    Mount,
    Opened,
    OpenFile,
)


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
        filesystem.remove(temporary)
    try:
        if not _is_at(found, filesystem.look_up(path)):
            raise _nameless(path)
        cloned = cloning.clone_file(path, temporary, lambda _: None)
        if not _is_at(found, cloned.source):  # since the look
            raise _nameless(path)
        if not cloned.has_owner:
            problem = "has other names (hard links), and a copy cannot be given to its owner"
            raise PermissionError(errno.EPERM, problem, path)
        copy = filesystem.open_to_change(temporary, create=False)
        try:
            with naming(temporary):
                os.fsync(copy)
            filesystem.rename(temporary, path)
            with naming(path):
                os.dup2(copy, descriptor, inheritable=False)
        finally:
            os.close(copy)
    except OSError:
        with contextlib.suppress(OSError):  # the first error counts
            filesystem.remove(temporary)
        raise
    filesystem.sync_directory(os.path.dirname(path))


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
        return filesystem.list_directory(path)

    def list_names(self, path: str) -> tuple[list[str], list[str]]:
        return filesystem.list_names(path)

    def look_up(self, path: str) -> Entry | None:
        return filesystem.look_up(path)

    def exists(self, path: str) -> bool:
        return filesystem.exists(path)

    def is_directory(self, path: str) -> bool:
        return filesystem.is_directory(path)

    def read_bytes(self, path: str) -> bytes:
        return filesystem.read_bytes(path)

    def read_range(self, path: str, position: int, length: int) -> bytes:
        return filesystem.read_range(path, position, length)

    def open(self, path: str) -> OpenFile:
        return _LocalFile(path)

    def open_to_change(self, path: str, create: bool = False) -> ChangingFile:
        return _LocalChangingFile(path, create)

    def replace_file(self, path: str, data: bytes) -> None:
        filesystem.replace_file(path, data)

    def truncate_file(self, path: str, size_bytes: int) -> None:
        file = _LocalChangingFile(path, create=False)
        try:
            file.truncate(size_bytes)
            file.sync()
        finally:
            file.close()

    def rename(self, source: str, target: str) -> None:
        filesystem.rename(source, target)

    def link(self, source: str, target: str) -> None:
        filesystem.link(source, target)

    def remove(self, path: str) -> None:
        filesystem.remove(path)

    def make_directory(self, path: str) -> None:
        filesystem.make_directory(path)

    def remove_directory(self, path: str) -> None:
        filesystem.remove_directory(path)

    def set_modified(self, path: str, time_ms: int) -> None:
        self.set_times(path, time_ms * 1_000_000)

    def sync_file(self, path: str) -> None:
        filesystem.sync_file(path)

    def sync_directory(self, path: str) -> None:
        filesystem.sync_directory(path)

    def resolve(self, path: str) -> str:
        return os.path.realpath(path)

    def is_same(self, path: str, other: str) -> bool:
        return os.path.samefile(path, other)

    def status(self, path: str, follow: bool = True) -> os.stat_result:
        return os.stat(path) if follow else os.lstat(path)

    def file_system_status(self, path: str) -> os.statvfs_result:
        return os.statvfs(path)

    def mount_of(self, path: str) -> Mount | None:
        return backends.mount_of(path)

    def is_permitted(self, path: str, rights: int) -> bool:
        return os.access(path, rights)

    def may_give(self, uid: int, gid: int) -> bool:
        return file_attributes.may_give(uid, gid)

    def require_replaceable(self, path: str) -> None:
        file_attributes.require_replaceable(path)

    def make_directories(self, path: str) -> None:
        os.makedirs(path, mode=0o700, exist_ok=True)

    def temporary_directory(self) -> str:
        return tempfile.gettempdir()

    def make_temporary_directory(self, prefix: str, parent: str | None = None) -> str:
        return tempfile.mkdtemp(prefix=prefix, dir=parent)

    def remove_tree(self, path: str) -> None:
        shutil.rmtree(path)

    def discard_directory(self, path: str) -> None:
        filesystem.discard_directory(path)

    def open_raw(self, path: str, mode: str, is_private: bool = True) -> FileIO:
        opener = filesystem.private if is_private else filesystem.public
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
        return Opened(*filesystem.open_known(path))

    def sync_descriptor(self, descriptor: int) -> None:
        os.fsync(descriptor)

    def attributes_of(self, file: str | int) -> FileAttributes:
        return file_attributes.attributes_of(file)

    def give_attributes(self, descriptor: int, model: FileAttributes) -> None:
        file_attributes.give_attributes(descriptor, model)

    def set_times(self, file: str | int, time_ns: int | None) -> None:
        if time_ns is None:
            os.utime(file)
        else:
            os.utime(file, ns=(time_ns, time_ns))

    def allocated_bytes(self, path: str) -> int:
        return cloning.allocated_bytes(path)

    def clone_file(self, source: str, target: str, advance: Callable[[int], object]) -> Cloned:
        return cloning.clone_file(source, target, advance)

    def clone_directory(self, source: str, target: str) -> bool:
        return cloning.clone_directory(source, target)

    def can_share(self, source: str, directory: str) -> bool:
        return cloning.can_share(source, directory)

    def sync_file_system(self, descriptor: int, path: str) -> None:
        cloning.sync_file_system(descriptor, path)

    def hold_log_dir(
        self, path: str, require_owner: Callable[[], object]
    ) -> AbstractContextManager[None]:
        return held_directories.hold_log_dir(path, require_owner)

    def hold_directory(self, path: str, inode: int | None) -> AbstractContextManager[None]:
        return held_directories.hold_directory(path, inode)

    def kept_open(self, path: str) -> AbstractContextManager[None]:
        return held_directories.kept_open(path)

    def require_unchanged(self, path: str) -> None:
        held_directories.require_unchanged(path)

    def inode_of(self, path: str) -> int | None:
        return held_directories.inode_of(path)


class _LocalFile:
    __slots__ = ("_descriptor", "_path", "entry")

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor, self.entry = filesystem.open_known(path)

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
        self.descriptor = filesystem.open_to_change(path, create)

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
