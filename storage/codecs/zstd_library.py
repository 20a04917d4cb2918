"""The zstd library that zstandard brings along, called by address from kernels.

A call through Python costs as much as decompressing a small batch. The package has two builds of
the same library; one exports its symbols. Where that is missing, or is of another version than the
one that Python calls, the addresses are 0: then batches go through Python one by one, to the same
bytes.
"""

import ctypes
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import zstandard

from storage.kernels.foreign_calls import address_of, call_address
from storage.kernels.kernel import allocating_kernel, kernel

ByteArray = npt.NDArray[np.uint8]
Int64Array = npt.NDArray[np.int64]

MODULE = "zstandard._cffi"
DECOMPRESS, DECOMPRESSION, RESET, COMPRESS, COMPRESSION = range(5)  # functions, their contexts
MAX_FRAME_CONTENT_BYTES = 131072  # of Kafka's frame of one block
FAILED = -1
_LEVEL, _CONTENT_SIZE_FLAG = (100, 3), (200, 0)  # ZSTD_cParameter, and what Kafka's writer has
_CONTINUE, _FLUSH, _END = range(3)  # ZSTD_EndDirective
_SESSION_ONLY = 1  # ZSTD_ResetDirective
_SOURCE, _TARGET = 0, 3  # in a pair of ZSTD_inBuffer and ZSTD_outBuffer: address, size, position


@cache
def _library() -> ctypes.CDLL | None:
    """The library, if it is there and is the one that zstandard itself calls."""
    spec = find_spec(MODULE)
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


def functions_and_contexts() -> Int64Array:
    """The functions for the kernels and fresh contexts, for one thread; zeros: there are none."""
    nothing = np.zeros(5, np.int64)
    library = _library()
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
def decompress_frame(
    addresses: Int64Array, source: ByteArray, start: int, end: int, out: ByteArray, span: Any
) -> int:
    """Put what the frame source[start:end] holds into out[span[0]:span[1]]; the position behind.

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
def compress_frame(
    addresses: Int64Array, source: ByteArray, start: int, end: int, out: ByteArray, span: Any
) -> int:
    """Put Kafka's frame of source[start:end] into out[span[0]:span[1]]; the position behind it.

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
