"""Files in memory, with the answers and errors of local ones, and with power cuts.

There are files and directories; nothing else, so no link is ever met. `/` is there. Times are
counted up by one with each change. A listing comes in the reverse order of names, so that who
relies on an order is found out.
"""

import errno
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn, Self

from storage.errors import CorruptFileError
from storage.files.files import NOT_HELD, ChangingFile, Entry, HeldFile, OpenFile

_DEVICE = 1


@dataclass(slots=True, eq=False)
class _File:
    inode: int
    data: bytes
    mtime_ns: int
    ctime_ns: int
    on_disk: bytes = b""  # its bytes as they were synced last
    links: int = 1  # names


@dataclass(slots=True, eq=False)
class _Directory:
    inode: int
    names: "dict[str, _Node]" = field(default_factory=dict)
    on_disk: "dict[str, _Node]" = field(default_factory=dict)  # as it was synced last


_Node = _File | _Directory


def _fail(code: int, *paths: str) -> NoReturn:
    error = OSError(code, os.strerror(code), paths[0])
    if len(paths) > 1:
        error.filename2 = paths[1]
    raise error


class MemoryFiles:
    """`Files` in memory. Two threads at once may work in two directories, not in one."""

    def __init__(self) -> None:
        self._root = _Directory(1)
        self._inodes, self._now_ns = 1, 0

    def after_power_cut(self) -> "MemoryFiles":
        """What is left on disk where the power fails now, in the worst case: bytes and names that
        were synced, and nothing else."""
        left = MemoryFiles()
        left._inodes, left._now_ns = self._inodes, self._now_ns
        kept: dict[int, _Node] = {1: left._root}
        left._root.names = _kept(self._root, kept)
        left._root.on_disk = dict(left._root.names)
        return left

    def list_directory(self, path: str) -> list[Entry]:
        names = self._directory(path).names
        return [_entry(name, names[name]) for name in sorted(names, reverse=True)]

    def list_names(self, path: str) -> tuple[list[str], list[str]]:
        names = self._directory(path).names
        ordered = sorted(names, reverse=True)
        return (
            [name for name in ordered if isinstance(names[name], _Directory)],
            [name for name in ordered if isinstance(names[name], _File)],
        )

    def look_up(self, path: str) -> Entry | None:
        try:
            return _entry(os.path.basename(path), self._node(path))
        except FileNotFoundError:
            return None

    def exists(self, path: str) -> bool:
        return self.look_up(path) is not None

    def is_directory(self, path: str) -> bool:
        try:
            return isinstance(self._node(path), _Directory)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def read_bytes(self, path: str) -> bytes:
        return self._file(path).data

    def read_range(self, path: str, position: int, length: int) -> bytes:
        return _range(self._file(path), path, position, length)

    def open(self, path: str) -> OpenFile:
        return _OpenInMemory(self._file(path), path)

    def open_to_change(self, path: str, create: bool = False) -> ChangingFile:
        directory, name = self._place(path)
        if create and name not in directory.names:
            self._inodes += 1
            now = self._tick()
            directory.names[name] = _file(self._inodes, b"", now)
        node = self._node(path)
        if isinstance(node, _Directory):
            _fail(errno.EISDIR, path)
        return _ChangingInMemory(self, node, path)

    def replace_file(self, path: str, data: bytes) -> None:
        temporary = f"{path}.tmp"
        directory, name = self._place(temporary)
        there = directory.names.get(name)
        if isinstance(there, _Directory):
            _fail(errno.EISDIR, temporary)
        if there is not None:
            there.links -= 1
        self._inodes += 1
        self._tick()
        made = _file(self._inodes, data, self._now_ns)
        made.on_disk = data
        directory.names[name] = made
        try:
            self.rename(temporary, path)
        except OSError:
            del directory.names[name]
            raise
        self.sync_directory(os.path.dirname(path))

    def truncate_file(self, path: str, size_bytes: int) -> None:
        node = self._node(path)
        if isinstance(node, _Directory):
            _fail(errno.EISDIR, path)
        if size_bytes < 0:
            _fail(errno.EINVAL, path)
        node = self.own(node, path)
        self.change(node, node.data[:size_bytes].ljust(size_bytes, b"\0"))
        node.on_disk = node.data

    def own(self, file: _File, path: str) -> _File:
        """What may be changed in place of a file: a copy that takes this name of several."""
        if file.links < 2:
            return file
        directory, name = self._place(path)
        if directory.names.get(name) is not file:
            raise OSError(errno.EMLINK, "has other names (hard links), and has lost this one", path)
        self._inodes += 1
        file.links -= 1
        copy = replace(file, inode=self._inodes, on_disk=file.data, links=1)
        directory.names[name] = copy
        self.sync_directory(os.path.dirname(path))
        return copy

    def change(self, file: _File, data: bytes) -> None:
        file.data = data
        file.mtime_ns = file.ctime_ns = self._tick()

    def rename(self, source: str, target: str) -> None:
        paths = source, target
        try:
            (old_in, old), (new_in, new) = self._place(source), self._place(target)
            moved = self._node(source)
        except OSError as error:
            _fail(error.errno or 0, *paths)
        there = new_in.names.get(new)
        if there is moved:
            return
        if isinstance(moved, _Directory):
            if self._holds(moved, new_in):
                _fail(errno.EINVAL, *paths)
            if isinstance(there, _File):
                _fail(errno.ENOTDIR, *paths)
            if there is not None and there.names:
                _fail(errno.ENOTEMPTY, *paths)
        else:
            if isinstance(there, _Directory):
                _fail(errno.EISDIR, *paths)
            moved.ctime_ns = self._tick()
        if isinstance(there, _File):
            there.links -= 1
        del old_in.names[old]
        new_in.names[new] = moved

    def link(self, source: str, target: str) -> None:
        paths = source, target
        try:
            linked, (directory, name) = self._node(source), self._place(target)
        except OSError as error:
            _fail(error.errno or 0, *paths)
        if name in directory.names:
            _fail(errno.EEXIST, *paths)
        if isinstance(linked, _Directory):
            _fail(errno.EPERM, *paths)
        linked.ctime_ns = self._tick()
        linked.links += 1
        directory.names[name] = linked

    def remove(self, path: str) -> None:
        node = self._node(path)
        if isinstance(node, _Directory):
            _fail(errno.EISDIR, path)
        directory, name = self._place(path)
        node.links -= 1
        del directory.names[name]

    def make_directory(self, path: str) -> None:
        directory, name = self._place(path)
        if name in directory.names:
            _fail(errno.EEXIST, path)
        self._inodes += 1
        directory.names[name] = _Directory(self._inodes)
        self.sync_directory(os.path.dirname(path))

    def remove_directory(self, path: str) -> None:
        node = self._node(path)
        if isinstance(node, _File):
            _fail(errno.ENOTDIR, path)
        if node.names:
            _fail(errno.ENOTEMPTY, path)
        directory, name = self._place(path)
        del directory.names[name]

    def set_modified(self, path: str, time_ms: int) -> None:
        node = self._node(path)
        if isinstance(node, _File):
            self._tick()
            node.mtime_ns = time_ms * 1_000_000

    def sync_file(self, path: str) -> None:
        node = self._node(path)
        if isinstance(node, _File):
            node.on_disk = node.data

    def sync_directory(self, path: str) -> None:
        directory = self._directory(path or ".")
        directory.on_disk = dict(directory.names)

    def _tick(self) -> int:
        self._now_ns += 1
        return self._now_ns

    def _node(self, path: str) -> _Node:
        node: _Node = self._root
        for name in filter(None, os.path.abspath(path).split("/")):
            if isinstance(node, _File):
                _fail(errno.ENOTDIR, path)
            if name not in node.names:
                _fail(errno.ENOENT, path)
            node = node.names[name]
        return node

    def _directory(self, path: str) -> _Directory:
        node = self._node(path)
        if isinstance(node, _File):
            _fail(errno.ENOTDIR, path)
        return node

    def _file(self, path: str) -> _File:
        node = self._node(path)
        if isinstance(node, _Directory):
            raise CorruptFileError(path, 0, "is a directory, not a file")
        return node

    def _place(self, path: str) -> tuple[_Directory, str]:
        """The directory that a name is in, or would be, and the name. Errors are of the path."""
        parent, name = os.path.split(os.path.abspath(path))
        try:
            return self._directory(parent), name
        except OSError as error:
            _fail(error.errno or 0, path)

    def _holds(self, directory: _Directory, wanted: _Directory) -> bool:
        if directory is wanted:
            return True
        below = (node for node in directory.names.values() if isinstance(node, _Directory))
        return any(self._holds(node, wanted) for node in below)


class _OpenInMemory:
    def __init__(self, file: _File, path: str) -> None:
        self._file, self._path = file, path
        self.entry = _entry("", file)

    def read(self, position: int, length: int) -> bytes:
        return _range(self._file, self._path, position, length)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to close."""


class _ChangingInMemory:
    def __init__(self, files: MemoryFiles, file: _File, path: str) -> None:
        self._files, self._file, self._path = files, file, path

    def read(self, position: int, length: int) -> bytes:
        return _range(self._file, self._path, position, length)

    def write(self, position: int, data: bytes | bytearray | memoryview) -> None:
        if position < 0:
            _fail(errno.EINVAL, self._path)
        before = self._file.data[:position].ljust(position, b"\0")
        self._change(before + bytes(data) + self._file.data[position + len(data) :])

    def truncate(self, size_bytes: int) -> None:
        if size_bytes < 0:
            _fail(errno.EINVAL, self._path)
        self._change(self._file.data[:size_bytes].ljust(size_bytes, b"\0"))

    def _change(self, data: bytes) -> None:
        self._file = self._files.own(self._file, self._path)
        self._files.change(self._file, data)

    def held(self) -> HeldFile:
        return NOT_HELD

    @property
    def is_open(self) -> bool:
        return True  # it needs no descriptor

    def size(self) -> int:
        return len(self._file.data)

    def sync(self) -> None:
        self._file.on_disk = self._file.data

    def renamed(self, path: str) -> None:
        self._path = path

    def close(self) -> None:
        """There is nothing to close."""


def _file(inode: int, data: bytes, now_ns: int) -> _File:
    return _File(inode=inode, data=data, mtime_ns=now_ns, ctime_ns=now_ns)


def _kept(directory: _Directory, kept: dict[int, _Node]) -> dict[str, _Node]:
    """What is on disk of a directory. kept: nodes by inode, as a file may have two names."""
    names: dict[str, _Node] = {}
    for name, node in directory.on_disk.items():
        if node.inode not in kept:
            if isinstance(node, _File):
                kept[node.inode] = replace(node, data=node.on_disk, links=0)
            else:
                kept[node.inode] = left = _Directory(node.inode)
                left.names = _kept(node, kept)
                left.on_disk = dict(left.names)
        names[name] = found = kept[node.inode]
        if isinstance(found, _File):
            found.links += 1
    return names


def _range(file: _File, path: str, position: int, length: int) -> bytes:
    if length <= 0:
        return b""
    if position < 0:
        _fail(errno.EINVAL, path)
    return file.data[position : position + length]


def _entry(name: str, node: _Node) -> Entry:
    if isinstance(node, _Directory):
        return Entry(name=name, is_dir=True, size_bytes=0, mtime_ns=0, inode=node.inode)
    return Entry(
        name=name,
        is_dir=False,
        size_bytes=len(node.data),
        mtime_ns=node.mtime_ns,
        inode=node.inode,
        special="",
        ctime_ns=node.ctime_ns,
        device=_DEVICE,
    )


def in_memory(root: Path) -> MemoryFiles:
    """Return a copy of a directory of the disk under its own path, all of it synced."""
    files = MemoryFiles()
    for parent in [*reversed(root.parents)][1:]:
        files.make_directory(str(parent))
    for directory, _, names in os.walk(root):
        files.make_directory(directory)
        for name in names:
            path = Path(directory, name)
            files.replace_file(str(path), path.read_bytes())
    return files
