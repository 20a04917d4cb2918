"""What a segment is given, and what it gives."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from storage.files.file_pool import FilePool
from storage.kafka_versions import NEWEST, KafkaVersion
from storage.log.file_records import Slice
from storage.log.offsets import OffsetMetadata

Clock = Callable[[], int]  # ms since 1970


@dataclass(frozen=True, slots=True)
class LogPlace:
    """Where a log is, and what it works with."""

    files: FilePool
    path: str  # of the partition's directory
    clock: Clock
    kafka: KafkaVersion = NEWEST  # whose answer is given where the versions differ


class IncomingBytes(NamedTuple):
    """What is about to be appended, as far as it decides whether a segment is rolled."""

    size_bytes: int
    max_timestamp: int
    last_offset: int


class SegmentRead(NamedTuple):
    """A range of one segment."""

    metadata: OffsetMetadata  # of the first batch
    records: Slice | None  # None: nothing
    first_entry_incomplete: bool
