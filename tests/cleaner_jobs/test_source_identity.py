"""Another size, time, inode or device than at planning is drift; our own link is not."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cleaner_jobs.messages import Source
from cleaner_jobs.source_identity import (
    LogChangedError,
    check_in_place,
    check_open,
    check_opened,
    with_second_name,
)
from storage.files.descriptors import look_at
from storage.files.files import entry_of
from storage.files.local import LOCAL


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "0.log"
    made.write_bytes(b"abc")
    os.utime(made, ns=(5, 5))
    return made


def source_of(path: Path) -> Source:
    return Source.of(str(path), 0, entry_of(LOCAL, str(path)))


def check_as_task(source: Source) -> None:
    descriptor = os.open(source.path, os.O_RDONLY)
    try:
        check_open(source, look_at(descriptor, source.path))
    finally:
        os.close(descriptor)


def check_as_task_that_opens(source: Source) -> None:
    descriptor = os.open(source.path, os.O_RDONLY)
    try:
        check_opened(source, look_at(descriptor, source.path))
    finally:
        os.close(descriptor)


CHECKS: list[Callable[[Source], None]] = [check_in_place, check_as_task, check_as_task_that_opens]


def grow(path: Path) -> None:
    path.write_bytes(b"abcd")


def touch(path: Path) -> None:
    os.utime(path, ns=(5, 6))


def exchange(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(b"abc")
    os.utime(other, ns=(5, 5))
    other.replace(path)


def patch(path: Path) -> None:
    """In place, with the time set back: what no other fact tells."""
    path.write_bytes(b"abd")
    os.utime(path, ns=(5, 5))


@pytest.mark.parametrize("check", CHECKS)
def test_an_untouched_file_is_unchanged(path: Path, check: Callable[[Source], None]) -> None:
    source = source_of(path)
    path.read_bytes()
    check(source)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize(
    ("way", "what"),
    [
        (grow, "size"),
        (touch, "modification time"),
        (exchange, "inode"),
        (patch, "time of change"),
    ],
)
def test_drift_is_named_with_before_and_after(
    path: Path, check: Callable[[Source], None], way: Callable[[Path], None], what: str
) -> None:
    source = source_of(path)
    way(path)
    with pytest.raises(LogChangedError, match=rf"0\.log: {what} was \d+, is \d+: it is in use"):
        check(source)


def test_another_device_is_drift_on_the_host_that_planned(path: Path) -> None:
    source = source_of(path)
    moved = source._replace(log_device=source.log_device + 1)
    with pytest.raises(LogChangedError, match=r"0\.log: device was \d+, is \d+"):
        check_in_place(moved)
    check_as_task(moved)  # another host has another number for it
    check_as_task_that_opens(moved)


def test_a_task_holds_the_name_to_the_file_that_it_reads(path: Path) -> None:
    source = source_of(path)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        path.rename(path.with_name("elsewhere"))
        with pytest.raises(FileNotFoundError):
            check_open(source, look_at(descriptor, source.path))
        path.symlink_to("elsewhere")
        with pytest.raises(LogChangedError):
            check_open(source, look_at(descriptor, source.path))
    finally:
        os.close(descriptor)


def test_our_own_link_is_no_drift(path: Path) -> None:
    source = source_of(path)
    os.link(path, path.with_name("kept"))
    with pytest.raises(LogChangedError, match="time of change"):
        check_in_place(source)
    check_in_place(with_second_name(source))
    path.write_bytes(b"abd")
    with pytest.raises(LogChangedError, match="modification time"):
        with_second_name(source)
