"""The codecs of a batch: codec id to compress and decompress, in Kafka's framing (spec F-8).

gzip    RFC 1952, one member when written; OS byte ff, as JDK 16 and later write it
snappy  xerial stream: 16-byte header, then blocks of 32 KiB, each after its int32 length
lz4     frame of independent blocks of 64 KiB, no checksums, no content size
zstd    one frame of level 3 without content size, which ends in an empty last block

`compress` gives the bytes of Kafka's own libraries, relative to their releases (F-8.6);
`differing_builds` says which installed libraries give other bytes (V-5).
Reading takes what Kafka's readers take. Source: Kafka, compress.*Compression, Lz4BlockInputStream.
"""

import struct
import threading
import zlib
from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING

import zstandard

from storage.codecs.lz4_frame import (
    FAST_LEVEL,
    Lz4FrameError,
    compress_frame,
    decompress_frame_into,
    decompress_single_block_into,
)
from storage.codecs.snappy_stream import SnappyStreamError, compress_stream, decompress_stream_into
from storage.codecs.zstd_frame import (
    MAX_BLOCK_BYTES,
    FrameBounds,
    ZstdFrameError,
    frame_bounds,
    is_single_block,
)
from storage.errors import CorruptFileError, LogCompactionError, UnsupportedFormatError

if TYPE_CHECKING:
    import numpy as np  # at run time none is needed: a plan does without
    import numpy.typing as npt

    ByteArray = npt.NDArray[np.uint8]
from collections.abc import Iterator

import cramjam

from storage.kafka_versions import CodecBuilds, KafkaVersion

Bytes = bytes | bytearray | memoryview

# Of a batch. A producer holds one to max.request.size before it is compressed (librdkafka:
# message.max.bytes), 1 MB by default; with so much, a task that takes a batch apart into the
# smallest possible records needs some 3 GiB, and 600 MiB for records of 100 bytes.
MAX_DECOMPRESSED_BYTES = 256 << 20


class Codec(IntEnum):
    """Bits 0-2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


DEFAULT_LEVELS = {Codec.GZIP: -1, Codec.LZ4: FAST_LEVEL, Codec.ZSTD: 3}


class DecompressionError(LogCompactionError):
    """A payload cannot be decompressed; the reader of the file adds path and position."""


class CutPayloadError(DecompressionError):
    """A gzip payload ends too early."""


def compress(codec: Codec, data: Bytes, level: int | None = None) -> bytes:
    """Return data as Kafka's writer leaves it with the codec's default block size.

    level: None: the codec's default. Of a codec that has no levels none is looked at.
    """
    return _COMPRESS[codec](data, DEFAULT_LEVELS.get(codec, 0) if level is None else level)


def decompress(
    codec: int, data: Bytes, path: str, position: int, limit: int = MAX_DECOMPRESSED_BYTES
) -> bytes:
    """Return what data holds. Raise CorruptFileError where it is damaged or holds more than limit.

    Memory grows with what really comes out, never with what a header declares.
    """
    if not 0 <= codec < len(_DECOMPRESS_INTO):
        raise UnsupportedFormatError(path, position, f"codec {codec} is not known")
    import numpy as np

    room = min(limit, max(4 * len(data), 65536))
    while True:
        out = np.empty(room, dtype=np.uint8)
        try:
            end = decompress_into(codec, data, out, 0)
        except DecompressionError as error:
            raise CorruptFileError(path, position, str(error)) from error
        if end is not None:
            return out[:end].tobytes()
        if room == limit:
            problem = f"{len(data)} bytes decompress to more than the limit of {limit} bytes"
            raise CorruptFileError(path, position, problem)
        room = min(limit, 4 * room)


def decompress_into(codec: int, data: Bytes, out: "ByteArray", at: int) -> int | None:
    """Put what data holds into out, from index at on, and return the index after its last byte.

    None: out has too little room (it may have been written to past at). Raise DecompressionError
    where data is damaged. For the hot path, one call a batch; `codec` is one of Codec.
    """
    return _DECOMPRESS_INTO[codec](data, out, at)


# none


def _copy_into(data: Bytes, out: "ByteArray", at: int) -> int | None:
    end = at + len(data)
    if end > len(out):
        return None
    out.data[at:end] = data
    return end


# gzip

_GZIP_MAGIC = bytes.fromhex("1f8b08")
GZIP_HEADER = _GZIP_MAGIC + bytes.fromhex(
    "00 00000000 00 ff"
)  # deflate, no flags, no time, OS unknown
_GZIP_TRAILER = struct.Struct("<II")  # CRC-32 and size of the uncompressed bytes
_GZIP_CHUNK_BYTES = 16 << 10  # of many members: zlib copies back what it was given too much
_GZIP_WINDOW_BITS = 31  # zlib's way to say: window of 15 bits, gzip header and trailer


def _gzip(data: Bytes, level: int) -> bytes:
    deflate = zlib.compressobj(level, zlib.DEFLATED, -15, 8)
    body = deflate.compress(data) + deflate.flush()
    return GZIP_HEADER + body + _GZIP_TRAILER.pack(zlib.crc32(data), len(data) & 0xFFFFFFFF)


def _gunzip_into(data: Bytes, out: "ByteArray", at: int) -> int | None:
    """Every member in turn; what follows the last is ignored. As java.util.zip.GZIPInputStream."""
    rest, chunk_bytes = memoryview(data), len(data)  # nearly always there is one member
    while True:
        inflate, is_first = zlib.decompressobj(_GZIP_WINDOW_BITS), True
        while is_first or (rest and not inflate.eof):
            is_first = False
            try:  # one byte more shows that there is too little room
                piece = inflate.decompress(rest[:chunk_bytes], len(out) - at + 1)
            except zlib.error as error:
                raise DecompressionError(f"gzip: {error}") from error
            if len(piece) > len(out) - at:
                return None
            out.data[at : at + len(piece)] = piece
            at += len(piece)
            left = len(inflate.unused_data) + len(inflate.unconsumed_tail)
            rest = rest[min(chunk_bytes, len(rest)) - left :]
        if not inflate.eof:
            raise CutPayloadError("gzip: the payload is cut short")
        if rest[: len(_GZIP_MAGIC)] != _GZIP_MAGIC:
            return at
        chunk_bytes = _GZIP_CHUNK_BYTES


def inflated(data: Bytes) -> bytes | None:
    """Return what a gzip member with a plain header holds, whatever its trailer says.

    None where the member does not parse.
    """
    if bytes(data[: len(_GZIP_MAGIC) + 1]) != _GZIP_MAGIC + b"\0":
        return None
    inflate = zlib.decompressobj(-15)
    try:
        found = inflate.decompress(data[len(GZIP_HEADER) :], MAX_DECOMPRESSED_BYTES)
    except zlib.error:
        return None
    return found if inflate.eof else None


# snappy


def _unsnappy_into(data: Bytes, out: "ByteArray", at: int) -> int | None:
    try:
        return decompress_stream_into(data, out, at)
    except SnappyStreamError as error:
        raise DecompressionError(f"snappy: {error}") from error


# lz4


def _unlz4_into(data: Bytes, out: "ByteArray", at: int) -> int | None:
    end = decompress_single_block_into(data, out, at)
    if end is not None:
        return end
    try:
        end = decompress_frame_into(data, out.data[at:])
    except Lz4FrameError as error:
        raise DecompressionError(f"lz4: {error}") from error
    return None if end is None else at + end


# zstd
_ZSTD_ONE_CALL_BYTES = 1 << 20  # up to here a result of its own and a copy cost less than a reader


class _Zstd(threading.local):
    """Contexts cost more than a batch, so they are kept; they must not be shared by threads."""

    def __init__(self) -> None:
        self.compressor = _zstd_compressor(DEFAULT_LEVELS[Codec.ZSTD])
        self.other = DEFAULT_LEVELS[Codec.ZSTD], self.compressor  # of the level used last
        self.decompressor = zstandard.ZstdDecompressor()

    def compressor_of(self, level: int) -> zstandard.ZstdCompressor:
        """Return the compressor of a level; one of another level than the default is kept.

        Only one, until a third level is asked for: some need 800 MB.
        """
        if level == DEFAULT_LEVELS[Codec.ZSTD]:
            return self.compressor
        if level != self.other[0]:
            self.other = level, _zstd_compressor(level)
        return self.other[1]


def _zstd_compressor(level: int) -> zstandard.ZstdCompressor:
    return zstandard.ZstdCompressor(level=level, write_content_size=False)


_zstd_contexts = _Zstd()


def _zstd(data: Bytes, level: int) -> bytes:
    stream = _zstd_contexts.compressor_of(level).compressobj()
    head = stream.compress(data)
    # Kafka flushes before it closes, hence the empty last block (F-8.5)
    return head + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) + stream.flush()


def _unzstd_into(data: Bytes, out: "ByteArray", at: int) -> int | None:
    """Every frame in turn."""
    view = memoryview(data)
    if is_single_block(view):  # most batches are: no more can come out than one block holds
        try:
            piece = _zstd_contexts.decompressor.decompress(data, max_output_size=MAX_BLOCK_BYTES)
        except zstandard.ZstdError as error:
            raise DecompressionError(f"zstd: {error}") from error
        return _copy_into(piece, out, at)
    room, end, start = out.data[at:], 0, 0
    try:
        while True:
            bounds = frame_bounds(view, start)
            filled = _unzstd_frame_into(view[start : bounds.end], bounds, room[end:])
            if filled is None:
                return None
            end, start = end + filled, bounds.end
            if start == len(view):
                return at + end
    except (ZstdFrameError, zstandard.ZstdError) as error:
        raise DecompressionError(f"zstd: {error}") from error


def _unzstd_frame_into(frame: memoryview, bounds: FrameBounds, room: memoryview) -> int | None:
    if bounds.max_content_bytes == 0:
        return 0  # skippable, or blocks without content
    if not room:
        return None  # the library's reader takes no empty buffer
    decompressor = _zstd_contexts.decompressor
    if bounds.max_content_bytes > _ZSTD_ONE_CALL_BYTES or bounds.max_content_bytes > len(room):
        reader = decompressor.stream_reader(frame)
        filled = reader.readinto(room)
        return None if reader.read(1) else filled
    piece = decompressor.decompress(frame, max_output_size=bounds.max_content_bytes)
    room[: len(piece)] = piece
    return len(piece)


_COMPRESS: dict[Codec, Callable[[Bytes, int], bytes]] = {
    Codec.NONE: lambda data, _: bytes(data),
    Codec.GZIP: _gzip,
    Codec.SNAPPY: lambda data, _: compress_stream(data),
    Codec.LZ4: compress_frame,
    Codec.ZSTD: _zstd,
}
_DECOMPRESS_INTO: tuple[Callable[[Bytes, "ByteArray", int], int | None], ...] = (
    _copy_into,
    _gunzip_into,
    _unsnappy_into,
    _unlz4_into,
    _unzstd_into,
)


def installed_builds() -> CodecBuilds:
    """Return the builds of the codecs in this process."""
    return CodecBuilds(".".join(map(str, zstandard.ZSTD_VERSION)), cramjam.__version__)


def differing_builds(kafka: KafkaVersion, builds: CodecBuilds) -> dict[Codec, str]:
    """Return the codecs that compress to other bytes than a Kafka's own, and why, for people.

    builds: of the process that compresses. A codec that is not in the result gives that Kafka's
    bytes. gzip is the same in all builds.
    """
    found = {}
    if builds.zstd != kafka.codecs.zstd:
        found[Codec.ZSTD] = _text("libzstd", builds.zstd, kafka.codecs.zstd, kafka)
    if builds.cramjam != kafka.codecs.cramjam:
        text = _text("cramjam", builds.cramjam, kafka.codecs.cramjam, kafka)
        found |= {Codec.LZ4: text, Codec.SNAPPY: text}
    return found


def build_notes(kafka: KafkaVersion, codecs: int, builds: CodecBuilds) -> Iterator[str]:
    """Yield a text for each of these codecs that has another build than that of a Kafka.

    codecs: a bit for each, 1 << its id.
    """
    where = "" if builds == installed_builds() else ", on an executor"
    for codec, why in differing_builds(kafka, builds).items():
        if codecs & 1 << codec:
            yield f"{codec.name.lower()} of another build: {why}{where}"


def _text(library: str, installed: str, wanted: str, kafka: KafkaVersion) -> str:
    return f"{library} {installed} is installed, and Kafka {kafka.release}'s bytes are of {wanted}"
