"""Work on files that is killed, or loses power, before each operation that changes something."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from storage.files.files import Files
from tests.support.files.memory import MemoryFiles
from tests.support.files.watched import CHANGES, SYNCS, Operation, WatchedFiles


class PowerLoss(BaseException):
    """Not an Exception, so that no cleanup code runs."""


class Cut(NamedTuple):
    """What is left, and after what."""

    files: MemoryFiles
    kind: str


def cuts(start: MemoryFiles, work: Callable[[Files], object]) -> Iterator[Cut]:
    """Yield what a kill leaves, and what a power cut leaves, before each change or sync of work.

    The last two are what is left after all of it. start: with everything on disk.
    """
    for allowed in range(1000):
        killed = start.after_power_cut()  # all of it is on disk: the same once more

        def before(operation: Operation) -> None:
            if operation.name in CHANGES | SYNCS and len(files.changes) > allowed:  # noqa: B023
                raise PowerLoss

        files = WatchedFiles(killed, before)
        try:
            work(files)
            is_over = True
        except PowerLoss:
            is_over = False
        without_power = killed.after_power_cut()  # before whoever takes the first goes on with it
        kind = f"before {allowed}, {files.changes[-1]}" if files.changes else "before anything"
        yield Cut(killed, f"killed {kind}")
        yield Cut(without_power, f"power lost {kind}")
        if is_over:
            return
