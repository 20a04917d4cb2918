"""What an overlay keeps in memory."""

import tracemalloc
from pathlib import Path

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
