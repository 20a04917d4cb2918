"""Compacted logs, cleaned beside appends and reads.

Source: Kafka, LogCleaner.cleanFilthiestLog, LogCleanerManager.doneCleaning; spec C-3, C-17.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from storage.formats import checkpoint
from storage.formats.checkpoint import TopicPartition
from storage.log.engine.log import Log
from storage.log.engine.log_config import LogConfig
from storage.log.engine.segment_swap import CleanedGroup, LogView
from storage.log.manager.managed_logs import ManagedLogs


@dataclass(frozen=True, slots=True, kw_only=True)
class LogToClean:
    """A compacted log at one moment. Nothing below the active segment is written to any more."""

    partition: TopicPartition
    directory: str
    view: LogView
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
