"""The states in which a crash can leave a log directory, made of the record of a run.

After every operation, two kinds of crash. The process is killed: everything that was done is there.
The power goes: what was written since a file's last sync is lost, or torn, or there in size only;
of the names that were made, changed or removed since a directory's last sync any part is there, in
whatever order they came. A rename is one step. One that needs an earlier one of the same file does
not happen without it; a later one may overwrite what an earlier one has not moved away.

All parts are tried where few operations wait for a sync; where many do, all beginnings, all but
each single one, each single one alone, and some at random, the same ones each time.
"""

import functools
import os
import random
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from tests.crash.operations import (
    EMPTY,
    Content,
    Create,
    Names,
    Naming,
    Operation,
    Place,
    Record,
    Rename,
    Sync,
    SyncDirectory,
    Unlink,
    Write,
)

STAGED, TEMPORARY, LOCK_FILE = ".compactor-", ".tmp", ".lock"
ALL_PARTS_OF = 6
AT_RANDOM = 24
BLOCK_BYTES = 512


class CrashState(NamedTuple):
    """What is on disk after a crash, and how it came to it."""

    files: dict[Place, Content]
    operations: int  # of the run, until then
    kind: str

    @property
    def identity(self) -> frozenset[tuple[Place, Content]]:
        """Equal for states with the same files, those aside that nobody takes for the log's."""
        known = {place: content for place, content in self.files.items() if not _is_private(place)}
        some_are_left = len(known) < len(self.files)
        return frozenset([*known.items(), (Place("", str(some_are_left)), EMPTY)])

    def write(self, root: Path, directories: Sequence[str]) -> None:
        """Lay it out as a log directory."""
        for directory in directories:
            (root / directory).mkdir(parents=True)
        for place, content in self.files.items():
            path = root / place.directory / place.name
            path.write_bytes(content.data)
            os.utime(path, ns=(content.mtime_ns, content.mtime_ns))


@functools.cache
def _is_private(place: Place) -> bool:
    return place.name == LOCK_FILE or STAGED in place.name or place.name.endswith(TEMPORARY)


class _Disk:
    """Where things stand after some operations: what is on disk, and what waits for it."""

    def __init__(self, record: Record) -> None:
        self.names = record.names.copy()  # synced
        self.synced = record.contents.copy()
        self.pending: list[Naming] = []
        self.written: dict[int, list[Content]] = {}  # since the last sync

    def do(self, operation: Operation) -> None:
        match operation:
            case Write(file, content):
                self.written.setdefault(file, []).append(content)
            case Sync(file):
                if file in self.written:
                    self.synced[file] = self.written.pop(file)[-1]
            case SyncDirectory(directory):
                mine = [step for step in self.pending if _directory(step) == directory]
                self.pending = [step for step in self.pending if _directory(step) != directory]
                self.names = _applied(self.names, mine)
            case _:
                self.pending.append(operation)

    def now(self, file: int) -> Content:
        """What a process reads of a file."""
        return self.written[file][-1] if file in self.written else self.synced.get(file, EMPTY)

    def on_disk(self, file: int) -> Content:
        return self.synced.get(file, EMPTY)


def crash_states(record: Record) -> Iterator[CrashState]:
    """Each state once, in the order in which a run comes by them."""
    seen = set()
    for state in _all_states(record):
        if state.identity not in seen:
            seen.add(state.identity)
            yield state


def kill_states(record: Record) -> Iterator[CrashState]:
    """Those of a process that is killed alone."""
    disk = _Disk(record)
    yield _killed(disk, 0)
    for done, operation in enumerate(record.operations, start=1):
        disk.do(operation)
        yield _killed(disk, done)


def _all_states(record: Record) -> Iterator[CrashState]:
    disk = _Disk(record)
    for done in range(len(record.operations) + 1):
        if done:
            disk.do(record.operations[done - 1])
        yield _killed(disk, done)
        for kept in _parts(disk.pending, done):
            names = _applied(disk.names, kept)
            what = f"power lost with {_told(disk.pending, kept)}"
            synced = {place: disk.on_disk(file) for place, file in names.items()}
            yield CrashState(synced, done, f"{what}, unsynced data lost")
            if disk.written:
                there = {place: disk.now(file) for place, file in names.items()}
                yield CrashState(there, done, f"{what}, unsynced data there")
        yield from _torn(disk, done)


def _killed(disk: _Disk, done: int) -> CrashState:
    names = _applied(disk.names, disk.pending)
    files = {place: disk.now(file) for place, file in names.items()}
    return CrashState(files, done, "process killed")


def _torn(disk: _Disk, done: int) -> Iterator[CrashState]:
    """All names are there; one file has some of what was written to it, the others have it all."""
    names = _applied(disk.names, disk.pending)
    there = {place: disk.now(file) for place, file in names.items()}
    for place, file in names.items():
        for content in _variants(disk, file):
            kind = f"power lost with {place} holding {len(content.data)} bytes of what was written"
            yield CrashState(there | {place: content}, done, kind)


def _variants(disk: _Disk, file: int) -> Iterator[Content]:
    """What was synced and has not been written to since stays; the file is never shorter than it
    has been since then."""
    if file not in disk.written:
        return
    before, pending = disk.on_disk(file).data, [each.data for each in disk.written[file]]
    data, mtime_ns = disk.now(file)
    size, shortest = len(data), min(map(len, [before, *pending]))
    kept = next((i for i in range(shortest) if any(p[i] != before[i] for p in pending)), shortest)
    cuts = {kept + 1, kept + (size - kept) // 3, size - 1, size // BLOCK_BYTES * BLOCK_BYTES}
    for cut in sorted(cuts):
        if kept < cut < size:
            if cut >= shortest:
                yield Content(data[:cut], mtime_ns)
            yield Content(data[:cut] + before[cut:size].ljust(size - cut, b"\0"), mtime_ns)
    yield Content(before[:size].ljust(size, b"\0"), mtime_ns)


def _parts(pending: Sequence[Naming], seed: int) -> Iterator[list[Naming]]:
    """Which of the pending operations a crash may leave done."""
    count = len(pending)
    if count <= ALL_PARTS_OF:
        for choice in product((False, True), repeat=count):
            yield [step for step, kept in zip(pending, choice, strict=True) if kept]
        return
    for end in range(count + 1):
        yield list(pending[:end])
    for one in range(count):
        yield [step for number, step in enumerate(pending) if number != one]
        yield [pending[one]]
    dice = random.Random(seed)
    for _ in range(AT_RANDOM):
        yield [step for step in pending if dice.random() < 0.5]


def _applied(names: Names, steps: Sequence[Naming]) -> Names:
    names = names.copy()
    for step in steps:
        match step:
            case Create(place, file):
                names[place] = file
            case Rename(source, target, file):
                if names.get(source) == file:
                    del names[source]
                elif file in names.values():
                    continue  # an earlier one of the same file was lost
                names[target] = file
            case Unlink(place, file):
                if names.get(place) == file:
                    del names[place]
    return names


def _directory(step: Naming) -> str:
    return step.target.directory if isinstance(step, Rename) else step.place.directory


def _told(pending: Sequence[Naming], kept: Sequence[Naming]) -> str:
    if len(kept) == len(pending):
        return "every name there"
    lost = [str(step) for step in pending if step not in kept]
    return f"these names lost: {'; '.join(lost)}"
