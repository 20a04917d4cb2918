"""Values that travel between the driver and the tasks of a cleaning round."""

from dataclasses import dataclass
from typing import NamedTuple

from storage.file_names import Segment
from storage.files.files import Entry
from storage.formats.txn_index import AbortedTxn
from storage.kafka_versions import NEWEST, KafkaVersion


class ActiveProducer(NamedTuple):
    """What the log knows of a producer that is not expired (spec C-10.1)."""

    producer_id: int
    producer_epoch: int
    last_data_offset: int | None  # None: only a marker was seen in this epoch


@dataclass(frozen=True, slots=True)
class SegmentGroup:
    """Adjacent segments that become one segment, named after the first (spec C-9, C-14.1)."""

    segments: tuple[Segment, ...]

    @property
    def base_offset(self) -> int:
        return self.segments[0].base_offset

    @property
    def log_bytes(self) -> int:
        return sum([segment.log_bytes for segment in self.segments])


@dataclass(frozen=True, slots=True)
class LogPlan:
    """One log of a round: what is to be read and rewritten, and by which settings."""

    log_id: int  # the place in the round, dirtiest first
    log_dir: str
    topic: str
    partition: int
    path: str  # the partition directory
    first_dirty_offset: int
    first_uncleanable_offset: int  # exclusive; a segment's base offset
    groups: tuple[SegmentGroup, ...]
    delete_retention_ms: int
    index_interval_bytes: int
    segment_index_bytes: int
    active_producers: tuple[ActiveProducer, ...]
    segment_bytes: int = 2**31 - 1
    log_start_offset: int = 0
    txn_index_base_offsets: tuple[int, ...] = ()  # of all segments whose `.txnindex` has entries
    # base offset and entries of segments whose `.txnindex` a broker would rebuild, file or not
    rebuilt_txn_indexes: tuple[tuple[int, tuple[AbortedTxn, ...]], ...] = ()
    notes: tuple[str, ...] = ()  # what was done to the log before this round
    limited_map_end_offset: int | None = None  # exclusive; None: the map took everything
    files: tuple[Entry, ...] = ()  # of the log, as they were when the round was planned
    legacy_horizon_ms: int = 0  # legacy tombstones go from segments no younger than that (C-6.1)
    kafka: KafkaVersion = NEWEST  # whose answer is given
    max_record_bytes: int | None = None  # of a compressed batch, decompressed; None: no limit
    # an empty batch that ends there, exclusive, stays; None: where the round ends
    kept_end_offset: int | None = None

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def kept_end(self) -> int:
        """Where a batch ends that stays although it is empty, exclusive (V-2)."""
        if self.kept_end_offset is None:
            return self.first_uncleanable_offset
        return self.kept_end_offset

    @property
    def segment_count(self) -> int:
        """Of the segments that are read and rewritten, as log_bytes."""
        return sum(len(group.segments) for group in self.groups)

    @property
    def log_bytes(self) -> int:
        return sum([group.log_bytes for group in self.groups])

    @property
    def end_offset(self) -> int:
        """What the map covers, exclusive: the checkpoint after the round (C-6.3)."""
        if self.limited_map_end_offset is None:
            return self.first_uncleanable_offset
        return self.limited_map_end_offset
