"""Work by descriptors: errors that name the file, reads that the system gives in pieces."""

import errno
import os
from pathlib import Path

import pytest

from storage.files.descriptors import look_at, naming, read_from, read_into


def test_an_error_without_a_file_gets_its_name_and_another_keeps_its_own() -> None:
    with pytest.raises(OSError) as of_descriptor, naming("/a"):
        raise OSError(errno.EIO, "x")
    assert of_descriptor.value.filename == "/a"
    with pytest.raises(OSError) as of_name, naming("/a"):
        raise OSError(errno.EIO, "x", "/b")
    assert of_name.value.filename == "/b"


def test_what_comes_in_pieces_is_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"0123456789")
    pread, preadv = os.pread, os.preadv
    monkeypatch.setattr(os, "pread", lambda file, count, at: pread(file, min(count, 3), at))
    monkeypatch.setattr(os, "preadv", lambda file, into, at: preadv(file, [into[0][:3]], at))
    descriptor, target = os.open(path, os.O_RDONLY), bytearray(20)
    try:
        assert read_from(descriptor, 1, 8) == b"12345678"
        assert read_from(descriptor, 7, 8) == b"789"
        assert read_into(descriptor, 2, memoryview(target)) == 8
        assert target[:9] == b"23456789\0"
        assert look_at(descriptor, str(path)).size_bytes == 10
    finally:
        os.close(descriptor)
    with pytest.raises(OSError) as closed:
        look_at(descriptor, str(path))
    assert closed.value.filename == str(path)
