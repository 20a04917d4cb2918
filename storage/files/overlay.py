"""Files as they would be: what is changed is kept in memory, and no file is touched.

An operation that is done on an overlay first shows what would come of it, and whether it is
refused; a log that is opened on one is read as a starting broker would read it, while others work
there. Directories are neither made, removed nor renamed.
"""

import errno
import os
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple, NoReturn, Self

from storage.files.file_pool import default_open_limit
from storage.files.files import NOT_HELD, ChangingFile, Entry, Files, HeldFile, OpenFile


class FilesBelow:
    """Files by path, each the one that it was when it was first read. One thread at a time.

    A log of thousands of segments has more files than a process may have open: the one that was not
    read for longest is closed, and opened again when it is next read.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._open: OrderedDict[str, OpenFile] = OrderedDict()  # the one read last comes last
        self._first: dict[str, tuple[int, int]] = {}  # device and inode, as it was first opened

    @property
    def open_count(self) -> int:
        """How many files it has open."""
        return len(self._open)

    def read(self, path: str, position: int, length: int) -> bytes:
        """Read of a file. OSError where it was closed, and another has its name by now."""
        opened = self._open.get(path) or self._opened(path)
        self._open.move_to_end(path)
        return opened.read(position, length)

    def close_file(self, path: str) -> None:
        """Close a file, which may be another by this name when it is next read."""
        self._first.pop(path, None)
        opened = self._open.pop(path, None)
        if opened is not None:
            opened.__exit__()

    def close(self) -> None:
        """Close every file."""
        for path in list(self._open):
            self.close_file(path)
        self._first.clear()

    def _opened(self, path: str) -> OpenFile:
        most = max(1, default_open_limit() // 2)  # a pool above has as many
        while len(self._open) >= most:
            _, oldest = self._open.popitem(last=False)
            oldest.__exit__()
        opened = self._files.open(path)
        identity = (opened.entry.device, opened.entry.inode)
        if self._first.setdefault(path, identity) != identity:
            opened.__exit__()
            problem = "another file has this name since it was first read; read it again"
            raise OSError(errno.ESTALE, problem, path)
        self._open[path] = opened
        return opened


class FileChange(NamedTuple):
    """A file that is seen otherwise than it is below."""

    name: str
    size_bytes: int | None  # None: it is gone
    data: bytes | None = None  # all of it; None: the first size_bytes of what is below


@dataclass(slots=True, eq=False)
class _Layered:
    """The beginning of a file below, and what was written after it."""

    below: FilesBelow
    path: str  # of the file below; "": there is none
    kept: int = 0  # bytes of the file below that are still seen
    appended: bytearray = field(default_factory=bytearray)
    zeros: int = 0  # bytes after that, which no memory holds: an index is made 10 MiB long
    entry: Entry | None = None  # of the file below, as it was when it was first looked at
    mtime_ns: int = 0

    @property
    def size_bytes(self) -> int:
        return self.kept + len(self.appended) + self.zeros

    def read(self, position: int, length: int) -> bytes:
        end = min(position + max(length, 0), self.size_bytes)
        found = b""
        if position < self.kept and position < end:
            found = self.below.read(self.path, position, min(end, self.kept) - position)
        if end > self.kept:
            found += bytes(self.appended[max(0, position - self.kept) : end - self.kept])
        return found + bytes(max(0, end - position - len(found)))

    def write(self, position: int, data: bytes | bytearray | memoryview) -> None:
        if position < self.kept:
            self.appended[:0] = self.below.read(self.path, 0, self.kept)
            self.kept = 0
        at = position - self.kept
        size_bytes = max(self.size_bytes, position + len(data))
        if at > len(self.appended):
            self.appended.extend(bytes(at - len(self.appended)))
        self.appended[at : at + len(data)] = data
        self.zeros = size_bytes - self.kept - len(self.appended)

    def truncate(self, size_bytes: int) -> None:
        if size_bytes <= self.kept:
            self.kept = size_bytes
            self.appended.clear()
            self.zeros = 0
            return
        wanted = size_bytes - self.kept
        del self.appended[wanted:]
        self.zeros = wanted - len(self.appended)


class OverlayFiles:
    """`Files` over others. One thread at a time. Close it to let go of what was read."""

    def __init__(self, below: Files, is_alone: bool = False) -> None:
        """Lay changes over files that stay as they are.

        is_alone: nobody else changes what is below. A file there is closed with the one that was
        opened here, and may be opened again; else it stays the same whatever becomes of its name,
        or is refused (FilesBelow).
        """
        self._below, self._is_alone = below, is_alone
        self._read = FilesBelow(below)
        self._files: dict[str, dict[str, _Layered | None]] = {}  # by directory and name; None: gone

    def close(self) -> None:
        """Close every file below that was read."""
        self._read.close()

    def cut_below(self) -> list[str]:
        """The files of which less is seen than is there, or nothing, by path."""
        found = []
        for path, file in self._every_file():
            there = self._below.look_up(path)
            if there is None:
                continue
            if file is None or (file.path == path and file.kept < there.size_bytes):
                found.append(path)
        return sorted(found)

    def changes(self, path: str) -> Iterator[FileChange]:
        """Yield what has become of files of a directory, by name.

        Bytes may have been replaced by the same ones.
        """
        for name, file in sorted(self._in_directory(path).items()):
            own = os.path.abspath(os.path.join(path, name))
            there = self._below.look_up(own)
            if file is None:
                if there is not None:
                    yield FileChange(name, None)
            elif there is None or file.appended or file.zeros or os.path.abspath(file.path) != own:
                yield FileChange(name, file.size_bytes, file.read(0, file.size_bytes))
            elif file.kept != there.size_bytes:
                yield FileChange(name, file.kept)

    # ---- names --------------------------------------------------------------------------------

    def list_directory(self, path: str) -> list[Entry]:
        own = self._in_directory(path)
        found = [e for e in self._below.list_directory(path) if e.name not in own]
        found += [_entry(name, file) for name, file in own.items() if file is not None]
        return found

    def list_names(self, path: str) -> tuple[list[str], list[str]]:
        own = self._in_directory(path)
        directories, others = self._below.list_names(path)
        others = [name for name in others if name not in own]
        return directories, others + [name for name, file in own.items() if file is not None]

    def look_up(self, path: str) -> Entry | None:
        if not self._has(path):
            return self._below.look_up(path)
        directory, name = _split(path)
        file = self._files[directory][name]
        return None if file is None else _entry(name, file)

    def exists(self, path: str) -> bool:
        return self.look_up(path) is not None

    def is_directory(self, path: str) -> bool:
        return not self._has(path) and self._below.is_directory(path)

    def rename(self, source: str, target: str) -> None:
        if self._below.is_directory(source):
            _fail(errno.EROFS, source)
        moved = self._file(source)
        self._put(source, None)
        self._put(target, moved)

    def link(self, source: str, target: str) -> None:
        if self.exists(target):
            _fail(errno.EEXIST, target)
        linked = self._file(source)  # no byte of which may change with the other name
        self._put(target, replace(linked, appended=bytearray(linked.appended)))

    def remove(self, path: str) -> None:
        self._file(path)
        self._put(path, None)

    def make_directory(self, path: str) -> None:
        _fail(errno.EROFS, path)

    def remove_directory(self, path: str) -> None:
        _fail(errno.EROFS, path)

    # ---- bytes --------------------------------------------------------------------------------

    def read_bytes(self, path: str) -> bytes:
        file = self._own(path)
        return self._below.read_bytes(path) if file is None else file.read(0, file.size_bytes)

    def read_range(self, path: str, position: int, length: int) -> bytes:
        file = self._own(path)
        if file is None:
            return self._below.read_range(path, position, length)
        return file.read(position, length)

    def open(self, path: str) -> OpenFile:
        file = self._own(path)
        return self._below.open(path) if file is None else _Open(file)

    def open_to_change(self, path: str, create: bool = False) -> ChangingFile:
        if create and not self.exists(path):
            self._put(path, _Layered(below=self._read, path=""))
        return _Changing(self._file(path), self._is_alone)

    def replace_file(self, path: str, data: bytes) -> None:
        file = _Layered(below=self._read, path="")
        file.write(0, data)
        self._put(path, file)

    def truncate_file(self, path: str, size_bytes: int) -> None:
        self._file(path).truncate(size_bytes)

    def set_modified(self, path: str, time_ms: int) -> None:
        self._file(path).mtime_ns = time_ms * 1_000_000

    def sync_file(self, path: str) -> None:
        """There is nothing to sync."""

    def sync_directory(self, path: str) -> None:
        """There is nothing to sync."""

    # ---- what is kept -------------------------------------------------------------------------

    def _in_directory(self, path: str) -> dict[str, _Layered | None]:
        return self._files.get(os.path.abspath(path), {})

    def _every_file(self) -> Iterator[tuple[str, _Layered | None]]:
        for directory, files in self._files.items():
            for name, file in files.items():
                yield os.path.join(directory, name), file

    def _has(self, path: str) -> bool:
        """Whether something is kept of a file, if only that it is gone."""
        directory, name = _split(path)
        return name in self._files.get(directory, {})

    def _put(self, path: str, file: _Layered | None) -> None:
        directory, name = _split(path)
        self._files.setdefault(directory, {})[name] = file

    def _own(self, path: str) -> _Layered | None:
        """What is kept of a file; None where it is as below."""
        if not self._has(path):
            return None
        directory, name = _split(path)
        return self._files[directory][name] or _fail(errno.ENOENT, path)

    def _file(self, path: str) -> _Layered:
        """A file, kept from now on."""
        file = self._own(path)
        if file is None:
            found = self._below.look_up(path)
            if found is None:
                _fail(errno.ENOENT, path)
            if found.is_dir:
                _fail(errno.EISDIR, path)
            file = _Layered(
                below=self._read,
                path=path,
                kept=found.size_bytes,
                entry=found,
                mtime_ns=found.mtime_ns,
            )
            self._put(path, file)
        return file


def _split(path: str) -> tuple[str, str]:
    """Directory and name; a path that differs in how it is written comes to the same."""
    return os.path.split(os.path.abspath(path))


def _fail(code: int, path: str) -> NoReturn:
    raise OSError(code, os.strerror(code), path)


def _entry(name: str, file: _Layered) -> Entry:
    below = file.entry
    return Entry(
        name=name,
        is_dir=False,
        size_bytes=file.size_bytes,
        mtime_ns=file.mtime_ns,
        inode=0 if below is None else below.inode,
        special="" if below is None else below.special,
        ctime_ns=0 if below is None else below.ctime_ns,
        device=0 if below is None else below.device,
    )


class _Open:
    def __init__(self, file: _Layered) -> None:
        self._file, self.entry = file, _entry("", file)

    def read(self, position: int, length: int) -> bytes:
        return self._file.read(position, length)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """The overlay closes what is below."""


class _Changing:
    def __init__(self, file: _Layered, is_alone: bool) -> None:
        self._file, self._is_alone = file, is_alone

    def read(self, position: int, length: int) -> bytes:
        return self._file.read(position, length)

    def write(self, position: int, data: bytes | bytearray | memoryview) -> None:
        self._file.write(position, data)

    def truncate(self, size_bytes: int) -> None:
        self._file.truncate(size_bytes)

    def held(self) -> HeldFile:
        return NOT_HELD

    @property
    def is_open(self) -> bool:
        return True  # it needs no descriptor

    def size(self) -> int:
        return self._file.size_bytes

    def sync(self) -> None:
        """There is nothing to sync."""

    def renamed(self, _path: str) -> None:
        """It is known without its name."""

    def close(self) -> None:
        """Else the overlay closes what is below."""
        if self._is_alone:
            self._file.below.close_file(self._file.path)
