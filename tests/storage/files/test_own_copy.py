"""A file that a backup has by a hard link too is never changed there."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from storage.files.file_pool import FilePool, pooled
from storage.files.files import ChangingFile, Files
from storage.files.local import LOCAL
from storage.files.overlay import OverlayFiles
from tests.support.files.memory import MemoryFiles
from tests.support.files.watched import WatchedFiles

TEN_MB = 10 << 20


KINDS = ["local", "memory", "overlay", "pooled local", "pooled memory", "watched local"]


class Linked(NamedTuple):
    """Files, one with the bytes 01, and its second name."""

    files: Files
    file: str
    backup: str

    def names(self) -> set[str]:
        return {entry.name for entry in self.files.list_directory(os.path.dirname(self.file))}

    def bytes(self) -> tuple[bytes, bytes]:
        return self.files.read_bytes(self.file), self.files.read_bytes(self.backup)

    def opened(self) -> ChangingFile:
        return self.files.open_to_change(self.file)


@pytest.fixture(params=KINDS)
def linked(request: pytest.FixtureRequest, tmp_path: Path) -> Linked:
    kind: str = request.param
    files: Files = LOCAL
    if kind.endswith("memory"):
        files = MemoryFiles()
        for directory in (*reversed(tmp_path.parents), tmp_path):
            if str(directory) != "/":
                files.make_directory(str(directory))
    path, backup = str(tmp_path / "0.log"), str(tmp_path / "backup")
    files.replace_file(path, b"01")
    if kind.startswith("overlay"):
        files = OverlayFiles(files)
    elif kind.startswith("pooled"):
        files = pooled(files)
    elif kind.startswith("watched"):
        files = WatchedFiles(files)
    files.link(path, backup)
    return Linked(files, path, backup)


def write(files: Files, path: str) -> None:
    file = files.open_to_change(path)
    file.write(1, b"new")
    file.sync()
    file.close()


def cut(files: Files, path: str) -> None:
    file = files.open_to_change(path)
    file.truncate(1)
    file.close()


CHANGES: dict[str, tuple[Callable[[Files, str], None], bytes]] = {
    "write": (write, b"0new"),
    "cut": (cut, b"0"),
    "truncate_file": (lambda files, path: files.truncate_file(path, 1), b"0"),
    "replace_file": (lambda files, path: files.replace_file(path, b"2"), b"2"),
}


def test_no_way_to_change_bytes_in_place_is_forgotten() -> None:
    names = {name for protocol in (Files, ChangingFile) for name in vars(protocol)}
    changing = {"replace_file", "truncate_file", "open_to_change", "write", "truncate"}
    of_names = {"rename", "link", "remove", "make_directory", "remove_directory", "renamed"}
    reading = {"list_directory", "list_names", "look_up", "exists", "is_directory", "read_bytes"}
    reading |= {"read_range", "open", "read", "is_open", "size", "close", "held"}
    syncs = {"sync_file", "sync_directory", "sync", "set_modified"}  # no bytes
    public = {name for name in names if not name.startswith("_")}
    assert public == changing | of_names | reading | syncs


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("which", ["file", "backup"])
def test_the_other_name_keeps_what_it_had(linked: Linked, name: str, which: str) -> None:
    change, expected = CHANGES[name]
    change(linked.files, getattr(linked, which))
    changed = (expected, b"01")
    assert linked.bytes() == (changed if which == "file" else changed[::-1])
    assert linked.names() == {"0.log", "backup"}


def test_a_link_that_is_made_while_it_is_open_is_not_changed(linked: Linked) -> None:
    """A backup beside an embedded log manager."""
    file = linked.opened()
    file.write(0, b"xy")
    linked.files.remove(linked.backup)
    linked.files.link(linked.file, linked.backup)
    file.write(1, b"z")
    file.close()
    assert linked.bytes() == (b"xz", b"xy")


def test_a_file_is_found_that_was_renamed_since_with_its_directory(linked: Linked) -> None:
    if isinstance(linked.files, OverlayFiles):
        return  # it renames no directories
    directory = os.path.dirname(linked.file)
    file, moved = linked.opened(), f"{directory}/1.log"
    linked.files.rename(linked.file, moved)
    if not isinstance(linked.files, FilePool):
        file.renamed(moved)
    file.write(2, b"2")
    linked.files.link(moved, f"{directory}/second")
    linked.files.rename(directory, f"{directory}-moved")
    if not isinstance(linked.files, FilePool):
        file.renamed(f"{directory}-moved/1.log")
    file.truncate(1)
    file.close()
    names = ("1.log", "backup", "second")
    left = [linked.files.read_bytes(f"{directory}-moved/{name}") for name in names]
    assert left == [b"0", b"01", b"012"]


def test_after_a_power_cut_the_other_name_has_what_it_had() -> None:
    files = MemoryFiles()
    files.replace_file("/0.log", b"01")
    files.link("/0.log", "/backup")
    files.sync_directory("/")
    file = files.open_to_change("/0.log")
    file.write(0, b"new")
    left = files.after_power_cut()
    assert (left.read_bytes("/0.log"), left.read_bytes("/backup")) == (b"01", b"01")
    file.sync()
    left = files.after_power_cut()
    assert (left.read_bytes("/0.log"), left.read_bytes("/backup")) == (b"new", b"01")


def test_a_copy_has_mode_and_no_name_beside(tmp_path: Path) -> None:
    file, backup = tmp_path / "0.log", tmp_path / "backup"
    file.write_bytes(b"01")
    os.chmod(file, 0o640)
    os.link(file, backup)
    write(LOCAL, str(file))
    assert (file.stat().st_nlink, file.stat().st_mode & 0o777) == (1, 0o640)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.log", "backup"]


def test_who_only_reads_it_copies_nothing(tmp_path: Path) -> None:
    file = tmp_path / "0.log"
    file.write_bytes(b"01")
    os.link(file, tmp_path / "backup")
    opened = LOCAL.open_to_change(str(file))
    assert (opened.read(0, 2), opened.held().descriptor >= 0, opened.size()) == (b"01", True, 2)
    opened.sync()
    opened.close()
    assert file.stat().st_nlink == 2


def test_a_hole_stays_one(tmp_path: Path) -> None:
    file = tmp_path / "0.index"
    file.touch()
    os.truncate(file, TEN_MB)
    os.link(file, tmp_path / "backup")
    write(LOCAL, str(file))
    assert (file.stat().st_size, file.read_bytes()[:5]) == (TEN_MB, b"\0new\0")
    assert file.stat().st_blocks * 512 < TEN_MB // 2


def test_a_file_that_lost_its_name_is_not_written(tmp_path: Path) -> None:
    """Nobody could say which of the names is to have the copy."""
    file = tmp_path / "0.log"
    file.write_bytes(b"01")
    os.link(file, tmp_path / "backup")
    opened = LOCAL.open_to_change(str(file))
    file.rename(tmp_path / "1.log")
    file.write_bytes(b"another")
    with pytest.raises(OSError, match="has other names") as caught:
        opened.write(0, b"new")
    assert (caught.value.errno, caught.value.filename) == (errno.EMLINK, str(file))
    opened.close()
    left = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert left == {"0.log": b"another", "1.log": b"01", "backup": b"01"}


def test_without_room_for_a_copy_nothing_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "0.log"
    file.write_bytes(b"01")
    os.link(file, tmp_path / "backup")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    opened = LOCAL.open_to_change(str(file))
    with pytest.raises(OSError, match="No space left"):
        opened.truncate(0)
    opened.close()
    assert file.read_bytes() == b"01"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.log", "backup"]
