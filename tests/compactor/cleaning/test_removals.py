"""What was replaced is removed: small files together, large ones without a wait for their room."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from types import MethodType
from typing import cast
from unittest.mock import Mock

import pytest

from compactor.cleaning import removals as module
from compactor.cleaning.removals import Removals
from storage.files.files import OpenFile
from storage.files.local import LOCAL
from tests.support.files.watched import Operation, WatchedDisk

LARGE = 1 << 40  # bytes, of the four


@pytest.fixture
def four(tmp_path: Path) -> list[str]:
    paths = [tmp_path / name for name in "abcd"]
    for path in paths:
        path.write_bytes(b"original")
    return [str(path) for path in paths]


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[OpenFile]:
    """What is to be closed behind, and is not."""
    monkeypatch.setattr(module, "can_remove_while_open", lambda *_: True)
    files: list[OpenFile] = []

    def keep(closes: Sequence[MethodType]) -> None:
        files.extend(cast(OpenFile, close.__self__) for close in closes)

    monkeypatch.setattr(module, "close_in_background", keep)
    return files


@pytest.mark.parametrize(("log_bytes", "jobs"), [(0, 1), (4 << 20, 1), (64 << 20, 4), (LARGE, 4)])
def test_small_files_are_removed_by_one_thread_and_large_ones_by_several(
    four: Sequence[str],
    log_bytes: int,
    jobs: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a file system of which it is not known that it lets go of what is open."""
    monkeypatch.setattr(module, "can_remove_while_open", lambda *_: False)
    with ThreadPoolExecutor(1) as threads:
        removals = Removals(threads, LOCAL)
        removals.begin(log_bytes, four)
        assert len(removals._begun) == jobs
        removals.finish()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("threads_of_log", "helpers"), [(1, 0), (2, 1), (8, 3)])
def test_many_small_files_are_removed_by_few_threads(
    four: Sequence[str],
    threads_of_log: int,
    helpers: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever asks for it is one of them."""
    monkeypatch.setattr(module, "can_remove_while_open", lambda *_: True)
    monkeypatch.setattr(module, "REMOVED_AT_ONCE_BYTES", 1)
    monkeypatch.setattr(module, "SMALL_FILES_AT_ONCE", 1)
    monkeypatch.setattr(module, "SMALL_FILES_THREADS", threads_of_log)
    with ThreadPoolExecutor(4) as pool:
        threads = Mock(wraps=pool)
        Removals(threads, LOCAL).remove(8, four)
        assert threads.submit.call_count == helpers
        assert list(tmp_path.iterdir()) == []


def test_a_removal_that_is_cut_short_begins_no_other(
    four: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the lock was lost. What waits for a thread is not waited for."""
    monkeypatch.setattr(module, "can_remove_while_open", lambda *_: False)
    may_go_on = Event()

    def fail(_: Operation) -> None:
        raise RuntimeError("lost")

    with ThreadPoolExecutor(1) as threads:
        threads.submit(may_go_on.wait)
        with pytest.raises(RuntimeError, match="lost"):
            Removals(threads, WatchedDisk(LOCAL, fail)).remove(LARGE, four)
        may_go_on.set()
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize(("log_bytes", "are_held"), [(4 << 20, False), (LARGE, True)])
def test_the_names_of_large_files_go_and_nobody_waits_for_their_room(
    four: Sequence[str], held: list[OpenFile], log_bytes: int, are_held: bool, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(1) as threads:
        removals = Removals(threads, LOCAL)
        removals.begin(log_bytes, four)
        removals.finish()
    assert list(tmp_path.iterdir()) == []
    assert [file.read(0, 9) for file in held] == [b"original"] * 4 * are_held
    for file in held:
        file.__exit__()


def test_no_more_are_open_than_a_few(
    four: Sequence[str], held: list[OpenFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "OPEN_AT_ONCE", 2)
    with ThreadPoolExecutor(1) as threads:
        removals = Removals(threads, LOCAL)
        removals.begin(LARGE, four)
        assert len(removals._begun) == 2
        removals.finish()
    assert len(held) == 4
    for file in held:
        file.__exit__()


@pytest.mark.parametrize("log_bytes", [0, LARGE])
@pytest.mark.parametrize("behind", [False, True])
def test_what_cannot_be_removed_is_told_and_keeps_nothing_else(
    tmp_path: Path, log_bytes: int, behind: bool, held: list[OpenFile]
) -> None:
    there = [tmp_path / "a", tmp_path / "d"]
    for path in there:
        path.touch()
    with ThreadPoolExecutor(1) as threads:
        removals, paths = Removals(threads, LOCAL), [str(tmp_path / name) for name in "abcd"]
        with pytest.raises(FileNotFoundError, match="/b'"):  # the first of two
            if behind:
                removals.begin(log_bytes, paths)
                removals.finish()
            else:
                removals.remove(log_bytes, paths)
    assert list(tmp_path.iterdir()) == []
    for file in held:
        file.__exit__()


@pytest.mark.parametrize("log_bytes", [0, LARGE])
def test_a_link_in_the_place_of_a_file_is_removed_and_keeps_nothing_else(
    four: Sequence[str], log_bytes: int, held: list[OpenFile], tmp_path: Path
) -> None:
    other = tmp_path.parent / "other"
    other.write_bytes(b"other")
    Path(four[1]).unlink()
    Path(four[1]).symlink_to(other)
    with ThreadPoolExecutor(1) as threads:
        removals = Removals(threads, LOCAL)
        removals.begin(log_bytes, four)
        removals.finish()
    assert list(tmp_path.iterdir()) == [] and other.read_bytes() == b"other"
    assert len(held) == (3 if log_bytes else 0)
    for file in held:
        file.__exit__()
