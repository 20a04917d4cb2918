"""What was replaced is removed: small files together, large ones without a wait for their room."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from types import MethodType
from typing import cast

import pytest

from compactor.cleaning import removals as module
from compactor.cleaning.removals import Removals
from storage.files.files import OpenFile
from storage.files.local import LOCAL

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
    monkeypatch.setattr(module, "frees_behind", lambda _: True)
    files: list[OpenFile] = []

    def keep(closes: Sequence[MethodType]) -> None:
        files.extend(cast(OpenFile, close.__self__) for close in closes)

    monkeypatch.setattr(module, "close_behind", keep)
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
    monkeypatch.setattr(module, "frees_behind", lambda _: False)
    with ThreadPoolExecutor(1) as threads:
        removals = Removals(threads, LOCAL)
        removals.begin(log_bytes, four)
        assert len(removals._begun) == jobs
        removals.finish()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("threads_of_log", "jobs"), [(1, 1), (2, 2), (8, 4)])
def test_many_small_files_of_a_log_are_removed_by_few_threads(
    four: Sequence[str],
    threads_of_log: int,
    jobs: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However many swaps have replaced them: those that come later wait for the same threads."""
    monkeypatch.setattr(module, "frees_behind", lambda _: True)
    monkeypatch.setattr(module, "REMOVED_AT_ONCE_BYTES", 1)
    monkeypatch.setattr(module, "SMALL_FILES_AT_ONCE", 1)
    monkeypatch.setattr(module, "SMALL_FILES_THREADS", threads_of_log)
    may_begin = Event()
    with ThreadPoolExecutor(1) as threads:
        threads.submit(may_begin.wait)
        removals = Removals(threads, LOCAL)
        removals.begin(8, four[:2])
        removals.begin(8, four[2:])
        begun = len(removals._begun)
        may_begin.set()
        removals.finish()
        assert begun == jobs
        assert list(tmp_path.iterdir()) == []
        removals.begin(8, four[:2])  # all have ended: others begin
        with pytest.raises(FileNotFoundError, match="/a'"):
            removals.finish()


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
def test_what_cannot_be_removed_is_told_and_keeps_nothing_else(
    tmp_path: Path, log_bytes: int, held: list[OpenFile]
) -> None:
    there = [tmp_path / "a", tmp_path / "d"]
    for path in there:
        path.touch()
    with ThreadPoolExecutor(1) as threads:
        removals = Removals(threads, LOCAL)
        removals.begin(log_bytes, [str(tmp_path / name) for name in "abcd"])
        with pytest.raises(FileNotFoundError, match="/b'"):  # the first of two
            removals.finish()
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
