"""The logs of all directories, loaded when a manager starts: on several threads where much is read.

Source: Kafka, LogManager.loadLogs, loadLog; spec L-26.3 to L-26.7.
"""

import logging
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
from storage.log.errors import IllegalStateError, KafkaError, KafkaStorageError
from storage.log.loading import LoadingState, LoadingWay
from storage.log.log import Log, LogOptions
from storage.log.log_config import LogConfig
from storage.log.log_directory import LogDirectory
from storage.log.managed_logs import FoundLogs
from storage.log.manager_options import ManagerOptions
from storage.log.opening import opened_parts

_LOGGER = logging.getLogger("compactor.log_manager")
_NOT_OF_LOGS = ("remote-log-index-cache",)
_THREAD = "log-recovery"  # and its number
_ANY_WAY = LoadingWay()
_METADATA_TOPIC = "__cluster_metadata"


class LogLoading:
    """One start."""

    def __init__(
        self, options: ManagerOptions, config_of: Callable[[str], LogConfig], found: FoundLogs
    ) -> None:
        """found: gets the logs; after an error, too, so that they can be closed."""
        self._options, self._config_of, self._found = options, config_of, found

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
