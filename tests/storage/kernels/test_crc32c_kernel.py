"""The checksum inside of kernels: that of the package, whatever the processor can do."""

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from storage.kernels import crc32c_kernel
from storage.kernels.crc32c import crc32c
from storage.kernels.crc32c_kernel import byte_step_by_table, crc32c_between, word_step_by_table
from storage.kernels.kernel import kernel
from storage.kernels.memory_access import load_le_uint64

Checksum = Callable[[Any, int, int], int]


@kernel
def by_table(buffer: Any, start: int, end: int) -> int:
    """As on a processor without the instruction."""
    crc = np.uint64(0xFFFFFFFF)
    at: Any = np.int64(start)
    while end - at >= 8:
        crc = word_step_by_table(crc, load_le_uint64(buffer, at))
        at += 8
    while at < end:
        crc = byte_step_by_table(crc, np.uint64(buffer[at]))
        at += 1
    return int(crc ^ np.uint64(0xFFFFFFFF))


@pytest.mark.parametrize("checksum", [crc32c_between, by_table], ids=["kernel", "by table"])
def test_it_is_that_of_the_package(checksum: Checksum) -> None:
    chance = Random(1)
    data = chance.randbytes(5000)
    buffer = np.frombuffer(data, np.uint8).copy()
    spans = [(0, 0), (7, 8), (1, 9), (3, 20), (0, 5000)]
    spans += [(chance.randrange(100), chance.randrange(100, 5000)) for _ in range(300)]
    for start, end in spans:
        assert checksum(buffer, start, end) == crc32c(data[start:end])


def test_the_check_value() -> None:
    """As published for CRC-32C."""
    digits = np.frombuffer(b"123456789", np.uint8).copy()
    assert crc32c_between(digits, 0, 9) == by_table(digits, 0, 9) == 0xE3069283


def test_the_tables_are_taken_where_no_instruction_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(crc32c_kernel, "_INSTRUCTIONS", {"+none": ("", "")})
    assert crc32c_kernel._instructions() is None
