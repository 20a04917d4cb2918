"""Zig-zag varints of records, written by kernels; of 32 and of 64 bits alike (log-format F-5.2)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.kernels.kernel import inlined

ByteArray = NDArray[np.uint8]


@inlined
def varint_bytes(value: Any) -> int:
    """How many bytes write_varint writes for value."""
    zigzag = (np.uint64(value) << np.uint64(1)) ^ np.uint64(value >> np.int64(63))
    size = 1
    while zigzag >= np.uint64(0x80):
        zigzag >>= np.uint64(7)
        size += 1
    return size


@inlined
def write_varint(out: ByteArray, at: int, value: Any) -> int:
    """Write the shortest zig-zag varint of value, and return the position behind it."""
    zigzag = (np.uint64(value) << np.uint64(1)) ^ np.uint64(value >> np.int64(63))
    while zigzag >= np.uint64(0x80):
        out[at] = np.uint8((zigzag & np.uint64(0x7F)) | np.uint64(0x80))
        zigzag >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(zigzag)
    return at + 1
