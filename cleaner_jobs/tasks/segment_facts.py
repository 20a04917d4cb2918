"""Facts of the batches of a cleaned segment, its index files made of them, and their writing.

It needs a kernel only where there are very many batches, for the driver that joins few pieces.
Source: compaction C-13, C-14.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from cleaner_jobs.problems import WorkFileError
from cleaner_jobs.work_file import write_whole
from storage.errors import UnsupportedFormatError
from storage.files import io_limit
from storage.files.descriptors import naming
from storage.files.files import Disk, FileAttributes, Files
from storage.files.local import LOCAL
from storage.formats.segment_indexes import IndexBuilder, check_capacity, made_to_fit

_INDEXED = "size", "last_offset", "max_timestamp"
BATCH_FACTS = np.dtype([(name, "<i8") for name in (*_INDEXED, "base_offset")])
FACTS_AT_ONCE = 1 << 16
NS_PER_MS = 1_000_000

BatchFacts = NDArray[np.void]


class FactsFile:
    """Writes the facts of the batches of a piece, for the driver that joins it with others."""

    def __init__(self, path: str, disk: Disk = LOCAL) -> None:
        self._out = disk.open_raw(path, "xb")
        self._digest = xxhash.xxh3_64()

    def __enter__(self) -> "FactsFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._out.close()

    def add(self, facts: BatchFacts) -> None:
        data = facts.view(np.uint8).data
        self._digest.update(data)
        write_whole(self._out, data)

    def checksum(self) -> int:
        """Return the checksum of all facts so far."""
        return self._digest.intdigest()


def facts_in(path: str, checksum: int, files: Files = LOCAL) -> Iterator[BatchFacts]:
    """Yield what a FactsFile was given, some batches at a time.

    Raise WorkFileError, at the end, where it was anything else, or OSError.
    """
    digest, position, size = xxhash.xxh3_64(), 0, BATCH_FACTS.itemsize
    with files.open(path) as source:
        while count := len(data := source.read(position, FACTS_AT_ONCE * size)) // size:
            facts = np.frombuffer(data, BATCH_FACTS, count)
            position += facts.nbytes
            io_limit.take(facts.nbytes)
            digest.update(facts.view(np.uint8).data)
            yield facts
    if digest.intdigest() != checksum:
        raise WorkFileError(path, 0, "facts of batches are not what was written")


class IndexesInMaking:
    """The indexes of a cleaned segment, made of the facts of its batches as they come."""

    def __init__(self, path: str, base_offset: int, limits: tuple[int, int]) -> None:
        """limits: index.interval.bytes and segment.index.bytes. path: for errors."""
        interval_bytes, self._index_bytes = limits
        self._path = path
        self._builder = IndexBuilder(base_offset, interval_bytes)

    def add(self, facts: BatchFacts) -> None:
        self._builder.add(*(np.ascontiguousarray(facts[name]) for name in _INDEXED))

    def finish(self) -> "FinishedIndexes":
        """Raise UnsupportedFormatError where no index can hold these batches.

        Where only the room is missing Kafka's cleaner stops, too (C-13.7); here entries are left
        out.
        """
        indexes = self._builder.finish()
        if indexes.problem:
            problem = f"the cleaned segment cannot be indexed: {indexes.problem}"
            raise UnsupportedFormatError(self._path, 0, problem)
        sparse = check_capacity(indexes, self._index_bytes) is not None
        if sparse:
            indexes = made_to_fit(indexes, self._index_bytes)
        return FinishedIndexes(indexes.offset_index, indexes.time_index, sparse)


class FinishedIndexes(NamedTuple):
    """The index files of a cleaned segment."""

    offset_index: bytes
    time_index: bytes
    sparse: bool  # entries were left out, since segment.index.bytes has no room for all


def write_like(path: str, data: bytes, model: FileAttributes, disk: Disk = LOCAL) -> None:
    """Write a file with the attributes of another, and its modification time in whole ms."""
    with naming(path), disk.open_raw(path, "xb") as out:
        write_whole(out, memoryview(data))
        finish_like(out.fileno(), model, disk)


def finish_like(descriptor: int, model: FileAttributes, disk: Disk = LOCAL) -> None:
    """Give an open, completely written file the attributes and the time of another.

    It is not on disk before it is synced. The time is the broker's clock of data without
    timestamps, in whole milliseconds (C-14.3). Raise PermissionError as give_attributes.
    """
    disk.give_attributes(descriptor, model)
    disk.set_times(descriptor, model.mtime_ns // NS_PER_MS * NS_PER_MS)
