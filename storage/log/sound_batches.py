"""Looks for whole batches in bytes that do not begin where a batch does, as behind a damaged one.

A crash tears the end of a log: behind the torn place there is nothing, zeros, or the rest of what
was being written. Where a batch with a right CRC follows, the damage is in the middle, and cutting
the log off there would lose what can still be read. A batch is looked for at every byte: of any
message format, and of any codec, since only its framing and its CRC are looked at (spec F-3, F-4).
"""

from struct import Struct
from typing import TYPE_CHECKING
from zlib import crc32

from storage.files.files import Files, OpenFile
from storage.files.local import LOCAL
from storage.formats.batch_header import (
    BATCH_HEADER_BYTES,
    CHECKED_AT,
    CRC_AT,
    LEGACY_CRC_AT,
    LENGTH_AT,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_AT,
    MIN_LEGACY_LENGTH,
)
from storage.kernels.crc32c import crc32c

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CHUNK_BYTES = 4 * 1024 * 1024
_FRAMING = Struct(">qiiB")  # offset, length, leader epoch or CRC, magic
# candidates that look like a batch and are none may cost so many bytes of checksums in all
_CHECKED_AT_MOST = 1 << 30


def first_sound_batch(path: str, start: int, base_offset: int, files: Files = LOCAL) -> int | None:
    """Give the position of the first batch at or behind start with a right CRC; None if none is.

    base_offset: of the segment; a batch of it has an offset up to 2^32 above that. Where bytes
    pretend to be batches so often that not all can be checked, the first unchecked one is given.
    """
    with files.open(path) as log:
        return _first_sound_batch(log, start, base_offset)


def _first_sound_batch(log: OpenFile, start: int, base_offset: int) -> int | None:
    size_bytes = log.entry.size_bytes
    budget = _CHECKED_AT_MOST
    position = start
    while position + _FRAMING.size <= size_bytes:
        chunk = log.read(position, _CHUNK_BYTES + _FRAMING.size)
        for at in _candidates(chunk, base_offset):
            candidate = position + int(at)
            offset, length, _, magic = _FRAMING.unpack_from(chunk, at)
            end = candidate + length + LOG_OVERHEAD_BYTES
            if offset < base_offset or end > size_bytes:
                continue
            budget -= end - candidate
            if budget < 0 or _is_sound(log, candidate, end, magic):
                return candidate
        position += _CHUNK_BYTES
    return None


def _candidates(chunk: bytes, base_offset: int) -> "NDArray[np.intp]":
    """Positions with an offset near the segment's and a length that a batch can have."""
    import numpy as np  # nobody looks here but where something is damaged

    data = np.frombuffer(chunk, np.uint8)
    places = len(data) - _FRAMING.size + 1
    high = [(base_offset >> 32 << 32) + more for more in (0, 1 << 32)]
    matches = np.zeros(places, np.bool_)
    for offset in high:
        prefix = offset.to_bytes(9, "big")[1:5]
        one = np.ones(places, np.bool_)
        for i, byte in enumerate(prefix):
            one &= data[i : i + places] == byte
        matches |= one
    matches &= data[LENGTH_AT : LENGTH_AT + places] < 0x80  # the length is not negative
    found = np.flatnonzero(matches)
    lengths = sum(data[found + LENGTH_AT + i].astype(np.int64) << (24 - 8 * i) for i in range(4))
    return found[lengths >= MIN_LEGACY_LENGTH]


def _is_sound(log: OpenFile, start: int, end: int, magic: int) -> bool:
    if magic >= MAGIC and end - start < BATCH_HEADER_BYTES:
        return False
    batch = memoryview(log.read(start, end - start))
    if len(batch) < end - start:
        return False
    if magic >= MAGIC:
        stored, found = batch[CRC_AT:CHECKED_AT], crc32c(batch[CHECKED_AT:])
    else:
        stored, found = batch[LEGACY_CRC_AT:MAGIC_AT], crc32(batch[MAGIC_AT:])
    return bytes(stored) == found.to_bytes(4, "big")
