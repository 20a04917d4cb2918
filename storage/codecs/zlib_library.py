"""The zlib library that Python itself is linked with, called by address from kernels.

It compresses only: `inflate_kernel` decompresses. Where the library is part of the interpreter, or
its symbols are not found, the addresses are 0: then payloads go through Python one by one, to the
same bytes.
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

DEFLATE, DEFLATE_RESET = range(2)  # functions
FAILED = -1
_NAMES = "deflate", "deflateReset"
_STREAM_WORDS = 14  # of a z_stream where pointers and longs have 64 bits
_NEXT_IN, _AVAILABLE_IN, _NEXT_OUT, _AVAILABLE_OUT = 0, 1, 3, 4  # words of it
_FINISH, _STREAM_END = 4, 1  # Z_FINISH, Z_STREAM_END
_MAX_BYTES = 2**32 - 1  # that a call can be given
_RAW_WINDOW_BITS = -15
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


def stream() -> Int64Array:
    """A fresh stream for one thread: what it is made of knows where it stands in memory."""
    made = np.zeros(_STREAM_WORDS, np.int64)
    library = _library()
    if library is None:
        return made
    version, size = zlib.ZLIB_RUNTIME_VERSION.encode(), _STREAM_WORDS * 8
    options = _DEFAULT_LEVEL, _DEFLATED, _RAW_WINDOW_BITS, _MEMORY_LEVEL, _DEFAULT_STRATEGY
    library.deflateInit2_(ctypes.c_void_p(made.ctypes.data), *options, version, size)
    return made


@kernel
def deflate(
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
    of_functions, stream = addresses
    at, limit = span
    if max(end - start, limit - at) > _MAX_BYTES:
        return FAILED
    address = address_of(stream, np.int64(0))
    mask = np.int64(0xFFFFFFFF)
    if call_address(of_functions[DEFLATE_RESET], (address,)) & mask != 0:
        return FAILED
    stream[_NEXT_IN] = address_of(source, np.int64(start))
    stream[_AVAILABLE_IN] = end - start
    stream[_NEXT_OUT] = address_of(out, np.int64(at))
    stream[_AVAILABLE_OUT] = limit - at
    ended = call_address(of_functions[DEFLATE], (address, np.int64(_FINISH))) & mask
    if ended != _STREAM_END or stream[_AVAILABLE_IN] & mask != 0:
        return FAILED
    return int(limit - (stream[_AVAILABLE_OUT] & mask))
