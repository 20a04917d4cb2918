"""Rows of transactional batches behind a part, and the arrays that tasks are told of them."""

from pathlib import Path

import numpy as np
import pytest
import xxhash

from cleaner_jobs.messages import Part
from cleaner_jobs.problems import WorkFileError
from cleaner_jobs.txn_batches import (
    ABORT,
    HORIZON_AHEAD,
    TXN_BATCH,
    load_array,
    read_txn_batches,
    save_array,
)
from tests.support.made_values import part

# laid out by hand: position, base offset, last offset, producer id; then segment, kind, records,
# horizon, all little-endian
ROW = bytes.fromhex(
    "4000000000000000" "0a00000000000000" "0b00000000000000" "0700000000000000"
    "02000000" "01000000" "01000000" "01000000"
)  # fmt: skip
BEFORE = b"what a part holds before"


def written(path: Path, data: bytes, rows: int) -> Part:
    path.write_bytes(BEFORE + data)
    checksum = xxhash.xxh3_64_intdigest(data)
    return part(file=str(path), txn_batches=rows, txn_at=len(BEFORE), txn_checksum=checksum)


def test_a_row_has_its_layout(tmp_path: Path) -> None:
    assert len(ROW) == TXN_BATCH.itemsize
    found = read_txn_batches(written(tmp_path / "part", ROW + bytes(len(ROW)), 2))
    assert found.tolist() == [(64, 10, 11, 7, 2, ABORT, 1, HORIZON_AHEAD), (0,) * 8]


def test_what_stands_behind_the_rows_is_none_of_them(tmp_path: Path) -> None:
    its = written(tmp_path / "part", ROW, 1)
    with open(its.file, "ab") as out:
        out.write(b"more")
    assert len(read_txn_batches(its)) == 1


@pytest.mark.parametrize("cut", range(1, len(ROW)))
def test_rows_that_are_cut_short_raise_an_error(tmp_path: Path, cut: int) -> None:
    its = written(tmp_path / "part", ROW, 1)
    (tmp_path / "part").write_bytes((BEFORE + ROW)[:-cut])
    with pytest.raises(WorkFileError, match="not what was written"):
        read_txn_batches(its)


def test_a_flipped_bit_raises_an_error(tmp_path: Path) -> None:
    its = written(tmp_path / "part", ROW, 1)
    for bit in range(0, 8 * len(ROW), 5):
        data = bytearray(BEFORE + ROW)
        data[len(BEFORE) + bit // 8] ^= 1 << bit % 8
        (tmp_path / "part").write_bytes(data)
        with pytest.raises(WorkFileError, match="not what was written"):
            read_txn_batches(its)


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    its = written(tmp_path / "part", ROW, 1)
    (tmp_path / "part").unlink()
    with pytest.raises(FileNotFoundError, match=str(tmp_path / "part")):
        read_txn_batches(its)


@pytest.mark.parametrize(
    "array",
    [np.zeros((0, 4), np.int64), np.array([[7, 1, 2, 3], [-1, 0, 2**63 - 1, 1]], np.int64)],
    ids=["none", "two"],
)
def test_an_array_is_read_as_it_was_saved(tmp_path: Path, array: np.ndarray) -> None:
    save_array(str(tmp_path / "ranges"), array)
    found = load_array(str(tmp_path / "ranges"))
    assert found.dtype == np.int64
    assert (found.shape, found.tolist()) == (array.shape, array.tolist())


def test_an_array_cut_short_anywhere_raises_an_error(tmp_path: Path) -> None:
    path = tmp_path / "ranges"
    save_array(str(path), np.array([1, 2, 3], np.int64))
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(WorkFileError):
            load_array(str(path))
