"""Entries of keys as scan tasks leave them: one behind the other, by hash partition.

Behind them where each hash partition starts, and a checksum for the entries of each.
"""

from itertools import pairwise
from typing import BinaryIO, Protocol

import numpy as np
import xxhash
from numpy.typing import NDArray

from cleaner_jobs.tasks.sink import write_whole


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
