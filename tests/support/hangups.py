"""SIGHUP as a terminal has it: who runs the tests may have it ignored, as nohup does."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def hangups() -> Iterator[None]:
    """For this process and for those that it starts meanwhile."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)
