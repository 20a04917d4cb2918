"""The checksums inside of kernels: those of the packages, whatever the processor can do."""

from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from crc32c import crc32c
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import njit

from storage.kernels import crc_kernels
from storage.kernels.crc_kernels import (
    CRC32,
    CRC32C,
    REGISTERS,
    STREAM_BYTES,
    crc32_between,
    crc32c_between,
    factors_over,
    make_fold,
)
from storage.kernels.memory_access import find_function
from tests.storage.kernels.another_processor import shown_by

LARGEST = 1 << 20
EVERY_LENGTH, EVERY_ALIGNMENT = 1100, 64  # more than four of the widest blocks; a register
PLAIN = {CRC32C: 0x11EDC6F41, CRC32: 0x104C11DB7}  # the polynomials, not reflected, with x**32


def slow_crc(polynomial: int, data: bytes) -> int:
    """The checksum bit by bit, begun at 0 and not inverted."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (polynomial if crc & 1 else 0)
    return crc


def reflected_remainder(exponent: int, divisor: int) -> int:
    """x**exponent modulo a plain polynomial by long division, and then its 32 bits turned round."""
    left = 1 << exponent
    for bit in range(exponent, 31, -1):
        if left >> bit & 1:
            left ^= divisor << bit - 32
    return int(f"{left:032b}"[::-1], 2)


def differing() -> list[tuple[int, int]]:
    """Where the kernel's checksum is another one than the package's."""
    chance = Random(1)
    data = chance.randbytes(LARGEST + EVERY_ALIGNMENT)
    buffer = np.frombuffer(data, np.uint8).copy()
    spans = [(i % EVERY_ALIGNMENT, i % EVERY_ALIGNMENT + i) for i in range(EVERY_LENGTH + 1)]
    spans += [
        (at, at + length)
        for at in range(EVERY_ALIGNMENT)
        for length in (7, 255, 256, 1023, 1024, 13_643, 3 * STREAM_BYTES - 1, 6 * STREAM_BYTES + 1)
    ]
    for _ in range(100):
        at = chance.randrange(EVERY_ALIGNMENT)
        spans.append((at, at + chance.randrange(LARGEST + 1)))
    spans.append((0, LARGEST))
    return [at for at in spans if crc32c_between(buffer, *at) != crc32c(data[slice(*at)])]


def test_it_is_that_of_the_package() -> None:
    assert differing() == []


def test_the_check_value() -> None:
    """As published for CRC-32C."""
    digits = np.frombuffer(b"123456789", np.uint8).copy()
    assert crc32c_between(digits, 0, 9) == 0xE3069283


TABLES, STREAMS = "", "+sse4.2,+crc32"
FOLDED_256 = f"{STREAMS},+pclmul,+avx,+avx2,+vpclmulqdq"
FOLDED_512 = f"{FOLDED_256},+avx512f,+avx512vl"


@pytest.mark.parametrize(
    ("features", "way"),
    [(TABLES, "False 0"), (STREAMS, "True 0"), (FOLDED_256, "True 4"), (FOLDED_512, "True 8")],
    ids=["tables", "streams", "folded-256", "folded-512"],
)
def test_it_is_the_same_by_each_way(tmp_path: Path, features: str, way: str) -> None:
    """Kernels are compiled for a processor that has these instructions alone."""
    has = get_host_cpu_features()
    if missing := [word for word in features.split(",") if word and not has.get(word[1:])]:
        pytest.skip(f"this processor lacks {' '.join(missing)}")
    code = (
        "from storage.kernels import crc_kernels\n"
        "from tests.storage.kernels.test_crc_kernels import differing\n"
        "print(crc_kernels._instructions() is not None, crc_kernels.CRC32C_WORDS, differing())"
    )
    assert shown_by(code, tmp_path, features) == [f"{way} []"]


@pytest.mark.parametrize("polynomial", [CRC32C, CRC32])
@pytest.mark.parametrize("size", [16, 32, 64, 128, 256])
def test_factors_are_powers_of_x(polynomial: int, size: int) -> None:
    exponents = 8 * size + 32, 8 * size - 32
    expected = [reflected_remainder(e, PLAIN[polynomial]) << 1 for e in exponents]
    assert list(factors_over(polynomial, size)) == expected


def test_published_factors() -> None:
    """Of Gopal and others for CRC-32: over four registers of 16 bytes, and over one."""
    assert factors_over(CRC32, 64) == (0x154442BD4, 0x1C6E41596)
    assert factors_over(CRC32, 16) == (0x1751997D0, 0x0CCAA009E)


def multiplied_in_parts(builder: Any, value: Any, factor: Any, halves: int) -> Any:
    """The product of a wide register by the instruction for 16 bytes, one after the other."""
    count = value.type.count
    number, word = ir.IntType(32), ir.IntType(64)
    pair = ir.VectorType(word, 2)
    kind = ir.FunctionType(pair, [pair, pair, ir.IntType(8)])
    multiply = find_function(builder.module, kind, "llvm.x86.pclmulqdq")
    whole: Any = ir.Constant(value.type, ir.Undefined)
    for i in range(0, count, 2):
        mask = ir.Constant(ir.VectorType(number, 2), [i, i + 1])
        parts = [builder.shuffle_vector(each, each, mask) for each in (value, factor)]
        product = builder.call(multiply, [*parts, ir.IntType(8)(halves)])
        for k in range(2):
            part = builder.extract_element(product, number(k))
            whole = builder.insert_element(whole, part, number(i + k))
    return whole


@pytest.mark.skipif(not get_host_cpu_features().get("pclmul"), reason="no multiplication at all")
@pytest.mark.parametrize("polynomial", [CRC32C, CRC32])
@pytest.mark.parametrize("words", [2, 4, 8])
def test_registers_of_each_width_fold_to_the_same_checksum(
    monkeypatch: pytest.MonkeyPatch, words: int, polynomial: int
) -> None:
    """On a processor without registers of that width, too: the multiplication is made in parts.

    It does not show that the wide instruction does what its manual says.
    """
    monkeypatch.setattr(crc_kernels, "multiplied", multiplied_in_parts)
    fold = make_fold(polynomial, words)

    @njit
    def folded(buffer, at, blocks, crc):  # type: ignore[no-untyped-def]
        return fold(buffer, at, blocks, crc)

    chance = Random(words)
    for blocks in (1, 2, 3, 7):
        at, size = chance.randrange(64), 8 * words * REGISTERS * blocks
        data = chance.randbytes(at + size)
        crc = chance.getrandbits(32)
        halves = folded(np.frombuffer(data, np.uint8), at, blocks, np.uint64(crc))
        sixteen = b"".join(int(half).to_bytes(8, "little") for half in halves)
        begun = (int.from_bytes(data[at : at + 4], "little") ^ crc).to_bytes(4, "little")
        expected = slow_crc(polynomial, begun + data[at + 4 :])
        assert slow_crc(polynomial, sixteen) == expected, blocks


CRC32_BLOCK = 64
CRC32_SPANS = [(0, 0), (7, 8), (1, 9), (3, 20), (0, 3000)]
CRC32_SPANS += [
    (5, 5 + CRC32_BLOCK * blocks + more) for blocks in (1, 2, 7) for more in (-1, 0, 1, 63)
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
