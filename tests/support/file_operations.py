"""The one layer in which tests come between code and the system's calls on files.

The functions of `os`, `fcntl` and `open` that name, make, read, write, sync, lock, look up and
remove files, and close those that were written, are wrapped meanwhile. They are reported by path,
also where a file was named relative to a directory or by a descriptor.

It stands below `Disk`, not in it: of the calls of a small run about one in five is a whole
operation of a `Disk`. The others are its steps, whose order is what it promises, or go by a
descriptor that it gave out. Whole operations are watched by `tests/support/files/watched.py`.
"""

import builtins
import errno
import fcntl
import io
import os
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# which of the arguments is the descriptor, and the arguments for so many bytes at most
_LIMITED: dict[str, tuple[int, Callable[..., tuple[Any, ...]]]] = {
    "read": (0, lambda most, file, length: (file, min(length, most))),
    "pread": (0, lambda most, file, length, at: (file, min(length, most), at)),
    "preadv": (0, lambda most, file, buffers, *at: (file, [buffers[0][:most]], *at)),
    "write": (0, lambda most, file, data: (file, memoryview(data)[:most])),
    "pwrite": (0, lambda most, file, data, at: (file, memoryview(data)[:most], at)),
    "copy_file_range": (1, lambda most, source, target, n: (source, target, min(n, most))),
    "sendfile": (0, lambda most, target, source, at, n: (target, source, at, min(n, most))),
}
LOOK_UPS = ("stat", "lstat")
READS = ("read", "pread", "preadv")
WRITES = ("write", "pwrite", "copy_file_range", "sendfile")
_OF_TWO = ("rename", "replace", "link")
_OF_ONE = (
    *("mkdir", "rmdir", "remove", "unlink", "stat", "lstat", "utime", "truncate"),
    *("statvfs", "scandir", "listdir", "getxattr", "listxattr"),
    *("fstat", "fsync", "fdatasync", "ftruncate", "fchown", "fchmod"),
    *("setxattr", "removexattr", "posix_fadvise"),
)
_LOCKS = ("lockf", "flock", "fcntl", "ioctl")
_ALSO_BY_DESCRIPTOR = ("stat", "utime")  # then they are of no concern: the opening was told


class Operation(NamedTuple):
    """What is about to be done."""

    kind: str  # the function; "open-to-write" and "open" for both ways to open a file
    path: str
    target: str = ""  # of a rename or a link


# What is called before each operation. It may change files, or raise an error in the place of the
# operation, which gets the name that the operation was given. It may say how many bytes at most are
# read or written; None: all. With a path nothing happens: what is opened is a file there.
Before = Callable[[Operation], int | Path | None]


class FileOperations:
    """Passes the operations below some directories to `before`, while `listening`.

    Args:
        roots: The directories, or one.
        before: Is called with each operation, and may interfere.
        after: Is called with each operation that was done.
        kinds: Operations of these kinds alone are told, those of all threads, one at a time.
            None: every kind, of the thread that made this. A caller that wants all of a run has it
            do without others (`tests/support/one_thread.py`).
    """

    def __init__(
        self,
        roots: Path | Collection[Path],
        before: Before = lambda _: None,
        after: Callable[[Operation], object] = lambda _: None,
        kinds: Collection[str] | None = None,
    ) -> None:
        some = [roots] if isinstance(roots, Path) else roots
        self._roots = tuple(os.path.realpath(root) for root in some)
        self._before, self._after, self._kinds = before, after, kinds
        self._thread, self._lock = threading.get_ident(), threading.RLock()
        self._mine = threading.local()

    @property
    def is_at_work(self) -> bool:
        """Whether this thread is in an operation that was told, or tells of it."""
        return getattr(self._mine, "depth", 0) > 0 or self._is_telling

    @property
    def _is_telling(self) -> bool:
        return getattr(self._mine, "is_telling", False)

    @contextmanager
    def listening(self) -> Iterator[None]:
        with ExitStack() as patches:
            for module, name, wrapped in self._wrapped():
                patches.enter_context(mock.patch.object(module, name, wrapped))
            yield

    def _wrapped(self) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
        control = fcntl.fcntl
        yield os, "open", self._os_open(os.open)
        for module in (builtins, io):
            yield module, "open", self._open(builtins.open)
        wraps: list[tuple[Any, Collection[str], Callable[..., Callable[..., Any]]]] = [
            (os, _OF_ONE, self._of_one),
            (os, _OF_TWO, self._of_two),
            (os, _LIMITED, self._limited),
            (fcntl, _LOCKS, self._of_one),
        ]
        for module, names, wrap in wraps:
            for name in names:
                if self._kinds is None or name in self._kinds:
                    yield module, name, wrap(name, getattr(module, name))
        if self._kinds is None:
            yield os, "close", self._closing(os.close, control)

    def done(
        self,
        kind: str,
        paths: tuple[str | None, str | None],
        do: Callable[[int | None], Any],
        named: tuple[Any, ...] = (),
        elsewhere: Callable[[Path], Any] = lambda _: None,
    ) -> Any:
        """Do an operation between `before` and `after`, unless it is of no concern.

        Args:
            kind: Of the operation.
            paths: Those below the roots, as of `path_of`.
            do: Does it, to so many bytes.
            named: What its files were called.
            elsewhere: Does it to another file.
        """
        is_told = self._kinds is not None or threading.get_ident() == self._thread
        if not is_told or self._is_telling or not any(paths) or kind not in (self._kinds or [kind]):
            return do(None)
        operation = Operation(kind, paths[0] or "", paths[1] or "")
        with self._lock, self._working():
            answer = self._told(self._before, operation, named)
            if isinstance(answer, Path):
                return elsewhere(answer)
            found = do(answer)
            self._told(self._after, operation, named)
            return found

    @contextmanager
    def elsewhere(self, operation: Operation) -> Iterator[None]:
        """Tell of an operation that another process does meanwhile."""
        with self._lock, self._working():
            self._told(self._before, operation, ())
            yield
            self._told(self._after, operation, ())

    @contextmanager
    def _working(self) -> Iterator[None]:
        self._mine.depth = getattr(self._mine, "depth", 0) + 1
        try:
            yield
        finally:
            self._mine.depth -= 1

    def _told(
        self, tell: Callable[[Operation], Any], operation: Operation, named: tuple[Any, ...]
    ) -> Any:
        self._mine.is_telling = True
        try:
            return tell(operation)
        except OSError as error:
            names = [name for name in named if not isinstance(name, int)]
            raise OSError(
                error.errno, error.strerror, *names[:1], *((None, *names[1:]) if names[1:] else ())
            ) from None
        finally:
            self._mine.is_telling = False

    def path_of(self, file: Any, relative_to: int | None = None) -> str | None:
        """The path of a name or a descriptor; None for one that is not below a root."""
        if self._is_telling:
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
        is_below = any(path == root or path.startswith(root + os.sep) for root in self._roots)
        return path if is_below else None

    def _os_open(self, original: Callable[..., int]) -> Callable[..., int]:
        def opening(path: Any, flags: int, *arguments: Any, **named: Any) -> Any:
            return self.done(
                "open-to-write" if flags & WRITING else "open",
                (self.path_of(path, named.get("dir_fd")), None),
                lambda _: original(path, flags, *arguments, **named),
                (path,),
                lambda other: original(other, flags | os.O_CREAT, *arguments),
            )

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
            rest = mode, buffering, encoding, errors, newline, closefd, opener
            if path is None:
                return original(file, *rest)

            def opened(_: object) -> Any:
                if self._kinds is not None:
                    return original(file, *rest)
                raw = _Raw(file, mode.replace("b", "").replace("t", ""), closefd, opener)
                raw.operations, raw.of = self, path
                if buffering == 0:
                    return raw
                binary = _buffered(raw, mode)
                return (
                    binary if "b" in mode else io.TextIOWrapper(binary, encoding, errors, newline)
                )

            if opener is not None or isinstance(file, int):
                with self._working():  # the opener tells of it, or who has opened it
                    return opened(None)
            kind = "open-to-write" if set(mode) & set("wax+") else "open"
            elsewhere = lambda other: original(other, *rest)  # noqa: E731
            return self.done(kind, (path, None), opened, (file,), elsewhere)

        return opening

    def _of_one(self, kind: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def calling(*arguments: Any, **named: Any) -> Any:
            file = arguments[0] if arguments else "."
            is_told = kind not in _ALSO_BY_DESCRIPTOR or not isinstance(file, int)
            path = self.path_of(file, named.get("dir_fd")) if is_told else None
            return self.done(kind, (path, None), lambda _: original(*arguments, **named), (file,))

        return calling

    def _of_two(self, kind: str, original: Callable[..., None]) -> Callable[..., None]:
        def calling(source: Any, target: Any, **named: Any) -> None:
            old = self.path_of(source, named.get("src_dir_fd"))
            new = self.path_of(target, named.get("dst_dir_fd"))
            call = lambda _: original(source, target, **named)  # noqa: E731
            self.done(kind, (old, new), call, (source, target))

        return calling

    def _limited(self, kind: str, original: Callable[..., Any]) -> Callable[..., Any]:
        descriptor_at, limit = _LIMITED[kind]

        def calling(*arguments: Any, **named: Any) -> Any:
            def do(most: int | None) -> Any:
                some = arguments if most is None else limit(most, *arguments)
                return original(*some, **named)

            return self.done(kind, (self.path_of(arguments[descriptor_at]), None), do)

        return calling

    def _closing(
        self, original: Callable[[int], None], control: Callable[[int, int], int]
    ) -> Callable[[int], None]:
        def closing(descriptor: int) -> None:
            path = self.path_of(descriptor)
            is_written = path is not None and control(descriptor, fcntl.F_GETFL) & WRITING
            try:
                if is_written:
                    self.done("close", (path, None), lambda _: None)
            finally:
                original(descriptor)  # also where `before` raises

        return closing


class _Raw(io.FileIO):
    """A file that passes on its reads and writes."""

    operations: FileOperations
    of: str

    def write(self, data: Any, /) -> Any:
        def written(most: int | None) -> int:
            return io.FileIO.write(self, memoryview(data).cast("B")[:most] if len(data) else data)

        return self.operations.done("write", (self.of, None), written)

    def readinto(self, buffer: Any, /) -> Any:
        read = lambda most: io.FileIO.readinto(self, memoryview(buffer)[:most])  # noqa: E731
        return self.operations.done("read", (self.of, None), read)

    def read(self, size: int | None = -1, /) -> Any:
        def found(most: int | None) -> bytes:
            wanted = -1 if size is None else size
            if most is not None:
                wanted = most if wanted < 0 else min(most, wanted)
            return io.FileIO.read(self, wanted)

        return self.operations.done("read", (self.of, None), found)

    def readall(self) -> Any:
        return self.operations.done("read", (self.of, None), lambda _: io.FileIO.readall(self))

    def close(self) -> None:
        try:
            if not self.closed and self.writable():
                self.operations.done("close", (self.of, None), lambda _: None)
        finally:
            super().close()


@contextmanager
def failing(path: str, kinds: Collection[str], code: int = errno.EIO) -> Iterator[None]:
    """Let operations of these kinds on a file or directory fail meanwhile."""

    def fail(operation: Operation) -> None:
        if operation.path == path:
            raise OSError(code, os.strerror(code))

    with FileOperations(Path(path).parent, fail, kinds=kinds).listening():
        yield


def _buffered(raw: _Raw, mode: str) -> Any:
    if "+" in mode:
        return io.BufferedRandom(raw)
    return io.BufferedWriter(raw) if set(mode) & set("wax") else io.BufferedReader(raw)
