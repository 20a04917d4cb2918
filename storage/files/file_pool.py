"""Files of which a bounded number is open: who works on one does not notice that it was closed.

A log of thousands of segments has more files than a process may have open. The pool closes the one
that was not used for longest, and opens it again when it is next used, wherever it stands by then.
"""

import contextlib
import errno
import itertools
import os
import resource
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator

from storage.files.files import ChangingFile, Entry, Files, HeldFile, OpenFile

_MAX_OPEN = 500


def default_open_limit() -> int:
    """Return 500, or half of what the process may have open where that is less."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MAX_OPEN if allowed == resource.RLIM_INFINITY else max(1, min(_MAX_OPEN, allowed // 2))


class KnownNames:
    """What stands in a directory by a listing and by the changes since; for any number of them.

    The owner that has a directory known is the only one to change it until it is forgotten, and
    notes every change. Threads may each have directories of their own. A path that is written in
    another way than the directory's is of none.
    """

    def __init__(self) -> None:
        self._names: dict[str, tuple[list[str], set[str]]] = {}  # directories, others

    def know(self, directory: str, listed: tuple[Iterable[str], Iterable[str]]) -> None:
        directories, others = listed
        self._names[directory] = list(directories), set(others)

    def forget(self, directory: str) -> None:
        self._names.pop(directory, None)

    def listed(self, directory: str) -> tuple[list[str], list[str]] | None:
        """As Files.list_names gives it; None: not known."""
        known = self._names.get(directory)
        return None if known is None else (list(known[0]), list(known[1]))

    def has(self, path: str) -> bool | None:
        """Whether there is such a name; None: not known."""
        if not self._names:
            return None
        directory, _, name = path.rpartition("/")
        known = self._names.get(directory)
        return None if known is None else name in known[1] or name in known[0]

    def added(self, path: str) -> None:
        """There is a file of that name now, or there was."""
        if self._names:
            directory, _, name = path.rpartition("/")
            if directory in self._names:
                self._names[directory][1].add(name)

    def gone(self, path: str) -> None:
        """There is no file of that name any more."""
        if self._names:
            directory, _, name = path.rpartition("/")
            if directory in self._names:
                self._names[directory][1].discard(name)


def pooled(files: Files, most: int | None = None) -> "FilePool":
    """Files with a pool: those that are given, if they have one. most: None for the default."""
    if isinstance(files, FilePool):
        return files
    return FilePool(files, default_open_limit() if most is None else most)


class FilePool:
    """`Files` that keep at most so many of the files open that were opened to be changed.

    Any number of threads may use them. A file that a call is working on is closed when that call
    has ended: so many calls as are under way may keep one more each. One without a name (removed,
    or replaced) stays open until it is closed, and counts. What was written to a file is synced
    before the pool closes it, since the system reports an error of the disk to those who have the
    file open; the next sync of that very file raises it.

    Names are followed through `rename`, of files and of directories, by this pool only.
    """

    def __init__(self, files: Files, most: int) -> None:
        """most: how many may be open, one or more."""
        if most < 1:
            raise ValueError(f"at most {most} files open: one is needed at least")
        self._files, self.most = files, most
        self._lock = threading.RLock()  # of all that is below
        self._open: OrderedDict[_PooledFile, None] = OrderedDict()  # the oldest first
        self._nameless: set[_PooledFile] = set()  # open as well, and to stay so
        self._named: dict[str, dict[str, list[_PooledFile]]] = {}  # by directory, then name
        self._known = KnownNames()

    @property
    def open_count(self) -> int:
        """How many files it has open."""
        return len(self._open) + len(self._nameless)

    # ---- files that are open to be changed ----------------------------------------------------

    def open_to_change(self, path: str, create: bool = False) -> "_PooledFile":
        """Open a file as Files promises, at once, so that an error is raised here.

        But a file that is known to be there (`knowing`) is opened when it is first used, once the
        pool is full.
        """
        with self._lock:
            file = _PooledFile(self, path)
            if self.open_count < self.most or not self._known.has(path):
                self._make_room()
                file.opened = _Opened(self._files.open_to_change(path, create))
                self._open[file] = None
                self._known.added(path)
            self._register(file)
        return file

    def size_of(self, file: "_PooledFile") -> int:
        """The size of a file, which is not opened for that where its name tells it."""
        if file.opened is None and not file.is_closed:
            with self._lock:
                found = self._files.look_up(file.path)
            if found is not None and not found.is_dir and not found.special:
                return found.size_bytes
        return self.opened(file).file.size()

    def _register(self, file: "_PooledFile") -> None:
        directory, name = _split(file.path)
        self._named.setdefault(directory, {}).setdefault(name, []).append(file)

    def _unregister(self, file: "_PooledFile") -> None:
        directory, name = _split(file.path)
        of_directory = self._named[directory]
        of_directory[name].remove(file)
        if not of_directory[name]:
            del of_directory[name]
            if not of_directory:
                del self._named[directory]

    def opened(self, file: "_PooledFile") -> "_Opened":
        """What a file is open by; it is opened if it is not."""
        with self._lock:
            if file.is_closed:
                raise OSError(errno.EBADF, "the file was closed", file.path)
            if file.opened is None:
                self._make_room()
                file.opened = _Opened(self._files.open_to_change(file.path))
                self._open[file] = None
            return file.opened

    def _make_room(self) -> None:
        """Close files until one more may be open.

        Those that were not used since they were last passed over; one that was written to only if
        there is no other.
        """
        while self._open and self.open_count >= self.most:
            self._close(self._oldest())

    def _oldest(self) -> "_PooledFile":
        for _ in range(2 * len(self._open)):  # after one turn, all were passed over
            file = next(iter(self._open))
            if not file.was_used and not file.is_dirty:
                return file
            file.was_used = False
            self._open.move_to_end(file)
        return next(iter(self._open))

    def _close(self, file: "_PooledFile") -> None:
        opened, file.opened = file.opened, None
        del self._open[file]
        if opened is None:
            return
        if not file.is_dirty:
            return
        file.is_dirty = False
        try:
            opened.file.sync()
        except OSError as error:
            file.sync_error = error

    def forget(self, file: "_PooledFile") -> None:
        """Close a file for good."""
        with self._lock:
            if file.is_closed:
                return
            file.is_closed = True
            file.opened = None
            self._open.pop(file, None)
            if file in self._nameless:
                self._nameless.remove(file)
            else:
                self._unregister(file)

    def forget_below(self, path: str) -> None:
        """Forget all files in a directory and below it.

        Also those that are not open now, and those that had their names there when they lost them.
        """
        with self._lock:
            of_names = [files for names in self._named.values() for files in names.values()]
            for file in [*itertools.chain(*of_names), *self._nameless]:
                if file.path.startswith(f"{path}/"):
                    self.forget(file)

    # ---- names --------------------------------------------------------------------------------

    @contextlib.contextmanager
    def knowing(self, directory: str) -> Iterator[None]:
        """List a directory once, in which nothing changes meanwhile but by the caller.

        A context: in it `list_names` and `exists` look at the listing, and at the changes since.
        """
        self._known.know(directory, self._files.list_names(directory))
        try:
            yield
        finally:
            self._known.forget(directory)

    def rename(self, source: str, target: str) -> None:
        with self._lock:
            self._keep_open(target)
            self._files.rename(source, target)
            self._known.gone(source)
            self._known.added(target)
            for file in self._taken(source):
                file.renamed(target)
                self._register(file)
            of_directory = self._named.pop(source, None)
            if of_directory is not None:
                self._named[target] = of_directory
                for name, files in of_directory.items():
                    for file in files:
                        file.renamed(os.path.join(target, name))

    def remove(self, path: str) -> None:
        with self._lock:
            self._keep_open(path)
            self._files.remove(path)
            self._known.gone(path)

    def replace_file(self, path: str, data: bytes) -> None:
        with self._lock:
            self._keep_open(path)
        self._files.replace_file(path, data)
        self._known.added(path)

    def _keep_open(self, path: str) -> None:
        """What has this name is about to lose it: it can be reached by being open alone."""
        for file in self._pooled(path):
            self.opened(file)
        for file in self._taken(path):
            self._open.pop(file, None)
            self._nameless.add(file)

    def _pooled(self, path: str) -> "list[_PooledFile]":
        directory, name = _split(path)
        return self._named.get(directory, {}).get(name, [])

    def _taken(self, path: str) -> "list[_PooledFile]":
        taken = list(self._pooled(path))
        for file in taken:
            self._unregister(file)
        return taken

    # ---- everything else ----------------------------------------------------------------------

    def list_directory(self, path: str) -> list[Entry]:
        return self._files.list_directory(path)

    def list_names(self, path: str) -> tuple[list[str], list[str]]:
        return self._known.listed(path) or self._files.list_names(path)

    def look_up(self, path: str) -> Entry | None:
        return self._files.look_up(path)

    def exists(self, path: str) -> bool:
        known = self._known.has(path)
        return self._files.exists(path) if known is None else known

    def is_directory(self, path: str) -> bool:
        return self._files.is_directory(path)

    def read_bytes(self, path: str) -> bytes:
        return self._files.read_bytes(path)

    def read_range(self, path: str, position: int, length: int) -> bytes:
        return self._files.read_range(path, position, length)

    def open(self, path: str) -> OpenFile:
        return self._files.open(path)

    def truncate_file(self, path: str, size_bytes: int) -> None:
        self._files.truncate_file(path, size_bytes)

    def link(self, source: str, target: str) -> None:
        self._files.link(source, target)
        self._known.added(target)

    def make_directory(self, path: str) -> None:
        self._files.make_directory(path)

    def remove_directory(self, path: str) -> None:
        self._files.remove_directory(path)

    def set_modified(self, path: str, time_ms: int) -> None:
        self._files.set_modified(path, time_ms)

    def sync_file(self, path: str) -> None:
        self._files.sync_file(path)

    def sync_directory(self, path: str) -> None:
        self._files.sync_directory(path)


def _split(path: str) -> tuple[str, str]:
    """Directory and name, as who gives paths to the pool writes them."""
    directory, _, name = path.rpartition("/")
    return directory, name


class _Opened:
    """An open file, which the last one to let go of it closes.

    A call keeps what it works on by a name of its own. So a file that the pool lets go of meanwhile
    is closed after the call, without a lock for each read.
    """

    __slots__ = ("descriptor", "file")

    def __init__(self, file: ChangingFile) -> None:
        self.file = file
        self.descriptor = file.held().descriptor

    def __del__(self) -> None:
        with contextlib.suppress(OSError):  # nothing unsynced is in it
            self.file.close()


class _PooledFile:
    """A ChangingFile of a pool. `opened` and what follows it are the pool's to change."""

    __slots__ = ("_pool", "is_closed", "is_dirty", "opened", "path", "sync_error", "was_used")

    def __init__(self, pool: FilePool, path: str) -> None:
        self._pool, self.path = pool, path
        self.opened: _Opened | None = None
        self.is_closed = self.is_dirty = self.was_used = False
        self.sync_error: OSError | None = None  # of a sync that the pool did by itself

    def read(self, position: int, length: int) -> bytes:
        opened = self.opened or self._pool.opened(self)
        self.was_used = True
        return opened.file.read(position, length)

    def write(self, position: int, data: bytes | bytearray | memoryview) -> None:
        opened = self.opened or self._pool.opened(self)
        self.was_used = self.is_dirty = True
        opened.file.write(position, data)
        self.is_dirty = True  # again: a sync meanwhile may not have had it all
        if self.opened is not opened:  # the pool let go of it, and may have synced it before
            opened.file.sync()

    def truncate(self, size_bytes: int) -> None:
        opened = self.opened or self._pool.opened(self)
        self.was_used = True
        opened.file.truncate(size_bytes)

    def held(self) -> HeldFile:
        opened = self.opened or self._pool.opened(self)
        self.was_used = True
        return opened

    @property
    def is_open(self) -> bool:
        return self.opened is not None

    def size(self) -> int:
        opened = self.opened
        return self._pool.size_of(self) if opened is None else opened.file.size()

    def sync(self) -> None:
        opened = self.opened or self._pool.opened(self)
        error, self.sync_error = self.sync_error, None
        if error is not None:
            raise error
        self.is_dirty = False  # before: what is written meanwhile is not synced
        opened.file.sync()

    def renamed(self, path: str) -> None:
        self.path, opened = path, self.opened
        if opened is not None:
            opened.file.renamed(path)

    def close(self) -> None:
        self._pool.forget(self)
