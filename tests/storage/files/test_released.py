"""What is released of a file reads as zeros and takes no room; the rest of it stays."""

import os
from pathlib import Path

import pytest

from storage.files import released
from storage.files.released import release

MIB = 1 << 20
DATA = bytes(range(1, 256)) * (4 * MIB // 255)


def left_of(path: Path, start: int, length: int) -> tuple[bytes, int]:
    """The bytes of a file after a release, and how many less of the disk are taken."""
    path.write_bytes(DATA)
    with path.open("r+b") as file:
        os.fsync(file.fileno())
        before = os.fstat(file.fileno()).st_blocks
        release(file.fileno(), start, length)
        given_back = (before - os.fstat(file.fileno()).st_blocks) * 512
    return path.read_bytes(), given_back


def test_a_range_is_given_back_and_nothing_beside_it(tmp_path: Path) -> None:
    found, given_back = left_of(tmp_path / "file", MIB + 1, 2 * MIB)
    assert found == DATA[: MIB + 1] + bytes(2 * MIB) + DATA[3 * MIB + 1 :]
    assert MIB < given_back <= 2 * MIB


def test_nothing_of_a_range_without_bytes(tmp_path: Path) -> None:
    assert left_of(tmp_path / "file", MIB, 0) == (DATA, 0)


def test_the_bytes_stay_where_the_system_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(released, "_fallocate", None)
    assert left_of(tmp_path / "file", 0, MIB) == (DATA, 0)


def test_nor_is_it_an_error_that_it_failed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(DATA)
    with path.open("rb") as file:  # for reading alone
        release(file.fileno(), 0, MIB)
    assert path.read_bytes() == DATA
