"""Records every change that this process makes to the files of a log directory.

The functions of `os` and `open` that make, name, sync and remove files are wrapped while a run goes
on, so that nothing in the product has to know. What is written is found by looking: before each
operation every file that was opened for writing is compared with what it held, so that also
`copy_file_range`, `sendfile` and whatever else writes is seen; several writes without an operation
between them are one. An audit hook holds that no change came about another way.
"""

import builtins
import contextlib
import io
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from tests.crash.operations import (
    EMPTY,
    Content,
    Create,
    Operation,
    Place,
    Record,
    Rename,
    Sync,
    SyncDirectory,
    Unlink,
    Write,
)
from tests.crash.states import LOCK_FILE

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
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
        self._names = self.record.names.copy()
        self._shadow: dict[int, Content] = {}
        self._written: set[int] = set()
        self._lock = threading.RLock()
        self._mine = threading.local()
        self._os_open, self._listdir = os.open, os.listdir
        for directory, _, names in os.walk(self._root):
            for name in names:
                place = Place(os.path.relpath(directory, self._root).removeprefix("."), name)
                self.record.names[place] = len(self._shadow)
                self._shadow[len(self._shadow)] = self._look(place)
        self.record.contents.update(self._shadow)
        self._names = self.record.names.copy()
        if each_write:
            self._written.update(self._names.values())

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Record what happens meanwhile."""
        patches = [
            mock.patch.object(os, "open", self._opening(os.open)),
            mock.patch.object(builtins, "open", self._opening(builtins.open)),
            mock.patch.object(io, "open", self._opening(io.open)),
            mock.patch.object(os, "rename", self._renaming(os.rename)),
            mock.patch.object(os, "replace", self._renaming(os.replace)),
            mock.patch.object(os, "link", self._linking(os.link)),
            mock.patch.object(os, "remove", self._removing(os.remove)),
            mock.patch.object(os, "unlink", self._removing(os.unlink)),
            mock.patch.object(os, "fsync", self._syncing(os.fsync)),
            mock.patch.object(os, "fdatasync", self._syncing(os.fdatasync)),
        ]
        if self._each_write:
            patches += [
                mock.patch.object(os, name, self._writing(getattr(os, name)))
                for name in ("pwrite", "ftruncate")
            ]
        with contextlib.ExitStack() as stack:
            for patch in patches:
                stack.enter_context(patch)
            _watching.append(self._watch)
            stack.callback(_watching.remove, self._watch)
            yield
            self.look()

    def look(self) -> None:
        """Record what was written since the last operation."""
        with self._operating():
            pass

    def _place(self, path: Any, relative_to: int | None = None) -> Place | None:
        """Where a path is in the log directory; None for one that is elsewhere.

        relative_to: the descriptor of a directory.
        """
        if not isinstance(path, str | os.PathLike):
            return None
        if relative_to is not None:
            path = os.path.join(os.readlink(f"/proc/self/fd/{relative_to}"), path)
        directory, name = os.path.split(os.path.abspath(os.fspath(path)))
        directory = os.path.realpath(directory)
        if directory != self._root and not directory.startswith(self._root + os.sep):
            return None
        return Place(directory[len(self._root) + 1 :], name)

    @contextlib.contextmanager
    def _operating(self) -> Iterator[None]:
        """One operation at a time, after what was written since the last one."""
        with self._lock:
            outer, self._mine.inside = getattr(self._mine, "inside", False), True
            try:
                for place, file in self._names.items():
                    if file in self._written:
                        content = self._look(place)
                        if content != self._shadow[file]:
                            self._shadow[file] = content
                            self._add(Write(file, content))
                yield
            finally:
                self._mine.inside = outer

    def _add(self, operation: Operation) -> None:
        self.record.operations.append(operation)

    def _look(self, place: Place) -> Content:
        if place.name == LOCK_FILE:  # closing a descriptor of it would drop the lock
            return EMPTY
        path = os.path.join(self._root, place.directory, place.name)
        descriptor = self._os_open(path, os.O_RDONLY)
        try:
            stat = os.fstat(descriptor)
            return Content(os.pread(descriptor, stat.st_size, 0), stat.st_mtime_ns)
        finally:
            os.close(descriptor)

    def _opening(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def opening(path: Any, *arguments: Any, **named: Any) -> Any:
            place = self._place(path, named.get("dir_fd"))
            how = arguments[0] if arguments else named.get("flags", named.get("mode", "r"))
            writes = how & WRITING if isinstance(how, int) else set(how) & set("wax+")
            if place is None or not writes:
                return original(path, *arguments, **named)
            with self._operating():
                opened = original(path, *arguments, **named)
                if place not in self._names:
                    self._new(place)
                self._written.add(self._names[place])
            return opened

        return opening

    def _new(self, place: Place) -> None:
        file = len(self._shadow)
        self._shadow[file], self._names[place] = Content(b"", self._look(place).mtime_ns), file
        self._add(Create(place, file))

    def _writing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Each by itself, where several files are written between two operations."""

        def writing(*arguments: Any) -> Any:
            written = original(*arguments)
            self.look()
            return written

        return writing

    def _renaming(self, original: Callable[..., None]) -> Callable[..., None]:
        def renaming(source: Any, target: Any, **named: Any) -> None:
            old = self._place(source, named.get("src_dir_fd"))
            new = self._place(target, named.get("dst_dir_fd"))
            if old is None and new is None:
                original(source, target, **named)
                return
            assert new is not None, (source, target)
            with self._operating():
                original(source, target, **named)
                if old is not None:
                    file = self._names[new] = self._names.pop(old)
                    self._add(Rename(old, new, file))
                else:  # a file from elsewhere: nothing says that its bytes are on disk
                    self._new(new)
                    self._written.add(self._names[new])

        return renaming

    def _linking(self, original: Callable[..., None]) -> Callable[..., None]:
        def linking(source: Any, target: Any, **named: Any) -> None:
            old = self._place(source, named.get("src_dir_fd"))
            new = self._place(target, named.get("dst_dir_fd"))
            with self._operating():
                original(source, target, **named)
                if new is not None and old is not None:
                    self._names[new] = self._names[old]
                    self._add(Create(new, self._names[new]))
                elif new is not None:  # to a file from elsewhere, which was on disk already
                    self._new(new)
                    file = self._names[new]
                    self._shadow[file] = self._look(new)
                    self._add(Write(file, self._shadow[file]))
                    self._add(Sync(file))

        return linking

    def _removing(self, original: Callable[..., None]) -> Callable[..., None]:
        def removing(path: Any, **named: Any) -> None:
            place = self._place(path, named.get("dir_fd"))
            if place is None:
                original(path, **named)
                return
            with self._operating():
                original(path, **named)
                self._add(Unlink(place, self._names.pop(place)))

        return removing

    def _syncing(self, original: Callable[[Any], None]) -> Callable[[Any], None]:
        def syncing(descriptor: Any) -> None:
            number = descriptor if isinstance(descriptor, int) else descriptor.fileno()
            path = os.readlink(f"/proc/self/fd/{number}")
            with self._operating():
                original(descriptor)
                if path == self._root or path.startswith(self._root + os.sep):
                    if os.path.isdir(path):
                        self._add(SyncDirectory(path[len(self._root) + 1 :]))
                    else:
                        place = self._place(path)
                        assert place is not None
                        self._add(Sync(self._names[place]))

        return syncing

    def _watch(self, event: str, arguments: tuple[Any, ...]) -> None:
        if getattr(self._mine, "inside", False):
            return
        count = 2 if event in ("os.rename", "os.link") else 1
        paths, behind = arguments[:count], arguments[count : 2 * count]
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & WRITING):
            return
        tells_of = event in ("os.rename", "os.link", "os.remove")  # directories, -1: none
        directories = [None if not tells_of or fd == -1 else fd for fd in behind]
        if any(map(self._place, paths, directories)):
            self.unseen.append(f"{event} {arguments}")
