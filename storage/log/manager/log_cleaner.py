"""What a log manager asks of whoever cleans its compacted logs, and what it gets."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from storage.formats.checkpoint import TopicPartition
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
