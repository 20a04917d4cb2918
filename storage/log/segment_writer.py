"""Writes one segment from its first batch on: the `.log`, and at the end both of its indexes.

The indexes are a pure function of the batches (F-12.3), so only columns of these are kept until the
segment is finished. What `is_full` needs to know of them on the way is counted as Kafka counts it.
Source: Kafka, LogSegment.append, shouldRoll, onBecomeInactiveSegment; spec F-12.
"""

import os
from array import array

import numpy as np

from storage.file_names import INDEX, LOG, TIME_INDEX, file_name
from storage.formats import offset_index, time_index
from storage.formats.batch_header import NO_TIMESTAMP
from storage.formats.record_batch import BatchHeader
from storage.formats.segment import MAX_RELATIVE_OFFSET
from storage.formats.segment_indexes import build_indexes

_BUFFER_BYTES = 1024 * 1024


class SegmentWriter:
    """A new segment of a partition directory. Finish it, or its indexes are missing."""

    def __init__(self, partition_dir: str, base_offset: int, index_interval_bytes: int) -> None:
        self.base_offset = base_offset
        self.size_bytes = 0
        self.first_timestamp = NO_TIMESTAMP  # of the first batch, its largest
        self._prefix = os.path.join(partition_dir, file_name(base_offset, ""))
        self._log = open(self._prefix + LOG, "xb", buffering=_BUFFER_BYTES)  # noqa: SIM115
        self._index_interval_bytes = index_interval_bytes
        self._sizes, self._last_offsets, self._max_timestamps = array("q"), array("q"), array("q")
        self._bytes_since_entry = self._offset_entries = self._time_entries = 0
        self._max_timestamp = self._last_indexed = NO_TIMESTAMP

    def append(self, header: BatchHeader, batch: bytes) -> None:
        """Put a whole batch at the end. Its offsets follow those before; they fit the segment."""
        assert self.fits(header.last_offset), "roll first"
        if not self._sizes:
            self.first_timestamp = header.max_timestamp
        self._log.write(batch)
        self._count_entries(header)
        self._sizes.append(len(batch))
        self._last_offsets.append(header.last_offset)
        self._max_timestamps.append(header.max_timestamp)
        self.size_bytes += len(batch)

    def fits(self, last_offset: int) -> bool:
        """Whether the offset fits an index entry, which is relative to the segment's base."""
        return 0 <= last_offset - self.base_offset <= MAX_RELATIVE_OFFSET

    def is_full(self, segment_index_bytes: int) -> bool:
        """Whether an index has no room for another entry (F-10.4)."""
        return (
            self._offset_entries >= segment_index_bytes // offset_index.ENTRY.itemsize
            or self._time_entries >= segment_index_bytes // time_index.ENTRY.itemsize - 1
        )

    def finish(self) -> None:
        """Write the indexes, and return once all three files are on disk."""
        indexes = build_indexes(
            self.base_offset,
            np.array(self._sizes),
            np.array(self._last_offsets),
            np.array(self._max_timestamps),
            self._index_interval_bytes,
        )
        assert indexes.problem is None, indexes.problem
        self._log.flush()
        os.fsync(self._log.fileno())
        self._log.close()
        for suffix, data in ((INDEX, indexes.offset_index), (TIME_INDEX, indexes.time_index)):
            with open(self._prefix + suffix, "xb") as index:
                index.write(data)
                index.flush()
                os.fsync(index.fileno())

    def abandon(self) -> None:
        """Let go of the file, unfinished."""
        self._log.close()

    def _count_entries(self, header: BatchHeader) -> None:
        self._max_timestamp = max(self._max_timestamp, header.max_timestamp)
        if self._bytes_since_entry > self._index_interval_bytes:
            self._offset_entries += 1
            if self._max_timestamp > self._last_indexed:
                self._time_entries += 1
                self._last_indexed = self._max_timestamp
            self._bytes_since_entry = 0
        self._bytes_since_entry += header.size_bytes
