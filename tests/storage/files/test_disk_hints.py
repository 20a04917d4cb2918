"""Threads close removed files; holes read as zeros; errors of a hint are left to the sync."""

import errno
import os
import signal
import threading
from concurrent.futures import wait
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from storage.files import disk_hints
from storage.files.disk_hints import (
    background_closes_deferred,
    can_remove_while_open,
    close_in_background,
    punch_hole,
    retry_with_freed_space,
    start_writeback,
    wait_until_freed,
)
from storage.files.files import Mount
from storage.files.local import LOCAL, LocalFiles


class Slow:
    """A file that is not closed before it is told."""

    def __init__(self, is_told: bool = False) -> None:
        self.is_begun, self.may_go = threading.Event(), threading.Event()
        if is_told:
            self.may_go.set()
        self.is_closed = False

    def close(self) -> None:
        self.is_begun.set()
        assert self.may_go.wait(60)
        self.is_closed = True


def test_a_forked_child_closes_its_own_files() -> None:
    """A fork takes no thread along: not those that close, nor one that holds their lock."""
    slow = Slow()
    close_in_background([slow.close])
    assert slow.is_begun.wait(60)  # or the child has it to close, and waits for this test
    child = os.fork()
    if not child:
        code = 1
        try:
            signal.alarm(50)  # ends it if it waits for a thread that is not there
            own = Slow(is_told=True)
            close_in_background([own.close])
            wait_until_freed()
            code = 0 if own.is_closed else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    slow.may_go.set()
    wait_until_freed()
    assert status == 0
    assert slow.is_closed


def test_what_lost_its_name_is_closed_at_last(tmp_path: Path) -> None:
    path = tmp_path / "original"
    path.touch()
    file = LOCAL.open(str(path))
    path.unlink()
    close_in_background([file.__exit__])
    wait_until_freed()
    with pytest.raises(OSError, match="descriptor"):
        file.read(0, 1)


def test_nobody_waits_but_who_asks_for_the_room() -> None:
    files = [Slow(), Slow()]
    close_in_background([file.close for file in files])
    assert not any(file.is_closed for file in files)
    for file in files:
        threading.Timer(0.05, file.may_go.set).start()
    wait_until_freed()
    assert all(file.is_closed for file in files)


def test_or_who_has_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_hints, "MOST_OPEN", 2)
    files = [Slow(), Slow(is_told=True), Slow(is_told=True)]
    threading.Timer(0.05, files[0].may_go.set).start()
    with background_closes_deferred():
        close_in_background([file.close for file in files])
        assert all(file.is_closed for file in files)


def test_what_is_held_back_is_closed_after_all_who_asked_for_that() -> None:
    file = Slow()
    with background_closes_deferred():
        with background_closes_deferred():
            close_in_background([file.close])
        assert all(begun.done() for begun in disk_hints._begun)  # of tests before this one
        file.may_go.set()
    wait_until_freed()
    assert file.is_closed


def test_or_for_who_needs_the_room() -> None:
    file = Slow(is_told=True)
    with background_closes_deferred():
        close_in_background([file.close])
        wait_until_freed()
        assert file.is_closed


def test_an_error_holds_nothing_back() -> None:
    file = Slow(is_told=True)
    with pytest.raises(OSError, match="a full disk"), background_closes_deferred():
        close_in_background([file.close])
        raise OSError("a full disk")
    wait_until_freed()
    assert file.is_closed


@pytest.mark.parametrize(
    "error", [RuntimeError("can't start new thread"), KeyboardInterrupt()], ids=["thread", "Ctrl-C"]
)
@pytest.mark.parametrize("is_kept", [False, True])
def test_each_is_closed_once_though_a_thread_could_not_be_begun(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, is_kept: bool
) -> None:
    """By then its number may be another file's. `submit` keeps a job, then begins a thread."""
    wait_until_freed()
    closed: list[int] = []
    submit, kept = disk_hints._threads.submit, list[Any]()

    def fail(job: Any, *arguments: Any) -> Any:
        if kept:
            raise error
        kept.append((job, *arguments))
        if is_kept:
            raise error
        return submit(job, *arguments)

    closes = [partial(closed.append, number) for number in range(4)]
    with monkeypatch.context() as patch:
        patch.setattr(disk_hints._threads, "submit", fail)
        with suppress(KeyboardInterrupt):
            close_in_background(closes)
    for job in kept * is_kept:
        submit(*job)
    close_in_background([partial(closed.append, 4)])
    wait_until_freed()
    assert sorted(closed) == [0, 1, 2, 3, 4]


def test_an_error_of_the_disk_at_the_close_of_what_has_no_name_is_nobodys() -> None:
    """The files behind it are closed, and the next who waits is not told."""
    file = Slow(is_told=True)

    def fail() -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with background_closes_deferred():
        close_in_background([fail, fail, fail, file.close])
    wait_until_freed()
    assert file.is_closed
    wait_until_freed()


def test_an_error_of_a_close_is_raised_though_nobody_waited_for_it() -> None:
    slow = Slow()

    def fail() -> None:
        raise ValueError("not an error of a disk")

    close_in_background([fail, slow.close])
    assert slow.is_begun.wait(60)
    slow.may_go.set()
    wait(disk_hints._begun)
    with pytest.raises(ValueError, match="not an error of a disk"):
        close_in_background([])
    close_in_background([])


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT], ids=errno.errorcode.get)
def test_who_finds_no_room_gets_that_of_what_is_held_back(code: int) -> None:
    file, tried = Slow(is_told=True), list[bool]()

    def write() -> str:
        tried.append(file.is_closed)
        if not file.is_closed:
            raise OSError(code, os.strerror(code))
        return "written"

    with background_closes_deferred():
        close_in_background([file.close])
        assert retry_with_freed_space(write) == "written"
    assert tried == [False, True]


@pytest.mark.parametrize(("code", "tries"), [(errno.ENOSPC, 2), (errno.EIO, 1)])
def test_who_finds_none_then_is_told(code: int, tries: int) -> None:
    tried: list[int] = []

    def write() -> None:
        tried.append(code)
        raise OSError(code, os.strerror(code))

    with pytest.raises(OSError, match=os.strerror(code)):
        retry_with_freed_space(write)
    assert len(tried) == tries


@pytest.mark.parametrize(
    ("kind", "frees"),
    [("ext4", True), ("xfs", True), ("nfs4", False), ("fuse.sshfs", False), ("new", False)],
)
def test_only_where_no_other_name_is_given_to_what_is_open(
    kind: str, frees: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        LocalFiles, "mount_of", staticmethod(lambda _: Mount("/", kind, frozenset()))
    )
    assert can_remove_while_open(LOCAL, str(tmp_path)) is frees


def test_nor_where_the_file_system_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not can_remove_while_open(LOCAL, str(tmp_path / "missing"))
    monkeypatch.setattr(LocalFiles, "mount_of", staticmethod(lambda _: None))
    assert not can_remove_while_open(LOCAL, str(tmp_path))


def test_an_open_file_is_gone_from_its_directory_where_it_is_said_to_be(tmp_path: Path) -> None:
    """Of the file system that the tests run on, if it is a local one."""
    path = tmp_path / "original"
    path.touch()
    with LOCAL.open(str(path)):
        path.unlink()
        assert not can_remove_while_open(LOCAL, str(tmp_path)) or os.listdir(tmp_path) == []


MIB = 1 << 20
DATA = bytes(range(1, 256)) * (4 * MIB // 255)


def left_of(path: Path, start: int, length: int) -> tuple[bytes, int]:
    """The bytes of a file after a punch_hole, and how many less of the disk are taken."""
    path.write_bytes(DATA)
    with path.open("r+b") as file:
        os.fsync(file.fileno())
        before = os.fstat(file.fileno()).st_blocks
        punch_hole(file.fileno(), start, length)
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
    monkeypatch.setattr(disk_hints, "_fallocate", None)
    assert left_of(tmp_path / "file", 0, MIB) == (DATA, 0)


def test_nor_is_it_an_error_that_it_failed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(DATA)
    with path.open("rb") as file:  # for reading alone
        punch_hole(file.fileno(), 0, MIB)
    assert path.read_bytes() == DATA


WRITTEN = bytes(range(256)) * 4096


def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What the system's own function answers from now on."""
    answers: list[int] = []
    real = disk_hints._sync_file_range
    assert real is not None, "Linux has it"

    def noted(*arguments: int) -> None:
        answers.append(real(*arguments))

    monkeypatch.setattr(disk_hints, "_sync_file_range", noted)
    return answers


def test_the_system_takes_it_and_the_bytes_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, path = calls(monkeypatch), tmp_path / "file"
    with path.open("w+b") as file:
        file.write(WRITTEN)
        file.flush()
        start_writeback(file.fileno(), 4096, len(WRITTEN) - 4096)
        start_writeback(file.fileno(), 0, 0)  # would mean all of it
    assert answers == [0]
    assert path.read_bytes() == WRITTEN


def test_nothing_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = calls(monkeypatch)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    os.close(descriptor)
    start_writeback(descriptor, 0, 1)
    assert answers == [-1]
    monkeypatch.setattr(disk_hints, "_sync_file_range", None)  # another system
    start_writeback(descriptor, 0, 1)
