"""LZ4 frames as Kafka writes and reads them (spec F-8.4).

magic uint32 LE | FLG | BD | content size uint64 LE, if flagged | HC | blocks | end mark uint32 0
block: length uint32 LE, bit 31 set where stored as it is | data | xxHash32, if flagged

Kafka restricts the format: version 1, independent blocks, no dictionary. It verifies the header's
and the blocks' checksums, but neither the content size nor the content checksum, which has to be
there where it is flagged, and ignores whatever follows.
Source: Kafka, Lz4BlockInputStream, Lz4BlockOutputStream.
"""

import struct
from typing import TYPE_CHECKING

import cramjam
import xxhash

from storage.errors import LogCompactionError

if TYPE_CHECKING:
    import numpy as np  # at run time none is needed: a plan does without
    import numpy.typing as npt

    ByteArray = npt.NDArray[np.uint8]

Bytes = bytes | bytearray | memoryview

_MAGIC = bytes.fromhex("04224d18")
KAFKA_HEADER = _MAGIC + bytes.fromhex("60 40 82")  # independent blocks of at most 64 KiB
_KAFKA_BLOCK_BYTES = 65536
FAST_LEVEL = 9  # Kafka's default level
_LEAST_THOROUGH_LEVEL = 2  # 1 is the same to LZ4; pyarrow takes it for the fast compressor
_END_MARK = bytes(4)
_KAFKA_START = struct.Struct("<7sI")  # header and length of the first block
_LENGTH = struct.Struct("<I")
_STORED = 0x80000000
_CHECKSUM_BYTES = 4

_VERSION_BITS, _VERSION = 0xC0, 0x40
_INDEPENDENT_BLOCKS = 0x20
_BLOCK_CHECKSUM = 0x10
_CONTENT_SIZE = 0x08
_CONTENT_CHECKSUM = 0x04
_RESERVED_FLG, _RESERVED_BD = 0x03, 0x8F  # bit 0 of FLG is "dictionary", which Kafka has not
_BLOCK_BYTES_OF_CODE = {4: 65536, 5: 262144, 6: 1048576, 7: 4194304}


class Lz4FrameError(LogCompactionError):
    """A frame is damaged, or of a kind that Kafka does not read."""


def compress_frame(data: Bytes, level: int = FAST_LEVEL) -> bytes:
    """Return the frame that Kafka's writer makes of data at a level."""
    view = memoryview(data)
    pieces: list[bytes] = [KAFKA_HEADER]
    for start in range(0, len(view), _KAFKA_BLOCK_BYTES):
        raw = view[start : start + _KAFKA_BLOCK_BYTES]
        block = _compress_block(raw, level)
        if len(block) < len(raw):
            pieces += (_LENGTH.pack(len(block)), block)
        else:
            pieces += (_LENGTH.pack(len(raw) | _STORED), bytes(raw))
    pieces.append(_END_MARK)
    return b"".join(pieces)


def _compress_block(raw: memoryview, level: int) -> bytes:
    """Compress as lz4-java does: fast at Kafka's default level, else by the thorough compressor."""
    if level == FAST_LEVEL:
        return bytes(cramjam.lz4.compress_block(raw, store_size=False))
    import pyarrow as pa  # cramjam takes no level; few topics have one

    codec = pa.Codec("lz4_raw", compression_level=max(level, _LEAST_THOROUGH_LEVEL))
    return bytes(codec.compress(raw, asbytes=True))


def decompress_single_block_into(data: Bytes, out: "ByteArray", at: int) -> int | None:
    """Put Kafka's frame of one block into out from index at on, and return the index after it.

    None: it is another frame, or damaged, or out lacks the room; see decompress_frame_into.
    Most batches are such frames, and this takes a tenth less time.
    """
    if len(data) < _KAFKA_START.size:
        return None
    header, length = _KAFKA_START.unpack_from(data)
    if header != KAFKA_HEADER or length != len(data) - 15 or data[-4:] != _END_MARK:
        return None
    target = out.data[at : at + _KAFKA_BLOCK_BYTES]
    try:
        return at + int(
            cramjam.lz4.decompress_block_into(data[11:-4], target, output_len=_KAFKA_BLOCK_BYTES)
        )
    except cramjam.DecompressionError:
        return None


def decompress_frame_into(data: Bytes, room: memoryview) -> int | None:
    """Fill room from its start and return how much; None: it is too small.

    Raise Lz4FrameError where the frame is damaged.
    """
    view = memoryview(data)
    if view[:7] == KAFKA_HEADER:
        start, max_block_bytes, has_checksum, behind_bytes = 7, _KAFKA_BLOCK_BYTES, False, 0
    else:
        start, max_block_bytes, has_checksum, behind_bytes = _read_header(view)
    end = 0
    while True:
        if start + 4 > len(view):
            raise Lz4FrameError("the end mark is missing")
        (length,) = _LENGTH.unpack_from(view, start)
        start += 4
        if length == 0:
            if start + behind_bytes > len(view):
                raise Lz4FrameError("the content checksum is cut short")
            return end
        size = length & ~_STORED
        stop = start + size
        if size > max_block_bytes or stop + _CHECKSUM_BYTES * has_checksum > len(view):
            problem = f"a block of {size} bytes, at most {max_block_bytes} and in all {len(view)}"
            raise Lz4FrameError(problem)
        block = view[start:stop]
        if has_checksum:
            _check_block(block, view, stop)
            stop += _CHECKSUM_BYTES
        target = room[end : end + max_block_bytes]
        filled = (
            _copy(block, target) if length & _STORED else _expand(block, target, max_block_bytes)
        )
        if filled is None:
            return None
        end += filled
        start = stop


def _read_header(view: memoryview) -> tuple[int, int, bool, int]:
    """Return what the header says.

    That is where the first block starts, how large one can be, if each has a checksum, and how many
    bytes follow the end mark at least.
    """
    if view[:4] != _MAGIC or len(view) < 7:
        raise Lz4FrameError("not a frame: the magic number is missing or the header is cut short")
    flags, block_descriptor = view[4], view[5]
    if (
        flags & _VERSION_BITS != _VERSION
        or flags & _RESERVED_FLG
        or block_descriptor & _RESERVED_BD
    ):
        raise Lz4FrameError(f"header {bytes(view[4:6]).hex()} is of another version or kind")
    if not flags & _INDEPENDENT_BLOCKS:
        raise Lz4FrameError("blocks depend on each other, which Kafka does not read")
    max_block_bytes = _BLOCK_BYTES_OF_CODE.get(block_descriptor >> 4)
    if max_block_bytes is None:
        raise Lz4FrameError(f"block size code {block_descriptor >> 4}, expected 4 to 7")
    checksum_at = 14 if flags & _CONTENT_SIZE else 6
    if checksum_at >= len(view):
        raise Lz4FrameError("the header is cut short")
    expected = xxhash.xxh32_intdigest(view[4:checksum_at]) >> 8 & 0xFF
    if view[checksum_at] != expected:
        raise Lz4FrameError(f"header checksum {view[checksum_at]:#x}, expected {expected:#x}")
    behind_bytes = _CHECKSUM_BYTES if flags & _CONTENT_CHECKSUM else 0
    return checksum_at + 1, max_block_bytes, bool(flags & _BLOCK_CHECKSUM), behind_bytes


def with_header_checksum(data: Bytes) -> bytes:
    """The frame with the checksum that its header should have; as it is where it has no header.

    Message format v0 wrote another, which its readers do not look at (F-8.4).
    """
    checksum_at = 14 if len(data) > 4 and data[4] & _CONTENT_SIZE else 6
    if len(data) <= checksum_at:
        return bytes(data)
    mended = bytearray(data)
    mended[checksum_at] = xxhash.xxh32_intdigest(mended[4:checksum_at]) >> 8 & 0xFF
    return bytes(mended)


def with_wrong_header_checksum(frame: bytes) -> bytes:
    """Give the frame the checksum that Kafka writes in format v0, which covers the magic too."""
    checksum = xxhash.xxh32_intdigest(frame[:6]) >> 8 & 0xFF
    return frame[:6] + bytes([checksum]) + frame[7:]


def _check_block(block: memoryview, view: memoryview, at: int) -> None:
    (found,) = _LENGTH.unpack_from(view, at)
    expected = xxhash.xxh32_intdigest(block)
    if found != expected:
        raise Lz4FrameError(f"block checksum {found:#x}, expected {expected:#x}")


def _copy(block: memoryview, target: memoryview) -> int | None:
    if len(block) > len(target):
        return None
    target[: len(block)] = block
    return len(block)


def _expand(block: memoryview, target: memoryview, max_block_bytes: int) -> int | None:
    # output_len is not optional: without it the first bytes of the block are taken for its size
    try:
        return int(cramjam.lz4.decompress_block_into(block, target, output_len=len(target)))
    except cramjam.DecompressionError as error:
        if len(target) == max_block_bytes:
            raise Lz4FrameError("a block is damaged") from error
    # Damaged, or too little room? Where there is room for any block, the error says which.
    if _expand(block, memoryview(bytearray(max_block_bytes)), max_block_bytes) is not None:
        return None
    raise AssertionError("a full-sized target has room")
