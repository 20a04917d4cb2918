"""How the logs of a manager come into use and go out of it.

At the start those of all directories are loaded, on several threads where much is read. Later they
are created, replaced, deleted, or kept aside.

Source: Kafka, LogManager.loadLogs, loadLog, getOrCreateLog, nextLogDirs, asyncDelete,
replaceCurrentWithFutureLog; spec L-26.3 to L-26.7, L-28.
"""

import logging
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from storage.file_names import (
    DELETE_DIR,
    FUTURE_DIR,
    STRAY_DIR,
    is_special_dir,
    parse_partition_dir,
    special_dir,
)
from storage.formats import checkpoint
from storage.formats.checkpoint import TopicPartition
from storage.log.errors import IllegalStateError, KafkaError, KafkaStorageError, NoSuchElementError
from storage.log.loading import LoadingState, LoadingWay, opened_parts
from storage.log.log import Log, LogOptions
from storage.log.log_config import LogConfig
from storage.log.managed_logs import FoundLogs, LogDirectory, ManagedLogs, is_in
from storage.log.manager_options import ManagerOptions

_LOGGER = logging.getLogger("compactor.log_manager")
_NOT_OF_LOGS = ("remote-log-index-cache",)
_THREAD = "log-recovery"  # and its number
_ANY_WAY = LoadingWay()
_METADATA_TOPIC = "__cluster_metadata"


class LogLoading:
    """One start."""

    def __init__(
        self, options: ManagerOptions, config_of: Callable[[str], LogConfig], loaded: FoundLogs
    ) -> None:
        """loaded: gets the logs; after an error, too, so that they can be closed."""
        self._options, self._config_of, self._found = options, config_of, loaded

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
                if self._found.current.get(partition) is log:
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
        way = LoadingWay(
            on_segments_left=lambda left: progress.segments_left(directory.path, thread, left)
        )
        config = self._config_of(partition[0])
        options = log_options(self._options, directory, config, state, way)
        options = replace(options, truncating=partial(directory.truncating, partition))
        log = Log(opened_parts(directory.place(name), options))  # the manager has asked for marks
        if name.endswith(DELETE_DIR):
            self._found.deleted.append(log)
        elif name.endswith(STRAY_DIR):
            self._found.stray.append(log)
        elif self._options.is_stray(partition):
            log.rename_directory(special_dir(*partition, STRAY_DIR), goes_on=False)
            self._found.stray.append(log)
        else:
            is_future = name.endswith(FUTURE_DIR)
            logs = self._found.future if is_future else self._found.current
            other = logs.setdefault(partition, log)
            if other is not log:
                self._found.stray.append(log)  # to be closed with the others
                raise IllegalStateError(
                    f"one log has two directories: {log.path} and {other.path}. One of them has to "
                    "be removed by hand"
                )
        return log


def _take_offline(directory: LogDirectory, error: OSError) -> None:
    directory.state.is_offline = True
    _LOGGER.error("%s: offline: %s", directory.path, error)


def prefer_directory(managed: ManagedLogs, partition: TopicPartition, path: str) -> None:
    """Note where a log, or the copy of a log, is created next.

    Nothing where the log or its copy is in that directory already.
    """
    wanted = os.path.abspath(path)
    there = [managed.of(is_future).get(partition) for is_future in (False, True)]
    if not any(is_in(log, wanted) for log in there):
        managed.preferred[partition] = wanted


def create(managed: ManagedLogs, partition: TopicPartition, is_future: bool) -> Log:
    """Return a log, or a new one in the preferred directory, else in one with fewest."""
    there = managed.of(is_future).get(partition)
    if there is not None:
        return there
    directories = _places_for(managed, partition, is_future)
    name = "{}-{}".format(*partition)
    if is_future:
        name = special_dir(*partition, FUTURE_DIR)
    log = _created(managed, partition, name, directories)
    if not is_future:
        directory = managed.directory_of(log)
        directory.note_opened(partition, log, directory.cleaned_to().get(partition))
    managed.of(is_future)[partition] = log
    managed.preferred.pop(partition, None)
    return log


def _places_for(
    managed: ManagedLogs, partition: TopicPartition, is_future: bool
) -> list[LogDirectory]:
    preferred = managed.preferred.get(partition)
    if is_future:
        _require_movable(managed, partition, preferred)
    if preferred is None:
        return sorted(managed.live(), key=lambda directory: len(managed.logs_in(directory)))
    found = [directory for directory in managed.directories if directory.path == preferred]
    if not found:
        raise KafkaStorageError(f"{preferred} is none of the log directories")
    return found


def _require_movable(
    managed: ManagedLogs, partition: TopicPartition, preferred: str | None
) -> None:
    name = "{}-{}".format(*partition)
    if preferred is None:
        raise IllegalStateError(f"no directory is preferred for {name} to move to")
    current = managed.of(False).get(partition)
    if current is None:
        raise NoSuchElementError(f"there is no log {name}")
    if is_in(current, preferred):
        raise IllegalStateError(f"{current.path} is in that directory already")


def _created(
    managed: ManagedLogs,
    partition: TopicPartition,
    name: str,
    directories: Sequence[LogDirectory],
) -> Log:
    """Create a log in the first directory that takes it; one that does not goes offline."""
    files = managed.options.files
    for directory in directories:
        if not directory.is_live:
            continue
        path = directory.place(name)
        try:
            if not files.is_directory(path):
                files.make_directory(path)
        except OSError:
            directory.state.is_offline = True
            continue
        config = managed.config_of(partition[0])
        return open_log(managed.options, directory, name, config, LoadingState())
    tried = ", ".join(directory.path for directory in directories)
    raise KafkaStorageError(f"no log directory takes {name}; tried {tried}")


def delete(
    managed: ManagedLogs, partition: TopicPartition, is_future: bool, is_stray: bool
) -> None:
    """Take a log out of use; its files go later, those of a stray one stay."""
    log = managed.of(is_future).pop(partition, None)
    if log is None:
        if len(managed.live()) < len(managed.directories):
            name = "{}-{}".format(*partition)
            raise KafkaStorageError(f"{name} may be in a directory that is offline")
        return
    directory = managed.directory_of(log)
    if not is_future:
        with managed.pauses.paused(partition):
            directory.move_cleaner_offset(partition, None, managed.found.current)
    kind = STRAY_DIR if is_stray else DELETE_DIR
    log.rename_directory(special_dir(*partition, kind), goes_on=False)
    if is_stray:
        managed.found.stray.append(log)
    else:
        managed.deletions.add(log)
    managed.write_checkpoints(directory)
    _LOGGER.info("%s-%d is out of use", *partition)


def replace_with_future(managed: ManagedLogs, partition: TopicPartition) -> None:
    """Let the copy take the place of its log, whose files are deleted later.

    1. The copy is synced, which Kafka leaves out: a power cut after the deletion of the log would
       take the records with it.
    2. The copy's directory gets the final name. A crash from now on leaves the partition in two
       directories, and the next start refuses until a person has removed one of them.
    3. How far the log was cleaned goes to the checkpoint of the copy's directory.
    4. The directory of the log is renamed, to be deleted. From now on a start finds the copy.
    """
    current, future = managed.of(False), managed.of(True)
    source, copy = current.get(partition), future.get(partition)
    if source is None or copy is None:
        name = "{}-{}".format(*partition)
        raise KafkaStorageError(f"{name} has no copy in another directory to go on with")
    copy.sync()
    copy.rename_directory("{}-{}".format(*partition), goes_on=True)
    copy.update_high_watermark(source.high_watermark)
    with managed.directory_of(copy).lock:  # who truncates or checkpoints sees all of it or nothing
        del future[partition]
        current[partition] = copy
        _move_cleaner_offset(managed, partition, source, copy)
    managed.pauses.resume(partition)
    _queue_replaced(managed, partition, source)


def _move_cleaner_offset(
    managed: ManagedLogs, partition: TopicPartition, source: Log, copy: Log
) -> None:
    before, after = managed.directory_of(source), managed.directory_of(copy)
    offset = before.read_or_none(checkpoint.CLEANER_OFFSET).get(partition)
    if offset is not None:
        before.move_cleaner_offset(partition, None, managed.found.current)
    if offset is not None or partition in after.read_or_none(checkpoint.CLEANER_OFFSET):
        after.move_cleaner_offset(partition, offset, managed.found.current)
        after.note_opened(partition, copy, offset)  # which may end below the log


def _queue_replaced(managed: ManagedLogs, partition: TopicPartition, source: Log) -> None:
    directory = managed.directory_of(source)
    try:
        source.rename_directory(special_dir(*partition, DELETE_DIR), goes_on=True)
    except KafkaStorageError:
        source.close_handlers()
        raise
    managed.write_checkpoints(directory)
    managed.deletions.add(source)


def open_log(
    options: ManagerOptions,
    directory: LogDirectory,
    name: str,
    config: LogConfig,
    state: LoadingState,
) -> Log:
    """Open the log in a directory of a log directory."""
    made = log_options(options, directory, config, state)
    own = partial(directory.truncating, partition_of(name))
    return Log(opened_parts(directory.place(name), replace(made, truncating=own)))


def log_options(
    options: ManagerOptions,
    directory: LogDirectory,
    config: LogConfig,
    state: LoadingState,
    way: LoadingWay = _ANY_WAY,
) -> LogOptions:
    """By which a log of a directory is opened."""
    assert options.scheduler is not None, "given to every log"
    return LogOptions(
        clock=options.clock,
        scheduler=options.scheduler,
        config=config,
        files=options.files,
        state=state,
        producer_settings=options.producer_settings,
        directory=directory.state,
        way=way,
        kafka=options.kafka,
    )


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
