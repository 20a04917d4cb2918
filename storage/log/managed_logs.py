"""The log directories of a running log manager, and its logs: created, moved, taken out of use.

A directory knows whether it is online, and writes its checkpoints and its marker. A log whose
cleaning is paused is left alone by the cleaner. Source: Kafka, kafka.log.LogManager
(getOrCreateLog, nextLogDirs, asyncDelete, replaceCurrentWithFutureLog),
CheckpointFileWithFailureHandler, LogCleanerManager.abortAndPauseCleaning, resumeCleaning; spec
C-3.5, L-26 to L-28.
"""

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from storage.errors import CorruptFileError
from storage.file_names import (
    DELETE_DIR,
    FUTURE_DIR,
    STRAY_DIR,
    is_special_dir,
    parse_partition_dir,
    special_dir,
)
from storage.files.file_pool import pooled
from storage.files.files import Files
from storage.formats import checkpoint, clean_shutdown
from storage.formats.checkpoint import TopicPartition
from storage.formats.clean_shutdown import CLEAN_SHUTDOWN
from storage.log.errors import IllegalStateError, KafkaError, KafkaStorageError, NoSuchElementError
from storage.log.loading import LoadingState, opened_parts
from storage.log.local_log import LogDirState
from storage.log.log import Log, LogOptions
from storage.log.log_config import LogConfig
from storage.log.manager_options import ManagerOptions
from storage.log.scheduler import OwnTasks, Scheduler
from storage.log.segment import Clock

_LOGGER = logging.getLogger("compactor.log_manager")
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
        self.known_logs = FoundLogs()
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
        for (name, _), log in [*self.known_logs.current.items(), *self.known_logs.future.items()]:
            if name == topic:
                log.config = config

    def of(self, is_future: bool) -> dict[TopicPartition, Log]:
        return self.known_logs.future if is_future else self.known_logs.current

    def used(self) -> list[Log]:
        """The logs and the copies of those that are moved."""
        return [*self.known_logs.current.values(), *self.known_logs.future.values()]

    def close_files(self) -> None:
        """Close all files in the directories without a flush.

        Also those of segments and logs that were to be deleted later.
        """
        for log in self.known_logs.every_log():
            log.close_handlers()
        for directory in self.directories:
            self._files.forget_below(directory.path)

    def live(self) -> list[LogDirectory]:
        return [directory for directory in self.directories if directory.is_live]

    def logs_in(self, directory: LogDirectory) -> dict[TopicPartition, Log]:
        both = [*self.known_logs.current.items(), *self.known_logs.future.items()]
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

    # ---- new logs -----------------------------------------------------------------------------

    def prefer_directory(self, partition: TopicPartition, path: str) -> None:
        """Note where a log, or the copy of a log, is created next.

        Nothing where the log or its copy is in that directory already.
        """
        wanted = os.path.abspath(path)
        there = [self.of(is_future).get(partition) for is_future in (False, True)]
        if not any(_is_in(log, wanted) for log in there):
            self.preferred[partition] = wanted

    def create(self, partition: TopicPartition, is_future: bool) -> Log:
        """Return a log, or a new one in the preferred directory, else in one with fewest."""
        there = self.of(is_future).get(partition)
        if there is not None:
            return there
        name = special_dir(*partition, FUTURE_DIR) if is_future else _name_of(partition)
        log = self._created(partition, name, self._places_for(partition, is_future))
        if not is_future:
            directory = self.directory_of(log)
            directory.note_opened(partition, log, directory.cleaned_to().get(partition))
        self.of(is_future)[partition] = log
        self.preferred.pop(partition, None)
        return log

    def _places_for(self, partition: TopicPartition, is_future: bool) -> list[LogDirectory]:
        preferred = self.preferred.get(partition)
        if is_future:
            self._require_movable(partition, preferred)
        if preferred is None:
            return sorted(self.live(), key=lambda directory: len(self.logs_in(directory)))
        found = [directory for directory in self.directories if directory.path == preferred]
        if not found:
            raise KafkaStorageError(f"{preferred} is none of the log directories")
        return found

    def _require_movable(self, partition: TopicPartition, preferred: str | None) -> None:
        name = _name_of(partition)
        if preferred is None:
            raise IllegalStateError(f"no directory is preferred for {name} to move to")
        current = self.of(False).get(partition)
        if current is None:
            raise NoSuchElementError(f"there is no log {name}")
        if _is_in(current, preferred):
            raise IllegalStateError(f"{current.path} is in that directory already")

    def _created(
        self, partition: TopicPartition, name: str, directories: Sequence[LogDirectory]
    ) -> Log:
        """Create a log in the first directory that takes it; one that does not goes offline."""
        for directory in directories:
            if not directory.is_live:
                continue
            path = directory.place(name)
            try:
                if not self._files.is_directory(path):
                    self._files.make_directory(path)
            except OSError:
                directory.state.is_offline = True
                continue
            config = self.config_of(partition[0])
            return open_log(self.options, directory, name, config, LoadingState())
        tried = ", ".join(directory.path for directory in directories)
        raise KafkaStorageError(f"no log directory takes {name}; tried {tried}")

    # ---- the end of a log, and moves ----------------------------------------------------------

    def delete(self, partition: TopicPartition, is_future: bool, is_stray: bool) -> None:
        """Take a log out of use; its files go later, those of a stray one stay."""
        log = self.of(is_future).pop(partition, None)
        if log is None:
            if len(self.live()) < len(self.directories):
                name = _name_of(partition)
                raise KafkaStorageError(f"{name} may be in a directory that is offline")
            return
        directory = self.directory_of(log)
        if not is_future:
            with self.pauses.paused(partition):
                directory.move_cleaner_offset(partition, None, self.known_logs.current)
        kind = STRAY_DIR if is_stray else DELETE_DIR
        log.rename_directory(special_dir(*partition, kind), goes_on=False)
        if is_stray:
            self.known_logs.stray.append(log)
        else:
            self.deletions.add(log)
        self.write_checkpoints(directory)
        _LOGGER.info("%s-%d is out of use", *partition)

    def replace_with_future(self, partition: TopicPartition) -> None:
        """Let the copy take the place of its log, whose files are deleted later.

        1. The copy is synced, which Kafka leaves out: a power cut after the deletion of the log
           would take the records with it.
        2. The copy's directory gets the final name. A crash from now on leaves the partition in two
           directories, and the next start refuses until a person has removed one of them.
        3. How far the log was cleaned goes to the checkpoint of the copy's directory.
        4. The directory of the log is renamed, to be deleted. From now on a start finds the copy.
        """
        current, future = self.of(False), self.of(True)
        source, copy = current.get(partition), future.get(partition)
        if source is None or copy is None:
            name = _name_of(partition)
            raise KafkaStorageError(f"{name} has no copy in another directory to go on with")
        copy.sync()
        copy.rename_directory(_name_of(partition), goes_on=True)
        copy.update_high_watermark(source.high_watermark)
        with self.directory_of(copy).lock:  # who truncates or checkpoints sees all of it or nothing
            del future[partition]
            current[partition] = copy
            self._move_cleaner_offset(partition, source, copy)
        self.pauses.resume(partition)
        self._queue_replaced(partition, source)

    def _move_cleaner_offset(self, partition: TopicPartition, source: Log, copy: Log) -> None:
        before, after = self.directory_of(source), self.directory_of(copy)
        offset = before.read_or_none(checkpoint.CLEANER_OFFSET).get(partition)
        if offset is not None:
            before.move_cleaner_offset(partition, None, self.known_logs.current)
        if offset is not None or partition in after.read_or_none(checkpoint.CLEANER_OFFSET):
            after.move_cleaner_offset(partition, offset, self.known_logs.current)
            after.note_opened(partition, copy, offset)  # which may end below the log

    def _queue_replaced(self, partition: TopicPartition, source: Log) -> None:
        directory = self.directory_of(source)
        try:
            source.rename_directory(special_dir(*partition, DELETE_DIR), goes_on=True)
        except KafkaStorageError:
            source.close_handlers()
            raise
        self.write_checkpoints(directory)
        self.deletions.add(source)


def _is_in(log: Log | None, path: str) -> bool:
    """Whether a log is in a log directory."""
    return log is not None and os.path.dirname(log.path) == path


def _name_of(partition: TopicPartition) -> str:
    return "{}-{}".format(*partition)


def open_log(
    options: ManagerOptions,
    directory: LogDirectory,
    name: str,
    config: LogConfig,
    state: LoadingState,
    on_segments_left: Callable[[int], object] = lambda _: None,
) -> Log:
    """Open the log in a directory of a log directory, which the manager has asked for marks."""
    assert options.scheduler is not None, "given to every log"
    log_options = LogOptions(
        clock=options.clock,
        scheduler=options.scheduler,
        config=config,
        files=options.files,
        state=state,
        producer_settings=options.producer_settings,
        directory=directory.state,
        on_segments_left=on_segments_left,
        truncating=partial(directory.truncating, partition_of(name)),
        kafka=options.kafka,
    )
    return Log(opened_parts(directory.place(name), log_options))


def partition_of(name: str) -> TopicPartition:
    """Return the partition that a directory is of.

    Raise KafkaError for a name that says none: no broker starts with such a directory.
    """
    plain = name.rpartition(".")[0] if is_special_dir(name) else name
    found = parse_partition_dir(plain)
    if found is None:
        raise KafkaError(
            f"{name} is no directory of a topic partition, which keeps the logs closed"
        )
    return found
