"""What the driver does while Spark works: polls, and computes without being in its way."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from cleaner_jobs.task_values import Row

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


def while_polling(work: Callable[[], list[Row]], poll: Callable[[], None]) -> list[Row]:
    """Do work on this thread while another one polls; an error of Spark's gets a plain message."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(POLL_SECONDS):
            with suppress(OSError):  # a bar that stands still is no reason to stop
                poll()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        return work()
    finally:
        done.set()
        watcher.join()
