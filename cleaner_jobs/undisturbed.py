"""Steps that Ctrl-C, SIGTERM or SIGHUP must not leave half done: they wait until it is over."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let signals wait until the block is over: for what a second Ctrl-C would leave half done."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals arrive elsewhere
        return
    waiting: list[int] = []
    before = [
        (number, signal.signal(number, lambda came, _: waiting.append(came)))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is not signal.SIG_IGN  # as under nohup: it stays so
    ]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)
        if waiting:
            signal.raise_signal(waiting[0])
