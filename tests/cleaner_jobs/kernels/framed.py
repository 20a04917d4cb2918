"""Encoded batches as kernels are given them: one buffer, and a row of numbers for each."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from storage.formats.batch_columns import (
    BATCH_COLUMNS,
    OK,
    SLACK_BYTES,
    ByteArray,
    Int64Array,
    walk_batches,
)

NOTHING = np.zeros(SLACK_BYTES, np.uint8)  # where no batch is a legacy one


class Framed(NamedTuple):
    buffer: ByteArray  # with SLACK_BYTES behind the batches
    rows: Int64Array
    end: int


def framed(raws: Sequence[bytes]) -> Framed:
    """Batches of one file, from its first byte on."""
    data = b"".join(raws)
    rows = np.zeros((len(raws), BATCH_COLUMNS), np.int64)
    buffer = padded(data)
    assert walk_batches(buffer, len(data), 0, -1, rows) == (len(raws), len(data), OK, 0)
    return Framed(buffer, rows, len(data))


def padded(data: bytes) -> ByteArray:
    """An array of its own, which kernels may read a few bytes beyond the data."""
    return np.frombuffer(data + bytes(SLACK_BYTES), np.uint8).copy()
