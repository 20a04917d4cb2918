"""Somebody else is at work between any two file operations of a command on a log directory.

He changes a byte and its checksum, replaces, cuts, lengthens, links or unlinks a file, puts another
directory or a link in the place of a partition's, or takes the lock away: once, at each operation.
`writer_ending` tells what may come of it.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from crc32c import crc32c

from tests.crash.states import LOCK_FILE
from tests.disturbed.scenes import Place
from tests.disturbed.stage import Files, Stage, files_in
from tests.support.file_operations import Operation

OF_A_FILE = "changed", "replaced", "truncated", "grown", "linked", "hard-linked", "unlinked"
OF_A_DIRECTORY = "directory for a link", "directory for another"
OF_THE_LOCK = "lock made anew", "lock removed"
KINDS = (*OF_A_FILE, *OF_A_DIRECTORY, *OF_THE_LOCK)
ANOTHERS = b"another's"


class Attack(NamedTuple):
    """What is done, and before which operation of the command."""

    at: int
    kind: str

    def __str__(self) -> str:
        return f"{self.kind} before operation {self.at}"


def attacks_of(stage: Stage) -> Iterator[Attack]:
    """Every kind before every operation on the log directory.

    Other operations see and change nothing of it, so that it makes no difference whether he comes
    before them or after.
    """
    root = f"{stage.place.logs}"
    for number, operation in enumerate(stage.operations):
        if operation.path.startswith(root) or operation.target.startswith(root):
            yield from (Attack(number, kind) for kind in KINDS)


class Writer:
    """The other one: `before` is to be told of each operation, and strikes at one of them."""

    def __init__(self, place: Place, attack: Attack) -> None:
        self._place, self._attack = place, attack
        self._count = 0
        self.outside = place.root.with_name("outside")
        shutil.rmtree(self.outside, ignore_errors=True)
        self.outside.mkdir()
        self.target: Path | None = None  # the file or directory; None: he has not come yet
        self.left: Files = {}  # what stood in the log directory when he was done
        self.left_outside: Files = {}
        self.wrote: list[bytes] = []

    def before(self, operation: Operation) -> None:
        number, self._count = self._count, self._count + 1
        if number != self._attack.at:
            return
        kind = self._attack.kind
        if kind in OF_THE_LOCK:
            self.target = self._place.logs / LOCK_FILE
            self._take_the_lock()
        elif kind in OF_A_DIRECTORY:
            self.target = self._partition(operation)
            self._exchange(self.target)
        else:
            self.target = self._file(operation)
            self._disturb(self.target)
        self.left = files_in(self._place.logs)
        self.left_outside = files_in(self.outside)

    def restore(self) -> None:
        """Put back what was taken away: a directory, the lock."""
        if self._attack.kind in OF_A_DIRECTORY and self.target is not None:
            if self.target.is_symlink():
                self.target.unlink()
            else:
                shutil.rmtree(self.target)
            (self.outside / "moved").rename(self.target)
        (self._place.logs / LOCK_FILE).unlink(missing_ok=True)

    def _take_the_lock(self) -> None:
        path = self._place.logs / LOCK_FILE
        path.unlink(missing_ok=True)
        if self._attack.kind == "lock made anew":
            self._write(path, ANOTHERS)

    def _exchange(self, partition: Path) -> None:
        """For a copy whose files are hard links: nobody can tell them from the others."""
        moved = self.outside / "moved"
        is_link = self._attack.kind == "directory for a link"
        there = self.outside / "elsewhere" if is_link else partition
        partition.rename(moved)
        shutil.copytree(moved, there, copy_function=os.link)
        if is_link:
            partition.symlink_to(there)

    def _disturb(self, path: Path) -> None:
        data, found = path.read_bytes(), path.stat()
        aside = self.outside / path.name
        match self._attack.kind:
            case "changed":
                self._write(path, changed(data))
            case "replaced":
                path.unlink()
                self._write(path, changed(data))
            case "truncated":
                self._write(path, data[: len(data) // 2])
            case "grown":
                self._write(path, data + (data[-70:] or b"grown"))
            case "linked":
                path.rename(aside)
                path.symlink_to(aside)
            case "hard-linked":
                os.link(path, aside)
            case "unlinked":
                path.unlink()
        if path.exists():
            os.utime(path, ns=(found.st_mtime_ns, found.st_mtime_ns))

    def _write(self, path: Path, data: bytes) -> None:
        self.wrote.append(data)
        with open(path, "r+b" if path.exists() else "xb") as out:
            out.write(data)
            out.truncate()

    def _partition(self, operation: Operation) -> Path:
        for path in (operation.path, operation.target):
            if path.startswith(f"{self._place.logs}/"):
                name = Path(path).relative_to(self._place.logs).parts[0]
                if (self._place.logs / name).is_dir():
                    return self._place.logs / name
        partitions = sorted(path for path in self._place.logs.iterdir() if path.is_dir())
        return partitions[self._attack.at % len(partitions)]

    def _file(self, operation: Operation) -> Path:
        """That of the operation, if it is one of a partition; else one log after the other."""
        for path in map(Path, (operation.path, operation.target)):
            if path.parent.parent == self._place.logs and _is_file(path):
                return path
        logs = sorted(self._place.logs.glob("*/*.log"))
        return logs[self._attack.at % len(logs)]


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def changed(data: bytes) -> bytes:
    """One byte another; where that is in the last batch of a log, with a checksum that fits."""
    if not data:
        return b"x"
    at = len(data) - 2
    out = bytearray(data)
    out[at] ^= 1
    start = 0
    while len(out) >= start + 61:
        size = 12 + int.from_bytes(out[start + 8 : start + 12], "big")
        if size < 61 or start + size > len(out):
            break
        if start + size == len(out):
            crc = crc32c(memoryview(bytes(out[start + 21 :])))
            out[start + 17 : start + 21] = crc.to_bytes(4, "big")
        start += size
    return bytes(out)
