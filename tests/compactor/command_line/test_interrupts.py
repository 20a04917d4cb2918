"""Signals are known of even where somebody else's handler makes another error of them."""

import os
import signal
from collections.abc import Iterator
from types import FrameType

import pytest

from cleaner_jobs.signals import deferred_signals
from compactor.command_line.interrupts import SignalNotes
from compactor.outcome.exit_codes import HungUp, Terminated
from tests.support.command_process import hangups


@pytest.fixture(autouse=True)
def as_in_a_terminal() -> Iterator[None]:
    with hangups():
        yield


def test_without_a_signal_there_is_nothing_to_tell() -> None:
    with SignalNotes() as signals:
        assert signals.received() is None


@pytest.mark.parametrize(
    ("number", "expected"),
    [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated), (signal.SIGHUP, HungUp)],
)
def test_a_signal_is_raised_and_noted(
    number: signal.Signals, expected: type[BaseException]
) -> None:
    with SignalNotes() as signals:
        with pytest.raises(expected):
            os.kill(os.getpid(), number)
        assert type(signals.received()) is expected
        assert signals.received() is None


def test_a_handler_that_fails_does_not_hide_the_signal() -> None:
    """As pyspark's does when Java is gone."""

    def fail(_number: int, _frame: FrameType | None) -> None:
        raise ConnectionRefusedError("Connection refused")

    before = signal.signal(signal.SIGINT, fail)
    try:
        with SignalNotes() as signals:
            with pytest.raises(ConnectionRefusedError):
                os.kill(os.getpid(), signal.SIGINT)
            assert type(signals.received()) is KeyboardInterrupt
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_signal_is_none_of_our_business() -> None:
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with SignalNotes() as signals:
            os.kill(os.getpid(), signal.SIGUSR1)
            assert signals.received() is None
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_hangup_that_is_ignored_stays_so() -> None:
    """As nohup has it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with SignalNotes() as signals:
            os.kill(os.getpid(), signal.SIGHUP)
            with deferred_signals():
                os.kill(os.getpid(), signal.SIGHUP)
            assert signals.received() is None
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_everything_is_as_before_afterwards(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with SignalNotes():
        assert signal.getsignal(number) is not before
    assert signal.getsignal(number) is before
    assert signal.set_wakeup_fd(-1) == -1
