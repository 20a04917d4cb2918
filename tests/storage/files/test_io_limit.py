"""A limit on reading and writing: shared by processes and threads, lifted by an error, else off."""

import fcntl
import multiprocessing
import os
import threading
import time
from pathlib import Path

import pytest

from storage.files import io_limit
from storage.files.io_limit import (
    IDLE_SECONDS,
    PATIENCE_SECONDS,
    is_limited,
    lifted_by_errors,
    limited,
    take,
)
from storage.files.local import LOCAL

MB = 1_000_000


class Clock:
    """A monotonic clock that those who wait move on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(threading.Event, "wait", lambda _, seconds: self.pass_by(seconds))

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_without_a_limit_nobody_waits(clock: Clock) -> None:
    take(1000 * MB)
    with limited(None):
        take(1000 * MB)
        assert not is_limited()
    assert clock.now == 1000


def test_who_comes_waits_for_those_before(clock: Clock) -> None:
    """At 10 MB/s: 100 times 1 MB take 10 s, but for the last, which nobody waits for."""
    with limited(10 * MB):
        assert is_limited()
        for _ in range(101):
            take(MB)
    assert clock.now == pytest.approx(1010, abs=0.001 + IDLE_SECONDS)
    assert clock.now >= 1010 - IDLE_SECONDS


def test_of_a_pause_little_can_be_made_up_for(clock: Clock) -> None:
    with limited(10 * MB):
        take(MB)
        clock.pass_by(3600)
        began = clock.now
        for _ in range(101):
            take(MB)
    assert clock.now - began == pytest.approx(10 - IDLE_SECONDS, abs=0.001)


def _take_some(path: str, times: int) -> None:
    with limited(20 * MB, path, LOCAL):
        for _ in range(times):
            take(MB // 10)


def test_processes_share_one_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of them, 2 MB each, at 20 MB/s: together no less than 0.3 s, however they run."""
    monkeypatch.setattr(io_limit, "PATIENCE_SECONDS", 60)  # one with the lock may have to wait
    path = str(tmp_path / "limit")
    context = multiprocessing.get_context("fork")
    others = [context.Process(target=_take_some, args=(path, 20)) for _ in range(3)]
    began = time.monotonic()
    with limited(20 * MB, path, LOCAL):
        take(MB // 10)  # the file begins here
    for other in others:
        other.start()
    for other in others:
        other.join()
        assert other.exitcode == 0
    assert time.monotonic() - began >= 0.3 - IDLE_SECONDS / 2 - 0.02


def test_an_error_lets_those_go_on_who_wait() -> None:
    waited: list[float] = []

    def slow() -> None:
        began = time.monotonic()
        take(MB)
        take(1000 * MB)
        take(1000 * MB)  # at 1 MB/s: the next thousand seconds
        waited.append(time.monotonic() - began)

    with limited(MB):
        thread = threading.Thread(target=slow)
        thread.start()
        with pytest.raises(KeyboardInterrupt), lifted_by_errors():
            raise KeyboardInterrupt
        thread.join(20)
    assert waited and waited[0] < 20


def test_a_limit_ends_with_its_block_and_gives_way_to_an_inner_one(clock: Clock) -> None:
    with limited(MB):
        with limited(1000 * MB):
            for _ in range(100):
                take(MB)
        assert clock.now < 1001
        assert is_limited()
    assert not is_limited()
    assert io_limit._current is None


def test_limits_end_in_any_order_each_by_itself(clock: Clock) -> None:
    """Two calls at once, of which the first ends first."""
    first, second = limited(1000 * MB), limited(MB)
    with first:
        second.__enter__()
    assert is_limited()
    for _ in range(11):
        take(MB)
    assert clock.now >= 1010 - IDLE_SECONDS
    second.__exit__(None, None, None)
    assert not is_limited()


def test_who_comes_late_does_not_touch_the_file_that_has_the_number_by_then(
    tmp_path: Path, clock: Clock
) -> None:
    with limited(MB):
        late = io_limit._current
        assert late is not None
        number = late._descriptor
    other = tmp_path / "other"
    opened = os.open(other, os.O_RDWR | os.O_CREAT)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)
    try:
        late.take(1000 * MB)
    finally:
        os.close(number)
    assert other.read_bytes() == b"" and clock.now == 1000


def test_nobody_hangs_by_a_process_that_was_stopped_with_the_lock(
    tmp_path: Path, clock: Clock
) -> None:
    """Whoever gives up once does not wait again, until the lock is free."""
    path = tmp_path / "limit"
    with path.open("wb") as holder, limited(1000 * MB, str(path), LOCAL):
        fcntl.flock(holder, fcntl.LOCK_EX)
        take(1)
        assert clock.now == pytest.approx(1000 + PATIENCE_SECONDS, abs=0.01)
        for _ in range(1000):
            take(1)
        assert clock.now < 1000.1 + PATIENCE_SECONDS
        assert len(path.read_bytes()) == 8  # it counts all the same


def test_nor_once_the_limit_is_lifted(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "limit"
    with path.open("wb") as holder, limited(MB, str(path), LOCAL):
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(KeyboardInterrupt), lifted_by_errors():
            raise KeyboardInterrupt
        take(1)
    assert clock.now == 1000
