"""One entry of an offset index or of a time index, read without the others.

A plan reads no more of an index, and needs no arrays for it. Layout: `offset_index`, `time_index`.
"""

from struct import Struct
from typing import NamedTuple

from storage.errors import CorruptFileError
from storage.files.files import Files, OpenFile
from storage.files.local import LOCAL

OFFSET_ENTRY = Struct(">ii")  # relative offset, position
TIME_ENTRY = Struct(">qi")  # timestamp, relative offset
_READ_AT_ONCE = 128  # entries, 1 KB: sooner read than one of them found by halving


class OffsetPosition(NamedTuple):
    """A batch, by its last offset, and the position at which it starts."""

    offset: int
    position: int


def time_at(path: str, number: int, files: Files = LOCAL) -> int:
    """Give the timestamp of one entry, ms, without reading the others. number: from 0 on.

    CorruptFileError where the file ends before the entry does.
    """
    position = number * TIME_ENTRY.size
    data = files.read_range(path, position, TIME_ENTRY.size)
    if len(data) < TIME_ENTRY.size:
        problem = f"entry has {len(data)} of {TIME_ENTRY.size} bytes"
        raise CorruptFileError(path, position, problem)
    timestamp_ms: int = TIME_ENTRY.unpack(data)[0]
    return timestamp_ms


def read_last(path: str, base_offset: int, files: Files = LOCAL) -> OffsetPosition:
    """Give the last entry without reading the others; (base_offset, 0) if there is none.

    The file of an active segment is 10 MiB, nearly all of it zeros: where they begin is looked for
    by halving, and then in what is read at once.
    """
    with files.open(path) as index:
        last = _last_entry(index, path)
    if last is None:
        return OffsetPosition(base_offset, 0)
    return OffsetPosition(base_offset + last[0], last[1])


def _last_entry(index: OpenFile, path: str) -> tuple[int, int] | None:
    count = index.entry.size_bytes // OFFSET_ENTRY.size
    last = _read_entry(index, path, count - 1) if count else None
    if last == (0, 0):
        first_unused = _first_unused(index, path, count - 1)
        last = _read_entry(index, path, first_unused - 1) if first_unused else None
    return last


def _first_unused(index: OpenFile, path: str, known_unused: int) -> int:
    low, high = 0, known_unused
    while high - low > _READ_AT_ONCE:
        middle = (low + high) // 2
        if _read_entry(index, path, middle) == (0, 0):
            high = middle
        else:
            low = middle + 1
    entries = index.read(low * OFFSET_ENTRY.size, (high - low) * OFFSET_ENTRY.size)
    used_bytes = len(entries.rstrip(b"\0"))
    return low + -(-used_bytes // OFFSET_ENTRY.size)  # the last may end in zeros


def _read_entry(index: OpenFile, path: str, number: int) -> tuple[int, int]:
    position = number * OFFSET_ENTRY.size
    data = index.read(position, OFFSET_ENTRY.size)
    if len(data) < OFFSET_ENTRY.size:
        problem = f"entry has {len(data)} of {OFFSET_ENTRY.size} bytes"
        raise CorruptFileError(path, position, problem)
    relative_offset, log_position = OFFSET_ENTRY.unpack(data)
    return relative_offset, log_position
