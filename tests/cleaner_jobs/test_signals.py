"""Signals wait for the end of the block, then arrive as they would have."""

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from cleaner_jobs.signals import deferred_signals
from tests.support.command_process import hangups

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def as_in_a_terminal() -> Iterator[None]:
    with hangups():
        yield


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def test_an_interrupt_waits_for_the_end_of_the_block() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), deferred_signals():
        send(signal.SIGINT)
        send(signal.SIGINT)
        done.append("all")
    assert done == ["all"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_handlers_of_before_get_the_first_signal_and_stay(number: signal.Signals) -> None:
    came: list[int] = []
    before = signal.signal(number, lambda number, _: came.append(number))
    try:
        with deferred_signals():
            send(number)
            send(signal.SIGINT)
            assert came == []
        assert came == [number]
        send(number)
        assert came == [number] * 2
    finally:
        signal.signal(number, before)


def test_what_is_ignored_stays_so_and_hides_nothing() -> None:
    """SIGHUP, as under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with pytest.raises(KeyboardInterrupt), deferred_signals():
        send(signal.SIGHUP)
        send(signal.SIGINT)


def test_without_a_signal_nothing_happens() -> None:
    handlers = [signal.getsignal(number) for number in NUMBERS]
    with deferred_signals():
        assert [signal.getsignal(number) for number in NUMBERS] != handlers
    assert [signal.getsignal(number) for number in NUMBERS] == handlers


def test_an_error_of_the_block_is_raised_as_it_is() -> None:
    handlers = [signal.getsignal(number) for number in NUMBERS]
    with pytest.raises(ZeroDivisionError), deferred_signals():
        raise ZeroDivisionError
    assert [signal.getsignal(number) for number in NUMBERS] == handlers


def test_another_thread_has_nothing_to_wait_for() -> None:
    """Only the main one may set handlers."""
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with deferred_signals():
                pass
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert errors == []


@pytest.mark.parametrize("number", NUMBERS)
def test_what_has_come_is_let_through_where_the_block_says_so(number: signal.Signals) -> None:
    handlers = [signal.getsignal(number) for number in NUMBERS]
    came: list[int] = []

    def handler(number: int, _: object) -> None:
        came.append(number)
        raise ZeroDivisionError

    before, cleaned_up = signal.signal(number, handler), []
    try:
        with pytest.raises(ZeroDivisionError), deferred_signals() as let_signals_through:
            let_signals_through()  # none has come
            send(number)
            assert came == []
            try:
                let_signals_through()
            except ZeroDivisionError:
                send(number)  # a second one, which waits again
                cleaned_up.append("all")
                raise
        assert (came, cleaned_up) == ([number] * 2, ["all"])
    finally:
        signal.signal(number, before)
    assert [signal.getsignal(number) for number in NUMBERS] == handlers


def test_a_signal_that_is_let_through_and_ends_nothing_comes_once() -> None:
    came: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: came.append(number))
    try:
        with deferred_signals() as let_signals_through:
            send(signal.SIGTERM)
            let_signals_through()
            let_signals_through()
        assert came == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)
