"""Time index (`.timeindex`): the largest timestamp up to an offset.

A headerless run of 12-byte big-endian entries: timestamp int64, offset relative to the segment's
base offset int32. An entry (T, O) says that nothing before it is younger than T, and that O is the
last offset of the first batch with T. While the segment is active the file is filled up with zeros.
Source: Kafka, TimeIndex, AbstractIndex; spec F-10.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.errors import CorruptFileError
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats.index_entry import TIME_ENTRY

ENTRY = np.dtype([("timestamp", ">i8"), ("relative_offset", ">i4")])
assert ENTRY.itemsize == TIME_ENTRY.size == 12

Entries = NDArray[np.void]  # of ENTRY


class TimestampOffset(NamedTuple):
    """A largest timestamp, and the last offset of the first batch that has it."""

    timestamp_ms: int | None  # None: no record so far has one
    offset: int


def decode(data: bytes, path: str) -> Entries:
    """Give the entries, without the zeros that fill up the index of an active segment.

    Raise CorruptFileError if the last entry is cut short. A lone entry of zeros is one: the epoch
    itself, at the base offset.
    """
    whole = len(data) // ENTRY.itemsize
    cut = len(data) - whole * ENTRY.itemsize
    if cut:
        problem = f"entry has {cut} of {ENTRY.itemsize} bytes"
        raise CorruptFileError(path, whole * ENTRY.itemsize, problem)
    entries = np.frombuffer(data, ENTRY)
    if whole == 1:
        return entries
    used = np.flatnonzero((entries["timestamp"] != 0) | (entries["relative_offset"] != 0))
    return entries[: used[-1] + 1 if len(used) else 0]


def check(entries: Entries, path: str) -> None:
    """Raise CorruptFileError at the first entry out of order (F-10.1)."""
    times, offsets = entries["timestamp"], entries["relative_offset"]
    wrong = (times < 0) | (offsets < 0)
    wrong[1:] |= (times[1:] <= times[:-1]) | (offsets[1:] < offsets[:-1])
    if wrong.any():
        at = int(wrong.argmax())
        problem = f"entry (timestamp {times[at]}, relative offset {offsets[at]}) does not ascend"
        raise CorruptFileError(path, at * ENTRY.itemsize, problem)


def last(entries: Entries, base_offset: int) -> TimestampOffset:
    """Give the segment's largest timestamp as Kafka takes it on loading (F-10.5)."""
    if not len(entries):
        return TimestampOffset(None, base_offset)
    timestamp_ms, relative_offset = entries[-1].item()
    return TimestampOffset(timestamp_ms, base_offset + relative_offset)


def read(path: str, files: Files = LOCAL) -> Entries:
    """Read and decode an index file."""
    return decode(files.read_bytes(path), path)
