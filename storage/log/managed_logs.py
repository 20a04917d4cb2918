"""The logs of a running log manager: found, to be removed, and how far each is checkpointed.

Source: Kafka, kafka.log.LogManager; spec L-26 to L-28.
"""

import os
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from storage.files.file_pool import pooled
from storage.formats.checkpoint import TopicPartition
from storage.log.errors import KafkaStorageError
from storage.log.log import Log
from storage.log.log_cleaner import CleaningPauses
from storage.log.log_config import LogConfig
from storage.log.log_directory import LogDirectory
from storage.log.manager_options import ManagerOptions
from storage.log.scheduler import OwnTasks, Scheduler
from storage.log.segment import Clock


class _Queued(NamedTuple):
    log: Log
    since_ms: int


class DeletionQueue:
    """First in, first out. Once it is started, it goes on by itself, by its scheduler."""

    def __init__(self, clock: Clock, scheduler: Scheduler, delay_ms: Callable[[], int]) -> None:
        self._clock, self._scheduler, self._delay_ms = clock, scheduler, delay_ms
        self._queue: deque[_Queued] = deque()

    def add(self, log: Log) -> None:
        self._queue.append(_Queued(log, self._clock()))

    def start(self, delay_ms: int) -> None:
        self._scheduler.schedule_once(self._run, delay_ms)

    def _run(self) -> None:
        while (wait_ms := self._wait_ms()) <= 0:
            try:
                self._queue.popleft().log.delete()
            except KafkaStorageError:
                continue  # its directory is offline; the next start queues it anew
        self._scheduler.schedule_once(self._run, wait_ms)

    def _wait_ms(self) -> int:
        delay_ms = self._delay_ms()
        if not self._queue:
            return max(delay_ms, 1)
        return self._queue[0].since_ms + delay_ms - self._clock()


@dataclass(slots=True)
class FoundLogs:
    """Several threads may add to it: each addition is one step of its dict or list."""

    current: dict[TopicPartition, Log] = field(default_factory=dict)
    future: dict[TopicPartition, Log] = field(default_factory=dict)
    stray: list[Log] = field(default_factory=list)
    deleted: list[Log] = field(default_factory=list)

    def every_log(self) -> list[Log]:
        """Return all logs, also those that nobody can get."""
        return [*self.current.values(), *self.future.values(), *self.stray, *self.deleted]


class ManagedLogs:
    """The logs of a manager. Who changes them holds the manager's lock."""

    def __init__(self, options: ManagerOptions) -> None:
        self.tasks = OwnTasks(options.scheduler)
        self._files = pooled(options.files, options.max_open_files)
        self.options = replace(options, scheduler=self.tasks, files=self._files)
        self.settings = {topic: dict(s) for topic, s in options.topic_settings.items()}
        self.directories: list[LogDirectory] = []
        self.found = FoundLogs()
        self.preferred: dict[TopicPartition, str] = {}  # where a log is created next
        self.pauses = CleaningPauses()
        self.deletions = DeletionQueue(
            options.clock, self.tasks, lambda: options.config.file_delete_delay_ms
        )

    def config_of(self, topic: str) -> LogConfig:
        """The default configuration, with the topic's own settings over it."""
        settings = self.settings.get(topic)
        return self.options.config.changed(settings) if settings else self.options.config

    def configure_topic(self, topic: str, settings: Mapping[str, str]) -> None:
        """Give a topic settings in place of those that it had.

        Raise ConfigError, and change nothing, where one is wrong.
        """
        config = self.options.config.changed(settings)
        self.settings[topic] = dict(settings)
        for (name, _), log in [*self.found.current.items(), *self.found.future.items()]:
            if name == topic:
                log.config = config

    def of(self, is_future: bool) -> dict[TopicPartition, Log]:
        return self.found.future if is_future else self.found.current

    def used(self) -> list[Log]:
        """The logs and the copies of those that are moved."""
        return [*self.found.current.values(), *self.found.future.values()]

    def close_files(self) -> None:
        """Close all files in the directories without a flush.

        Also those of segments and logs that were to be deleted later.
        """
        for log in self.found.every_log():
            log.close_handlers()
        for directory in self.directories:
            self._files.forget_below(directory.path)

    def live(self) -> list[LogDirectory]:
        return [directory for directory in self.directories if directory.is_live]

    def logs_in(self, directory: LogDirectory) -> dict[TopicPartition, Log]:
        both = [*self.found.current.items(), *self.found.future.items()]
        return {partition: log for partition, log in both if directory.holds(log)}

    def directory_of(self, log: Log) -> LogDirectory:
        return next(directory for directory in self.directories if directory.holds(log))

    def write_recovery_points(self, directory: LogDirectory) -> None:
        with directory.lock:
            directory.write_recovery_points(self.logs_in(directory))

    def write_log_starts(self, directory: LogDirectory) -> None:
        with directory.lock:
            directory.write_log_starts(self.logs_in(directory))

    def write_checkpoints(self, directory: LogDirectory) -> None:
        self.write_recovery_points(directory)
        self.write_log_starts(directory)


def is_in(log: Log | None, path: str) -> bool:
    """Whether a log is in a log directory."""
    return log is not None and os.path.dirname(log.path) == path
