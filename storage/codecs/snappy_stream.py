"""Snappy in the framing of snappy-java, which is Kafka's: the xerial stream (spec F-8.3).

magic 82 "SNAPPY" 00 | version int32 = 1 | compatible version int32 = 1 | blocks
block: length int32 of the compressed bytes | raw snappy block of at most 32 KiB of content

A header may come again between blocks, where streams were joined; the versions are not enforced.
One to three bytes after the last block are ignored.
Source: xerial snappy-java, SnappyOutputStream, SnappyInputStream.
"""

import struct
from typing import TYPE_CHECKING

import cramjam

from storage.errors import LogCompactionError

if TYPE_CHECKING:
    import numpy as np  # at run time none is needed: a plan does without
    import numpy.typing as npt

    ByteArray = npt.NDArray[np.uint8]

Bytes = bytes | bytearray | memoryview

_MAGIC = bytes.fromhex("82 534e41505059 00")
_HEADER = _MAGIC + bytes.fromhex("00000001 00000001")  # version, compatible version
_MAGIC_START = int.from_bytes(_MAGIC[:4], "big", signed=True)
_BLOCK_BYTES = 32768
_SMALL_BLOCK_BYTES = 8192  # up to here cramjam's bytes are not Kafka's: snappy_block.py
_MAX_RATIO = 64  # a copy of 64 bytes takes no less than 2; allows for more than can be
_LENGTH = struct.Struct(">i")
_START = struct.Struct(">16si")  # header and length of the first block


class SnappyStreamError(LogCompactionError):
    """A stream or a block is damaged."""


def compress_stream(data: Bytes) -> bytes:
    """Return the stream that Kafka's writer makes of data."""
    view = memoryview(data)
    pieces: list[bytes] = [_HEADER]
    for start in range(0, len(view), _BLOCK_BYTES):
        block = _snappy_block(view[start : start + _BLOCK_BYTES])
        pieces += (_LENGTH.pack(len(block)), block)
    return b"".join(pieces)


def _snappy_block(raw: memoryview) -> bytes:
    if len(raw) > _SMALL_BLOCK_BYTES:
        return bytes(cramjam.snappy.compress_raw(raw))
    # Imported here because numba takes a second, and reading does not need it
    from storage.codecs.snappy_block import compress_small_block

    return compress_small_block(raw)


def decompress_stream_into(data: Bytes, out: "ByteArray", at: int) -> int | None:
    """Put what data holds into out from index at on, and return the index after it.

    Data without the stream header is one raw block, as librdkafka writes it. None: out is too
    small. Raise SnappyStreamError where data is damaged.
    """
    if len(data) > _START.size:
        header, length = _START.unpack_from(data)
        if header == _HEADER and length + _START.size == len(data):  # most are so
            return _block_into(memoryview(data)[_START.size :], out, at)
    return _stream_into(memoryview(data), out, at)


def _stream_into(view: memoryview, out: "ByteArray", at: int) -> int | None:
    if view[:8] != _MAGIC:
        return _block_into(view, out, at)
    end, start = at, len(_HEADER)
    if start > len(view):
        raise SnappyStreamError("the stream header is cut short")
    while start + _LENGTH.size <= len(view):
        (length,) = _LENGTH.unpack_from(view, start)
        if length == _MAGIC_START:  # the header of a stream joined to the one before
            start += len(_HEADER)
            if start > len(view):
                raise SnappyStreamError("a stream header is cut short")
            continue
        start += 4
        if not 0 <= length <= len(view) - start:
            raise SnappyStreamError(f"a block of {length} bytes, {len(view) - start} left")
        filled = _block_into(view[start : start + length], out, end)
        if filled is None:
            return None
        end, start = filled, start + length
    return end


def _block_into(block: memoryview, out: "ByteArray", at: int) -> int | None:
    try:
        size: int = cramjam.snappy.decompress_raw_len(block)
        if size > _MAX_RATIO * len(block):  # or a few bytes could ask for gigabytes
            raise SnappyStreamError(f"{len(block)} bytes cannot hold {size}")
        if size > len(out) - at:
            return None
        cramjam.snappy.decompress_raw_into(block, out.data[at : at + size])
    except cramjam.DecompressionError as error:
        raise SnappyStreamError(str(error)) from error
    return at + size
