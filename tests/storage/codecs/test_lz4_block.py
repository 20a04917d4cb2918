"""Blocks of lz4 by kernels: the bytes of the library, which takes all that they take."""

from random import Random

import cramjam
import numpy as np
import pytest

from storage.codecs.lz4_block import (
    MAX_BLOCK_BYTES,
    NOT_TAKEN,
    TABLE_SLOTS,
    compress_block,
    decompress_block,
    max_compressed_bytes,
)
from tests.storage.codecs.random_data import damaged, random_data


def of_the_library(data: bytes) -> bytes:
    return bytes(cramjam.lz4.compress_block(data, store_size=False))


def taken_by_the_library(block: bytes) -> bytes | None:
    out = bytearray(MAX_BLOCK_BYTES)
    try:
        size = int(cramjam.lz4.decompress_block_into(block, out, output_len=MAX_BLOCK_BYTES))
    except cramjam.DecompressionError:
        return None
    return bytes(out[:size])


def compressed(data: bytes, before: int, behind: int) -> bytes:
    """By the kernel; with so many other bytes before and behind it."""
    source = np.frombuffer(bytes(before) + data + bytes(behind), np.uint8).copy()
    out = np.full(before + max_compressed_bytes(len(data)), 7, np.uint8)
    slots = np.full(TABLE_SLOTS, 999, np.uint16)
    span = before, before + len(data)
    return out[before : compress_block(source, *span, slots, out, before)].tobytes()


def decompressed(block: bytes, limit: int, behind: int) -> bytes | None:
    """By the kernel; with so many bytes of room behind what it may fill."""
    source = np.frombuffer(b"ab" + block + bytes(behind), np.uint8).copy()
    out = np.full(3 + limit + behind, 7, np.uint8)
    end = decompress_block(source, 2, 2 + len(block), out, 3, 3 + limit)
    return None if end == NOT_TAKEN else out[3:end].tobytes()


@pytest.mark.parametrize("seed", range(8))
def test_a_block_is_that_of_the_library_and_comes_back(seed: int) -> None:
    chance = Random(seed)
    for _ in range(40):
        data = random_data(chance)
        block = of_the_library(data)
        behind = chance.choice((0, 3, 64))
        assert compressed(data, chance.randrange(9), behind) == block
        assert decompressed(block, MAX_BLOCK_BYTES, behind) == data


@pytest.mark.parametrize("seed", range(8))
def test_what_the_kernel_takes_of_a_damaged_block_is_what_the_library_takes(seed: int) -> None:
    chance, taken = Random(seed), 0
    for _ in range(150):
        block = damaged(of_the_library(random_data(chance, (0, 13, 60, 300, 5000))), chance)
        found = decompressed(block, MAX_BLOCK_BYTES, chance.choice((0, 3, 64)))
        if found is not None:
            assert found == taken_by_the_library(block)
            taken += 1
    assert taken > 20


def test_with_less_room_than_the_content_it_is_not_taken() -> None:
    data = random_data(Random(3), (20_000,))
    block = of_the_library(data)
    for missing in (1, 2, 5, 12, 13, 1000):
        assert decompressed(block, len(data) - missing, 64) is None


@pytest.mark.parametrize(
    "block",
    [
        "",
        "11 61 01",  # a match, cut in its offset
        "10 61 0000 50 6162636465",  # an offset of nothing
        "10 61 0200 50 6162636465",  # from before the first byte
        "f0 ff",  # a length that goes on behind the end
        "1f 61 0100 ff ff ff",
        "20 61",  # more literals than there are
        "10 61 0100 00 00 00 00 00 00 00 00 00 61",
    ],
)
def test_what_is_malformed_is_not_taken(block: str) -> None:
    """Laid out by hand from the format of blocks."""
    assert decompressed(bytes.fromhex(block), MAX_BLOCK_BYTES, 64) is None


def test_a_block_laid_out_by_hand() -> None:
    """Five literals, eight bytes from three back on, seven more literals."""
    block = bytes.fromhex("54 6162636465 0300 70 30313233343536")
    assert decompressed(block, MAX_BLOCK_BYTES, 0) == b"abcdecdecdecd0123456"
