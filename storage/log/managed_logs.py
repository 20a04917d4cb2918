"""The log directories of a running log manager, and its logs: found, or still to be removed.

A directory knows whether it is online, and writes its checkpoints and its marker. A log whose
cleaning is paused is left alone by the cleaner. Source: Kafka, kafka.log.LogManager,
CheckpointFileWithFailureHandler, LogCleanerManager.abortAndPauseCleaning, resumeCleaning; spec
C-3.5, L-26 to L-28.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from storage.errors import CorruptFileError
from storage.files.file_pool import pooled
from storage.files.files import Files
from storage.formats import checkpoint, clean_shutdown
from storage.formats.checkpoint import TopicPartition
from storage.formats.clean_shutdown import CLEAN_SHUTDOWN
from storage.log.errors import IllegalStateError, KafkaStorageError
from storage.log.local_log import LogDirState
from storage.log.log import Log
from storage.log.log_config import LogConfig
from storage.log.manager_options import ManagerOptions
from storage.log.scheduler import OwnTasks, Scheduler
from storage.log.segment import Clock

_AT_START = (checkpoint.RECOVERY_POINT, checkpoint.LOG_START)


class CleaningPauses:
    """Pauses add up: a log is cleaned again when each has been taken back. Safe for threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._paused: dict[TopicPartition, int] = {}
        self._in_work: set[TopicPartition] = set()

    def pause(self, partition: TopicPartition) -> None:
        """Leave a log alone; a cleaning that is under way is waited for."""
        with self._changed:
            self._paused[partition] = self._paused.get(partition, 0) + 1
            while partition in self._in_work:
                self._changed.wait()

    def resume(self, partition: TopicPartition) -> None:
        """Take a pause back. Raise IllegalStateError where there is none."""
        with self._changed:
            count = self._paused.get(partition)
            if count is None:
                raise IllegalStateError(f"cleaning of {partition[0]}-{partition[1]} is not paused")
            if count == 1:
                del self._paused[partition]
            else:
                self._paused[partition] = count - 1

    @contextmanager
    def paused(self, partition: TopicPartition) -> Iterator[None]:
        self.pause(partition)
        try:
            yield
        finally:
            self.resume(partition)

    @contextmanager
    def claimed(self, partitions: Iterable[TopicPartition]) -> Iterator[Collection[TopicPartition]]:
        """Take those of the logs that nobody has paused or works on; yields them."""
        with self._changed:
            free = [p for p in partitions if p not in self._paused and p not in self._in_work]
            self._in_work.update(free)
        try:
            yield free
        finally:
            with self._changed:
                self._in_work.difference_update(free)
                self._changed.notify_all()


class LogDirectory:
    """Shared by its logs, and the only writer of its checkpoints. Safe for threads.

    `lock` is held for each write, and for whatever else has to be one step with it: what is written
    is read, or computed, under the lock. Who holds it may take the lock of a log, never the other
    way round.
    """

    def __init__(self, files: Files, path: str, pauses: CleaningPauses) -> None:
        """Make the checkpoints that there have to be, as empty files."""
        self.path, self._files, self._pauses = path, files, pauses
        self.lock = threading.RLock()
        self._is_released = False
        self.state = LogDirState()
        self.was_clean = False
        self.is_loaded = False  # every log in it was
        self.is_live = True  # its failure, if there is one, has not been handled yet
        for name in _AT_START:
            self.make_checkpoint(name)

    def place(self, name: str) -> str:
        return os.path.join(self.path, name)

    def holds(self, log: Log) -> bool:
        return os.path.dirname(log.path) == self.path

    def release(self) -> None:
        """Write nothing from now on: the lock of the directory is about to be given back."""
        with self.lock:
            self._is_released = True

    # ---- the marker of a clean shutdown -------------------------------------------------------

    def take_marker(self) -> None:
        """Note whether the shutdown was clean; a crash from here on is an unclean one."""
        marker = self.place(CLEAN_SHUTDOWN)
        self.was_clean = self._files.exists(marker)
        if self.was_clean:
            self._files.remove(marker)
            self._files.sync_directory(self.path)

    def leave_marker(self) -> None:
        """Say that all logs were closed in good order, if all were loaded."""
        if self.was_clean or self.is_loaded:
            clean_shutdown.write(self.path, files=self._files)

    # ---- checkpoints --------------------------------------------------------------------------

    def make_checkpoint(self, name: str) -> None:
        path = self.place(name)
        if not self._files.exists(path):
            self._files.open_to_change(path, create=True).close()

    def read_or_none(self, name: str) -> dict[TopicPartition, int]:
        """The entries; none where the file cannot be read, which takes the directory offline."""
        try:
            return self.read(name)
        except KafkaStorageError:
            return {}

    def read(self, name: str) -> dict[TopicPartition, int]:
        """The entries of a checkpoint. KafkaStorageError where it cannot be read."""

        def action() -> dict[TopicPartition, int]:
            try:
                return checkpoint.read(self.place(name), self._files)
            except CorruptFileError as error:
                raise OSError(str(error)) from error

        return self.state.reported(f"reading {name}", action)

    def write(self, name: str, entries: Mapping[TopicPartition, int]) -> None:
        """Replace a checkpoint. KafkaStorageError where that fails, or after `release`."""
        what = f"writing {name}"
        with self.lock:
            if self._is_released:
                raise KafkaStorageError(f"{what}: the log manager has let go of {self.path}")
            self.state.reported(
                what, lambda: checkpoint.write(self.place(name), entries, self._files)
            )

    def write_recovery_points(self, logs: Mapping[TopicPartition, Log]) -> None:
        """From where on a start after a crash has to look at each log (L-27.4)."""
        points = {partition: log.recovery_point for partition, log in logs.items()}
        self._write_unless_failed(checkpoint.RECOVERY_POINT, points)

    def write_log_starts(self, logs: Mapping[TopicPartition, Log]) -> None:
        """Where logs begin that do not begin with their first segment (L-27.5)."""
        starts = {
            partition: log.log_start_offset
            for partition, log in logs.items()
            if log.log_start_offset > log.segments[0].base_offset
        }
        self._write_unless_failed(checkpoint.LOG_START, starts)

    def _write_unless_failed(self, name: str, entries: Mapping[TopicPartition, int]) -> None:
        try:
            self.write(name, entries)
        except KafkaStorageError:
            return  # the directory is offline now, which its logs will tell

    # ---- the cleaner's checkpoint -------------------------------------------------------------

    def move_cleaner_offset(
        self, partition: TopicPartition, offset: int | None, known: Iterable[TopicPartition]
    ) -> None:
        """Set or forget how far a log was cleaned; entries of logs that are unknown go, too."""
        try:
            with self.lock:
                found, kept = self.read(checkpoint.CLEANER_OFFSET), set(known)
                entries = {each: value for each, value in found.items() if each in kept}
                entries.pop(partition, None)
                if offset is not None:
                    entries[partition] = offset
                self.write(checkpoint.CLEANER_OFFSET, entries)
        except KafkaStorageError:
            return  # the directory is offline now, which its logs will tell

    @contextmanager
    def truncating(self, partition: TopicPartition, end: int, base: int | None) -> Iterator[None]:
        """A truncation of a log of the directory, as `LogOptions.truncating` says.

        The log is not cleaned meanwhile, and was cleaned up to what is its active segment then at
        most: else a tombstone that is written later would be taken for clean, and the value that
        it deletes would come back. Its recovery point is not above its end: else what is written
        later would not be looked at after a crash.

        Kafka lowers both afterwards. Here no crash leaves one above the log's end.
        """
        with nullcontext() if base is None else self._pauses.paused(partition), self.lock:
            # of a log that was moved, its copy's active segment may begin below what was cleaned
            self._lower(checkpoint.CLEANER_OFFSET, partition, end if base is None else base)
            self._lower(checkpoint.RECOVERY_POINT, partition, end)
            yield

    def _lower(self, name: str, partition: TopicPartition, offset: int) -> None:
        """Let an entry be no higher; under the lock."""
        entries = self.read(name)
        if entries.get(partition, 0) > offset:
            self.write(name, entries | {partition: offset})

    def cleaned_to(self) -> dict[TopicPartition, int]:
        """Return what the cleaner's checkpoint says.

        Nothing where it cannot be read, which takes the directory offline no sooner than somebody
        cleans.
        """
        try:
            return checkpoint.read(self.place(checkpoint.CLEANER_OFFSET), self._files)
        except (OSError, CorruptFileError):
            return {}

    def note_opened(self, partition: TopicPartition, log: Log, cleaned_to: int | None) -> None:
        """Let a log that ends below what its cleaner's checkpoint says count as dirty as a whole.

        Its end was cut off, or another log was cleaned. So does Kafka's cleaner (C-4.1), but at its
        next look, when records that it has never seen may lie below the checkpoint.
        """
        if cleaned_to is not None and cleaned_to > log.log_end_offset:
            with self.lock:
                self._lower(checkpoint.CLEANER_OFFSET, partition, log.log_start_offset)


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
