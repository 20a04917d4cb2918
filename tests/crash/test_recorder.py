"""The recorder sees what changes a log directory, however it is done, and tells what it missed."""

import os
from pathlib import Path

import pytest

from storage.files.held_directories import hold_log_dir
from storage.files.local import LOCAL
from tests.crash.operations import (
    Content,
    Create,
    Operation,
    Place,
    Rename,
    Sync,
    SyncDirectory,
    Unlink,
    Write,
)
from tests.crash.recorder import Recorder

OLD, NEW = Place("t-0", "old"), Place("t-0", "new")


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    (tmp_path / "logs" / "t-0").mkdir(parents=True)
    (tmp_path / "logs" / "t-0" / "old").write_bytes(b"old")
    return tmp_path / "logs"


def data_of(operation: Operation) -> bytes:
    assert isinstance(operation, Write)
    return operation.content.data


def test_bytes_that_no_write_call_brought_are_seen(log_dir: Path, tmp_path: Path) -> None:
    """As a joined segment's: they are copied inside the kernel."""
    source = tmp_path / "piece"
    source.write_bytes(b"0123456789")
    recorder = Recorder(log_dir)
    with (
        recorder.recording(),
        open(source, "rb") as piece,
        open(log_dir / "t-0" / "new", "xb") as out,
    ):
        os.copy_file_range(piece.fileno(), out.fileno(), 4)
        os.fsync(out.fileno())
        os.sendfile(out.fileno(), piece.fileno(), 4, 6)
        os.ftruncate(out.fileno(), 9)
        os.utime(out.fileno(), ns=(5, 5))
    create, first, sync, second = recorder.record.operations
    assert (create, sync) == (Create(NEW, 1), Sync(1))
    assert data_of(first) == b"0123"
    assert second == Write(1, Content(b"012345678", 5))


def test_a_file_from_elsewhere_is_written_in_the_log_directory(
    log_dir: Path, tmp_path: Path
) -> None:
    """As the first piece of a joined segment: a power cut may leave its name without its bytes."""
    piece, new = tmp_path / "piece", log_dir / "t-0" / "new"
    piece.write_bytes(b"0123")
    recorder = Recorder(log_dir)
    with recorder.recording():
        os.replace(piece, new)
        with open(new, "r+b") as out:
            out.seek(0, os.SEEK_END)
            out.write(b"45")
            out.flush()
            os.fsync(out.fileno())
    create, first, second, sync = recorder.record.operations
    assert (create, sync) == (Create(NEW, 1), Sync(1))
    assert (data_of(first), data_of(second)) == (b"0123", b"012345")


def test_names_are_followed_through_links_and_removals(log_dir: Path, tmp_path: Path) -> None:
    old, new = log_dir / "t-0" / "old", log_dir / "t-0" / "new"
    recorder = Recorder(log_dir)
    with recorder.recording():
        os.link(old, new)
        os.link(old, tmp_path / "kept")  # changes nothing in the log directory
        os.unlink(old)
        (log_dir / "t-0" / "new").rename(old)
    assert recorder.record.operations == [Create(NEW, 0), Unlink(OLD, 0), Rename(NEW, OLD, 0)]


def test_names_relative_to_a_directory_are_found(log_dir: Path) -> None:
    """As `storage.files.held_directories` names them. What goes past the layer, by a function that
    was bound before the recording began, or by one that is not known, is counted as unseen."""
    recorder, bound = Recorder(log_dir), os.unlink
    with recorder.recording(), hold_log_dir(str(log_dir), lambda: None):
        old, new = str(log_dir / "t-0" / "old"), str(log_dir / "t-0" / "new")
        LOCAL.rename(old, new)
        LOCAL.link(new, old)
        LOCAL.remove(new)
        LOCAL.replace_file(new, b"1")
        directory = os.open(log_dir / "t-0", os.O_RDONLY)
        bound("old", dir_fd=directory)
        os.close(directory)
        os.mkdir(log_dir / "t-1")
    temporary = Place("t-0", "new.tmp")
    *others, write, sync, rename, directory_sync = recorder.record.operations
    assert others == [Rename(OLD, NEW, 0), Create(OLD, 0), Unlink(NEW, 0), Create(temporary, 1)]
    assert (data_of(write), sync) == (b"1", Sync(1))
    assert (rename, directory_sync) == (Rename(temporary, NEW, 1), SyncDirectory("t-0"))
    assert [unseen.split()[0] for unseen in recorder.unseen] == ["os.remove", "os.mkdir"]
