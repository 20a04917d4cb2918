"""Records of an offline log as callers read and append them, and the filter of those they read.

Kept apart from what opens a log, which loads the engine.
"""

from dataclasses import dataclass
from typing import NamedTuple

from compactor.settings.rules import Isolation


class ReadRecord(NamedTuple):
    """A record as it was read."""

    offset: int
    timestamp_ms: int | None  # None: it has none
    timestamp_type: str | None  # CreateTime or LogAppendTime; None in format v0
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFilter:
    """Which records of an open log are read."""

    start_offset: int | None = None
    end_offset: int | None = None  # exclusive
    isolation: Isolation = Isolation.LOG_END
    max_bytes: int | None = None  # of the log's files
    limit: int | None = None  # of records
    key: bytes | None = None  # only records with this key


_OVERHEAD_BYTES = 20  # of a record beside key, value and headers, about


class NewRecord(NamedTuple):
    """A record that has no offset yet."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int | None = None  # None: that of the append; -1: the record has none
    headers: tuple[tuple[bytes, bytes | None], ...] = ()

    @property
    def size_bytes(self) -> int:
        parts = [self.key, self.value, *(part for header in self.headers for part in header)]
        return _OVERHEAD_BYTES + sum(len(part) for part in parts if part is not None)
