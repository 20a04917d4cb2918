"""zstd and zlib, called by address from kernels: the libraries that Python itself calls.

A call through Python costs as much as decompressing a small batch. `zstandard` has two builds of
zstd; one exports its symbols. zlib, which Python is linked with, only compresses here
(`inflate_kernel` decompresses). Where a library is missing, part of the interpreter or of another
version than the one that Python calls, the addresses are 0: then payloads go through Python one by
one, to the same bytes.
"""

import ctypes
import sys
import zlib
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import zstandard

from storage.kernels.kernel import allocating_kernel, kernel
from storage.kernels.native_calls import address_of, call_address

ByteArray = npt.NDArray[np.uint8]
Int64Array = npt.NDArray[np.int64]

ZSTD_MODULE = "zstandard._cffi"
DECOMPRESS, DECOMPRESSION, RESET, COMPRESS, COMPRESSION = range(5)  # functions, their contexts
MAX_FRAME_CONTENT_BYTES = 131072  # of Kafka's frame of one block
FAILED = -1
_LEVEL, _CONTENT_SIZE_FLAG = (100, 3), (200, 0)  # ZSTD_cParameter, and what Kafka's writer has
_CONTINUE, _FLUSH, _END = range(3)  # ZSTD_EndDirective
_SESSION_ONLY = 1  # ZSTD_ResetDirective
_SOURCE, _TARGET = 0, 3  # in a pair of ZSTD_inBuffer and ZSTD_outBuffer: address, size, position


@cache
def _zstd_library() -> ctypes.CDLL | None:
    """The library, if it is there and is the one that zstandard itself calls."""
    spec = find_spec(ZSTD_MODULE)
    if spec is None or spec.origin is None:
        return None
    try:
        library = ctypes.CDLL(spec.origin)
        library.ZSTD_versionNumber.restype = ctypes.c_uint
        version = library.ZSTD_versionNumber()
    except (OSError, AttributeError):
        return None
    major, minor, release = zstandard.ZSTD_VERSION
    return library if version == major * 10000 + minor * 100 + release else None


def zstd_functions_and_contexts() -> Int64Array:
    """The functions for the kernels and fresh contexts, for one thread; zeros: there are none."""
    nothing = np.zeros(5, np.int64)
    library = _zstd_library()
    if library is None:
        return nothing
    try:
        for name in ("ZSTD_createDCtx", "ZSTD_createCCtx"):
            getattr(library, name).restype = ctypes.c_void_p
        decompression, compression = library.ZSTD_createDCtx(), library.ZSTD_createCCtx()
        set_parameter = library.ZSTD_CCtx_setParameter
        set_parameter.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
        set_parameter.restype = ctypes.c_size_t
        done = [set_parameter(compression, *each) for each in (_LEVEL, _CONTENT_SIZE_FLAG)]
        functions = [
            library.ZSTD_decompressDCtx,
            library.ZSTD_CCtx_reset,
            library.ZSTD_compressStream2,
        ]
    except AttributeError:
        return nothing
    if not decompression or not compression or any(done[1:]) or done[0] not in (0, _LEVEL[1]):
        return nothing
    decompress, reset, compress = (ctypes.cast(f, ctypes.c_void_p).value or 0 for f in functions)
    return np.array([decompress, decompression, reset, compress, compression], np.int64)


@kernel
def zstd_decompress_frame(
    addresses: Int64Array, source: ByteArray, start: int, end: int, out: ByteArray, span: Any
) -> int:
    """Put what the frame source[start:end] holds into out[span[0]:span[1]]; the position after.

    FAILED: damaged, or with too little room.
    """
    at, limit = span
    got = call_address(
        addresses[DECOMPRESS],
        (
            addresses[DECOMPRESSION],
            address_of(out, np.int64(at)),
            np.int64(limit - at),
            address_of(source, np.int64(start)),
            np.int64(end - start),
        ),
    )
    if got < 0 or got > limit - at:  # the library's errors are negative
        return FAILED
    return int(at + got)


@allocating_kernel
def zstd_compress_frame(
    addresses: Int64Array, source: ByteArray, start: int, end: int, out: ByteArray, span: Any
) -> int:
    """Put Kafka's frame of source[start:end] into out[span[0]:span[1]]; the position after it.

    Kafka flushes before it closes, hence the empty last block (F-8.5). FAILED: too little room;
    the context is then to be used no more.
    """
    at, limit = span
    context = addresses[COMPRESSION]
    call_address(addresses[RESET], (context, np.int64(_SESSION_ONLY)))
    buffers = np.zeros(6, np.int64)
    buffers[_SOURCE] = address_of(source, np.int64(start))
    buffers[_SOURCE + 1] = end - start
    buffers[_TARGET] = address_of(out, np.int64(at))
    buffers[_TARGET + 1] = limit - at
    for step in range(_END + 1):
        left = np.int64(1)
        while left != 0:
            left = call_address(
                addresses[COMPRESS],
                (
                    context,
                    address_of(buffers, np.int64(_TARGET)),
                    address_of(buffers, np.int64(_SOURCE)),
                    np.int64(step),
                ),
            )
            if left < 0 or (left > 0 and buffers[_TARGET + 2] == buffers[_TARGET + 1]):
                return FAILED
            if step == _CONTINUE and buffers[_SOURCE + 2] == buffers[_SOURCE + 1]:
                break
    return int(at + buffers[_TARGET + 2])


DEFLATE, DEFLATE_RESET = range(2)  # functions
_NAMES = "deflate", "deflateReset"
_STREAM_WORDS = 14  # of a z_stream where pointers and longs have 64 bits
_NEXT_IN, _AVAILABLE_IN, _NEXT_OUT, _AVAILABLE_OUT = 0, 1, 3, 4  # words of it
_FINISH, _STREAM_END = 4, 1  # Z_FINISH, Z_STREAM_END
_MAX_BYTES = 2**32 - 1  # that a call can be given
_RAW_WINDOW_BITS = -15
_DEFAULT_LEVEL, _DEFLATED, _MEMORY_LEVEL, _DEFAULT_STRATEGY = -1, 8, 8, 0


@cache
def _zlib_library() -> ctypes.CDLL | None:
    """The library, if it is there and is the one that Python itself calls."""
    path = getattr(zlib, "__file__", None)
    if path is None or sys.byteorder != "little" or ctypes.sizeof(ctypes.c_long) != 8:
        return None
    try:
        library = ctypes.CDLL(path)  # what it is linked with is looked through as well
        library.zlibVersion.restype = ctypes.c_char_p
        version: bytes = library.zlibVersion()
    except (OSError, AttributeError):
        return None
    return library if version.decode() == zlib.ZLIB_RUNTIME_VERSION else None


def zlib_functions() -> Int64Array:
    """Return the addresses of the functions; zeros where there are none."""
    library = _zlib_library()
    if library is None or not all(hasattr(library, name) for name in _NAMES):
        return np.zeros(len(_NAMES), np.int64)
    found = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in _NAMES]
    return np.array(found, np.int64)


def zlib_stream() -> Int64Array:
    """A fresh stream for one thread: what it is made of knows where it stands in memory."""
    made = np.zeros(_STREAM_WORDS, np.int64)
    library = _zlib_library()
    if library is None:
        return made
    version, size = zlib.ZLIB_RUNTIME_VERSION.encode(), _STREAM_WORDS * 8
    options = _DEFAULT_LEVEL, _DEFLATED, _RAW_WINDOW_BITS, _MEMORY_LEVEL, _DEFAULT_STRATEGY
    library.deflateInit2_(ctypes.c_void_p(made.ctypes.data), *options, version, size)
    return made


@kernel
def zlib_deflate(
    addresses: tuple[Int64Array, Int64Array],
    source: ByteArray,
    start: int,
    end: int,
    out: ByteArray,
    span: Any,
) -> int:
    """Put source[start:end], deflated by the default level, into out[span[0]:span[1]].

    addresses: functions and stream. Returns where it ends; FAILED: too little room.
    """
    of_functions, zlib_stream = addresses
    at, limit = span
    if max(end - start, limit - at) > _MAX_BYTES:
        return FAILED
    address = address_of(zlib_stream, np.int64(0))
    mask = np.int64(0xFFFFFFFF)
    if call_address(of_functions[DEFLATE_RESET], (address,)) & mask != 0:
        return FAILED
    zlib_stream[_NEXT_IN] = address_of(source, np.int64(start))
    zlib_stream[_AVAILABLE_IN] = end - start
    zlib_stream[_NEXT_OUT] = address_of(out, np.int64(at))
    zlib_stream[_AVAILABLE_OUT] = limit - at
    ended = call_address(of_functions[DEFLATE], (address, np.int64(_FINISH))) & mask
    if ended != _STREAM_END or zlib_stream[_AVAILABLE_IN] & mask != 0:
        return FAILED
    return int(limit - (zlib_stream[_AVAILABLE_OUT] & mask))
