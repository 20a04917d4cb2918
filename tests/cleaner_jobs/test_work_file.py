"""What a run leaves for itself without telling a checksum of it."""

from pathlib import Path

import numpy as np
import pytest

from cleaner_jobs.problems import WorkFileError
from cleaner_jobs.txn_batches import load_array, save_array
from cleaner_jobs.work_file import read_checked, write_checked, write_whole


@pytest.mark.parametrize("data", [b"", b"some", bytes(1000)])
def test_what_was_written_is_read(tmp_path: Path, data: bytes) -> None:
    path = str(tmp_path / "file")
    write_checked(path, data)
    assert read_checked(path) == data


def test_every_cut_and_every_bit_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_checked(str(path), b"data")
    whole = path.read_bytes()
    spoiled = [whole[:size] for size in range(len(whole))]
    for place in range(8 * len(whole)):
        data = bytearray(whole)
        data[place // 8] ^= 1 << place % 8
        spoiled.append(bytes(data))
    for wrong in spoiled:
        path.write_bytes(wrong)
        with pytest.raises(WorkFileError, match="not what was written") as caught:
            read_checked(str(path))
        assert caught.value.path == str(path)


def test_ranges_with_another_offset_are_noticed(tmp_path: Path) -> None:
    """By them committed records would count as aborted."""
    path = tmp_path / "ranges"
    save_array(str(path), np.array([[7, 3, 20, 3]], np.int64))
    assert load_array(str(path)).tolist() == [[7, 3, 20, 3]]
    data = bytearray(path.read_bytes())
    data[data.rindex((20).to_bytes(8, "little"))] = 200
    path.write_bytes(data)
    with pytest.raises(WorkFileError):
        load_array(str(path))


class Short:
    """Takes so many bytes at a time, as an unbuffered file may."""

    def __init__(self, most: int | None) -> None:
        self.most, self.taken = most, b""

    def write(self, data: memoryview) -> int | None:
        if self.most is None:  # says nothing, takes it all
            self.taken += bytes(data)
            return None
        self.taken += bytes(data[: self.most])
        return min(self.most, len(data))


@pytest.mark.parametrize("most", [1, 7, 23, 24, 25, 1000, None])
def test_all_bytes_are_written_in_order(most: int | None) -> None:
    sink, numbers = Short(most), np.arange(3, dtype=np.uint64).reshape(1, 3)
    write_whole(sink, numbers.data)
    assert sink.taken == numbers.tobytes()


def test_nothing_is_nothing() -> None:
    sink = Short(None)
    write_whole(sink, np.zeros((0, 3), np.uint64).data)
    write_whole(sink, memoryview(b""))
    assert sink.taken == b""
