"""Files that report each operation on them: tests count, look in between, and let calls fail."""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from storage.files.files import NOT_HELD, ChangingFile, Entry, Files, HeldFile, OpenFile
from storage.files.local import LocalFiles


class Operation(NamedTuple):
    """A call of `Files`: its name, and the paths that it was given."""

    name: str
    paths: tuple[str, ...]


CHANGES = frozenset(
    {"replace_file", "truncate_file", "rename", "link", "remove", "make_directory"}
    | {"open_to_change", "set_modified", "remove_directory"}
)
SYNCS = frozenset({"sync_file", "sync_directory"})
# of a file that is open; their path is the one that it was opened by
OPEN_CHANGES, OPEN_SYNCS = frozenset({"write", "truncate"}), frozenset({"sync"})


class WatchedFiles:
    """`Files` that keep a list of the operations on them, in order, and pass them on.

    before: called with each operation before it is passed on; what it raises is raised in its
    place, and what it does to the files the operation finds.
    """

    def __init__(
        self, files: Files, before: Callable[[Operation], object] = lambda _: None
    ) -> None:
        self._files, self._before = files, before
        self.operations: list[Operation] = []

    @property
    def counts(self) -> Counter[str]:
        """How often each operation was asked for, by name."""
        return Counter(operation.name for operation in self.operations)

    @property
    def changes(self) -> list[Operation]:
        """The operations that change or sync something."""
        told = CHANGES | SYNCS | OPEN_CHANGES | OPEN_SYNCS
        return [each for each in self.operations if each.name in told]

    def _note(self, name: str, *paths: str) -> None:
        operation = Operation(name, paths)
        self.operations.append(operation)
        self._before(operation)

    def list_directory(self, path: str) -> list[Entry]:
        self._note("list_directory", path)
        return self._files.list_directory(path)

    def list_names(self, path: str) -> tuple[list[str], list[str]]:
        self._note("list_names", path)
        return self._files.list_names(path)

    def look_up(self, path: str) -> Entry | None:
        self._note("look_up", path)
        return self._files.look_up(path)

    def exists(self, path: str) -> bool:
        self._note("exists", path)
        return self._files.exists(path)

    def is_directory(self, path: str) -> bool:
        self._note("is_directory", path)
        return self._files.is_directory(path)

    def read_bytes(self, path: str) -> bytes:
        self._note("read_bytes", path)
        return self._files.read_bytes(path)

    def read_range(self, path: str, position: int, length: int) -> bytes:
        self._note("read_range", path)
        return self._files.read_range(path, position, length)

    def open(self, path: str) -> OpenFile:
        self._note("open", path)
        return self._files.open(path)

    def open_to_change(self, path: str, create: bool = False) -> ChangingFile:
        self._note("open_to_change", path)
        return _WatchedChangingFile(self._files.open_to_change(path, create), path, self._note)

    def replace_file(self, path: str, data: bytes) -> None:
        self._note("replace_file", path)
        self._files.replace_file(path, data)

    def truncate_file(self, path: str, size_bytes: int) -> None:
        self._note("truncate_file", path)
        self._files.truncate_file(path, size_bytes)

    def rename(self, source: str, target: str) -> None:
        self._note("rename", source, target)
        self._files.rename(source, target)

    def link(self, source: str, target: str) -> None:
        self._note("link", source, target)
        self._files.link(source, target)

    def remove(self, path: str) -> None:
        self._note("remove", path)
        self._files.remove(path)

    def make_directory(self, path: str) -> None:
        self._note("make_directory", path)
        self._files.make_directory(path)

    def remove_directory(self, path: str) -> None:
        self._note("remove_directory", path)
        self._files.remove_directory(path)

    def set_modified(self, path: str, time_ms: int) -> None:
        self._note("set_modified", path)
        self._files.set_modified(path, time_ms)

    def sync_file(self, path: str) -> None:
        self._note("sync_file", path)
        self._files.sync_file(path)

    def sync_directory(self, path: str) -> None:
        self._note("sync_directory", path)
        self._files.sync_directory(path)


class WatchedDisk(WatchedFiles, LocalFiles):
    """A local disk whose operations of `Files` are watched."""


class _WatchedChangingFile:
    """An open file that reports what is done to it, under the name that it was opened by."""

    def __init__(self, file: ChangingFile, path: str, note: Callable[..., None]) -> None:
        self._file, self._path, self._note = file, path, note

    def read(self, position: int, length: int) -> bytes:
        return self._file.read(position, length)

    def write(self, position: int, data: bytes | bytearray | memoryview) -> None:
        self._note("write", self._path)
        self._file.write(position, data)

    def truncate(self, size_bytes: int) -> None:
        self._note("truncate", self._path)
        self._file.truncate(size_bytes)

    def held(self) -> HeldFile:
        return NOT_HELD

    @property
    def is_open(self) -> bool:
        return self._file.is_open

    def size(self) -> int:
        return self._file.size()

    def sync(self) -> None:
        self._note("sync", self._path)
        self._file.sync()

    def renamed(self, path: str) -> None:
        self._file.renamed(path)

    def close(self) -> None:
        self._file.close()
