"""CRC-32 inside of kernels, the checksum of messages of format v0 and v1 (F-7.1): by tables.

Most of these messages are short, and a call of Python's own function for each would take longer
than the checksum. Polynomial 0x04C11DB7, reflected.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.kernels.crc_tables import byte_step, tables_of, two_words_step, word_step
from storage.kernels.kernel import kernel
from storage.kernels.memory_access import load_le_uint64

TABLES = tables_of(0xEDB88320)


@kernel
def crc32_between(buffer: NDArray[np.uint8], start: int, end: int) -> int:
    """The checksum of buffer[start:end]."""
    crc = np.uint64(0xFFFFFFFF)
    at: Any = np.int64(start)
    while end - at >= 16:
        first, second = load_le_uint64(buffer, at), load_le_uint64(buffer, at + 8)
        crc = two_words_step(TABLES, crc, first, second)
        at += 16
    if end - at >= 8:
        crc = word_step(TABLES, crc, load_le_uint64(buffer, at))
        at += 8
    while at < end:
        crc = byte_step(TABLES, crc, np.uint64(buffer[at]))
        at += 1
    return int(crc ^ np.uint64(0xFFFFFFFF))
