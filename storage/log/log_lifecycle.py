"""How the logs of a manager come into use and go out of it: created, replaced, deleted, kept aside.

Source: Kafka, LogManager.getOrCreateLog, nextLogDirs, asyncDelete, replaceCurrentWithFutureLog;
spec L-28.
"""

import logging
import os
from collections.abc import Sequence

from storage.file_names import DELETE_DIR, FUTURE_DIR, STRAY_DIR, special_dir
from storage.formats import checkpoint
from storage.formats.checkpoint import TopicPartition
from storage.log.errors import IllegalStateError, KafkaStorageError, NoSuchElementError
from storage.log.loading import LoadingState
from storage.log.loading_logs import open_log
from storage.log.log import Log
from storage.log.log_directory import LogDirectory
from storage.log.managed_logs import ManagedLogs, is_in


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


_LOGGER = logging.getLogger("compactor.log_manager")


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
