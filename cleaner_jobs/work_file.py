"""Writes and reads the run's own files: whole writes, small files with a checksum, and ranges."""

import os
from io import BufferedWriter
from struct import Struct
from typing import Protocol

import xxhash

from cleaner_jobs.problems import WorkFileError
from storage.files import io_limit
from storage.files.descriptors import naming, read_into
from storage.files.files import Disk, Files
from storage.files.local import LOCAL

_CHECKSUM = Struct("<Q")  # xxh3_64 of all after it


def write_checked(path: str, data: bytes, disk: Disk = LOCAL) -> None:
    """Write what `read_checked` reads. Raise OSError."""
    with naming(path), BufferedWriter(disk.open_raw(path, "wb")) as out:
        out.write(_CHECKSUM.pack(xxhash.xxh3_64_intdigest(data)))
        out.write(data)


def read_checked(path: str, files: Files = LOCAL) -> bytes:
    """Return what `write_checked` wrote. Raise WorkFileError if the checksum differs; OSError."""
    found = files.read_bytes(path)
    checksum, data = found[: _CHECKSUM.size], found[_CHECKSUM.size :]
    if checksum != _CHECKSUM.pack(xxhash.xxh3_64_intdigest(data)):
        raise WorkFileError(path, 0, "not what was written")
    return data


class WorkFiles:
    """Files that other tasks of the run wrote, each opened once; to be closed by `with`."""

    def __init__(self, disk: Disk = LOCAL) -> None:
        self.disk = disk
        self._descriptors: dict[str, int] = {}

    def __enter__(self) -> "WorkFiles":
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._descriptors.values():
            os.close(descriptor)

    def read(self, path: str, at: int, length: int) -> bytearray:
        """Return a range of a file. Raise as `fill` does."""
        data = bytearray(length)
        self.fill(path, at, memoryview(data))
        return data

    def fill(self, path: str, at: int, target: memoryview, problem: str = "") -> None:
        """Read into memory that exists: fresh pages take longer than what fills them.

        problem: what is said where the file ends before; else it is how much there is. Raise
        WorkFileError then, or OSError.
        """
        if path not in self._descriptors:
            self._descriptors[path] = self.disk.open_descriptor(path, os.O_RDONLY)
        io_limit.take(len(target))
        with naming(path):
            got = read_into(self._descriptors[path], at, target)
        if got != len(target):
            raise WorkFileError(path, at, problem or f"{got} of {len(target)} bytes are there")


class Sink(Protocol):
    def write(self, data: memoryview, /) -> object: ...


def write_whole(sink: Sink, data: memoryview) -> None:
    """Write all of data; an unbuffered file may take less at a time.

    On Linux that is more than 2 GiB, and what no longer fits a disk that is nearly full: only the
    next call raises there.
    """
    io_limit.take(data.nbytes)
    rest = data.cast("B") if data.nbytes else data[:0]  # nothing cannot be cast
    while len(rest):
        taken = sink.write(rest)
        rest = rest[taken if isinstance(taken, int) else len(rest) :]
