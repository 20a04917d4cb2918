"""Both indexes of a segment as a function of its batches: what Kafka writes, and recovery rebuilds.

Once more than `index.interval.bytes` lie between the start of the batch that got the last entry and
a batch, that batch gets an entry: its last offset in the offset index, the largest timestamp so far
in the time index. Source: Kafka 4.3.1, LogSegment.append, recover, onBecomeInactiveSegment; spec
C-13.2, C-14.2, F-12.2 to F-12.6.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage import offset_index, time_index
from storage.kernel import kernel

Int64Array = NDArray[np.int64]

MAX_RELATIVE_OFFSET = 2**31 - 1
MAX_LOG_BYTES = 2**31 - 1
_NO_TIMESTAMP = -1


class SegmentIndexes(NamedTuple):
    """Index files of a finished segment, and what decides whether Kafka would have got that far."""

    offset_index: bytes
    time_index: bytes
    time_entries_before_last_append: int  # when the last batch that got an entry came
    problem: str | None  # why no segment can hold these batches, whatever the room


def build_indexes(
    base_offset: int,
    sizes: Int64Array,
    last_offsets: Int64Array,
    max_timestamps: Int64Array,
    index_interval_bytes: int,
) -> SegmentIndexes:
    """Build the indexes of a segment from columns of its batches, in file order.

    The first batch starts at position 0 and each at the end of the one before. last_offsets and
    max_timestamps are those of the batch headers. Where `problem` is set, the indexes are of no
    use.
    """
    batches = len(sizes)
    assert len(last_offsets) == len(max_timestamps) == batches, "columns of different lengths"
    log_bytes = int(sizes.sum()) if batches else 0
    if log_bytes > MAX_LOG_BYTES:
        return _impossible(f"a segment of {log_bytes} bytes, at most {MAX_LOG_BYTES} are possible")
    outside = (last_offsets < base_offset) | (last_offsets - base_offset > MAX_RELATIVE_OFFSET)
    if outside.any():
        offset = int(last_offsets[int(outside.argmax())])
        return _impossible(f"offset {offset} does not fit a segment with base offset {base_offset}")
    offsets = np.empty(batches, offset_index.ENTRY)
    times = np.empty(batches + 1, time_index.ENTRY)
    columns = np.empty((4, batches + 1), np.int64)
    entries, time_entries, before_last = _choose_entries(
        base_offset, sizes, last_offsets, max_timestamps, index_interval_bytes, columns
    )
    offsets["relative_offset"][:entries] = columns[0, :entries]
    offsets["position"][:entries] = columns[1, :entries]
    times["timestamp"][:time_entries] = columns[2, :time_entries]
    times["relative_offset"][:time_entries] = columns[3, :time_entries]
    return SegmentIndexes(
        offsets[:entries].tobytes(), times[:time_entries].tobytes(), int(before_last), None
    )


def check_capacity(indexes: SegmentIndexes, segment_index_bytes: int) -> str | None:
    """Say why Kafka would refuse to build these indexes (C-13.7); None if it would not.

    The offset index takes what fits. The time index keeps one slot for the last entry of all, and
    is asked for room even when it then has nothing to write (F-10.4).
    """
    if indexes.problem:
        return indexes.problem
    offset_entries = len(indexes.offset_index) // offset_index.ENTRY.itemsize
    offset_room = segment_index_bytes // offset_index.ENTRY.itemsize
    if offset_entries > offset_room:
        return (
            f"{offset_entries} offset index entries, segment.index.bytes has room for {offset_room}"
        )
    time_room = segment_index_bytes // time_index.ENTRY.itemsize - 1
    if offset_entries and indexes.time_entries_before_last_append >= time_room:
        return f"time index entries outgrow segment.index.bytes, which has room for {time_room} + 1"
    return None


def _impossible(problem: str) -> SegmentIndexes:
    return SegmentIndexes(b"", b"", 0, problem)


@kernel
def _choose_entries(
    base_offset: int,
    sizes: Int64Array,
    last_offsets: Int64Array,
    max_timestamps: Int64Array,
    index_interval_bytes: int,
    columns: Int64Array,
) -> tuple[int, int, int]:
    """Fill columns: relative offsets and positions, then timestamps and their relative offsets.

    Return the number of offset entries, of time entries, and of those before the last offset entry.
    """
    entries = time_entries = before_last = 0
    position = bytes_since_entry = 0
    max_timestamp = last_indexed = _NO_TIMESTAMP
    offset_of_max = 0
    for batch in range(len(sizes)):
        if max_timestamps[batch] > max_timestamp:
            max_timestamp = max_timestamps[batch]
            offset_of_max = last_offsets[batch] - base_offset
        if bytes_since_entry > index_interval_bytes:
            columns[0, entries] = last_offsets[batch] - base_offset
            columns[1, entries] = position
            entries += 1
            before_last = time_entries
            if max_timestamp > last_indexed:
                columns[2, time_entries] = last_indexed = max_timestamp
                columns[3, time_entries] = offset_of_max
                time_entries += 1
            bytes_since_entry = 0
        bytes_since_entry += sizes[batch]
        position += sizes[batch]
    if max_timestamp > last_indexed:  # once the segment is finished, C-14.2
        columns[2, time_entries] = max_timestamp
        columns[3, time_entries] = offset_of_max
        time_entries += 1
    return entries, time_entries, before_last
