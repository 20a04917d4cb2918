"""The digest inside of kernels is that of the package."""

from random import Random

import numpy as np
from xxhash import xxh64_intdigest

from storage.kernels.xxh64_kernel import xxh64_between


def test_it_is_that_of_the_package() -> None:
    """Of every length up to a few times what is taken at once, and of some longer ones."""
    data = Random(1).randbytes(5000)
    buffer = np.frombuffer(data, np.uint8).copy()
    spans = [(7, 7 + length) for length in range(140)] + [(0, 5000), (1, 4096), (4999, 5000)]
    for start, end in spans:
        assert int(xxh64_between(buffer, start, end)) == xxh64_intdigest(data[start:end])


def test_the_published_value_of_nothing() -> None:
    assert int(xxh64_between(np.zeros(1, np.uint8), 0, 0)) == 0xEF46DB3751D8E999
