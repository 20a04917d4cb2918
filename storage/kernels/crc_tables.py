"""Cyclic redundancy checks by tables: eight or sixteen bytes a step, on any processor.

Of reflected polynomials of 32 bits. A running checksum begins and ends inverted.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.kernels.kernel import inlined


def tables_of(polynomial: int) -> NDArray[np.uint32]:
    """Table k holds what a byte, followed by k zeros, makes of the checksum. Shape (16, 256)."""
    tables = np.zeros((16, 256), np.uint32)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (polynomial if crc & 1 else 0)
        tables[0, byte] = crc
    for k in range(1, 16):
        tables[k] = tables[k - 1] >> np.uint32(8) ^ tables[0][tables[k - 1] & np.uint32(0xFF)]
    return tables


@inlined
def word_step(tables: NDArray[np.uint32], crc: Any, word: Any) -> Any:
    """The running checksum after eight more bytes, the first of them the lowest."""
    return _word_before(tables, crc ^ word, 0)


@inlined
def two_words_step(tables: NDArray[np.uint32], crc: Any, first: Any, second: Any) -> Any:
    """Likewise after sixteen: a step waits for the one before it, but not the half of its work."""
    return _word_before(tables, crc ^ first, 8) ^ _word_before(tables, second, 0)


@inlined
def _word_before(tables: NDArray[np.uint32], x: Any, zeros: int) -> Any:
    """What eight bytes, followed by so many zeros, make of the checksum."""
    byte = np.uint64(0xFF)
    return np.uint64(
        tables[zeros + 7, x & byte]
        ^ tables[zeros + 6, (x >> np.uint64(8)) & byte]
        ^ tables[zeros + 5, (x >> np.uint64(16)) & byte]
        ^ tables[zeros + 4, (x >> np.uint64(24)) & byte]
        ^ tables[zeros + 3, (x >> np.uint64(32)) & byte]
        ^ tables[zeros + 2, (x >> np.uint64(40)) & byte]
        ^ tables[zeros + 1, (x >> np.uint64(48)) & byte]
        ^ tables[zeros, x >> np.uint64(56)]
    )


@inlined
def byte_step(tables: NDArray[np.uint32], crc: Any, byte: Any) -> Any:
    """Likewise after one more byte."""
    return (crc >> np.uint64(8)) ^ np.uint64(tables[0, (crc ^ byte) & np.uint64(0xFF)])
