"""All logs of a broker, in several log directories, as Kafka 4.3.1's log manager keeps them.

    with LogManager(["/data/a", "/data/b"]) as manager:
        log = manager.create(("t", 0))
        log.append_as_leader(batch)

Source: Kafka, kafka.log.LogManager (loadLogs, cleanupLogs, flushDirtyLogs, truncateTo,
handleLogDirFailure), LogCleaner.cleanFilthiestLog, LogCleanerManager.doneCleaning; spec L-22.3,
L-26 to L-28, C-3, C-17.
"""

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, Self

from storage.arguments import Paths, paths_of, require_a
from storage.file_names import DELETE_DIR, FUTURE_DIR, STRAY_DIR, special_dir
from storage.formats import checkpoint
from storage.formats.checkpoint import TopicPartition
from storage.formats.copy_marks import require_may_change
from storage.gc_pause import collector_paused
from storage.log.errors import IllegalStateError, KafkaError, KafkaStorageError, LogError
from storage.log.loading import LoadingState
from storage.log.log import Log
from storage.log.log_config import LogConfig
from storage.log.log_state import CleanedGroup, CleanerView
from storage.log.managed_logs import (
    LogDirectory,
    ManagedLogs,
    open_log,
    partition_of,
)
from storage.log.manager_options import BY_HAND as BY_HAND
from storage.log.manager_options import INITIAL_TASK_DELAY_MS
from storage.log.manager_options import ManagerOptions as ManagerOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class LogToClean:
    """A compacted log at one moment. Nothing below the active segment is written to any more."""

    partition: TopicPartition
    directory: str
    view: CleanerView
    first_dirty: int | None  # where the last cleaning stopped; None: there was none
    config: LogConfig
    is_due: bool = False  # whatever part of it is dirty

    @property
    def bases(self) -> list[int]:
        """Of the segments below the active one, rising."""
        return [segment.base_offset for segment in self.view.segments[:-1]]

    @property
    def active_base(self) -> int:
        return self.view.segments[-1].base_offset


class CleanedLog(NamedTuple):
    """What is to be put in place of the segments of a log, and how far it is clean then."""

    partition: TopicPartition
    groups: tuple[CleanedGroup, ...]
    end_offset: int


class LogCleaner(Protocol):
    """Cleans logs into files of its own, which the manager puts in place."""

    def cleaned(
        self, logs: Sequence[LogToClean], now_ms: int
    ) -> AbstractContextManager[Sequence[CleanedLog]]:
        """Clean those of the logs whose time it is. What it gives is there until the context ends.

        A log that cannot be cleaned is left out, and the cleaner tells its own caller why.
        """
        ...


_LOGGER = logging.getLogger("compactor.log_manager")
_NOT_OF_LOGS = ("remote-log-index-cache",)
_THREAD = "log-recovery"  # and its number
_METADATA_TOPIC = "__cluster_metadata"


class NotClosed(NamedTuple):
    """A log directory without a marker of a clean shutdown, and why."""

    log_dir: str
    error: LogError


class LogManager:
    """The logs of several log directories, kept as a broker keeps them.

    Any number of threads may ask for logs and have them created, moved and deleted; each log has
    one writer and any number of readers, as `Log` says. All logs together have at most
    ManagerOptions.max_open_files files open, and at most one more for each call that is under way.

    It is started by `start` or `with`, which loads all logs; until then there are none, and most
    methods raise IllegalStateError.
    """

    def __init__(
        self,
        log_dirs: Paths,
        options: ManagerOptions | None = None,
        cleaner: LogCleaner | None = None,
    ) -> None:
        """options: without any, Kafka's defaults, with a thread for what is done on a schedule.

        cleaner: cleans the compacted logs; without one they stay as they are.
        """
        self._cleaner = cleaner
        self._options = require_a(
            ManagerOptions,
            "options",
            ManagerOptions() if options is None else options,
            "ManagerOptions",
        )
        self._paths = [os.path.abspath(path) for path in paths_of("log_dirs", log_dirs)]
        self._lock = threading.RLock()  # of creation, deletion, moves, and the end
        self._managed = ManagedLogs(self._options)
        self._locks: dict[str, ExitStack] = {}  # of the directories
        self._is_running = False

    # ---- start and end ------------------------------------------------------------------------

    def start(self) -> None:
        """Lock the directories, load all logs, and schedule the tasks.

        What cannot be read takes its directory offline. Any other error (a log whose end is
        damaged after a clean shutdown, one log in two directories) is raised, and everything is
        let go of. So is CopyMarkedError for a copy in which nothing may be changed.
        """
        if self._is_running:
            raise IllegalStateError("the log manager is running")
        if len({os.path.realpath(path) for path in self._paths}) < len(self._paths):
            raise KafkaError(f"a log directory is given twice: {', '.join(self._paths)}")
        try:
            self._start()
        except BaseException:
            self.let_go()
            raise
        self._is_running = True
        online = sum(not each.state.is_offline for each in self._managed.directories)
        _LOGGER.info("%d logs of %d log directories are loaded", len(self._managed.used()), online)
        self._schedule()

    def _start(self) -> None:
        files, managed = self._options.files, self._managed
        for path in self._paths:
            if not files.is_directory(path):
                files.make_directory(path)
            self._locks[path] = ExitStack()
            self._locks[path].enter_context(self._options.lock(path))
            require_may_change(path, files)
        managed.directories = [LogDirectory(files, path, managed.pauses) for path in self._paths]
        with collector_paused():
            _LogLoading(managed).load(managed.directories)
        for log in managed.known_logs.deleted:
            managed.deletions.add(log)
        for directory in managed.directories:
            directory.make_checkpoint(checkpoint.CLEANER_OFFSET)

    def _schedule(self) -> None:
        intervals = self._options.intervals
        self._managed.deletions.start(INITIAL_TASK_DELAY_MS)
        self._repeat(self.apply_retention, intervals.retention_ms)
        self._repeat(self.flush_dirty_logs, intervals.flush_ms)
        self._repeat(self.checkpoint_recovery_points, intervals.recovery_points_ms)
        self._repeat(self.checkpoint_log_starts, intervals.log_starts_ms)
        self._repeat(self.handle_failed_directories, intervals.failures_ms)
        self._repeat(self.clean_logs, intervals.cleaning_ms)

    def _repeat(self, task: Callable[[], object], interval_ms: int | None) -> None:
        if interval_ms is None:
            return
        scheduler = self._managed.tasks

        def run() -> None:
            if not self._is_running:
                return
            try:
                task()
            finally:
                scheduler.schedule_once(run, max(interval_ms, 1))

        scheduler.schedule_once(run, INITIAL_TASK_DELAY_MS)

    def close(self) -> list[NotClosed]:
        """Flush and close all logs, write the checkpoints, leave the markers, release the locks.

        A directory with a log that cannot be closed gets neither checkpoints nor a marker, as after
        a crash; those are returned, each with the first error.
        """
        self._running()
        self._stop()
        with self._lock:  # no log is created that would be closed by nobody
            try:
                return self._close_directories()
            finally:
                self._release()

    def _close_directories(self) -> list[NotClosed]:
        """Close all; return those that were not closed cleanly: the next start recovers them."""
        failed: list[NotClosed] = []
        for directory in self._managed.live():
            error = self._close_logs_of(directory)
            if error is None:
                self._managed.write_checkpoints(directory)
                directory.leave_marker()
            else:
                failed.append(NotClosed(directory.path, error))
                _LOGGER.error("%s: left as after a crash: %s", directory.path, error)
        _LOGGER.info("the log manager is closed")
        return failed

    def _close_logs_of(self, directory: LogDirectory) -> LogError | None:
        """The first error; all are tried."""

        def close(log: Log) -> LogError | None:
            try:
                log.prepare_for_close()
                log.flush(force=True)
                log.close(for_good=True)  # the lock of its directory is about to be given back
            except LogError as error:
                return error
            return None

        logs = [log for log in self._managed.used() if directory.holds(log)]
        with ThreadPoolExecutor(self._options.recovery_threads) as pool:
            errors = list(pool.map(close, logs))
        return next((error for error in errors if error is not None), None)

    def let_go(self) -> None:
        """Close all files without a flush and give the locks back, as if the process had ended."""
        self._stop()
        with self._lock:
            self._release()

    def _stop(self) -> None:
        self._is_running = False
        self._managed.tasks.stop()

    def _release(self) -> None:
        """The next start begins with nothing."""
        for directory in self._managed.directories:
            directory.release()
        self._managed.close_files()
        self._managed = ManagedLogs(replace(self._options, topic_settings=self._managed.settings))
        for path in list(self._locks):
            self._unlock(path)

    def _unlock(self, path: str) -> None:
        self._locks.pop(path).close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close, or after an error let go. KafkaStorageError where a log could not be closed."""
        if kind is not None:
            self.let_go()
        elif failed := self.close():
            told = "; ".join(f"{each.log_dir}: {each.error}" for each in failed)
            raise KafkaStorageError(f"logs that could not be closed, as after a crash: {told}")

    def _running(self) -> ManagedLogs:
        if not self._is_running:
            raise IllegalStateError("the log manager is not running")
        return self._managed

    # ---- logs ---------------------------------------------------------------------------------

    @property
    def logs(self) -> dict[TopicPartition, Log]:
        """All logs but those that are on their way to another directory."""
        return dict(self._managed.of(False))

    @property
    def future_logs(self) -> dict[TopicPartition, Log]:
        """The copies of logs in the directories that they are moved to."""
        return dict(self._managed.of(True))

    @property
    def live_directories(self) -> list[str]:
        return [directory.path for directory in self._managed.live()]

    def get(self, partition: TopicPartition, is_future: bool = False) -> Log | None:
        """Return a log; None where there is none."""
        return self._managed.of(is_future).get(partition)

    def prefer_directory(self, partition: TopicPartition, path: str) -> None:
        """Say where a log, or the copy of a log that exists, is created next."""
        with self._lock:
            self._managed.prefer_directory(partition, path)

    def create(self, partition: TopicPartition, is_future: bool = False) -> Log:
        """Return the log of a partition: the one that exists, or a new one.

        A new one is in the preferred directory, else in the one with the fewest logs. is_future:
        its copy, in the preferred directory, which has to be another; cleaning is to be paused
        before.
        """
        with self._lock:
            return self._running().create(partition, is_future)

    def replace_with_future(self, partition: TopicPartition) -> None:
        """End a move: the copy takes the place of the log, whose files are deleted later.

        Who has the log may go on reading it until then.
        """
        copy = self.get(partition, is_future=True)
        if copy is not None:
            copy.sync()  # most of it before anybody waits for the lock
        with self._lock:
            self._running().replace_with_future(partition)
        _LOGGER.info("%s-%d is replaced with its future log", *partition)

    def delete(
        self, partition: TopicPartition, is_future: bool = False, is_stray: bool = False
    ) -> None:
        """Take a log out of use.

        Its files go after file.delete.delay.ms; those of a stray one stay. One that does not exist
        is no error, while all directories are live.
        """
        with self._lock:
            self._running().delete(partition, is_future, is_stray)

    def truncate_to(self, offsets: Mapping[TopicPartition, int]) -> None:
        """End logs at offsets, and note it in the recovery points of their directories.

        A log that does not exist is passed over.
        """
        managed, cut = self._running(), dict[str, LogDirectory]()
        for partition, offset in offsets.items():
            log = managed.of(False).get(partition)
            if log is not None and log.truncate_to(offset):
                directory = managed.directory_of(log)
                cut[directory.path] = directory
        for directory in cut.values():
            managed.write_recovery_points(directory)

    def truncate_fully(self, partition: TopicPartition, offset: int) -> None:
        """Let a log start again at an offset; one that does not exist is passed over."""
        managed = self._running()
        log = managed.of(False).get(partition)
        if log is not None:
            log.truncate_fully(offset)
            managed.write_recovery_points(managed.directory_of(log))

    def config_of(self, topic: str) -> LogConfig:
        """The default configuration, with the topic's own settings over it."""
        return self._managed.config_of(topic)

    def configure_topic(self, topic: str, settings: Mapping[str, str]) -> None:
        """Give a topic settings in place of those that it had.

        Raise ConfigError, and change nothing, where one is wrong.
        """
        with self._lock:
            self._managed.configure_topic(topic, settings)

    # ---- tasks --------------------------------------------------------------------------------

    def apply_retention(self) -> int:
        """Delete old segments of logs, and of copies, that are not compacted; give how many."""
        managed, deleted = self._running(), 0
        current, future = managed.of(False), managed.of(True)
        wanted = [each for each, log in list(current.items()) if not log.config.is_compacted]
        with managed.pauses.claimed(wanted) as free:
            for partition in free:
                for log in (current.get(partition), future.get(partition)):
                    deleted += 0 if log is None else log.delete_old_segments()
        if deleted:
            _LOGGER.info("retention has deleted %d segments", deleted)
        return deleted

    def clean_logs(self) -> list[TopicPartition]:
        """Have compacted logs cleaned, as far as they have closed segments; give which were.

        Appends and reads go on meanwhile; what the manager itself would do to one of these logs
        waits.
        """
        managed = self._running()
        cleaned = [] if self._cleaner is None else _clean(managed, self._cleaner)
        for partition in cleaned:
            _LOGGER.info("%s-%d is cleaned", *partition)
        return cleaned

    def flush_dirty_logs(self) -> None:
        """Sync the logs that were last synced flush.ms ago.

        One that fails is passed over: its directory is offline then.
        """
        managed = self._running()
        now_ms = managed.options.clock()
        for log in managed.used():
            if now_ms - log.flushed_ms >= log.config.flush_ms:
                with suppress(KafkaStorageError):
                    log.flush()

    def checkpoint_recovery_points(self) -> None:
        """Write from where on a start after a crash has to look at each log."""
        with self._lock:
            managed = self._running()
            for directory in managed.live():
                managed.write_recovery_points(directory)

    def checkpoint_log_starts(self) -> None:
        """Write where the logs begin."""
        with self._lock:
            managed = self._running()
            for directory in managed.live():
                managed.write_log_starts(directory)

    def handle_failed_directories(self) -> list[str]:
        """Take directories that have gone offline out of use, with their logs; give which."""
        with self._lock:
            failed = [each.path for each in _take_failed_out_of_use(self._running())]
            for path in failed:
                self._unlock(path)
                _LOGGER.error("%s: offline, and its logs are out of use", path)
            return failed

    def pause_cleaning(self, partition: TopicPartition) -> None:
        """Keep the cleaner and retention away from a log; pauses add up."""
        self._managed.pauses.pause(partition)

    def resume_cleaning(self, partition: TopicPartition) -> None:
        """Take a pause back. Raise IllegalStateError where there is none."""
        self._managed.pauses.resume(partition)


def _clean(managed: ManagedLogs, cleaner: LogCleaner) -> list[TopicPartition]:
    """Let the cleaner have all compacted logs that nobody has paused; give those it has cleaned.

    Then their retention applies, and segments below the log start go. A log is not truncated,
    moved or deleted by the manager before its cleaning has ended.
    """
    current = managed.of(False)
    wanted = [each for each, log in list(current.items()) if log.config.is_compacted]
    with managed.pauses.claimed(wanted) as free:
        logs = {partition: log for partition in free if (log := current.get(partition))}
        cleaned = _cleaned(managed, cleaner, logs)
        for log in logs.values():
            log.delete_old_segments()
    return cleaned


def _cleaned(
    managed: ManagedLogs, cleaner: LogCleaner, logs: Mapping[TopicPartition, Log]
) -> list[TopicPartition]:
    asked = [_as_it_is(managed, partition, log) for partition, log in logs.items()]
    views = {log.partition: log.view for log in asked if log.bases}
    if not views:
        return []
    with cleaner.cleaned([log for log in asked if log.bases], managed.options.clock()) as done:
        return [
            result.partition
            for result in done
            if _put_in_place(managed, logs[result.partition], result, views[result.partition])
        ]


def _as_it_is(managed: ManagedLogs, partition: TopicPartition, log: Log) -> LogToClean:
    known = managed.directory_of(log).read_or_none(checkpoint.CLEANER_OFFSET)
    return LogToClean(
        partition=partition,
        directory=log.path,
        view=log.view(),
        first_dirty=known.get(partition),
        config=log.config,
    )


def _put_in_place(managed: ManagedLogs, log: Log, done: CleanedLog, view: CleanerView) -> bool:
    """Swap in all groups, then move the cleaner checkpoint; return False if one did not go in."""
    for group in done.groups:
        old = [segment for segment in view.segments if segment.base_offset in group.old_bases]
        if not log.replace_segments(group, old):
            return False
    directory = managed.directory_of(log)
    directory.move_cleaner_offset(done.partition, done.end_offset, managed.of(False))
    return True


def _take_failed_out_of_use(managed: ManagedLogs) -> list[LogDirectory]:
    """Let go of the logs of directories that have gone offline; give those directories."""
    failed = [directory for directory in managed.live() if directory.state.is_offline]
    for directory in failed:
        directory.is_live = False
        directory.release()
        for logs in (managed.of(False), managed.of(True)):
            for partition in [p for p, log in logs.items() if directory.holds(log)]:
                logs.pop(partition).close_handlers()
    return failed


class _LogLoading:
    """Loads the logs of all directories at a start, on several threads where much is read."""

    def __init__(self, managed: ManagedLogs) -> None:
        """managed: gets the logs; after an error, too, so that they can be closed."""
        self._managed, self._options, self._known_logs = (
            managed,
            managed.options,
            managed.known_logs,
        )

    def load(self, directories: Sequence[LogDirectory]) -> None:
        """Load everything.

        What fails to be read takes its directory offline, and the others go on; any other error is
        raised when all threads have ended.
        """
        jobs: list[tuple[LogDirectory, Future[OSError | None]]] = []
        progress, threads = self._options.progress, self._options.recovery_threads
        with ExitStack() as pools:
            pools.callback(progress.end)  # when all threads have ended
            # What was closed cleanly is hardly read: Python is at work, and two threads, which hand
            # its lock to and fro at each system call, take twice as long as one.
            of_clean = pools.enter_context(ThreadPoolExecutor(1, _THREAD))
            for directory in directories:
                try:
                    directory.take_marker()
                    pool = of_clean
                    if not directory.was_clean:
                        pool = pools.enter_context(ThreadPoolExecutor(threads, _THREAD))
                    jobs += [(directory, job) for job in self._submitted(directory, pool)]
                except OSError as error:
                    _take_offline(directory, error)
        for directory, job in jobs:
            failure = job.result()
            if failure is not None:
                _take_offline(directory, failure)

    def _submitted(
        self, directory: LogDirectory, pool: ThreadPoolExecutor
    ) -> list["Future[OSError | None]"]:
        points = directory.read_or_none(checkpoint.RECOVERY_POINT)
        starts = directory.read_or_none(checkpoint.LOG_START)
        cleaned = directory.cleaned_to()
        found = [
            (name, partition)
            for name in self._options.files.list_names(directory.path)[0]
            if name not in _NOT_OF_LOGS
            if (partition := partition_of(name))[0] != _METADATA_TOPIC
        ]
        directory.is_loaded = True
        progress = self._options.progress
        progress.begin(directory.path, len(found), self._options.recovery_threads)

        def load(name: str, partition: TopicPartition) -> OSError | None:
            state = LoadingState(
                is_clean=directory.was_clean,
                recovery_point=points.get(partition, 0),
                log_start=starts.get(partition, 0),
            )
            try:
                log = self._load(directory, name, partition, state)
                if self._known_logs.current.get(partition) is log:
                    directory.note_opened(partition, log, cleaned.get(partition))
            except OSError as error:
                return error
            except KafkaStorageError as error:
                if not isinstance(error.__cause__, OSError):
                    raise
                _LOGGER.error("%s: offline: %s", directory.path, error)
            finally:
                progress.log_ended(directory.path)
            return None

        return [pool.submit(load, *each) for each in found]

    def _load(
        self, directory: LogDirectory, name: str, partition: TopicPartition, state: LoadingState
    ) -> Log:
        thread = int(threading.current_thread().name.removeprefix(f"{_THREAD}_"))
        progress = self._options.progress

        def segments_left(left: int) -> None:
            progress.segments_left(directory.path, thread, left)

        config = self._managed.config_of(partition[0])
        log = open_log(self._options, directory, name, config, state, segments_left)
        if name.endswith(DELETE_DIR):
            self._known_logs.deleted.append(log)
        elif name.endswith(STRAY_DIR):
            self._known_logs.stray.append(log)
        elif self._options.is_stray(partition):
            log.rename_directory(special_dir(*partition, STRAY_DIR), goes_on=False)
            self._known_logs.stray.append(log)
        else:
            is_future = name.endswith(FUTURE_DIR)
            logs = self._known_logs.future if is_future else self._known_logs.current
            other = logs.setdefault(partition, log)
            if other is not log:
                self._known_logs.stray.append(log)  # to be closed with the others
                raise IllegalStateError(
                    f"one log has two directories: {log.path} and {other.path}. One of them has to "
                    "be removed by hand"
                )
        return log


def _take_offline(directory: LogDirectory, error: OSError) -> None:
    directory.state.is_offline = True
    _LOGGER.error("%s: offline: %s", directory.path, error)
