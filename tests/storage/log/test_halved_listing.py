"""A log directory listed by two processes: the same as by one, whatever becomes of the other."""

import os
import random
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from storage.log import halved_listing
from storage.log.halved_listing import Job, in_two
from storage.log.log_dir import list_log_dir

TEXT = Job[int, str](str, lambda text: text, str)
FILES = (
    *("00000000000000000000.log", "00000000000000000000.index", "00000000000000000000.timeindex"),
    *("00000000000000000007.log", "00000000000000000007.snapshot", "leader-epoch-checkpoint"),
    *("00000000000000000007.log.swap", "00000000000000000009.txnindex", "7.log", "notes.txt"),
    *("partition.metadata", "00000000000000000003.log.deleted", "\udcff.log"),
)


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Two cores, and a fork for two pieces of work or more; the forks that there were."""
    made: list[int] = []
    fork = os.fork

    def counted() -> int:
        made.append(child := fork())
        return child

    monkeypatch.setattr(halved_listing, "FEWEST", 2)
    monkeypatch.setattr(halved_listing, "_cores", lambda: 2)
    monkeypatch.setattr(os, "fork", counted)
    return made


def write_odd_directory(log_dir: Path, chance: random.Random) -> None:
    kinds = ("t-{}", "t-{}", "t-{}", "t.{}", "t-{}.abc-delete", "t-{}.abc-future", "t\udcff-{}")
    for number in range(chance.randint(0, 12)):
        path = log_dir / chance.choice(kinds).format(number)
        if chance.random() < 0.1:
            path.symlink_to("elsewhere")
            continue
        path.mkdir()
        for name in chance.sample(FILES, chance.randint(0, len(FILES))):
            match chance.randint(0, 9):
                case 0:
                    (path / name).mkdir()
                case 1:
                    (path / name).symlink_to("elsewhere")
                case size:
                    (path / name).write_bytes(bytes(size))


@pytest.mark.parametrize("seed", range(20))
def test_two_processes_list_what_one_lists(
    tmp_path: Path, seed: int, forks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_odd_directory(tmp_path, random.Random(seed))
    by_two = list_log_dir(str(tmp_path))
    monkeypatch.setattr(halved_listing, "FEWEST", 1_000_000)
    forked = len(forks)
    by_one = list_log_dir(str(tmp_path))
    assert by_two == by_one
    assert repr(by_two) == repr(by_one)  # the types as well
    assert len(forks) == forked == (len(by_one.partitions) >= 2)


def test_a_directory_that_cannot_be_listed_is_told_by_either(
    tmp_path: Path, forks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir

    def failing(path: str) -> object:
        if os.path.basename(path) in ("t-1", "t-3"):
            raise PermissionError(13, "not for you", path)
        return scandir(path)

    for number in range(4):
        (tmp_path / f"t-{number}").mkdir()
    monkeypatch.setattr(os, "scandir", failing)
    found = list_log_dir(str(tmp_path))
    assert [listed.name for listed in found.partitions] == ["t-0", "t-2"]
    assert found.ignored == (
        ("t-1", "cannot be listed: not for you"),
        ("t-3", "cannot be listed: not for you"),
    )
    assert len(forks) == 1


@pytest.mark.parametrize(
    "end", [lambda: os._exit(3), lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: 1 / 0]
)
def test_what_a_fork_leaves_is_done_here(forks: list[int], end: Callable[[], object]) -> None:
    here = os.getpid()

    def do(number: int) -> str:
        if number == 5 and os.getpid() != here:
            end()
        return str(number)

    assert in_two(Job(do, lambda text: text, str), range(8)) == [str(n) for n in range(8)]
    assert len(forks) == 1
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_an_error_here_ends_the_fork(forks: list[int]) -> None:
    here = os.getpid()

    def do(number: int) -> str:
        if os.getpid() == here:
            raise KeyboardInterrupt
        return str(number) * 1_000_000  # more than a pipe takes

    with pytest.raises(KeyboardInterrupt):
        in_two(Job(do, lambda text: text, str), range(8))
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    assert len(forks) == 1


def test_beside_other_threads_nothing_is_forked(forks: list[int]) -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert in_two(TEXT, range(8)) == [str(n) for n in range(8)]
    finally:
        done.set()
        thread.join()
    assert not forks
    assert in_two(TEXT, range(8)) == [str(n) for n in range(8)]
    assert len(forks) == 1


def test_one_core_or_little_work_is_no_reason_to_fork(
    forks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert in_two(TEXT, [7]) == ["7"]
    monkeypatch.setattr(halved_listing, "_cores", lambda: 1)
    assert in_two(TEXT, range(4)) == ["0", "1", "2", "3"]
    assert not forks
