"""One raw snappy block, compressed to the bytes of the library that Kafka uses (spec F-8.3).

length of the content varint | elements: a literal, or a copy of what came earlier
literal: (n - 1) << 2, for n > 60 the tag of 1 or 2 more bytes that hold n - 1 | n bytes
copy of 4 to 11 bytes from less than 2048 back: length, offset in 11 bits, in 2 bytes
copy of up to 64 bytes: length, offset uint16 LE, in 3 bytes

Any valid block would be read, but a batch that is compressed again shall be Kafka's to the byte,
and libraries hash differently. cramjam (Rust) takes the upper bits of a product, C++ snappy 1.1.10
bits 18 and up: the same for the largest table only, so for blocks of more than 8192 bytes. Smaller
ones are compressed here. (Builds of C++ snappy with SSE 4.2 use another hash altogether.)
Source: snappy's format_description.txt; snappy 1.1.10 as snappy-java 1.1.10.7 builds it.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from storage.kernels.kernel import kernel
from storage.kernels.memory_access import load_le_uint64

ByteArray = npt.NDArray[np.uint8]

MAX_BLOCK_BYTES = 32768  # what Kafka's writer puts in one; offsets have to fit 16 bits
_MIN_SLOTS, _MAX_SLOTS = 256, 16384
_HASH_FACTOR, _HASH_SHIFT = 0x1E35A7BD, 18
_MARGIN_BYTES = 15  # no match is looked for so near to the end
_WORD = 0xFFFFFFFF


def compress_small_block(block: bytes | memoryview) -> bytes:
    """Return the raw block that holds these bytes, at most MAX_BLOCK_BYTES of them."""
    assert len(block) <= MAX_BLOCK_BYTES
    source = np.frombuffer(block, dtype=np.uint8)
    source.flags.writeable = False  # whichever buffer it is: one type, so one kernel
    out = np.empty(32 + len(block) + len(block) // 6, dtype=np.uint8)  # no block can get larger
    slots = np.empty(_MAX_SLOTS, dtype=np.uint16)
    return out[: _compress(source, slots, out)].tobytes()


@kernel
def _compress(source: ByteArray, slots: npt.NDArray[np.uint16], out: ByteArray) -> Any:
    """Fill out and return how much. slots: last position of each hash; its contents do not matter.

    Positions are looked at one by one, after 32 without a match every second, after 32 more every
    third, and so on, up to 15 bytes before the end: so eight bytes can be loaded at each.
    """
    size = len(source)
    mask = _clear_slots(slots, size)
    at = _put_length(out, size)
    literal_start = 0
    limit = size - _MARGIN_BYTES
    position = 1
    while position <= limit:
        position, candidate = _find_match(source, slots, mask, position, limit)
        if candidate < 0:
            break
        at = _put_literal(source, literal_start, position, out, at)
        while candidate >= 0:
            length = _match_length(source, candidate, position)
            at = _put_copy(out, at, position - candidate, length)
            position += length
            literal_start = position
            if position >= limit:
                return _put_literal(source, literal_start, size, out, at)
            slots[_slot(source, position - 1, mask)] = position - 1
            candidate = _look_up(source, slots, mask, position)
        position += 1
    return _put_literal(source, literal_start, size, out, at)


@njit(inline="always")
def _clear_slots(slots, size):  # type: ignore[no-untyped-def]
    """Zero as many slots as a block of that size gets, and return the mask of their indexes."""
    count = _MIN_SLOTS
    while count < _MAX_SLOTS and count < size:
        count *= 2
    slots[:count] = 0
    return np.uint64(count - 1)


@njit(inline="always")
def _slot(source, position, mask):  # type: ignore[no-untyped-def]
    word = load_le_uint64(source, position) & np.uint64(_WORD)
    product = (word * np.uint64(_HASH_FACTOR)) & np.uint64(_WORD)
    return (product >> np.uint64(_HASH_SHIFT)) & mask


@njit(inline="always")
def _look_up(source, slots, mask, position):  # type: ignore[no-untyped-def]
    """Return where the four bytes at position stood last, or -1; remember this position instead."""
    slot = _slot(source, position, mask)
    candidate = np.int64(slots[slot])
    slots[slot] = position
    differ = load_le_uint64(source, position) ^ load_le_uint64(source, candidate)
    return candidate if differ & np.uint64(_WORD) == 0 else np.int64(-1)


@njit(inline="always")
def _find_match(source, slots, mask, position, limit):  # type: ignore[no-untyped-def]
    """Return the next position whose bytes stand earlier, too, and where; -1 if nowhere."""
    skip = 32
    while True:
        step = skip >> 5
        skip += step
        if position + step > limit:
            return position, np.int64(-1)
        candidate = _look_up(source, slots, mask, position)
        if candidate >= 0:
            return position, candidate
        position += step


@njit(inline="always")
def _match_length(source, candidate, position):  # type: ignore[no-untyped-def]
    length = 4
    while (
        position + length < len(source) and source[candidate + length] == source[position + length]
    ):
        length += 1
    return length


@njit(inline="always")
def _put_length(out, length):  # type: ignore[no-untyped-def]
    at = 0
    while length > 0x7F:
        out[at] = length & 0x7F | 0x80
        length >>= 7
        at += 1
    out[at] = length
    return at + 1


@njit(inline="always")
def _put_literal(source, start, end, out, at):  # type: ignore[no-untyped-def]
    if start == end:
        return at
    rest = end - start - 1
    if rest < 60:
        out[at] = rest << 2
        at += 1
    elif rest < 256:
        out[at], out[at + 1] = 60 << 2, rest
        at += 2
    else:
        out[at], out[at + 1], out[at + 2] = 61 << 2, rest & 0xFF, rest >> 8
        at += 3
    for position in range(start, end):
        out[at] = source[position]
        at += 1
    return at


@njit(inline="always")
def _put_copy(out, at, offset, length):  # type: ignore[no-untyped-def]
    """Put copies of at most 64 bytes, so cut that the last has at least 4."""
    while length >= 68:
        at = _put_long_copy(out, at, offset, 64)
        length -= 64
    if length > 64:
        at = _put_long_copy(out, at, offset, 60)
        length -= 60
    if length < 12 and offset < 2048:
        out[at] = 1 | length - 4 << 2 | offset >> 8 << 5
        out[at + 1] = offset & 0xFF
        return at + 2
    return _put_long_copy(out, at, offset, length)


@njit(inline="always")
def _put_long_copy(out, at, offset, length):  # type: ignore[no-untyped-def]
    out[at] = 2 | length - 1 << 2
    out[at + 1] = offset & 0xFF
    out[at + 2] = offset >> 8
    return at + 3
