"""Logs whose directories are to be removed, each after file.delete.delay.ms.

Source: Kafka, LogManager.deleteLogs; spec L-27.6.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from storage.log.engine.errors import KafkaStorageError
from storage.log.engine.log import Log
from storage.log.engine.scheduler import Scheduler
from storage.log.engine.segment_values import Clock


class _Queued(NamedTuple):
    log: Log
    since_ms: int


class DeletionQueue:
    """First in, first out. Once it is started, it goes on by itself, by its scheduler."""

    def __init__(self, clock: Clock, scheduler: Scheduler, delay_ms: Callable[[], int]) -> None:
        self._clock, self._scheduler, self._delay_ms = clock, scheduler, delay_ms
        self._queue: deque[_Queued] = deque()

    def add(self, log: Log) -> None:
        self._queue.append(_Queued(log, self._clock()))

    def start(self, delay_ms: int) -> None:
        self._scheduler.schedule_once(self._run, delay_ms)

    def _run(self) -> None:
        while (wait_ms := self._wait_ms()) <= 0:
            try:
                self._queue.popleft().log.delete()
            except KafkaStorageError:
                continue  # its directory is offline; the next start queues it anew
        self._scheduler.schedule_once(self._run, wait_ms)

    def _wait_ms(self) -> int:
        delay_ms = self._delay_ms()
        if not self._queue:
            return max(delay_ms, 1)
        return self._queue[0].since_ms + delay_ms - self._clock()
