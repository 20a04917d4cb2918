"""What a zstd payload is made of, seen from its headers alone (RFC 8878, 3.1).

frame: magic uint32 LE | descriptor | window | dictionary id | content size | blocks | checksum
block: uint24 LE: bit 0 last block, bits 1-2 type (raw, RLE, compressed), 21 bits size | data
skippable frame: magic 0x184D2A50 to 0x184D2A5F LE | size uint32 LE | data

The library's one-call decoder is the quickest, but silently ignores a second frame and believes
any content size. With the bounds found here, it can be given one frame, and a true limit.
"""

import struct
from typing import NamedTuple

from storage.errors import LogCompactionError

MAX_BLOCK_BYTES = 131072  # of content

_MAGIC = bytes.fromhex("28b52ffd")
_UINT32 = struct.Struct("<I")
_SKIPPABLE_MASK, _SKIPPABLE = 0xFFFFFFF0, 0x184D2A50
_DICTIONARY_ID_BYTES = (0, 1, 2, 4)
_CONTENT_SIZE_BYTES = (0, 2, 4, 8)
_KAFKA_START = struct.Struct("<6sI")  # frame header, then the first block's and one byte more
KAFKA_HEADER = _MAGIC + bytes.fromhex("00 58")  # no content size, no checksum, window of 2 MiB
_KAFKA_END = bytes.fromhex("010000")  # an empty raw block, the last
_RLE, _COMPRESSED, _RESERVED = 1, 2, 3


class ZstdFrameError(LogCompactionError):
    """These bytes are not a frame, or it is cut short."""


class FrameBounds(NamedTuple):
    end: int  # index after the frame
    max_content_bytes: int  # what the header declares, or else the most that its blocks can hold


def is_single_block(view: memoryview) -> bool:
    """Whether this is Kafka's frame of little: one compressed block, then the empty last one."""
    if len(view) < 12 or view[-3:] != _KAFKA_END:
        return False
    header, block = _KAFKA_START.unpack_from(view)
    fills_the_rest: bool = (block >> 3 & 0x1FFFFF) == len(view) - 12
    return fills_the_rest and block & 7 == _COMPRESSED << 1 and header == KAFKA_HEADER


def frame_bounds(view: memoryview, start: int) -> FrameBounds:
    """Return the bounds of the frame that starts there. Raise ZstdFrameError."""
    try:
        if view[start : start + 4] != _MAGIC:
            return _skippable(view, start)
        at, content_bytes, has_checksum = _read_header(view, start)
        max_content_bytes, is_last = 0, 0
        while not is_last:
            header = view[at] | view[at + 1] << 8 | view[at + 2] << 16
            is_last, kind, size = header & 1, header >> 1 & 3, header >> 3
            if kind == _RESERVED:
                raise ZstdFrameError("a block of reserved type")
            at += 3 + (1 if kind == _RLE else size)
            max_content_bytes += MAX_BLOCK_BYTES if kind == _COMPRESSED else size
    except (IndexError, struct.error) as error:
        raise ZstdFrameError("a frame is cut short") from error
    end = at + 4 * has_checksum
    if end > len(view):
        raise ZstdFrameError("a frame is cut short")
    if content_bytes is None:
        return FrameBounds(end, max_content_bytes)
    if content_bytes > max_content_bytes or (max_content_bytes and not content_bytes):
        raise ZstdFrameError(f"{content_bytes} bytes declared, but blocks for {max_content_bytes}")
    return FrameBounds(end, content_bytes)


def _read_header(view: memoryview, start: int) -> tuple[int, int | None, bool]:
    """Return where the first block starts, the declared content size, and if a checksum follows."""
    descriptor = view[start + 4]
    is_single_segment = descriptor >> 5 & 1  # then there is no window byte
    at = start + 6 - is_single_segment + _DICTIONARY_ID_BYTES[descriptor & 3]
    size_bytes = _CONTENT_SIZE_BYTES[descriptor >> 6] or is_single_segment
    content_bytes: int | None = None
    if size_bytes:
        content_bytes = int.from_bytes(view[at : at + size_bytes], "little")
        content_bytes += 256 if size_bytes == 2 else 0
    return at + size_bytes, content_bytes, bool(descriptor & 4)


def _skippable(view: memoryview, start: int) -> FrameBounds:
    if _UINT32.unpack_from(view, start)[0] & _SKIPPABLE_MASK != _SKIPPABLE:
        raise ZstdFrameError(f"not a frame: it starts with {bytes(view[start : start + 4]).hex()}")
    (size,) = _UINT32.unpack_from(view, start + 4)
    if start + 8 + size > len(view):
        raise ZstdFrameError("a skippable frame is cut short")
    return FrameBounds(start + 8 + size, 0)
