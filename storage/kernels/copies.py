"""Copies within and between buffers by whole blocks, as decompression makes them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.kernels.kernel import inlined
from storage.kernels.memory_access import copy_8, copy_16, copy_32

ByteArray = NDArray[np.uint8]

OVERSHOOT = 32  # bytes that a copy may touch beyond its end


@inlined
def copy_some(source: ByteArray, ip: Any, out: ByteArray, op: Any, length: Any) -> None:
    """Copy so many bytes, and up to OVERSHOOT more."""
    if length <= 16:
        copy_16(out, op, source, ip)
    else:
        done = np.int64(0)
        while done < length:
            copy_32(out, op + done, source, ip + done)
            done += 32


@inlined
def copy_match(out: ByteArray, op: Any, offset: Any, length: Any) -> None:
    """Write the bytes from `offset` before op on again at op, over and over if it takes that.

    Up to OVERSHOOT bytes more than the length.
    """
    if offset >= OVERSHOOT:
        copy_some(out, op - offset, out, op, length)
    else:
        _repeat(out, op, offset, length)


@inlined
def _repeat(out: ByteArray, op: Any, offset: Any, length: Any) -> None:
    stop = op + length
    distance = offset
    if offset < 8:  # the bytes repeat: from farther back they are the same
        for _ in range(8):
            out[op] = out[op - offset]
            op += 1
        while distance < 8:
            distance += offset
    while op < stop:
        copy_8(out, op, out, op - distance)
        op += 8
