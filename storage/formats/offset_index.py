"""Offset index (`.index`): where in the log a batch with a given last offset starts.

A headerless run of 8-byte big-endian entries, by rising offset: offset relative to the segment's
base offset int32, position in the log int32. While the segment is active the file is longer than
its entries, filled up with zeros. Source: Kafka, OffsetIndex, AbstractIndex; spec F-9.
"""

import numpy as np
from numpy.typing import NDArray

from storage.errors import CorruptFileError
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats.index_entry import OFFSET_ENTRY, OffsetPosition

ENTRY = np.dtype([("relative_offset", ">i4"), ("position", ">i4")])
assert ENTRY.itemsize == OFFSET_ENTRY.size == 8

Entries = NDArray[np.void]  # of ENTRY


def decode(data: bytes, path: str) -> Entries:
    """Give the entries, without the zeros that fill up the index of an active segment.

    Raise CorruptFileError if the last entry is cut short. What the entries say is not looked at:
    that is what `check` is for.
    """
    whole = len(data) // ENTRY.itemsize
    cut = len(data) - whole * ENTRY.itemsize
    if cut:
        problem = f"entry has {cut} of {ENTRY.itemsize} bytes"
        raise CorruptFileError(path, whole * ENTRY.itemsize, problem)
    entries = np.frombuffer(data, ENTRY)
    if data[-ENTRY.itemsize :] != bytes(ENTRY.itemsize):  # so where no broker is at work
        return entries
    used = np.flatnonzero(entries["position"] | entries["relative_offset"])
    return entries[: used[-1] + 1 if len(used) else 0]


def check(entries: Entries, log_bytes: int, path: str) -> None:
    """Raise CorruptFileError at the first entry that cannot be one of a log of so many bytes."""
    offsets, positions = entries["relative_offset"], entries["position"]
    wrong = (offsets < 0) | (positions < 0) | (positions >= log_bytes)
    wrong[1:] |= (offsets[1:] <= offsets[:-1]) | (positions[1:] <= positions[:-1])
    if wrong.any():
        at = int(wrong.argmax())
        problem = (
            f"entry (relative offset {offsets[at]}, position {positions[at]}) "
            f"does not ascend or is outside the log of {log_bytes} bytes"
        )
        raise CorruptFileError(path, at * ENTRY.itemsize, problem)


def search(entries: Entries, base_offset: int, target: int) -> OffsetPosition:
    """Give the entry with the greatest offset that is not past target (F-9.3).

    (base_offset, 0) if there is none. The batch that holds target starts there or later.
    """
    at = int(np.searchsorted(entries["relative_offset"], target - base_offset, side="right")) - 1
    if at < 0:
        return OffsetPosition(base_offset, 0)
    relative_offset, position = entries[at]
    return OffsetPosition(base_offset + int(relative_offset), int(position))


def read(path: str, files: Files = LOCAL) -> Entries:
    """Read and decode an index file."""
    return decode(files.read_bytes(path), path)
