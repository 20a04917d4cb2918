"""Kernels that compress and decompress payloads of batches: lz4 and gzip by themselves.

zstd, and gzip when it is written, where their libraries can be called by address.

A payload that a kernel does not take goes through `compression`: it is of another codec or another
form than the usual one, too large, or damaged. So nothing is refused here, and nothing is taken
that is refused there. What both take comes to the same bytes.
"""

import threading
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from storage.codecs import inflate_kernel, lz4_block, native_libraries
from storage.codecs.compression import GZIP_HEADER, Codec
from storage.codecs.lz4_frame import KAFKA_HEADER as LZ4_HEADER
from storage.codecs.zstd_frame import KAFKA_HEADER as ZSTD_HEADER
from storage.kernels.crc_kernels import crc32_between
from storage.kernels.kernel import inlined, kernel
from storage.kernels.memory_access import copy_bytes, same_bytes

ByteArray = npt.NDArray[np.uint8]
Int64Array = npt.NDArray[np.int64]

NOT_TAKEN = -1
CODECS_OF_KERNELS = _GZIP, _LZ4, _ZSTD = int(Codec.GZIP), int(Codec.LZ4), int(Codec.ZSTD)
_GZIP_HEADER = np.frombuffer(GZIP_HEADER, np.uint8)
_GZIP_FLAGS_AT = 3
_GZIP_TRAILER_BYTES = 8
_LZ4_HEADER = np.frombuffer(LZ4_HEADER, np.uint8)
_ZSTD_HEADER = np.frombuffer(ZSTD_HEADER, np.uint8)
_LENGTH_BYTES = 4  # of a block of lz4; an end mark has as many
_STORED = 0x80000000
_ZSTD_BLOCK_HEADER_BYTES = 3
_ZSTD_COMPRESSED_BLOCK = 4  # not the last


class Tools(NamedTuple):
    """What the kernels need beside their data."""

    slots: lz4_block.UInt16Array
    addresses: Int64Array  # of zstd: functions and contexts
    zlib_functions: Int64Array
    zlib_stream: Int64Array
    inflate_tables: inflate_kernel.UInt32Array


class _ToolsOfThread(threading.local):
    def __init__(self) -> None:
        self.tools = Tools(
            np.empty(lz4_block.TABLE_SLOTS, np.uint16),
            native_libraries.zstd_functions_and_contexts(),
            native_libraries.zlib_functions(),
            native_libraries.zlib_stream(),
            np.empty(inflate_kernel.TABLE_SLOTS, np.uint32),
        )


_of_thread = _ToolsOfThread()


def tools_of_thread() -> Tools:
    """Return the tools of this thread: no two threads may work with them at once."""
    return _of_thread.tools


@kernel
def max_payload_bytes(size: int) -> int:
    """No payload of so much content is larger, in whatever codec."""
    return int(size + size // 5 + 1024)  # snappy's sixth is the most, of blocks of 32 KiB


@kernel
def decompress_payload(
    codec: int, source: ByteArray, span: tuple[int, int], out: ByteArray, room: Any, tools: Any
) -> int:
    """Put what source[span[0]:span[1]] holds into out[room[0]:room[1]]; the position after it.

    tools: as of this module, of the thread. Bytes of out after what is returned may be written,
    too. NOT_TAKEN: see above.
    """
    start, end = span
    addresses = tools.addresses
    if end < start or room[1] < room[0]:
        return NOT_TAKEN
    if codec == _LZ4:
        return int(_decompress_lz4(source, np.int64(start), end, out, room))
    if codec == _ZSTD and addresses[native_libraries.DECOMPRESS] != 0:
        if not _is_single_block(source, start, end):
            return NOT_TAKEN
        at, limit = room
        limit = min(limit, at + native_libraries.MAX_FRAME_CONTENT_BYTES)
        return native_libraries.zstd_decompress_frame(
            addresses, source, start, end, out, (at, limit)
        )
    if codec == _GZIP:
        tables = tools.inflate_tables
        return int(_decompress_gzip(source, np.int64(start), end, out, room, tables))
    return NOT_TAKEN


@kernel
def compress_payload(
    codec: int, source: ByteArray, span: tuple[int, int], out: ByteArray, at: int, tools: Any
) -> int:
    """Put source[span[0]:span[1]] into out at `at` as Kafka's writer does; the position after it.

    out has room for max_payload_bytes of it. tools: as above.
    """
    start, end = span
    addresses = tools.addresses
    if codec == _LZ4:
        return int(_compress_lz4(source, np.int64(start), end, tools.slots, out, np.int64(at)))
    if codec == _ZSTD and addresses[native_libraries.COMPRESS] != 0:
        room = (at, at + max_payload_bytes(end - start))
        return native_libraries.zstd_compress_frame(addresses, source, start, end, out, room)
    if codec == _GZIP and tools.zlib_functions[native_libraries.DEFLATE] != 0:
        return int(_compress_gzip(source, np.int64(start), end, tools, out, np.int64(at)))
    return NOT_TAKEN


@inlined
def _starts_with(source: ByteArray, start: Any, end: Any, header: ByteArray) -> bool:
    length = header.shape[0]
    return bool(length <= end - start and same_bytes(source, start, header, np.int64(0), length))


@inlined
def _is_single_block(source: ByteArray, start: Any, end: Any) -> bool:
    """Say what zstd_frame.is_single_block says."""
    first = start + _ZSTD_HEADER.shape[0]
    last = end - _ZSTD_BLOCK_HEADER_BYTES
    if first + _ZSTD_BLOCK_HEADER_BYTES > last:
        return False
    if not _starts_with(source, start, end, _ZSTD_HEADER):
        return False
    if source[last] != 1 or source[last + 1] != 0 or source[last + 2] != 0:
        return False
    block = np.int64(source[first]) | np.int64(source[first + 1]) << 8
    block |= np.int64(source[first + 2]) << 16
    fills_the_rest = block >> 3 == last - first - _ZSTD_BLOCK_HEADER_BYTES
    return bool(block & 7 == _ZSTD_COMPRESSED_BLOCK and fills_the_rest)


@inlined
def _uint32_at(source: ByteArray, at: Any) -> Any:
    value = np.int64(0)
    for i in range(_LENGTH_BYTES):
        value |= np.int64(source[at + i]) << 8 * i
    return value


@inlined
def _put_uint32(out: ByteArray, at: Any, value: Any) -> None:
    for i in range(_LENGTH_BYTES):
        out[at + i] = np.uint8(value >> 8 * i & 0xFF)


@inlined
def _decompress_lz4(source: ByteArray, start: Any, end: Any, out: ByteArray, room: Any) -> Any:
    """Decompress a frame that has the header that Kafka writes."""
    op: Any = np.int64(room[0])
    limit = room[1]
    if not _starts_with(source, start, end, _LZ4_HEADER):
        return np.int64(NOT_TAKEN)
    at = start + _LZ4_HEADER.shape[0]
    while at + _LENGTH_BYTES <= end:
        length = _uint32_at(source, at)
        if length == 0:
            return op
        at += _LENGTH_BYTES
        size = length & ~_STORED
        if size > lz4_block.MAX_BLOCK_BYTES or size > end - at:
            break
        if length & _STORED:
            if size > limit - op:
                break
            copy_bytes(out, op, source, at, size)
            op += size
        else:
            most = min(limit, op + lz4_block.MAX_BLOCK_BYTES)
            op = lz4_block.decompress_block(source, at, at + size, out, op, most)
            if op < 0:
                break
        at += size
    return np.int64(NOT_TAKEN)


@inlined
def _compress_lz4(
    source: ByteArray, start: Any, end: Any, slots: Any, out: ByteArray, at: Any
) -> Any:
    for i in range(_LZ4_HEADER.shape[0]):
        out[at + i] = _LZ4_HEADER[i]
    at += _LZ4_HEADER.shape[0]
    while start < end:
        stop = min(end, start + lz4_block.MAX_BLOCK_BYTES)
        block_at = at + _LENGTH_BYTES
        block_end = lz4_block.compress_block(source, start, stop, slots, out, block_at)
        if block_end - block_at < stop - start:
            _put_uint32(out, at, block_end - block_at)
            at = block_end
        else:
            _put_uint32(out, at, (stop - start) | _STORED)
            copy_bytes(out, block_at, source, start, stop - start)
            at = block_at + stop - start
        start = stop
    _put_uint32(out, at, np.int64(0))
    return at + _LENGTH_BYTES


@inlined
def _decompress_gzip(
    source: ByteArray, start: Any, end: Any, out: ByteArray, room: Any, tables: Any
) -> Any:
    """Decompress one member, without names or extras before its stream, and nothing after it."""
    body_at = start + _GZIP_HEADER.shape[0]
    if end - body_at < _GZIP_TRAILER_BYTES or source[start + _GZIP_FLAGS_AT] != 0:
        return np.int64(NOT_TAKEN)
    if not _starts_with(source, start, end, _GZIP_HEADER[:_GZIP_FLAGS_AT]):
        return np.int64(NOT_TAKEN)
    span: Any = (body_at, np.int64(end))
    behind, stop = inflate_kernel.inflate(source, span, out, room, tables)
    if behind != end - _GZIP_TRAILER_BYTES:
        return np.int64(NOT_TAKEN)
    if crc32_between(out, room[0], stop) != _uint32_at(source, behind):
        return np.int64(NOT_TAKEN)
    if (stop - room[0]) & 0xFFFFFFFF != _uint32_at(source, behind + 4):
        return np.int64(NOT_TAKEN)
    return np.int64(stop)


@inlined
def _compress_gzip(
    source: ByteArray, start: Any, end: Any, tools: Any, out: ByteArray, at: Any
) -> Any:
    for i in range(_GZIP_HEADER.shape[0]):
        out[at + i] = _GZIP_HEADER[i]
    body_at = at + _GZIP_HEADER.shape[0]
    limit = at + max_payload_bytes(end - start) - _GZIP_TRAILER_BYTES
    of_zlib = (tools.zlib_functions, tools.zlib_stream)
    behind = np.int64(
        native_libraries.zlib_deflate(of_zlib, source, start, end, out, (body_at, limit))
    )
    if behind < 0:
        return np.int64(NOT_TAKEN)
    _put_uint32(out, behind, np.int64(crc32_between(source, start, end)))
    _put_uint32(out, behind + 4, end - start)
    return behind + _GZIP_TRAILER_BYTES
