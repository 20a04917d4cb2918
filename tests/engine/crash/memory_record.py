"""What is done to files in memory, operation by operation, directories made and renamed included.

A directory is a file, too, whose content is its number. Places name a directory by that number, so
that what is in it stays in it where it gets another name.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.crash.operations import (
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
from tests.support.files.memory import MemoryFiles
from tests.support.files.watched import Operation as Call
from tests.support.files.watched import WatchedFiles

ROOT = "1"  # the number of `/`
_OF_A_DIRECTORY = -1  # the time of its content
_Names = Mapping[Place, int]
_Contents = Mapping[int, Content]


class MemoryRecorder:
    """Records what is done by way of `files` from `begin` on."""

    def __init__(self) -> None:
        self._disk = MemoryFiles()
        self.files = WatchedFiles(self._disk, self._before)
        self.record = Record({}, {})
        self._is_recording = False
        self._last: Call | None = None
        self._numbers: dict[str, int] = {}  # of files, by the paths that they were opened by

    def begin(self) -> None:
        """What there is by now counts as synced."""
        self._names, self._contents = self._look()
        self.record.names.update(self._names)
        self.record.contents.update(self._contents)
        self._is_recording = True

    def end(self) -> None:
        self._note_last()
        self._is_recording = False

    def _before(self, call: Call) -> None:
        if self._is_recording:
            self._note_last()
        if call.name == "sync" and call.paths[0] not in self._numbers:
            self._numbers[call.paths[0]] = self._number(call.paths[0])
        if call.name in ("rename", "remove"):
            self._numbers = {p: n for p, n in self._numbers.items() if p not in call.paths}
        self._last = call

    def _number(self, path: str) -> int:
        found = self._disk.look_up(path)
        return -1 if found is None else found.inode

    def _note_last(self) -> None:
        names, contents = self._look()
        add, last = self.record.operations.append, self._last
        for file, content in contents.items():
            if content != self._contents.get(file):
                add(Write(file, content))
                if is_directory(content):  # its number is there as soon as its name
                    add(Sync(file))
        if last is not None and last.name == "replace_file":
            add(Sync(names[self._place(last.paths[0])]))
        for operation in _namings(self._names, names):
            add(operation)
        if last is not None and last.name == "sync":
            add(Sync(self._numbers[last.paths[0]]))
        if last is not None and last.name in ("replace_file", "make_directory"):
            add(SyncDirectory(self._place(last.paths[0]).directory))
        if last is not None and last.name == "sync_directory":
            add(SyncDirectory(str(self._number(last.paths[0]))))
        self._names, self._contents, self._last = names, contents, None

    def _place(self, path: str) -> Place:
        directory, name = os.path.split(path)
        return Place(str(self._number(directory)) if directory != "/" else ROOT, name)

    def _look(self) -> tuple[_Names, _Contents]:
        names: dict[Place, int] = {}
        contents: dict[int, Content] = {}
        pending = [("/", ROOT)]
        while pending:
            path, number = pending.pop()
            for entry in self._disk.list_directory(path):
                names[Place(number, entry.name)] = entry.inode
                below = os.path.join(path, entry.name)
                if entry.is_dir:
                    pending.append((below, str(entry.inode)))
                    mark = str(entry.inode).encode()
                    contents[entry.inode] = Content(mark, _OF_A_DIRECTORY)
                else:
                    data = self._disk.read_bytes(below)
                    contents[entry.inode] = Content(data, entry.mtime_ns)
        return names, contents


def _namings(before: _Names, after: _Names) -> Iterator[Create | Rename | Unlink]:
    gone = {place: file for place, file in before.items() if after.get(place) != file}
    for place, file in after.items():
        if before.get(place) != file:
            source = next((old for old, number in gone.items() if number == file), None)
            if source is None:
                yield Create(place, file)
            else:
                del gone[source]
                yield Rename(source, place, file)
    for place, file in gone.items():
        if place not in after:
            yield Unlink(place, file)


def is_directory(content: Content) -> bool:
    return content.mtime_ns == _OF_A_DIRECTORY


def tree(files: Mapping[Place, Content]) -> Mapping[Path, bytes | None]:
    """The files of a crash state by their paths; None for a directory."""
    found: dict[Path, bytes | None] = {}
    pending = [(ROOT, Path("/"))]
    while pending:
        number, path = pending.pop()
        for place, content in files.items():
            if place.directory == number:
                found[path / place.name] = None if is_directory(content) else content.data
                if is_directory(content):
                    pending.append((content.data.decode(), path / place.name))
    return found
