"""Copies of files: their bytes, holes, attributes and times, whatever the system can do."""

import ctypes
import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storage.errors import CorruptFileError
from storage.files import cloning
from storage.files.cloning import (
    CHUNK_BYTES,
    allocated_bytes,
    can_share,
    clone_directory,
    clone_file,
    sync_file_system,
)
from storage.files.file_attributes import attributes_of

DATA = bytes(range(256)) * 9001
MTIME_NS = 1_600_000_000_123_456_789


def fail(code: int) -> Callable[..., Any]:
    def failing(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    return failing


def share(new: int, _: int, old: int) -> int:
    """What a file system does that shares bytes, as far as anyone sees."""
    os.pwrite(new, os.pread(old, 1 << 30, 0), 0)
    return 0


WAYS: dict[str, list[tuple[Any, str, Any]]] = {
    "as the system can": [],
    "shared": [(fcntl, "ioctl", share), (os, "copy_file_range", None)],
    "by the kernel": [(fcntl, "ioctl", fail(errno.EOPNOTSUPP))],
    "through memory": [
        (fcntl, "ioctl", fail(errno.EXDEV)),
        (os, "copy_file_range", fail(errno.EXDEV)),
    ],
    "without a word on holes": [(os, "lseek", fail(errno.EINVAL))],
}


@pytest.mark.parametrize("way", [*WAYS])
@pytest.mark.parametrize("data", [b"", b"x", DATA], ids=len)
def test_a_copy_is_its_original(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, data: bytes
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(data)
    source.chmod(0o640)
    os.utime(source, ns=(MTIME_NS, MTIME_NS))
    for module, name, instead in WAYS[way]:
        monkeypatch.setattr(module, name, instead)
    told: list[int] = []
    cloned = clone_file(str(source), str(target), told.append)
    monkeypatch.undo()
    assert target.read_bytes() == data
    assert (target.stat().st_mtime_ns, target.stat().st_mode) == (MTIME_NS, source.stat().st_mode)
    assert sum(told) == len(data)
    assert (cloned.source.size_bytes, cloned.has_owner) == (len(data), True)


def test_holes_stay_holes(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    with source.open("wb") as out:
        out.write(b"begin")
        out.seek(CHUNK_BYTES)
        out.write(b"middle")
        out.truncate(2 * CHUNK_BYTES)
    clone_file(str(source), str(target), lambda _: None)
    assert target.stat().st_size == 2 * CHUNK_BYTES
    assert allocated_bytes(str(target)) <= allocated_bytes(str(source)) < 1 << 20
    with target.open("rb") as copy, source.open("rb") as original:
        assert copy.read() == original.read()


def test_a_source_that_is_cut_off_meanwhile_is_copied_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(DATA)
    monkeypatch.setattr(cloning, "CHUNK_BYTES", 1000)
    monkeypatch.setattr(fcntl, "ioctl", fail(errno.EOPNOTSUPP))
    clone_file(str(source), str(target), lambda _: os.truncate(source, 1500))
    assert target.read_bytes() == DATA[:1500] + bytes(len(DATA) - 1500)


def test_an_error_names_the_file_that_it_is_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(DATA)
    monkeypatch.setattr(fcntl, "ioctl", fail(errno.EOPNOTSUPP))  # else XFS and Btrfs share
    monkeypatch.setattr(os, "copy_file_range", fail(errno.EIO))
    for call, of in (("pread", source), ("pwrite", target), ("utime", target)):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, fail(errno.EIO))
            with pytest.raises(OSError, match=os.strerror(errno.EIO)) as failed:
                clone_file(str(source), str(target), lambda _: None)
        assert failed.value.filename == str(of)
        target.unlink()
    target.touch()
    with pytest.raises(FileExistsError):
        clone_file(str(source), str(target), lambda _: None)
    (tmp_path / "link").symlink_to(source)
    with pytest.raises(CorruptFileError, match="a symbolic link"):
        clone_file(str(tmp_path / "link"), str(tmp_path / "new"), lambda _: None)


def test_a_file_that_cannot_be_given_away_is_ours_with_its_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(DATA)
    source.chmod(0o640)
    of_other = attributes_of(str(source))._replace(uid=4711, gid=4711)
    monkeypatch.setattr(cloning, "attributes_of", lambda _: of_other)
    monkeypatch.setattr(os, "fchown", fail(errno.EPERM))
    assert not clone_file(str(source), str(target), lambda _: None).has_owner
    assert target.stat().st_mode == source.stat().st_mode
    assert not clone_directory(str(tmp_path), str(tmp_path / "directory"))


def test_whether_bytes_would_be_shared_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    source.write_bytes(DATA)
    for answer in (share, fail(errno.EOPNOTSUPP)):
        monkeypatch.setattr(fcntl, "ioctl", answer)
        assert can_share(str(source), str(tmp_path)) is (answer is share)
        assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_a_directory_is_like_its_original(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir(mode=0o710)
    assert clone_directory(str(tmp_path / "one"), str(tmp_path / "other"))
    assert (tmp_path / "other").stat().st_mode == (tmp_path / "one").stat().st_mode


def test_an_error_of_the_whole_file_system_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    sync_file_system(descriptor, str(tmp_path))

    class Library:
        def syncfs(self, _: int) -> int:
            ctypes.set_errno(errno.EIO)
            return -1

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Library())
    with pytest.raises(OSError, match=os.strerror(errno.EIO)) as failed:
        sync_file_system(descriptor, str(tmp_path))
    os.close(descriptor)
    assert failed.value.filename == str(tmp_path)
