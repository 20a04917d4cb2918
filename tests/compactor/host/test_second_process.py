"""A second process does half, or nothing: the caller comes to the same, and nothing is left."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NoReturn

import pytest

from compactor.host import second_process
from compactor.host.second_process import map_in_two, run_forked
from storage.files.local import LOCAL, LocalFiles
from tests.support.file_states import open_files

LARGE = bytes(range(256)) * 2000  # more than a pipe holds
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    before = left()
    yield
    assert left() == before


@pytest.fixture(autouse=True)
def _is_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other half of nothing takes longer than nothing where the machine is busy."""
    monkeypatch.setattr(second_process, "LEAST_PATIENCE_SECONDS", 60.0)


def left() -> tuple[set[str], set[signal.Signals | int], str]:
    """Open files, blocked signals, and child processes: some may be those of other tests."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    return open_files(), set(mask), children


@pytest.fixture
def _reaped_by_the_host() -> Iterator[None]:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGCHLD, before)


def write_large(out: BinaryIO) -> None:
    out.write(LARGE)


def hang(out: BinaryIO) -> None:
    out.write(LARGE[:10])
    out.flush()
    time.sleep(600)


def of_host(error: int) -> Callable[[], NoReturn]:
    def fail() -> NoReturn:
        raise OSError(error, os.strerror(error))

    return fail


def test_both_halves_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("what is ending may be reaped already"))
    assert run_forked(lambda: "ours", write_large) == ("ours", LARGE)


def test_one_that_ends_early_leaves_what_it_wrote() -> None:
    def fail(out: BinaryIO) -> None:
        out.write(b"begun")
        raise ZeroDivisionError

    assert run_forked(lambda: 1, fail) == (1, b"begun")
    assert run_forked(lambda: 1, lambda _: os._exit(1)) == (1, b"")


def test_an_error_of_the_own_half_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        run_forked(lambda: 1 // 0, hang)


@pytest.mark.usefixtures("_reaped_by_the_host")
def test_a_host_that_reaps_by_itself_takes_nothing_away() -> None:
    assert run_forked(lambda: 1, write_large) == (1, LARGE)
    with pytest.raises(ZeroDivisionError):
        run_forked(lambda: 1 // 0, hang)


@pytest.mark.usefixtures("_reaped_by_the_host")
def test_an_error_stays_the_own_halfs_where_the_other_process_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fork, children = second_process._fork, []

    def noting() -> int:
        children.append(fork())
        return children[0]

    def ours() -> None:
        deadline = time.monotonic() + 30
        while os.path.exists(f"/proc/{children[0]}"):
            assert time.monotonic() < deadline
        raise ZeroDivisionError

    monkeypatch.setattr(second_process, "_fork", noting)
    with pytest.raises(ZeroDivisionError):
        run_forked(ours, lambda _: None)


@pytest.mark.parametrize(
    ("call", "error"), [("pipe", errno.EMFILE), ("fork", errno.EAGAIN), ("fork", errno.ENOMEM)]
)
def test_a_host_that_has_no_process_left_is_no_error(
    call: str, error: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, call, of_host(error))
    assert run_forked(lambda: pytest.fail("nobody needs a half"), write_large) is None


def test_one_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_process, "LEAST_PATIENCE_SECONDS", 0.05)
    began = time.monotonic()
    assert run_forked(lambda: 1, hang) is None
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_at_the_fork_ends_the_first_process_alone(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It unwinds neither what the second one has of the first, nor leaves the second one behind."""
    fork = second_process._fork

    def fork_and_signal(of_child: bool) -> int:
        child = fork()
        if (child == 0) is of_child:
            # to this thread, as where there is no other: the test's own host may have some
            signal.pthread_kill(threading.get_ident(), number)
        return child

    def raise_it(number: int, _: object) -> None:
        raise KeyboardInterrupt(number)

    before = signal.signal(number, raise_it)
    try:
        monkeypatch.setattr(second_process, "_fork", lambda: fork_and_signal(of_child=True))
        assert run_forked(lambda: 1, write_large) == (1, LARGE)
        monkeypatch.setattr(second_process, "_fork", lambda: fork_and_signal(of_child=False))
        with pytest.raises(KeyboardInterrupt):
            run_forked(lambda: pytest.fail("it goes on"), hang)
    finally:
        signal.signal(number, before)


def test_the_second_process_ends_where_the_first_is_killed() -> None:
    """It would go on to hold what standard output is connected to."""
    code = (
        "import os, signal\n"
        "from compactor.host.second_process import run_forked\n"
        "run_forked(lambda: os.kill(os.getpid(), signal.SIGKILL), "
        "lambda out: out.write(bytes(1 << 20)))\n"
    )
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120)
    assert (killed.returncode, killed.stdout, killed.stderr) == (-signal.SIGKILL, b"", b"")


@pytest.fixture
def _is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a command of its own, where there are many logs."""
    monkeypatch.setattr(second_process, "FEWEST_FOR_TWO", 4)
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})


def with_process(number: int) -> tuple[int, int]:
    return number * number, os.getpid()


@pytest.mark.usefixtures("_is_alone")
def test_many_are_mapped_in_two_processes_and_few_in_one() -> None:
    for count, processes in ((0, 0), (3, 1), (4, 2), (5, 2), (2001, 2)):
        found = map_in_two(with_process, range(count), LOCAL)
        assert [square for square, _ in found] == [n * n for n in range(count)]
        assert len({process for _, process in found}) == processes
    assert {process for _, process in map_in_two(with_process, range(9), LocalFiles())} == {
        os.getpid()
    }


@pytest.mark.usefixtures("_is_alone")
@pytest.mark.parametrize("how", ["none", "early", "error"])
def test_without_the_second_process_the_first_maps_all(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = os.getpid()

    def square(number: int) -> int:
        if os.getpid() != own:
            os._exit(1) if how == "early" else pytest.fail("of the second process alone")
        return number * number

    if how == "none":
        monkeypatch.setattr(os, "fork", of_host(errno.EAGAIN))
    assert map_in_two(square, range(9), LOCAL) == [n * n for n in range(9)]


@pytest.mark.usefixtures("_is_alone")
@pytest.mark.parametrize("wrong", [1, 8])
def test_an_error_in_either_half_is_raised(wrong: int) -> None:
    def fail(number: int) -> int:
        if number == wrong:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(number))
        return number

    with pytest.raises(OSError, match="Input/output error") as raised:
        map_in_two(fail, range(9), LOCAL)
    assert raised.value.filename == str(wrong)
