"""What a log manager works with: clock, scheduler, files, configuration, intervals of its tasks."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from threading import Lock

from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats.checkpoint import TopicPartition
from storage.kafka_versions import NEWEST, KafkaVersion
from storage.log.log_config import LogConfig
from storage.log.log_dir_lock import lock_log_dir
from storage.log.producer_state_manager import ProducerStateManagerConfig
from storage.log.scheduler import Scheduler
from storage.log.segment import Clock


class LoadingProgress:
    """What is still to be done while logs are loaded, to be read from another thread.

    Both are empty before, and again once all is loaded.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._logs: dict[str, int] = {}
        self._segments: dict[tuple[str, int], int] = {}

    @property
    def remaining_logs(self) -> Mapping[str, int]:
        """Return how many logs are not loaded yet, by log directory."""
        with self._lock:
            return dict(self._logs)

    @property
    def remaining_segments(self) -> Mapping[tuple[str, int], int]:
        """Return how many segments of the log at which a thread works are still to be recovered.

        By log directory and number of the thread; 0 where it recovers none.
        """
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


INITIAL_TASK_DELAY_MS = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskIntervals:
    """How often a manager does what by itself; None: only when it is asked to. Kafka's defaults."""

    retention_ms: int | None = 300_000
    flush_ms: int | None = None
    recovery_points_ms: int | None = 60_000
    log_starts_ms: int | None = 60_000
    failures_ms: int | None = 1_000
    cleaning_ms: int | None = 15_000


BY_HAND = TaskIntervals(
    retention_ms=None,
    recovery_points_ms=None,
    log_starts_ms=None,
    failures_ms=None,
    cleaning_ms=None,
)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerOptions:
    """The options of a log manager.

    config: of every topic, but for the settings that topic_settings has of it, by its name.
    is_stray: whether a log is none of those that there ought to be; it is kept aside, and not used.
    max_open_files: of all logs together, however many segments they have; None: 500, or half of
    what the process may have open where that is less. kafka: whose answer counts where the versions
    differ.
    """

    clock: Clock = now_ms
    scheduler: Scheduler | None = None  # None: a thread of the manager's own
    files: Files = LOCAL
    max_open_files: int | None = None
    lock: Callable[[str], AbstractContextManager[object]] = lock_log_dir
    config: LogConfig = field(default_factory=LogConfig)
    topic_settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    producer_settings: ProducerStateManagerConfig = field(
        default_factory=ProducerStateManagerConfig
    )
    recovery_threads: int = 2  # for each directory that was not shut down cleanly
    progress: LoadingProgress = field(default_factory=LoadingProgress)  # of a start
    intervals: TaskIntervals = field(default_factory=TaskIntervals)
    is_stray: Callable[[TopicPartition], bool] = lambda _: False
    kafka: KafkaVersion = NEWEST
