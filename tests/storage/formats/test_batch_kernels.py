"""The checksums of many batches: Python's functions say what each has to be."""

import struct
from random import Random
from zlib import crc32

import numpy as np
import pytest
from crc32c import crc32c

from storage.formats.batch_columns import (
    ATTRIBUTES,
    BATCH_COLUMNS,
    CHECKSUM,
    LEGACY,
    POSITION,
    SIZE,
    ByteArray,
    Int64Array,
)
from storage.formats.batch_kernels import first_wrong_checksum, seal_batches

ORIGIN = 1000  # where the buffer begins in its file
SIZES = 61, 70, 2000, 5000
IS_LEGACY = False, True, True, False
ALL = np.ones(len(SIZES), np.bool_)


def batches() -> tuple[ByteArray, Int64Array]:
    """Batches of chance bytes, one behind the other, and rows with their checksums."""
    data = Random(1).randbytes(sum(SIZES))
    rows = np.zeros((len(SIZES), BATCH_COLUMNS), np.int64)
    at = 0
    for row, size, is_legacy in zip(rows, SIZES, IS_LEGACY, strict=True):
        batch = data[at : at + size]
        row[POSITION], row[SIZE] = ORIGIN + at, size
        row[ATTRIBUTES] = LEGACY if is_legacy else 0
        row[CHECKSUM] = crc32(batch[16:]) if is_legacy else crc32c(batch[21:])
        at += size
    return np.frombuffer(data, np.uint8).copy(), rows


def test_checksums_that_fit_are_found_to() -> None:
    buffer, rows = batches()
    assert first_wrong_checksum(buffer, ORIGIN, rows, ALL) == (-1, 0)
    assert first_wrong_checksum(buffer, ORIGIN, rows[:0], ALL[:0]) == (-1, 0)


@pytest.mark.parametrize("wrong", range(len(SIZES)))
def test_the_first_that_does_not_fit_is_named_with_what_it_should_be(wrong: int) -> None:
    buffer, rows = batches()
    fitting = int(rows[wrong, CHECKSUM])
    rows[wrong:, CHECKSUM] ^= 1 << 31
    found = first_wrong_checksum(buffer, ORIGIN, rows, ALL)
    assert found == first_wrong_checksum(buffer, ORIGIN, rows, ALL[:0])  # none chosen: all
    assert found == (wrong, fitting)
    assert all(isinstance(number, int) for number in found)  # no float, to which numba unifies


def test_only_those_that_are_chosen_are_looked_at() -> None:
    buffer, rows = batches()
    rows[[0, 2], CHECKSUM] ^= 1
    chosen = np.array([False, True, False, True])
    assert first_wrong_checksum(buffer, ORIGIN, rows, chosen)[0] == -1
    chosen[2] = True
    assert first_wrong_checksum(buffer, ORIGIN, rows, chosen)[0] == 2


@pytest.mark.parametrize("flipped", [ORIGIN + 61 + 16, ORIGIN + 61 + 69])
def test_a_flipped_bit_is_found_from_the_first_to_the_last_byte_under_it(flipped: int) -> None:
    buffer, rows = batches()
    buffer[flipped - ORIGIN] ^= 1
    assert first_wrong_checksum(buffer, ORIGIN, rows, ALL)[0] == 1
    buffer[flipped - ORIGIN] ^= 1
    buffer[61 + 15] ^= 1  # before it
    assert first_wrong_checksum(buffer, ORIGIN, rows, ALL)[0] == -1


def test_sealed_batches_have_the_checksum_of_what_they_hold() -> None:
    buffer, _ = batches()
    data = buffer.tobytes()
    seal_batches(buffer, np.array([[0, 61], [61, 131]], np.int64))
    sealed = buffer.tobytes()
    assert sealed[17:21] == struct.pack(">I", crc32c(data[21:61]))
    assert sealed[61 + 17 : 61 + 21] == struct.pack(">I", crc32c(data[61 + 21 : 131]))
    assert sealed[131:] == data[131:]
