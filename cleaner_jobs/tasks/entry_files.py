"""Files of map entries: those that scan tasks leave, and those that a large merge spills to.

A scan task writes the entries of a part by hash partition, then where each hash partition starts,
then a checksum for the entries of each. A hash partition that is too large for memory is spread
over files by its keys, so that each part is read once, however many turns the merge takes. Those
files belong to one attempt, and are removed when the merge ends.
"""

import contextlib
from io import FileIO
from itertools import pairwise
from types import TracebackType
from typing import BinaryIO, NamedTuple, Protocol

import numpy as np
import xxhash
from numpy.typing import NDArray

from cleaner_jobs.kernels.offset_map import ENTRY_WORDS
from cleaner_jobs.problems import WorkFileError
from cleaner_jobs.work_file import WorkFiles, write_whole
from storage.files.descriptors import naming
from storage.files.files import Disk
from storage.files.local import LOCAL


class EntryBlock(Protocol):
    """What says where entries stand: a part of a round, or a counted run of an inspection."""

    @property
    def file(self) -> str: ...
    @property
    def block_at(self) -> int: ...
    @property
    def entries(self) -> int: ...
    @property
    def hash_partition_bits(self) -> int: ...


def write_entries(
    out: BinaryIO, entries: NDArray[np.uint64], starts: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """Write entries, starts and checksums; return the checksums.

    entries: (n, ENTRY_WORDS). starts: where each hash partition begins in them, and their end.
    """
    edges = starts.astype(np.int64)
    checksums = np.array(
        [xxhash.xxh3_64_intdigest(entries[start:end].data) for start, end in pairwise(edges)],
        np.uint64,
    )
    for array in (entries.data, starts.data, checksums.data):
        write_whole(out, array)
    return checksums


class Entries(NamedTuple):
    """Entries of the parts of a log, in its order."""

    rows: NDArray[np.uint64]  # (n, ENTRY_WORDS)
    counts: NDArray[np.int64]  # how many are of each part


_OTHER_ENTRIES = "entries of the map are not what was written"


class EntrySpill:
    """Takes entries in the order of the log, and gives back those of one turn after another."""

    def __init__(self, path: str, turns: int, parts: int, disk: Disk = LOCAL) -> None:
        """turns: a power of two, more than one."""
        self._disk = disk
        self._paths = [f"{path}-{turn}" for turn in range(turns)]
        self._shift = np.uint64(64 - (turns.bit_length() - 1))
        self._counts = np.zeros((turns, parts), np.int64)
        self._digests = [xxhash.xxh3_64() for _ in self._paths]
        self._files: list[FileIO] = []

    def __enter__(self) -> "EntrySpill":
        try:
            for path in self._paths:
                self._files.append(self._disk.open_raw(path, "xb"))
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._remove()

    def add(self, entries: Entries) -> None:
        """Share out entries by the topmost bits of their second hash."""
        turns, parts = self._counts.shape
        turn_of = (entries.rows[:, 1] >> self._shift).astype(np.int64)
        part_of = np.repeat(np.arange(parts), entries.counts)
        cells = np.bincount(turn_of * parts + part_of, minlength=turns * parts)
        self._counts += cells.reshape(turns, parts)
        rows = entries.rows[np.argsort(turn_of.astype(np.uint16), kind="stable")]
        end = 0
        for turn, count in enumerate(np.bincount(turn_of, minlength=turns).tolist()):
            start, end = end, end + count
            with naming(self._paths[turn]):
                write_whole(self._files[turn], rows[start:end].data)
            self._digests[turn].update(rows[start:end].data)

    def turn(self, number: int) -> Entries:
        """Return the entries of one turn. Raise WorkFileError where they have changed."""
        path, counts = self._paths[number], self._counts[number]
        rows = np.empty((int(counts.sum()), ENTRY_WORDS), np.uint64)
        with WorkFiles(self._disk) as files:
            files.fill(path, 0, rows.reshape(-1).view(np.uint8).data, _OTHER_ENTRIES)
        if xxhash.xxh3_64_intdigest(rows.data) != self._digests[number].intdigest():
            raise WorkFileError(path, 0, _OTHER_ENTRIES)
        return Entries(rows, counts)

    def _remove(self) -> None:
        for path, file in zip(self._paths, self._files, strict=False):
            file.close()
            with contextlib.suppress(FileNotFoundError):
                self._disk.remove(path)
