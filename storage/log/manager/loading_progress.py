"""How far the loading of a manager's logs is. Source: Kafka, LogManager.addLogRecoveryMetrics; spec
L-26.7."""

from collections.abc import Mapping
from threading import Lock


class LoadingProgress:
    """What is still to be done while logs are loaded, for whoever looks from another thread.

    Both are empty before, and again once all is loaded.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._logs: dict[str, int] = {}
        self._segments: dict[tuple[str, int], int] = {}

    @property
    def remaining_logs(self) -> Mapping[str, int]:
        """How many logs are not loaded yet, by log directory."""
        with self._lock:
            return dict(self._logs)

    @property
    def remaining_segments(self) -> Mapping[tuple[str, int], int]:
        """How many segments of the log at which a thread works are still to be recovered, by log
        directory and number of the thread; 0 where it recovers none."""
        with self._lock:
            return dict(self._segments)

    def begin(self, log_dir: str, logs: int, threads: int) -> None:
        """So many logs of a directory are going to be loaded by so many threads."""
        with self._lock:
            self._logs[log_dir] = logs
            self._segments.update({(log_dir, number): 0 for number in range(threads)})

    def log_ended(self, log_dir: str) -> None:
        """One more is loaded, or never will be."""
        with self._lock:
            self._logs[log_dir] -= 1

    def segments_left(self, log_dir: str, thread: int, segments: int) -> None:
        with self._lock:
            self._segments[log_dir, thread] = segments

    def end(self) -> None:
        with self._lock:
            self._logs, self._segments = {}, {}
