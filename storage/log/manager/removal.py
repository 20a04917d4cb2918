"""Logs that are taken out of use: deleted, kept aside, or replaced by their copy elsewhere.

Source: Kafka, LogManager.asyncDelete, replaceCurrentWithFutureLog; spec L-28.6, L-28.8.
"""

import logging

from storage.file_names import DELETE_DIR, STRAY_DIR, special_dir
from storage.formats import checkpoint
from storage.formats.checkpoint import TopicPartition
from storage.log.errors import KafkaStorageError
from storage.log.log import Log
from storage.log.manager.managed_logs import ManagedLogs

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
    2. The copy's directory gets the final name. A crash from here on leaves the partition in two
       directories, and the next start refuses until a person has removed one of them.
    3. How far the log was cleaned goes to the checkpoint of the copy's directory.
    4. The directory of the log is renamed, to be deleted. From here on a start finds the copy.
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
