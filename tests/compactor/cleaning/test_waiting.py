"""What the driver does while Spark works: it looks now and then, and lets other threads in."""

import sys
import time

import pytest

from compactor.cleaning.waiting import Poll, turns_taken_often


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Its only element is what it shows."""
    shown = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: shown[0])
    return shown


def test_progress_is_asked_for_every_quarter_of_a_second(clock: list[float]) -> None:
    done, reported = iter((5, 9)), list[int]()
    poll = Poll(lambda: next(done), reported.append)
    for seconds in (0.0, 0.24, 0.25, 0.26, 0.49, 0.5):
        clock[0] = 100.0 + seconds
        poll.look()
    assert reported == [5, 9]


def test_what_cannot_be_found_out_is_not_reported(clock: list[float]) -> None:
    reported: list[int] = []

    def gone() -> int:
        raise FileNotFoundError

    poll = Poll(gone, reported.append)
    clock[0] += 1
    poll.look()
    assert reported == []


def test_an_interrupt_comes_through(clock: list[float]) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    poll = Poll(lambda: 1, interrupt)
    clock[0] += 1
    with pytest.raises(KeyboardInterrupt):
        poll.look()


def test_turns_are_taken_often_for_a_while() -> None:
    usual = sys.getswitchinterval()
    with pytest.raises(ValueError), turns_taken_often():
        assert sys.getswitchinterval() == pytest.approx(0.0001)
        raise ValueError
    assert sys.getswitchinterval() == usual
