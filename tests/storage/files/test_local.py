"""File access: what each operation promises."""

import errno
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from storage.errors import CorruptFileError
from storage.files.held_directories import hold_directory
from storage.files.local import LOCAL
from tests.support.file_operations import LOOK_UPS, failing


@pytest.mark.parametrize("size_bytes", [0, 1, 16 * 1024 - 1, 16 * 1024, 16 * 1024 + 1, 100_000])
def test_a_whole_file_is_read_whatever_its_size(tmp_path: Path, size_bytes: int) -> None:
    data = bytes(number % 251 for number in range(size_bytes))
    (tmp_path / "file").write_bytes(data)
    assert LOCAL.read_bytes(str(tmp_path / "file")) == data


def test_a_file_of_the_system_that_tells_no_size_is_read_whole() -> None:
    assert LOCAL.read_bytes("/proc/cpuinfo").count(b"processor") >= 1
    assert LOCAL.read_bytes("/proc/self/status").startswith(b"Name:")


def test_a_listing_tells_size_times_inode_and_device(tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    (tmp_path / "file").write_bytes(b"12345")
    os.utime(tmp_path / "file", ns=(1, 1_700_000_000_123_456_789))
    entries = {entry.name: entry for entry in LOCAL.list_directory(str(tmp_path))}
    assert entries.keys() == {"dir", "file"}
    assert entries["dir"].is_dir and not entries["file"].is_dir
    found = {name: LOCAL.look_up(str(tmp_path / name)) for name in ("dir", "file", "none")}
    assert found == {**entries, "none": None}
    state, mtime_ns = (tmp_path / "file").stat(), 1_700_000_000_123_456_789
    assert state.st_ctime_ns != mtime_ns
    assert entries["file"][2:] == (
        5, mtime_ns, state.st_ino, "", state.st_ctime_ns, state.st_dev
    )  # fmt: skip


def test_a_listing_tells_what_is_no_file_and_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    (tmp_path / "gone").symlink_to(tmp_path / "nothing")
    (tmp_path / "into").symlink_to(tmp_path / "dir")
    os.mkfifo(tmp_path / "pipe")
    entries = {entry.name: entry for entry in LOCAL.list_directory(str(tmp_path))}
    special = {name: (entry.is_dir, entry.special) for name, entry in entries.items()}
    assert {name: LOCAL.look_up(str(tmp_path / name)) for name in entries} == entries
    link = (False, "a symbolic link")
    assert special == {"dir": (True, ""), "gone": link, "into": link, "pipe": (False, "a pipe")}


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (os.mkfifo, "is a pipe, not a file"),
        (os.mkdir, "is a directory, not a file"),
        (lambda path: os.symlink("/etc/hostname", path), "is a symbolic link, not a file"),
        (lambda path: os.symlink("nothing", path), "is a symbolic link, not a file"),
        (make_socket, "is a socket, not a file"),
    ],
)
def test_nothing_but_a_file_is_opened(
    tmp_path: Path, make: Callable[[Path], None], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe would be waited for, for ever."""
    monkeypatch.chdir(tmp_path)  # the name of a socket is short
    make(Path("x"))
    with pytest.raises(CorruptFileError, match=told):
        LOCAL.read_bytes("x")
    with pytest.raises(CorruptFileError, match=told):
        LOCAL.read_range("x", 0, 1)


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_file_is_not_replaced_through_a_link(
    tmp_path: Path, link: Callable[[Path, Path], None]
) -> None:
    (tmp_path / "theirs").write_bytes(b"theirs")
    link(tmp_path / "theirs", tmp_path / "file.tmp")
    LOCAL.replace_file(str(tmp_path / "file"), b"ours")
    assert (tmp_path / "theirs").read_bytes() == b"theirs"
    assert (tmp_path / "file").read_bytes() == b"ours"
    assert not (tmp_path / "file").is_symlink()


def test_a_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o640)
    LOCAL.replace_file(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["file"]


def test_a_new_file_belongs_to_the_owner_of_its_directory(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root may give a directory away")
    os.chown(tmp_path, 1234, 5678)
    LOCAL.replace_file(str(tmp_path / "file"), b"new")
    assert ((tmp_path / "file").stat().st_uid, (tmp_path / "file").stat().st_gid) == (1234, 5678)
    os.chown(tmp_path / "file", 77, 88)
    LOCAL.replace_file(str(tmp_path / "file"), b"newer")
    assert ((tmp_path / "file").stat().st_uid, (tmp_path / "file").stat().st_gid) == (77, 88)


def test_a_replacement_is_synced_before_its_name_and_its_name_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # F-13.3
    events: list[str] = []
    fsync, replace = os.fsync, os.replace

    def recorded_fsync(descriptor: int) -> None:
        name = os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))
        size = os.fstat(descriptor).st_size
        events.append(f"sync {name}" + (f" {size}" if name.endswith(".tmp") else ""))
        fsync(descriptor)

    def recorded_replace(source: str, target: str, **directories: int | None) -> None:
        events.append(f"rename {os.path.basename(source)} {os.path.basename(target)}")
        replace(source, target, **directories)

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(os, "replace", recorded_replace)
    LOCAL.replace_file(str(tmp_path / "file"), b"new")
    assert events == ["sync file.tmp 3", "rename file.tmp file", f"sync {tmp_path.name}"]


def test_a_full_disk_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        LOCAL.replace_file(str(path), b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_what_cannot_be_looked_up_is_not_taken_for_gone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    (tmp_path / "link").symlink_to(tmp_path)
    for check in (LOCAL.exists, LOCAL.is_directory):
        assert not check(str(path))
        assert check(str(tmp_path / "link"))
    assert LOCAL.exists(os.fspath(path.parent)) and not LOCAL.is_directory(__file__)
    for check in (LOCAL.exists, LOCAL.is_directory):
        unseen = failing(str(path), LOOK_UPS)
        with unseen, pytest.raises(OSError, match="Input/output error"):
            check(str(path))


@pytest.mark.parametrize("is_held", [False, True])
def test_a_file_that_fails_once_it_is_open_is_named_and_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_held: bool
) -> None:
    path = tmp_path / "file"
    path.touch()
    inode = tmp_path.stat().st_ino if is_held else None
    with hold_directory(str(tmp_path), inode), monkeypatch.context() as patch:
        patch.setattr(os, "fstat", _failing)
        with pytest.raises(OSError) as raised:
            LOCAL.open_to_read(str(path))
    assert raised.value.filename == str(tmp_path if is_held else path)
    open_still = [os.path.realpath(found.path) for found in os.scandir("/proc/self/fd")]
    assert not [name for name in open_still if name.startswith(str(tmp_path))]


def test_a_read_that_gives_less_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system may always give less than it is asked for; only nothing is the end."""
    path, pread = tmp_path / "file", os.pread
    path.write_bytes(bytes(range(100)))
    monkeypatch.setattr(os, "pread", lambda file, _, position: pread(file, 7, position))
    assert LOCAL.read_range(str(path), 3, 200) == bytes(range(3, 100))


def _failing(_: int) -> os.stat_result:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_all_goes_and_nothing_is_raised_where_it_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`shutil.rmtree` lets an error of its own descriptors pass, whatever it is told to ignore."""
    (tmp_path / "made" / "inner").mkdir(parents=True)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", _failing)
        LOCAL.discard_directory(str(tmp_path / "made"))
    LOCAL.discard_directory(str(tmp_path / "made"))
    assert not (tmp_path / "made").exists()
    LOCAL.discard_directory(str(tmp_path / "made"))
