"""Varints written by kernels, against the definition of zig-zag and base 128 (F-5.2)."""

from random import Random
from typing import Any

import numpy as np
import pytest

from storage.kernels.kernel import kernel
from storage.kernels.varint_kernel import varint_bytes, write_varint

EDGES = sorted(
    {sign * (2**bits + more) for bits in range(63) for more in (-1, 0, 1) for sign in (1, -1)}
    | {2**63 - 1, -(2**63)}
)


@kernel
def written(out: Any, at: int, value: int) -> tuple[int, int]:
    """The functions under test are made to be parts of a kernel."""
    return write_varint(out, at, np.int64(value)), varint_bytes(np.int64(value))


def by_definition(value: int) -> bytes:
    rest = 2 * value if value >= 0 else -2 * value - 1
    digits = []
    while rest >= 128:
        digits.append(128 + rest % 128)
        rest //= 128
    return bytes([*digits, rest])


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (64, "8001"), (-65, "8101"), (300, "d804")],
)
def test_values_by_hand(value: int, expected: str) -> None:
    assert by_definition(value).hex() == expected
    out = np.zeros(10, np.uint8)
    end, size = written(out, 0, value)
    assert (out[:end].tobytes().hex(), size) == (expected, end)


def test_every_size_and_what_is_around_is_left() -> None:
    chance = Random(2)
    values = EDGES + [chance.randint(-(2 ** (n % 63)), 2 ** (n % 63)) for n in range(2000)]
    sizes = set()
    for value in values:
        out = np.full(16, 0xAA, np.uint8)
        end, size = written(out, 3, value)
        expected = by_definition(value)
        assert out.tobytes() == b"\xaa" * 3 + expected + b"\xaa" * (13 - len(expected)), value
        assert size == end - 3 == len(expected)
        sizes.add(size)
    assert sizes == set(range(1, 11))
