"""The checksums inside of kernels: those of the packages, whatever the processor can do."""

from pathlib import Path
from random import Random
from zlib import crc32

import numpy as np
from crc32c import crc32c

from storage.kernels.crc_kernels import FOLDED_BYTES, STREAM_BYTES, crc32_between, crc32c_between
from tests.storage.kernels.another_processor import shown_by

LARGEST = 10 * STREAM_BYTES
SPANS = [(0, 0), (7, 8), (1, 9), (3, 20), (0, LARGEST)]
# one byte less than three streams, three, one more; and six
SPANS += [(5, 5 + 3 * STREAM_BYTES + more) for more in (-1, 0, 1, 3 * STREAM_BYTES)]


def differing() -> list[tuple[int, int]]:
    """Where the kernel's checksum is another one than the package's."""
    chance = Random(1)
    data = chance.randbytes(LARGEST)
    buffer = np.frombuffer(data, np.uint8).copy()
    more = [(chance.randrange(100), chance.randrange(100, LARGEST)) for _ in range(300)]
    return [at for at in SPANS + more if crc32c_between(buffer, *at) != crc32c(data[slice(*at)])]


def test_it_is_that_of_the_package() -> None:
    assert differing() == []


def test_the_check_value() -> None:
    """As published for CRC-32C."""
    digits = np.frombuffer(b"123456789", np.uint8).copy()
    assert crc32c_between(digits, 0, 9) == 0xE3069283


def test_it_is_the_same_on_a_processor_that_has_no_instruction_for_it(tmp_path: Path) -> None:
    """Kernels are compiled for one, which is not this one."""
    code = (
        "from storage.kernels import crc_kernels\n"
        "from tests.storage.kernels.test_crc_kernels import differing\n"
        "print(crc_kernels._instructions(), differing())"
    )
    assert shown_by(code, tmp_path) == ["None []"]


CRC32_SPANS = [(0, 0), (7, 8), (1, 9), (3, 20), (0, 3000)]
CRC32_SPANS += [
    (5, 5 + FOLDED_BYTES * blocks + more) for blocks in (1, 2, 7) for more in (-1, 0, 1, 63)
]


def differing_crc32() -> list[tuple[int, int]]:
    """Where the kernel's checksum is another one than Python's."""
    chance = Random(1)
    data = chance.randbytes(3000)
    buffer = np.frombuffer(data, np.uint8).copy()
    more = [(chance.randrange(100), chance.randrange(100, 3000)) for _ in range(300)]
    return [
        at for at in CRC32_SPANS + more if crc32_between(buffer, *at) != crc32(data[slice(*at)])
    ]


def test_it_is_that_of_zlib() -> None:
    assert differing_crc32() == []


def test_crc32_is_the_same_on_a_processor_that_cannot_fold(tmp_path: Path) -> None:
    code = (
        "from storage.kernels import crc_kernels\n"
        "from tests.storage.kernels.test_crc_kernels import differing_crc32\n"
        "print(crc_kernels._CAN_FOLD, differing_crc32())"
    )
    assert shown_by(code, tmp_path) == ["False []"]
