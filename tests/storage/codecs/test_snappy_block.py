"""The encoder of small snappy blocks, against another library's where both have the largest table.

For blocks of more than 8192 bytes cramjam gives the bytes of C++ snappy too (held by Kafka's in
test_compression.py), so there it is an independent reference of all but the size of the table.
"""

import random

import cramjam
import pytest

from storage.codecs.snappy_block import MAX_BLOCK_BYTES, compress_small_block

EDGE_LITERALS = [1, 2, 14, 15, 16, 59, 60, 61, 62, 255, 256, 257, 258]
EDGE_MATCHES = [4, 5, 11, 12, 13, 59, 60, 61, 63, 64, 65, 66, 67, 68, 69, 127, 128, 131, 132, 133]
EDGE_OFFSETS = [1, 2, 3, 4, 7, 8, 2046, 2047, 2048, 2049]


def lz_like(seed: int, size: int) -> bytes:
    """Literals and repeats with the lengths and distances at which the format changes."""
    rng = random.Random(seed)
    data = bytearray(rng.randbytes(20))
    while len(data) < size:
        data += rng.randbytes(rng.choice([*EDGE_LITERALS, rng.randrange(1, 400)]))
        distance = min(len(data), rng.choice([*EDGE_OFFSETS, rng.randrange(1, 30000)]))
        for _ in range(rng.choice([*EDGE_MATCHES, rng.randrange(4, 300)])):
            data.append(data[-distance])
    return bytes(data[:size])


@pytest.mark.parametrize("seed", range(300))
def test_large_blocks_are_the_other_librarys(seed: int) -> None:
    size = random.Random(seed).choice([8193, 8200, 8250, MAX_BLOCK_BYTES])
    data = lz_like(seed, size)
    assert compress_small_block(data) == bytes(cramjam.snappy.compress_raw(data))


@pytest.mark.parametrize("ending", range(40))
def test_a_repeat_near_the_end_is_the_other_librarys(ending: int) -> None:
    data = lz_like(1, 8300) + b"0123456789abcdef" + b"0123456789abcdef0123456789abcdef"[:ending]
    assert compress_small_block(data) == bytes(cramjam.snappy.compress_raw(data))


@pytest.mark.parametrize("size", [*range(40), 256, 257, 8191, 8192])
def test_small_blocks_are_read_back(size: int) -> None:
    for data in (lz_like(size, size), bytes(size), random.Random(size).randbytes(size)):
        assert bytes(cramjam.snappy.decompress_raw(compress_small_block(data))) == data
