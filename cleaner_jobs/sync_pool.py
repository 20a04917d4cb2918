"""Forces written files to disk while the next ones are being worked on.

A sync waits for the disk and not for a core, and several at once share one commit of the file
system's journal: among thousands of small files each takes a fraction of what it takes alone.
"""

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from storage.filesystem import sync_file

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

    def start(self, log_id: int, paths: Iterable[str]) -> None:
        """Begin to sync files of a log that are completely written and closed."""
        self._started += [(log_id, self._threads.submit(sync_file, path)) for path in paths]

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
