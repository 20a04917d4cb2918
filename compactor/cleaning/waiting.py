"""What the driver does while Spark works: polls, and computes without being in its way."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

POLL_SECONDS = 0.25
BUSY_SWITCH_SECONDS = 0.0001


@contextmanager
def turns_taken_often() -> Iterator[None]:
    """A thread that computes lets others in after a tenth of a millisecond, not five.

    To hand a job to Spark takes some twenty calls to Java, each of which waits for its turn.
    """
    usual = sys.getswitchinterval()
    sys.setswitchinterval(BUSY_SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


class Poll:
    """Reports how far the tasks of a stage are, from time to time while it is looked at."""

    def __init__(self, ask: Callable[[], int], report: Callable[[int], None]) -> None:
        self._ask, self._report, self._last = ask, report, time.monotonic()

    def look(self) -> None:
        """Raise what report raises. What cannot be found out is not reported."""
        now = time.monotonic()
        if now - self._last < POLL_SECONDS:
            return
        self._last = now
        try:
            done = self._ask()
        except OSError:
            return
        self._report(done)
