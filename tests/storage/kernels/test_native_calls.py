"""Kernels read what stands in a file, and say so where there is less or nothing."""

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from storage.kernels.kernel import kernel
from storage.kernels.native_calls import pread_address, read_at

DATA = bytes(range(256))


@kernel
def read(address: int, descriptor: int, position: int, buffer: Any, length: int) -> int:
    return int(read_at(address, np.int64(descriptor), np.int64(position), buffer, np.int64(length)))


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "data").write_bytes(DATA)
    opened = os.open(tmp_path / "data", os.O_RDONLY)
    yield opened
    os.close(opened)


@pytest.mark.parametrize(("position", "length", "got"), [(0, 256, 256), (7, 5, 5), (250, 9, 6)])
def test_a_kernel_reads_from_a_position(
    descriptor: int, position: int, length: int, got: int
) -> None:
    buffer = np.zeros(300, np.uint8)
    assert read(pread_address(), descriptor, position, buffer, length) == got
    assert bytes(buffer[:got]) == DATA[position : position + got]
    assert not buffer[got:].any()


def test_it_reads_nothing_behind_the_end_without_an_address_or_for_no_length(
    descriptor: int,
) -> None:
    buffer = np.zeros(300, np.uint8)
    assert read(pread_address(), descriptor, 256, buffer, 10) == 0
    assert read(0, descriptor, 0, buffer, 10) == 0
    assert read(pread_address(), descriptor, 0, buffer, 0) == 0
    assert read(pread_address(), descriptor, 0, buffer, -1) == 0
    assert not buffer.any()


def test_a_read_that_fails_is_below_zero(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path / "new", os.O_WRONLY | os.O_CREAT)
    try:
        assert read(pread_address(), descriptor, 0, np.zeros(9, np.uint8), 9) < 0
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("error", [OSError, AttributeError, TypeError])
def test_without_the_function_there_is_no_address(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def fails(_: object) -> None:
        raise error

    monkeypatch.setattr(ctypes, "CDLL", fails)
    assert pread_address.__wrapped__() == 0


def test_nor_where_a_position_has_fewer_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "sizeof", lambda _: 4)
    assert pread_address.__wrapped__() == 0
