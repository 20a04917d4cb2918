"""What a log manager asks of its cleaner and gets from it, and which logs the cleaner leaves alone.

Source: Kafka, LogCleanerManager.abortAndPauseCleaning, resumeCleaning; spec C-3.5.
"""

import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from storage.formats.checkpoint import TopicPartition
from storage.log.errors import IllegalStateError
from storage.log.log_config import LogConfig
from storage.log.segment_swap import CleanedGroup, LogView


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
