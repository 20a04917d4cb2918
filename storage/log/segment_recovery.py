"""The recovery of one segment, as a broker does it: every batch in order, and its indexes anew.

A broker that starts recovers a segment whose `.index` is missing, and, where it did not stop in
good order, every one that it cannot know to be on disk. What was beside the `.log` before does not
count. Source: Kafka, LogSegment.recover; spec F-12.5, F-16.1.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from storage.errors import CorruptFileError
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats.batch_header import MAGIC
from storage.formats.leader_epoch_checkpoint import EpochEntry
from storage.formats.record_batch import BatchHeader
from storage.formats.segment_indexes import IndexBuilder, SegmentIndexes
from storage.log.segment_reader import read_batch_headers, read_batches

_BATCHES_AT_ONCE = 100_000


@dataclass(frozen=True, slots=True)
class RecoveredSegment:
    """What a segment holds up to its end, or up to where it is damaged."""

    base_offset: int
    log_bytes: int
    end_offset: int
    indexes: SegmentIndexes
    epochs: tuple[EpochEntry, ...]  # each leader epoch that is higher than those before
    damage: CorruptFileError | None  # of the batch at log_bytes
    is_out_of_order: bool = False  # that batch is whole, and does not follow the one before


def rebuilt_indexes(
    log_path: str,
    base_offset: int,
    log_bytes: int,
    index_interval_bytes: int,
    files: Files = LOCAL,
) -> SegmentIndexes:
    """Build both indexes of a segment. CorruptFileError where the log ends within a batch."""
    making = _IndexesInMaking(base_offset, index_interval_bytes)
    headers = (header for _, header in read_batch_headers(log_path, 0, log_bytes, files))
    while some := list(islice(headers, _BATCHES_AT_ONCE)):
        for header in some:
            making.add(header)
    return making.finish()


def recover_segment(
    log_path: str,
    base_offset: int,
    index_interval_bytes: int,
    on_batch: Callable[[BatchHeader, int], object],
    files: Files = LOCAL,
) -> RecoveredSegment:
    """Walk a segment with its checksums, up to the first batch that is damaged.

    on_batch is given each sound batch of format v2, and its position; what it raises is passed on.
    """
    making = _IndexesInMaking(base_offset, index_interval_bytes)
    epochs: list[EpochEntry] = []
    end_offset, log_bytes = base_offset, 0
    damage, is_out_of_order = None, False
    batches = read_batches(log_path, files=files)
    while True:
        try:
            position, header, _ = next(batches)
        except StopIteration:
            break
        except CorruptFileError as error:
            damage = error
            break
        if header.base_offset < end_offset:
            problem = f"base offset {header.base_offset}, expected {end_offset} or more"
            damage, is_out_of_order = CorruptFileError(log_path, position, problem), True
            break
        making.add(header)
        end_offset, log_bytes = header.next_offset, position + header.size_bytes
        if header.magic == MAGIC:
            epoch = header.partition_leader_epoch
            if epoch >= 0 and (not epochs or epoch > epochs[-1].epoch):
                epochs.append(EpochEntry(epoch, header.base_offset))
            on_batch(header, position)
    return RecoveredSegment(
        base_offset=base_offset,
        log_bytes=log_bytes,
        end_offset=end_offset,
        indexes=making.finish(),
        epochs=tuple(epochs),
        damage=damage,
        is_out_of_order=is_out_of_order,
    )


@dataclass(slots=True)
class _IndexesInMaking:
    base_offset: int
    index_interval_bytes: int
    _builder: IndexBuilder = field(init=False)
    _waiting: list[tuple[int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._builder = IndexBuilder(self.base_offset, self.index_interval_bytes)

    def add(self, header: BatchHeader) -> None:
        self._waiting.append((header.size_bytes, header.last_offset, header.max_timestamp))
        if len(self._waiting) >= _BATCHES_AT_ONCE:
            self._flush()

    def finish(self) -> SegmentIndexes:
        self._flush()
        return self._builder.finish()

    def _flush(self) -> None:
        if self._waiting:
            self._builder.add(*np.array(self._waiting, np.int64).T.copy())
            self._waiting.clear()
