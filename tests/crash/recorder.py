"""Records every change that this process makes to the files of a log directory.

What is written is found by looking: before each operation every file that was opened for writing is
compared with what it held, so that also `copy_file_range`, `sendfile` and whatever else writes is
seen; several writes without an operation between them are one. An audit hook holds that no change
came about past `FileOperations`.
"""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.crash.operations import (
    EMPTY,
    Content,
    Create,
    Place,
    Record,
    Rename,
    Sync,
    SyncDirectory,
    Unlink,
    Write,
)
from tests.crash.operations import Operation as Recorded
from tests.crash.states import LOCK_FILE
from tests.support.file_operations import WRITING, FileOperations, Operation

WRITES = ("pwrite", "ftruncate")
KINDS = (
    *("open-to-write", "rename", "replace", "link", "remove", "unlink", "fsync", "fdatasync"),
    *WRITES,
)
UNKNOWN_TO_US = ("os.mkdir", "os.rmdir", "os.symlink", "os.truncate", "os.chown")
WATCHED = ("open", "os.rename", "os.remove", "os.link", *UNKNOWN_TO_US)

_watching: list[Callable[[str, tuple[Any, ...]], None]] = []


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching and event in WATCHED:
        for watch in _watching:
            watch(event, arguments)


sys.addaudithook(_audit)  # stays for the life of the process, and does nothing without a recorder


class Recorder:
    """One run. What it did is in `record`; what it did behind our back in `unseen`."""

    def __init__(self, root: Path, each_write: bool = False) -> None:
        """each_write: files are open for writing already, and each write by position counts."""
        self._root, self._each_write = os.path.realpath(root), each_write
        self.record = Record({}, {})
        self.unseen: list[str] = []
        self._shadow: dict[int, Content] = {}
        self._operations = FileOperations(root, self._before, self._after, KINDS)
        for directory, _, names in os.walk(self._root):
            for name in names:
                place = self._place(os.path.join(directory, name))
                self.record.names[place] = len(self._shadow)
                self._shadow[len(self._shadow)] = self._content(place)
        self.record.contents.update(self._shadow)
        self._names = self.record.names.copy()
        self._written = {*self._names.values()} if each_write else set[int]()

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Record what happens meanwhile."""
        with self._operations.listening():
            _watching.append(self._watch)
            try:
                yield
            finally:
                _watching.remove(self._watch)
            self.look()

    def elsewhere(self, operation: Operation) -> contextlib.AbstractContextManager[None]:
        """Record an operation that another process does meanwhile."""
        return self._operations.elsewhere(operation)

    def look(self) -> None:
        """Record what was written since the last operation."""
        for place, file in self._names.items():
            if file in self._written:
                content = self._content(place)
                if content != self._shadow[file]:
                    self._write(file, content)

    def _place(self, path: str) -> Place:
        directory, name = os.path.split(os.path.relpath(path, self._root))
        return Place(directory, name)

    def _content(self, place: Place) -> Content:
        if place.name == LOCK_FILE:  # closing a descriptor of it would drop the lock
            return EMPTY
        descriptor = os.open(os.path.join(self._root, *place), os.O_RDONLY)
        try:
            stat = os.fstat(descriptor)
            return Content(os.pread(descriptor, stat.st_size, 0), stat.st_mtime_ns)
        finally:
            os.close(descriptor)

    def _before(self, operation: Operation) -> None:
        if operation.kind not in WRITES:
            self.look()

    def _after(self, operation: Operation) -> None:
        path, target = operation.path, operation.target
        match operation.kind:
            case "open-to-write":
                if self._place(path) not in self._names:
                    self._new(self._place(path))
                self._written.add(self._names[self._place(path)])
            case "rename" | "replace":
                self._renamed(path, target)
            case "link" if target:
                self._linked(path, self._place(target))
            case "remove" | "unlink":
                place = self._place(path)
                self._add(Unlink(place, self._names.pop(place)))
            case "fsync" | "fdatasync":
                if os.path.isdir(path):
                    self._add(SyncDirectory(os.path.relpath(path, self._root).removeprefix(".")))
                else:
                    self._add(Sync(self._names[self._place(path)]))
            case _ if self._each_write:  # each by itself, where several files are written
                self.look()

    def _renamed(self, source: str, target: str) -> None:
        assert target, f"{source} leaves the log directory"
        new = self._place(target)
        if source:
            old = self._place(source)
            file = self._names[new] = self._names.pop(old)
            self._add(Rename(old, new, file))
        else:  # a file from elsewhere: nothing says that its bytes are on disk
            self._new(new)
            self._written.add(self._names[new])

    def _linked(self, source: str, new: Place) -> None:
        if source:
            self._names[new] = self._names[self._place(source)]
            self._add(Create(new, self._names[new]))
        else:  # to a file from elsewhere, which was on disk already
            self._new(new)
            self._write(self._names[new], self._content(new))
            self._add(Sync(self._names[new]))

    def _new(self, place: Place) -> None:
        file = len(self._shadow)
        self._shadow[file], self._names[place] = Content(b"", self._content(place).mtime_ns), file
        self._add(Create(place, file))

    def _write(self, file: int, content: Content) -> None:
        self._shadow[file] = content
        self._add(Write(file, content))

    def _add(self, operation: Recorded) -> None:
        self.record.operations.append(operation)

    def _watch(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._operations.is_at_work:
            return
        count = 2 if event in ("os.rename", "os.link") else 1
        paths, behind = arguments[:count], arguments[count : 2 * count]
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & WRITING):
            return
        tells_of = event in ("os.rename", "os.link", "os.remove")  # directories, -1: none
        directories = [None if not tells_of or fd == -1 else fd for fd in behind]
        if any(map(self._operations.path_of, paths, directories)):
            self.unseen.append(f"{event} {arguments}")
