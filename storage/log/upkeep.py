"""Upkeep of the logs of a manager: retention, cleaning, flushes, truncation, failed directories.

Source: Kafka, LogManager.cleanupLogs, flushDirtyLogs, truncateTo, handleLogDirFailure,
LogCleaner.cleanFilthiestLog, LogCleanerManager.doneCleaning; spec L-27, L-28.11, L-22.3, C-3, C-17.
"""

from collections.abc import Mapping

from storage.formats import checkpoint
from storage.formats.checkpoint import TopicPartition
from storage.log.errors import KafkaStorageError
from storage.log.log import Log
from storage.log.log_cleaner import CleanedLog, LogCleaner, LogToClean
from storage.log.log_directory import LogDirectory
from storage.log.managed_logs import ManagedLogs
from storage.log.segment_swap import LogView


def apply_retention(managed: ManagedLogs) -> int:
    """Delete old segments of logs that are not compacted, and of their copies; give how many."""
    current, future = managed.of(False), managed.of(True)
    wanted = [each for each, log in list(current.items()) if not log.config.is_compacted]
    deleted = 0
    with managed.pauses.claimed(wanted) as free:
        for partition in free:
            for log in (current.get(partition), future.get(partition)):
                deleted += 0 if log is None else log.delete_old_segments()
    return deleted


def flush_dirty_logs(managed: ManagedLogs) -> None:
    """Sync the logs that were last synced flush.ms ago.

    One that fails is passed over: its directory is offline then.
    """
    now_ms = managed.options.clock()
    for log in managed.used():
        if now_ms - log.flushed_ms >= log.config.flush_ms:
            try:
                log.flush()
            except KafkaStorageError:
                continue


def truncate_to(managed: ManagedLogs, offsets: Mapping[TopicPartition, int]) -> None:
    """End logs at offsets, and write the recovery points of the directories of those that were cut.

    A log that does not exist is passed over.
    """
    touched: dict[str, LogDirectory] = {}
    for partition, offset in offsets.items():
        log = managed.of(False).get(partition)
        if log is not None and log.truncate_to(offset):
            directory = managed.directory_of(log)
            touched[directory.path] = directory
    for directory in touched.values():
        managed.write_recovery_points(directory)


def truncate_fully(managed: ManagedLogs, partition: TopicPartition, offset: int) -> None:
    """Let a log start again at an offset; one that does not exist is passed over."""
    log = managed.of(False).get(partition)
    if log is None:
        return
    log.truncate_fully(offset)
    managed.write_recovery_points(managed.directory_of(log))


def take_failed_out_of_use(managed: ManagedLogs) -> list[LogDirectory]:
    """Let go of the logs of directories that have gone offline; give those directories."""
    failed = [directory for directory in managed.live() if directory.state.is_offline]
    for directory in failed:
        directory.is_live = False
        directory.release()
        for logs in (managed.of(False), managed.of(True)):
            for partition in [p for p, log in logs.items() if directory.holds(log)]:
                logs.pop(partition).close_handlers()
    return failed


def clean_logs(managed: ManagedLogs, cleaner: LogCleaner) -> list[TopicPartition]:
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


def _put_in_place(managed: ManagedLogs, log: Log, done: CleanedLog, view: LogView) -> bool:
    """Swap in all groups, then move the cleaner checkpoint; return False if one did not go in."""
    for group in done.groups:
        old = [segment for segment in view.segments if segment.base_offset in group.old_bases]
        if not log.replace_segments(group, old):
            return False
    directory = managed.directory_of(log)
    directory.move_cleaner_offset(done.partition, done.end_offset, managed.of(False))
    return True
