"""Signals wait for the end of the block, then arrive as they would have."""

import os
import signal
import threading

import pytest

from cleaner_jobs.undisturbed import undisturbed

NUMBERS = (signal.SIGINT, signal.SIGTERM)


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def test_an_interrupt_waits_for_the_end_of_the_block() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), undisturbed():
        send(signal.SIGINT)
        send(signal.SIGINT)
        done.append("all")
    assert done == ["all"]


def test_the_handlers_of_before_get_the_first_signal_and_stay() -> None:
    came: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: came.append(number))
    try:
        with undisturbed():
            send(signal.SIGTERM)
            send(signal.SIGINT)
            assert came == []
        assert came == [signal.SIGTERM]
        send(signal.SIGTERM)
        assert came == [signal.SIGTERM] * 2
    finally:
        signal.signal(signal.SIGTERM, before)


def test_without_a_signal_nothing_happens() -> None:
    handlers = [signal.getsignal(number) for number in NUMBERS]
    with undisturbed():
        assert [signal.getsignal(number) for number in NUMBERS] != handlers
    assert [signal.getsignal(number) for number in NUMBERS] == handlers


def test_an_error_of_the_block_is_raised_as_it_is() -> None:
    handlers = [signal.getsignal(number) for number in NUMBERS]
    with pytest.raises(ZeroDivisionError), undisturbed():
        raise ZeroDivisionError
    assert [signal.getsignal(number) for number in NUMBERS] == handlers


def test_another_thread_has_nothing_to_wait_for() -> None:
    """Only the main one may set handlers."""
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with undisturbed():
                pass
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert errors == []
