"""Which logs the cleaner leaves alone, and how often it was told so.

Source: Kafka, LogCleanerManager.abortAndPauseCleaning, resumeCleaning; spec C-3.5.
"""

import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from storage.formats.checkpoint import TopicPartition
from storage.log.errors import IllegalStateError


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
