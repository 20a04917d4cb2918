"""Files that report each operation on them: tests count, look in between, and let calls fail."""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from storage.files.files import NOT_HELD, ChangingFile, Files, HeldFile
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


OPERATIONS = {name for name in vars(Files) if name[0] != "_"}
if TYPE_CHECKING:
    _Operations = LocalFiles
else:
    _Operations = object  # they are put into the class below, each from the same mould


class WatchedFiles(_Operations):
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


def _watched(name: str) -> Callable[..., Any]:
    """The operation of that name, noted with its paths, which are its arguments that are texts."""

    def operation(watched: WatchedFiles, *arguments: Any, **named: Any) -> Any:
        paths = [each for each in arguments if isinstance(each, str)]
        watched._note(name, *paths)
        done = getattr(watched._files, name)(*arguments, **named)
        if name == "open_to_change":
            return _WatchedChangingFile(done, paths[0], watched._note)
        return done

    return operation


for _name in OPERATIONS:
    setattr(WatchedFiles, _name, _watched(_name))


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
