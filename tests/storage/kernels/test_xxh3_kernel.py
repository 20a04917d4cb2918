"""The digest inside of kernels is that of the package: XXH3 of much, XXH64 of little."""

from pathlib import Path
from random import Random

import numpy as np
from xxhash import xxh3_64_intdigest, xxh64_intdigest

from storage.kernels.xxh3_kernel import SHORT_BYTES, digest_between, digests_between, xxh64_between
from tests.storage.kernels.another_processor import WITHOUT_WIDE_VECTORS, shown_by, vectors_in

LENGTHS = (*range(1500), 2047, 2048, 2049, 4096, 4999)  # a block has 1024 bytes


def differing() -> list[int]:
    """Lengths whose digests are not those of the package."""
    data = Random(1).randbytes(5001)
    buffer = np.frombuffer(data, np.uint8).copy()
    spans = [(1, 1 + length) for length in LENGTHS]
    digests = np.zeros(len(spans), np.uint64)
    digests_between(buffer, np.array(spans), digests)
    found = zip(LENGTHS, digests.tolist(), strict=True)
    return [length for length, digest in found if digest != by_the_package(data[1 : 1 + length])]


def by_the_package(data: bytes) -> int:
    return xxh3_64_intdigest(data) if len(data) > SHORT_BYTES else xxh64_intdigest(data)


def test_it_is_that_of_the_package() -> None:
    assert differing() == []


def test_it_is_the_same_on_a_processor_without_wide_vectors(tmp_path: Path) -> None:
    """Kernels are compiled for one, which is not this one."""
    code = (
        "from tests.storage.kernels.test_xxh3_kernel import differing, digests_between\n"
        "print(differing())\n"
    )
    shown = shown_by(code + vectors_in("digests_between"), tmp_path)
    assert shown == ["[]", WITHOUT_WIDE_VECTORS]


def test_every_bit_counts() -> None:
    buffer = np.frombuffer(Random(2).randbytes(1300), np.uint8).copy()
    digest = digest_between(buffer, 3, 1290)
    for bit in range(3 * 8, 1290 * 8):
        buffer[bit // 8] ^= 1 << bit % 8
        assert digest_between(buffer, 3, 1290) != digest
        buffer[bit // 8] ^= 1 << bit % 8
    assert digest_between(buffer, 3, 1290) == digest


def test_xxh64_is_that_of_the_package() -> None:
    """Of every length up to a few times what is taken at once, and of some longer ones."""
    data = Random(1).randbytes(5000)
    buffer = np.frombuffer(data, np.uint8).copy()
    spans = [(7, 7 + length) for length in range(140)] + [(0, 5000), (1, 4096), (4999, 5000)]
    for start, end in spans:
        assert int(xxh64_between(buffer, start, end)) == xxh64_intdigest(data[start:end])


def test_the_published_value_of_nothing() -> None:
    assert int(xxh64_between(np.zeros(1, np.uint8), 0, 0)) == 0xEF46DB3751D8E999
