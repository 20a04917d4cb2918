"""Integers loaded from and stored to any place of a byte buffer, beside struct."""

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from storage.kernels import memory_access as memory

INT64 = st.integers(-(2**63), 2**63 - 1)


@cache
def compiled() -> tuple[Callable[..., Any], ...]:
    """Not cached between processes: numba would not notice that what is inlined has changed."""

    @njit
    def load(buffer, at):  # type: ignore[no-untyped-def]
        return (
            memory.load_be_int16(buffer, at),
            memory.load_be_int32(buffer, at),
            memory.load_be_int64(buffer, at),
            memory.load_le_uint64(buffer, at),
            memory.load_byte(buffer, at),
        )

    @njit
    def store(buffer, at, short, word, long):  # type: ignore[no-untyped-def]
        memory.store_be_int16(buffer, at, short)
        memory.store_be_int32(buffer, at + 2, word)
        memory.store_be_int64(buffer, at + 6, long)

    @njit
    def copy(target, to, source, at, length):  # type: ignore[no-untyped-def]
        memory.copy_bytes(target, to, source, at, length)

    @njit
    def same(first, to, second, at, length):  # type: ignore[no-untyped-def]
        return memory.same_bytes(first, to, second, at, length)

    return load, store, copy, same


@given(st.binary(min_size=24, max_size=24), st.integers(0, 16))
def test_loads_at_any_position(data: bytes, at: int) -> None:
    load, *_ = compiled()
    expected = [struct.unpack_from(code, data, at)[0] for code in (">h", ">i", ">q", "<Q", "B")]
    assert [int(number) for number in load(np.frombuffer(data, np.uint8), at)] == expected


@given(st.integers(0, 9), INT64, INT64, INT64)
def test_stores_take_the_low_bytes_and_no_others(at: int, short: int, word: int, long: int) -> None:
    _, store, *_ = compiled()
    buffer = np.full(24, 0x55, np.uint8)
    store(buffer, at, short, word, long)
    low = struct.pack(">HIq", short & 0xFFFF, word & 0xFFFFFFFF, long)
    assert buffer.tobytes() == b"\x55" * at + low + b"\x55" * (10 - at)


@given(st.integers(0, 8), st.integers(0, 8), st.integers(0, 8))
def test_copies_so_many_bytes(to: int, at: int, length: int) -> None:
    _, _, copy, _ = compiled()
    source, target = np.arange(16, dtype=np.uint8), np.full(16, 99, np.uint8)
    copy(target, to, source, at, length)
    expected = [99] * 16
    expected[to : to + length] = range(at, at + length)
    assert target.tolist() == expected


@given(st.integers(0, 8), st.integers(0, 8), st.integers(0, 40), st.integers(0, 56))
def test_bytes_are_the_same_or_one_is_not(to: int, at: int, length: int, turned: int) -> None:
    *_, same = compiled()
    first, second = np.zeros(48, np.uint8), np.zeros(48, np.uint8)
    first[to : to + length] = second[at : at + length] = np.arange(length)
    assert same(first, to, second, at, length)
    second[turned % 48] ^= 4
    assert same(first, to, second, at, length) == (not at <= turned % 48 < at + length)


def test_to_fetch_ahead_reads_and_changes_nothing_wherever_that_is() -> None:
    @njit
    def fetch(words, index):  # type: ignore[no-untyped-def]
        memory.prefetch(words, index)

    words = np.arange(4, dtype=np.uint64)
    for index in (0, 3, 4, -1, 2**58):
        fetch(words, index)
    assert words.tolist() == [0, 1, 2, 3]
