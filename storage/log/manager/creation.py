"""Logs that are created: in which directory, and under which name.

Source: Kafka, LogManager.getOrCreateLog, nextLogDirs; spec L-28.1 to L-28.3.
"""

import os
from collections.abc import Sequence

from storage.file_names import FUTURE_DIR, special_dir
from storage.formats.checkpoint import TopicPartition
from storage.log.errors import IllegalStateError, KafkaStorageError, NoSuchElementError
from storage.log.loading import LoadingState
from storage.log.log import Log
from storage.log.manager.loading_logs import open_log
from storage.log.manager.log_directory import LogDirectory
from storage.log.manager.managed_logs import ManagedLogs, is_in


def prefer_directory(managed: ManagedLogs, partition: TopicPartition, path: str) -> None:
    """Note where a log, or the copy of a log that is there, is created next; nothing where the
    log or its copy is there already.
    """
    wanted = os.path.abspath(path)
    there = [managed.of(is_future).get(partition) for is_future in (False, True)]
    if not any(is_in(log, wanted) for log in there):
        managed.preferred[partition] = wanted


def create(managed: ManagedLogs, partition: TopicPartition, is_future: bool) -> Log:
    """The log that there is, or a new one in the preferred directory, else in one with fewest."""
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
    """In the first directory that takes it; one that does not goes offline."""
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
