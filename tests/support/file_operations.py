"""Every file operation of a piece of code, one by one, for a caller that wants to interfere.

The functions of `os`, `fcntl` and `open` that name, make, read, write, sync, lock, look up and
remove files, and close those that were written, are wrapped meanwhile; nothing in the product has
to know. They are reported by path, also where a file was named relative to a directory or by a
descriptor. Only the thread that began is watched: a caller that wants all of a run has it do
without others (`tests/support/one_thread.py`).
"""

import builtins
import fcntl
import io
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# those that have a path, with the names of what it may be relative to
_BY_PATH = {
    "mkdir": "dir_fd",
    "rmdir": "dir_fd",
    "remove": "dir_fd",
    "unlink": "dir_fd",
    "stat": "dir_fd",
    "lstat": "dir_fd",
    "utime": "dir_fd",
    "statvfs": "",
    "scandir": "",
    "listdir": "",
    "getxattr": "",
    "listxattr": "",
}
_OF_TWO = ("rename", "replace", "link")
_BY_DESCRIPTOR = (
    "fstat",
    "fsync",
    "fdatasync",
    "ftruncate",
    "fchown",
    "fchmod",
    "setxattr",
    "removexattr",
    "posix_fadvise",
)
READS = ("read", "pread", "preadv")
WRITES = ("write", "pwrite", "copy_file_range", "sendfile")
LOCKS = ("lockf", "flock", "fcntl", "ioctl")


class Operation(NamedTuple):
    """What is about to be done."""

    kind: str  # the function; "open-to-write" and "open" for both ways to open a file
    path: str
    target: str = ""  # of a rename or a link


# What is called before each operation. It may change files, or raise an error in the place of the
# operation, which gets the name that the operation was given; or say how many bytes at most are
# read or written; None: all.
Before = Callable[[Operation], int | None]


class FileOperations:
    """Passes the operations below a directory to `before`, while `listening`."""

    def __init__(self, root: Path, before: Before) -> None:
        self._root, self._before = os.path.realpath(root), before
        self._thread = threading.get_ident()
        self._busy = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        with ExitStack() as patches:
            for module, name, wrapped in self._wrapped():
                patches.enter_context(mock.patch.object(module, name, wrapped))
            yield

    def _wrapped(self) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
        yield os, "open", self._os_open(os.open)
        for module in (builtins, io):
            yield module, "open", self._open(builtins.open)
        for name, relative_to in _BY_PATH.items():
            yield os, name, self._by_path(name, getattr(os, name), relative_to)
        for name in _OF_TWO:
            yield os, name, self._of_two(name, getattr(os, name))
        for name in _BY_DESCRIPTOR:
            yield os, name, self._by_path(name, getattr(os, name), "")
        for name in ("pread", "read"):
            yield os, name, self._reading(name, getattr(os, name))
        yield os, "preadv", self._preadv(os.preadv)
        for name in ("write", "pwrite"):
            yield os, name, self._writing(name, getattr(os, name))
        yield os, "close", self._closing(os.close, fcntl.fcntl)
        yield os, "copy_file_range", self._copying(os.copy_file_range)
        yield os, "sendfile", self._sending(os.sendfile)
        for name in LOCKS:
            yield fcntl, name, self._by_path(name, getattr(fcntl, name), "")

    def tell(
        self, kind: str, path: str | None, target: str | None = "", named: tuple[Any, ...] = ()
    ) -> int | None:
        """Pass an operation on, unless it is of no concern. named: what its files were called."""
        if self._busy or threading.get_ident() != self._thread or not (path or target):
            return None
        self._busy = True
        try:
            return self._before(Operation(kind, path or "", target or ""))
        except OSError as error:
            names = [name for name in named if not isinstance(name, int)]
            raise OSError(
                error.errno, error.strerror, *names[:1], *((None, *names[1:]) if names[1:] else ())
            ) from None
        finally:
            self._busy = False

    def path_of(self, file: Any, relative_to: int | None = None) -> str | None:
        """The path of a name or a descriptor; None for one that is not below the root."""
        if self._busy:
            return None
        if isinstance(file, int):
            try:
                path = os.readlink(f"/proc/self/fd/{file}")
            except OSError:
                return None
        elif isinstance(file, str | os.PathLike):
            path = os.fspath(file)
            if relative_to is not None and not os.path.isabs(path):
                path = os.path.join(os.readlink(f"/proc/self/fd/{relative_to}"), path)
            path = os.path.abspath(path)
        else:
            return None
        return path if path.startswith((self._root + os.sep, self._root)) else None

    def _os_open(self, original: Callable[..., int]) -> Callable[..., int]:
        def opening(path: Any, flags: int, *arguments: Any, **named: Any) -> int:
            kind = "open-to-write" if flags & WRITING else "open"
            self.tell(kind, self.path_of(path, named.get("dir_fd")), named=(path,))
            return original(path, flags, *arguments, **named)

        return opening

    def _open(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def opening(
            file: Any,
            mode: str = "r",
            buffering: int = -1,
            encoding: str | None = None,
            errors: str | None = None,
            newline: str | None = None,
            closefd: bool = True,
            opener: Any = None,
        ) -> Any:
            path = self.path_of(file)
            if path is None:
                return original(file, mode, buffering, encoding, errors, newline, closefd, opener)
            if opener is None and not isinstance(file, int):
                kind = "open-to-write" if set(mode) & set("wax+") else "open"
                self.tell(kind, path, named=(file,))
            raw = _Raw(file, mode.replace("b", "").replace("t", ""), closefd, opener)
            raw.operations, raw.of = self, path
            if buffering == 0:
                return raw
            binary = _buffered(raw, mode)
            return binary if "b" in mode else io.TextIOWrapper(binary, encoding, errors, newline)

        return opening

    def _by_path(
        self, kind: str, original: Callable[..., Any], relative_to: str
    ) -> Callable[..., Any]:
        def calling(*arguments: Any, **named: Any) -> Any:
            file = arguments[0] if arguments else "."
            if kind not in ("stat", "utime") or not isinstance(file, int):
                self.tell(kind, self.path_of(file, named.get(relative_to)), named=(file,))
            return original(*arguments, **named)

        return calling

    def _of_two(self, kind: str, original: Callable[..., None]) -> Callable[..., None]:
        def calling(source: Any, target: Any, **named: Any) -> None:
            old = self.path_of(source, named.get("src_dir_fd"))
            new = self.path_of(target, named.get("dst_dir_fd"))
            self.tell(kind, old, new, (source, target))
            original(source, target, **named)

        return calling

    def _reading(self, kind: str, original: Callable[..., bytes]) -> Callable[..., bytes]:
        def reading(descriptor: int, length: int, *arguments: Any) -> bytes:
            limit = self.tell(kind, self.path_of(descriptor))
            return original(descriptor, length if limit is None else min(limit, length), *arguments)

        return reading

    def _preadv(self, original: Callable[..., int]) -> Callable[..., int]:
        def reading(descriptor: int, buffers: Any, *arguments: Any) -> int:
            limit = self.tell("preadv", self.path_of(descriptor))
            if limit is not None:
                buffers = [buffers[0][:limit]]
            return original(descriptor, buffers, *arguments)

        return reading

    def _writing(self, kind: str, original: Callable[..., int]) -> Callable[..., int]:
        def writing(descriptor: int, data: Any, *arguments: Any) -> int:
            limit = self.tell(kind, self.path_of(descriptor))
            return original(descriptor, memoryview(data)[:limit], *arguments)

        return writing

    def _closing(
        self, original: Callable[[int], None], control: Callable[[int, int], int]
    ) -> Callable[[int], None]:
        def closing(descriptor: int) -> None:
            path = self.path_of(descriptor)
            is_written = path is not None and control(descriptor, fcntl.F_GETFL) & WRITING
            try:
                if is_written:
                    self.tell("close", path)
            finally:
                original(descriptor)  # also where `before` raises

        return closing

    def _copying(self, original: Callable[..., int]) -> Callable[..., int]:
        def copying(source: int, target: int, count: int, **named: Any) -> int:
            limit = self.tell("copy_file_range", self.path_of(target))
            return original(source, target, count if limit is None else min(limit, count), **named)

        return copying

    def _sending(self, original: Callable[..., int]) -> Callable[..., int]:
        def sending(target: int, source: int, offset: Any, count: int) -> int:
            limit = self.tell("sendfile", self.path_of(target))
            return original(target, source, offset, count if limit is None else min(limit, count))

        return sending


class _Raw(io.FileIO):
    """A file that passes on its reads and writes."""

    operations: FileOperations
    of: str

    def write(self, data: Any, /) -> int:
        limit = self.operations.tell("write", self.of)
        return super().write(memoryview(data).cast("B")[:limit] if len(data) else data)

    def readinto(self, buffer: Any, /) -> int:
        limit = self.operations.tell("read", self.of)
        return super().readinto(memoryview(buffer)[:limit])

    def read(self, size: int | None = -1, /) -> bytes:
        limit = self.operations.tell("read", self.of)
        if limit is None:
            return super().read(-1 if size is None else size)
        return super().read(limit if size is None or size < 0 else min(limit, size))

    def readall(self) -> bytes:
        self.operations.tell("read", self.of)
        return super().readall()

    def close(self) -> None:
        try:
            if not self.closed and self.writable():
                self.operations.tell("close", self.of)
        finally:
            super().close()


def _buffered(raw: _Raw, mode: str) -> Any:
    if "+" in mode:
        return io.BufferedRandom(raw)
    return io.BufferedWriter(raw) if set(mode) & set("wax") else io.BufferedReader(raw)
