"""Zig-zag varints of records, read and written by kernels (log-format F-5.2)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.kernels.kernel import inlined
from storage.kernels.memory_access import load_byte

ByteArray = NDArray[np.uint8]


@inlined
def read_varint(buffer: ByteArray, position: int) -> tuple[Any, Any]:
    """Return a zig-zag varint and the position after it; one far out of range if malformed."""
    byte = load_byte(buffer, position)
    if byte < np.uint64(0x80):  # nearly all are one byte or two
        return _unzigzag(byte), position + 1
    value = byte & np.uint64(0x7F)
    byte = load_byte(buffer, position + 1)
    if byte < np.uint64(0x80):
        return _unzigzag(value | byte << np.uint64(7)), position + 2
    value |= (byte & np.uint64(0x7F)) << np.uint64(7)
    position += 2
    shift = np.uint64(14)
    while byte >= np.uint64(0x80):
        if shift > np.uint64(28):
            return np.int64(0), np.int64(1) << np.int64(60)
        byte = load_byte(buffer, position)
        position += 1
        value |= (byte & np.uint64(0x7F)) << shift
        shift += np.uint64(7)
    return _unzigzag(value & np.uint64(0xFFFFFFFF)), position


@inlined
def read_varlong(buffer: ByteArray, position: int) -> tuple[Any, Any]:
    """Return a varint of 64 bits, as read_varint does."""
    byte = load_byte(buffer, position)
    position += 1
    value = byte & np.uint64(0x7F)
    shift = np.uint64(7)
    while byte >= np.uint64(0x80):
        if shift > np.uint64(63):
            return np.int64(0), np.int64(1) << np.int64(60)
        byte = load_byte(buffer, position)
        position += 1
        value |= (byte & np.uint64(0x7F)) << shift
        shift += np.uint64(7)
    return _unzigzag(value), position


@inlined
def _unzigzag(value: Any) -> Any:
    return np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1))


@inlined
def varint_bytes(value: Any) -> int:
    """How many bytes write_varint writes for value, of 32 bits or of 64."""
    zigzag = (np.uint64(value) << np.uint64(1)) ^ np.uint64(value >> np.int64(63))
    size = 1
    while zigzag >= np.uint64(0x80):
        zigzag >>= np.uint64(7)
        size += 1
    return size


@inlined
def write_varint(out: ByteArray, at: int, value: Any) -> int:
    """Write the shortest zig-zag varint of value, and return the position after it."""
    zigzag = (np.uint64(value) << np.uint64(1)) ^ np.uint64(value >> np.int64(63))
    while zigzag >= np.uint64(0x80):
        out[at] = np.uint8((zigzag & np.uint64(0x7F)) | np.uint64(0x80))
        zigzag >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(zigzag)
    return at + 1
