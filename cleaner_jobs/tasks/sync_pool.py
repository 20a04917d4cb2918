"""Forces written files to disk while the next ones are being worked on.

A sync waits for the disk and not for a core, and several at once share one commit of the file
system's journal: among thousands of small files each takes a fraction of what it takes alone. The
files of one call are synced one after the other: to hand each to a thread of its own takes longer
than the work on a small one.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from storage.files.filesystem import sync_file

THREADS = 8


class SyncPool:
    """Syncs files behind the back of whoever wrote them; nothing is durable before `failures`."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS)
        self._started: list[tuple[int, Future[None]]] = []

    def __enter__(self) -> "SyncPool":
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown()

    def start(
        self, log_id: int, paths: Iterable[str], when_durable: Callable[[], None] | None = None
    ) -> None:
        """Begin to sync files of a log that are completely written and closed.

        when_durable: what is to be done as soon as all of them are on disk.
        """
        self._started.append((log_id, self._threads.submit(_sync, tuple(paths), when_durable)))

    def failures(self) -> dict[int, OSError]:
        """Wait for all that was started; return, by log, what could not be brought to disk."""
        failed: dict[int, OSError] = {}
        for log_id, future in self._started:
            error = future.exception()
            if isinstance(error, OSError):
                failed.setdefault(log_id, error)
            elif error is not None:
                raise error
        self._started.clear()
        return failed


def _sync(paths: Iterable[str], when_durable: Callable[[], None] | None) -> None:
    """What cannot be synced leaves those behind it unsynced, too: their log is set aside."""
    for path in paths:
        sync_file(path)
    if when_durable is not None:
        when_durable()
