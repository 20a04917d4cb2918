"""Defers Ctrl-C, SIGTERM and SIGHUP during steps that they must not leave half done."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def deferred_signals() -> Iterator[Callable[[], None]]:
    """Let signals wait until the block is over: for what a second Ctrl-C would leave half done.

    The block gets a function that lets the first one through, if any has come: to be called where
    nothing is half done. What the signal raises comes out of it, and later signals wait again.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None  # signals arrive elsewhere
        return
    waiting: list[int] = []

    def let_through() -> None:
        if waiting:
            first = signal.Signals(waiting[0])
            waiting.clear()
            noting = signal.signal(first, dict(before)[first])
            try:
                signal.raise_signal(first)
            finally:
                signal.signal(first, noting)

    before = [
        (number, signal.signal(number, lambda came, _: waiting.append(came)))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is not signal.SIG_IGN  # as under nohup: it stays so
    ]
    try:
        yield let_through
    finally:
        for number, handler in before:
            signal.signal(number, handler)
        if waiting:
            signal.raise_signal(waiting[0])
