"""Splits a segment whose offsets span more than an index can hold: which new segments, and of what.

Each new segment is named after its first batch and takes the batches that follow as long as their
last offset is at most 2^31 - 1 above that. It has the bytes of the source, indexes of its own, and
the entries of the `.txnindex` whose markers it holds. Kafka leaves that file where it is, and the
records of aborted transactions would come to life in its next round.

Nothing is written here. A round puts the new files beside the log that nobody has open
(`compactor.cleaning.segment_split`), a loading log beside its own (`loading`).
Source: Kafka, LocalLog.splitOverflowedSegment; spec C-16.3, C-16.4.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from storage.errors import CorruptFileError
from storage.file_names import INDEX, LOG, MAX_RELATIVE_OFFSET, TIME_INDEX, TXN_INDEX
from storage.files.files import Files
from storage.formats import txn_index
from storage.formats.segment_indexes import (
    IndexBuilder,
    SegmentIndexes,
    check_capacity,
    made_to_fit,
)
from storage.formats.txn_index import AbortedTxn

_COPY_BYTES = 8 << 20
_BATCHES_AT_ONCE = 4096


class SplitBatch(NamedTuple):
    """A batch of the source, as far as a split has to know it."""

    position: int
    size_bytes: int
    base_offset: int
    last_offset: int
    max_timestamp: int


class IndexSettings(NamedTuple):
    """Settings of the log, in bytes: index.interval.bytes and segment.index.bytes."""

    interval_bytes: int
    index_bytes: int


@dataclass(frozen=True, slots=True)
class NewSegment:
    """Consecutive batches of the source, and what stands beside them."""

    base_offset: int
    position: int  # of the first batch in the source
    log_bytes: int
    indexes: SegmentIndexes
    aborted: Sequence[AbortedTxn]
    bytes_since_entry: int  # of the offset index, as the next append counts on

    def why_refused(self, limits: IndexSettings) -> str | None:
        """Say why Kafka could not write this segment; None if it could."""
        return check_capacity(self.indexes, limits.index_bytes)

    def files(
        self, files: Files, source_path: str, limits: IndexSettings
    ) -> Mapping[str, Iterator[bytes]]:
        """Return the contents of each of its files, by the suffix, in Kafka's order.

        Where segment.index.bytes does not take all entries of an index, some are left out. The
        bytes of the `.log` are read while they are taken: CorruptFileError where the source ends
        before they do.
        """
        indexes = self.indexes
        if self.why_refused(limits):
            indexes = made_to_fit(indexes, limits.index_bytes)
        contents = {
            LOG: self._log(files, source_path),
            INDEX: iter((indexes.offset_index,)),
            TIME_INDEX: iter((indexes.time_index,)),
        }
        if self.aborted:
            contents[TXN_INDEX] = iter((b"".join(map(txn_index.encode, self.aborted)),))
        return contents

    def _log(self, files: Files, source_path: str) -> Iterator[bytes]:
        position, end = self.position, self.position + self.log_bytes
        with files.open(source_path) as source:
            while position < end:
                data = source.read(position, min(_COPY_BYTES, end - position))
                if not data:
                    raise CorruptFileError(source_path, position, "the file ends here")
                yield data
                position += len(data)


def plan_split(
    batches: Iterable[SplitBatch], aborted: Sequence[AbortedTxn], interval_bytes: int
) -> list[NewSegment]:
    """Decide which batches of a segment each new one takes.

    Args:
        batches: All of the segment, in file order.
        aborted: The aborted transactions whose markers the segment holds.
        interval_bytes: index.interval.bytes of the log.

    Returns:
        The new segments, in file order. `indexes.problem` of one says that it cannot even hold
        its first batch.
    """
    segments: list[NewSegment] = []
    making: _Making | None = None
    for batch in batches:
        if making is None or not making.holds(batch.last_offset):
            if making is not None:
                segments.append(making.finished(aborted))
            making = _Making(batch, IndexBuilder(batch.base_offset, interval_bytes))
        making.add(batch)
    if making is not None:
        segments.append(making.finished(aborted))
    return segments


@dataclass(slots=True)
class _Making:
    """A new segment that may still take batches."""

    first: SplitBatch
    builder: IndexBuilder
    log_bytes: int = 0
    last_offset: int = -1
    waiting: list[tuple[int, int, int]] = field(default_factory=list)  # for the builder

    def holds(self, offset: int) -> bool:
        return 0 <= offset - self.first.base_offset <= MAX_RELATIVE_OFFSET

    def add(self, batch: SplitBatch) -> None:
        self.log_bytes += batch.size_bytes
        self.last_offset = max(self.last_offset, batch.last_offset)
        self.waiting.append((batch.size_bytes, batch.last_offset, batch.max_timestamp))
        if len(self.waiting) == _BATCHES_AT_ONCE:
            self._index()

    def _index(self) -> None:
        columns = np.array(self.waiting, np.int64).reshape(-1, 3)
        self.builder.add(*(np.ascontiguousarray(column) for column in columns.T))
        self.waiting.clear()

    def finished(self, aborted: Iterable[AbortedTxn]) -> NewSegment:
        self._index()
        base = self.first.base_offset
        own = tuple(txn for txn in aborted if base <= txn.last_offset <= self.last_offset)
        return NewSegment(
            base_offset=base,
            position=self.first.position,
            log_bytes=self.log_bytes,
            indexes=self.builder.finish(),
            aborted=own,
            bytes_since_entry=self.builder.bytes_since_entry,
        )
