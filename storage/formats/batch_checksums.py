"""Checks the checksums that batches carry, and gives batches those of what they hold.

Of record batches F-4.2, of legacy messages F-7.1.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.formats.batch_columns import (
    ATTRIBUTES,
    CHECKSUM,
    LEGACY,
    POSITION,
    SIZE,
    ByteArray,
    Int64Array,
)
from storage.formats.batch_header import CHECKED_AT, CRC_AT, MAGIC_AT
from storage.kernels.crc_kernels import crc32_between, crc32c_between
from storage.kernels.kernel import kernel
from storage.kernels.memory_access import store_be_int32


@kernel
def first_wrong_checksum(
    buffer: ByteArray, origin: int, rows: Int64Array, chosen: NDArray[np.bool_]
) -> tuple[int, int]:
    """The first batch with another checksum than the one that it carries, and that checksum.

    buffer: of the batches, whose first byte is at `origin` of their file. chosen: which batches are
    looked at; an empty array: all. Returns -1 and 0 where all of those are as they should be.
    """
    for i in range(rows.shape[0]):
        if chosen.shape[0] != 0 and not chosen[i]:
            continue
        start: Any = rows[i, POSITION] - origin
        end: Any = start + rows[i, SIZE]
        computed: Any = np.int64(0)
        if rows[i, ATTRIBUTES] & LEGACY != 0:
            computed = np.int64(crc32_between(buffer, start + MAGIC_AT, end))
        else:
            computed = np.int64(crc32c_between(buffer, start + CHECKED_AT, end))
        if computed != rows[i, CHECKSUM]:
            return i, computed
    return -1, 0


@kernel
def seal_batches(out: ByteArray, spans: Int64Array) -> None:
    """spans: where each of the batches begins and ends in out."""
    for i in range(spans.shape[0]):
        start, end = spans[i, 0], spans[i, 1]
        store_be_int32(out, start + CRC_AT, crc32c_between(out, start + CHECKED_AT, end))
