"""What a run did to the files of a log directory, operation by operation, with contents.

A file is a number, given when it is first seen: names come and go, the file stays the same. A place
is a directory relative to the log directory ("" for itself) and a name in it.
"""

from dataclasses import dataclass, field
from typing import NamedTuple


class Place(NamedTuple):
    directory: str
    name: str

    def __str__(self) -> str:
        return f"{self.directory}/{self.name}" if self.directory else self.name


class Content(NamedTuple):
    data: bytes
    mtime_ns: int


EMPTY = Content(b"", 0)


class Create(NamedTuple):
    """A name for a file that had none, or one more for a link."""

    place: Place
    file: int

    def __str__(self) -> str:
        return f"create {self.place}"


class Write(NamedTuple):
    """What the file holds now, with its time; also after it was cut short."""

    file: int
    content: Content

    def __str__(self) -> str:
        return f"write file {self.file}: {len(self.content.data)} bytes"


class Sync(NamedTuple):
    file: int

    def __str__(self) -> str:
        return f"sync file {self.file}"


class Rename(NamedTuple):
    source: Place
    target: Place
    file: int

    def __str__(self) -> str:
        return f"rename {self.source} to {self.target.name}"


class Unlink(NamedTuple):
    place: Place
    file: int

    def __str__(self) -> str:
        return f"unlink {self.place}"


class SyncDirectory(NamedTuple):
    directory: str

    def __str__(self) -> str:
        return f"sync directory {self.directory or '.'}"


Operation = Create | Write | Sync | Rename | Unlink | SyncDirectory
Naming = Create | Rename | Unlink  # what is on disk only once its directory was synced

Names = dict[Place, int]


@dataclass
class Record:
    """A log directory as it was, all of it on disk, and what was done to it then."""

    names: Names
    contents: dict[int, Content]
    operations: list[Operation] = field(default_factory=list)
