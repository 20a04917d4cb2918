"""Compacted logs, cleaned beside appends and reads.

Source: Kafka, LogCleaner.cleanFilthiestLog, LogCleanerManager.doneCleaning; spec C-3, C-17.
"""

from collections.abc import Mapping

from storage.formats import checkpoint
from storage.formats.checkpoint import TopicPartition
from storage.log.log import Log
from storage.log.manager.log_cleaner import CleanedLog, LogCleaner, LogToClean
from storage.log.manager.managed_logs import ManagedLogs
from storage.log.segment_swap import LogView


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
    """Whether all of it was; then the checkpoint says how far the log is clean."""
    for group in done.groups:
        old = [segment for segment in view.segments if segment.base_offset in group.old_bases]
        if not log.replace_segments(group, old):
            return False
    directory = managed.directory_of(log)
    directory.move_cleaner_offset(done.partition, done.end_offset, managed.of(False))
    return True
