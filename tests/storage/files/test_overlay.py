"""What an overlay keeps in memory, and how many files it has open."""

import os
import resource
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.files.local import LocalFiles
from storage.files.overlay import OverlayFiles


def test_a_file_that_is_made_longer_takes_no_memory_for_its_zeros(tmp_path: Path) -> None:
    (tmp_path / "0.index").write_bytes(b"abc")
    files, path = OverlayFiles(LocalFiles()), str(tmp_path / "0.index")
    tracemalloc.start()
    try:
        changed = files.open_to_change(path)
        changed.truncate(0)
        changed.truncate(10_000_000)
        changed.write(2, b"xy")
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()
    assert changed.size() == 10_000_000
    assert changed.read(0, 6) == b"\0\0xy\0\0"
    assert changed.read(9_999_998, 10) == b"\0\0"
    changed.truncate(3)
    changed.truncate(5)
    assert files.read_bytes(path) == b"\0\0x\0\0"
    changed.write(7, b"z")
    assert files.read_bytes(path) == b"\0\0x\0\0\0\0z"
    assert [(c.name, c.data) for c in files.changes(str(tmp_path))] == [
        ("0.index", b"\0\0x\0\0\0\0z")
    ]
    assert (tmp_path / "0.index").read_bytes() == b"abc"


@pytest.fixture
def few_descriptors() -> Iterator[int]:
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = len(os.listdir("/proc/self/fd")) + 40
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, most))
    yield few
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, most))


def test_more_files_can_be_read_and_cut_than_may_be_open(
    tmp_path: Path, few_descriptors: int
) -> None:
    paths = [tmp_path / f"{number}.log" for number in range(few_descriptors * 2)]
    for number, path in enumerate(paths):
        path.write_bytes(b"%05d" % number)
    files = OverlayFiles(LocalFiles())
    opened = [files.open_to_change(str(path)) for path in paths]
    for _ in range(2):
        assert [file.read(0, 5) for file in opened] == [b"%05d" % n for n in range(len(paths))]
    for file in opened:
        file.write(1, b"x")
    assert [file.read(0, 3) for file in opened[:2]] == [b"0x0", b"0x0"]
    assert paths[0].read_bytes() == b"00000"
    files.close()


def test_a_file_that_was_closed_to_make_room_is_never_another_when_it_is_read_again(
    tmp_path: Path, few_descriptors: int
) -> None:
    paths = [tmp_path / f"{number}.log" for number in range(few_descriptors)]
    for path in paths:
        path.write_bytes(b"before")
    files = OverlayFiles(LocalFiles())
    opened = [files.open_to_change(str(path)) for path in paths]
    for file in opened:
        file.read(0, 1)
    for path in (paths[0], paths[-1]):
        (tmp_path / "new").write_bytes(b"after")
        (tmp_path / "new").replace(path)
    assert opened[-1].read(0, 6) == b"before"  # still open
    with pytest.raises(OSError, match="another file has this name") as refused:
        opened[0].read(0, 6)
    assert refused.value.filename == str(paths[0])
    files.close()


def test_names_in_other_directories_take_no_time(tmp_path: Path) -> None:
    files, looked = OverlayFiles(LocalFiles()), 0
    for number in range(10_000):
        files.replace_file(f"/elsewhere-{number}/file", b"")
    (tmp_path / "0.log").write_bytes(b"abc")
    files.truncate_file(str(tmp_path / "0.log"), 1)
    began = time.process_time()
    for _ in range(100):
        looked += len(files.list_directory(str(tmp_path)))
    assert looked == 100
    assert time.process_time() - began < 0.5  # 100 turns over 10,000 names take seconds
