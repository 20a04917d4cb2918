"""The zlib library that Python itself is linked with, called by address from kernels.

A call through Python costs a fifth of the time that it takes to decompress a batch of some
kilobytes. Where the library is part of the interpreter, or its symbols are not found, the addresses
are 0: then payloads go through Python one by one, to the same bytes.
"""

import ctypes
import sys
import zlib
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from storage.kernels.foreign_calls import address_of, call_address
from storage.kernels.kernel import kernel

ByteArray = npt.NDArray[np.uint8]
Int64Array = npt.NDArray[np.int64]

INFLATE, INFLATE_RESET, DEFLATE, DEFLATE_RESET = range(4)  # functions
FAILED = -1
_NAMES = "inflate", "inflateReset", "deflate", "deflateReset"
_STREAM_WORDS = 14  # of a z_stream where pointers and longs have 64 bits
_NEXT_IN, _AVAILABLE_IN, _NEXT_OUT, _AVAILABLE_OUT = 0, 1, 3, 4  # words of it
_FINISH, _STREAM_END = 4, 1  # Z_FINISH, Z_STREAM_END
_INFLATING, _DEFLATING = 0, 1  # rows of the streams
_MAX_BYTES = 2**32 - 1  # that a call can be given
_GZIP_WINDOW_BITS, _RAW_WINDOW_BITS = 31, -15
_DEFAULT_LEVEL, _DEFLATED, _MEMORY_LEVEL, _DEFAULT_STRATEGY = -1, 8, 8, 0


@cache
def _library() -> ctypes.CDLL | None:
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


def functions() -> Int64Array:
    """Where the functions stand; zeros where they are not to be had."""
    library = _library()
    if library is None or not all(hasattr(library, name) for name in _NAMES):
        return np.zeros(len(_NAMES), np.int64)
    found = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in _NAMES]
    return np.array(found, np.int64)


def streams() -> Int64Array:
    """Two fresh streams for one thread: what they are made of knows where they stand in memory."""
    made = np.zeros((2, _STREAM_WORDS), np.int64)
    library = _library()
    if library is None:
        return made
    version, size = zlib.ZLIB_RUNTIME_VERSION.encode(), _STREAM_WORDS * 8
    inflating, deflating = (ctypes.c_void_p(made[row:].ctypes.data) for row in range(2))
    library.inflateInit2_(inflating, _GZIP_WINDOW_BITS, version, size)
    options = _DEFAULT_LEVEL, _DEFLATED, _RAW_WINDOW_BITS, _MEMORY_LEVEL, _DEFAULT_STRATEGY
    library.deflateInit2_(deflating, *options, version, size)
    return made


@kernel
def inflate_member(
    addresses: tuple[Int64Array, Int64Array],
    source: ByteArray,
    start: int,
    end: int,
    out: ByteArray,
    span: Any,
) -> int:
    """Put what the gzip member source[start:end] holds into out[span[0]:span[1]]; where it ends.

    addresses: functions and streams. FAILED: damaged, with too little room, or with something
    behind the member.
    """
    of_functions, of_streams = addresses
    places = (np.int64(start), np.int64(end), np.int64(span[0]), np.int64(span[1]))
    calls = (of_functions[INFLATE_RESET], of_functions[INFLATE])
    left_in, left_out = _run(calls, of_streams, _INFLATING, (source, out), places)
    return int(span[1] - left_out) if left_in == 0 else FAILED


@kernel
def deflate(
    addresses: tuple[Int64Array, Int64Array],
    source: ByteArray,
    start: int,
    end: int,
    out: ByteArray,
    span: Any,
) -> int:
    """Put source[start:end], deflated by the default level, into out; else as inflate_member."""
    of_functions, of_streams = addresses
    places = (np.int64(start), np.int64(end), np.int64(span[0]), np.int64(span[1]))
    calls = (of_functions[DEFLATE_RESET], of_functions[DEFLATE])
    left_in, left_out = _run(calls, of_streams, _DEFLATING, (source, out), places)
    return int(span[1] - left_out) if left_in == 0 else FAILED


@kernel
def _run(
    calls: Any, of_streams: Int64Array, row: int, buffers: Any, places: Any
) -> tuple[int, int]:
    """Run a stream to its end in one step: what is left of the input, and of the room.

    -1 and 0 where it does not end.
    """
    reset, step = calls
    source, out = buffers
    start, end, at, limit = places
    stream = of_streams[row]
    if max(end - start, limit - at) > _MAX_BYTES:
        return -1, 0
    address = address_of(stream, np.int64(0))
    mask = np.int64(0xFFFFFFFF)
    if call_address(reset, (address,)) & mask != 0:
        return -1, 0
    stream[_NEXT_IN], stream[_AVAILABLE_IN] = address_of(source, start), end - start
    stream[_NEXT_OUT], stream[_AVAILABLE_OUT] = address_of(out, at), limit - at
    if call_address(step, (address, np.int64(_FINISH))) & mask != _STREAM_END:
        return -1, 0
    return stream[_AVAILABLE_IN] & mask, stream[_AVAILABLE_OUT] & mask
