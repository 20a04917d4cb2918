"""Which records of a log are read, and what comes of each."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Isolation(StrEnum):
    """How far is read."""

    LOG_END = "log-end"  # all there is, records of aborted and open transactions too
    HIGH_WATERMARK = "high-watermark"  # what is replicated
    COMMITTED = "committed"  # of that what is decided, without aborted transactions


class ReadRecord(NamedTuple):
    """One record."""

    offset: int
    timestamp_ms: int | None  # None: it has none
    timestamp_type: str | None  # CreateTime or LogAppendTime; None in format v0
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which records of an open log."""

    start_offset: int | None = None
    end_offset: int | None = None  # exclusive
    isolation: Isolation = Isolation.LOG_END
    max_bytes: int | None = None  # of the log's files
    limit: int | None = None  # of records
    key: bytes | None = None  # only records with this key
