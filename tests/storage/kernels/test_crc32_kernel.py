"""The checksum of legacy messages: Python's own function says what it has to be."""

from random import Random
from zlib import crc32

import numpy as np

from storage.kernels.crc32_kernel import crc32_between


def test_it_is_that_of_zlib() -> None:
    chance = Random(1)
    data = chance.randbytes(3000)
    buffer = np.frombuffer(data, np.uint8).copy()
    spans = [(0, 0), (7, 8), (1, 9), (3, 20), (0, 3000)]
    spans += [(chance.randrange(100), chance.randrange(100, 3000)) for _ in range(300)]
    for start, end in spans:
        assert crc32_between(buffer, start, end) == crc32(data[start:end])
