"""Both indexes of a segment as a function of its batches: what Kafka writes, and recovery rebuilds.

Once more than `index.interval.bytes` lie between the start of the batch that got the last entry and
a batch, that batch gets an entry: its last offset in the offset index, the largest timestamp so far
in the time index. Source: Kafka 4.3.1, LogSegment.append, recover, onBecomeInactiveSegment; spec
C-13.2, C-14.2, F-12.2 to F-12.6.
"""

import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.file_names import MAX_LOG_BYTES as MAX_LOG_BYTES
from storage.file_names import MAX_RELATIVE_OFFSET
from storage.formats import offset_index, time_index
from storage.formats.record_batch import BatchHeader

ByteArray = NDArray[np.uint8]
Int64Array = NDArray[np.int64]

_NO_TIMESTAMP = -1

_NO_LIMIT = 2**32
_BATCHES_AT_ONCE = 100_000

# batches of which this process makes entries uncompiled: they take as long as loading the kernel
_uncompiled_left = 300_000

# what is known between two calls
_POSITION, _SINCE_ENTRY, _MAX_TIMESTAMP, _OFFSET_OF_MAX, _LAST_INDEXED = range(5)
_TIME_ENTRIES, _BEFORE_LAST = 5, 6  # all time entries, those before the last offset entry
_STATE_FIELDS = 7


class SegmentIndexes(NamedTuple):
    """Index files of a finished segment, and what decides whether Kafka would have got that far."""

    offset_index: bytes
    time_index: bytes
    time_entries_before_last_append: int  # when the last batch that got an entry came
    problem: str | None  # why no segment can hold these batches, whatever the room
    problem_position: int = 0  # in the log: the first batch that no segment of this base can hold


class IndexState(NamedTuple):
    """What is known of the batches before, as the first numbers of a state (`index_state`)."""

    position: int  # in the `.log`, of the next batch
    since_entry_bytes: int  # from the batch that got the last entry of the offset index
    max_timestamp: int
    offset_of_max: int  # relative
    last_indexed: int  # the time of the last entry of the time index


def index_state(known: IndexState) -> Int64Array:
    """Return a state for `make_entries`, whose first numbers are those of an IndexState."""
    state = np.zeros(_STATE_FIELDS, np.int64)
    state[: len(known)] = known
    return state


class IndexLimits(NamedTuple):
    """What decides which batches of a segment get entries, and how many there may be."""

    base_offset: int
    interval_bytes: int
    offset_entries: int  # how many more the offset index takes
    time_entries: int  # how many more the time index takes; one that is full refuses all batches


class IndexEntries(NamedTuple):
    """The entries of some batches, as both files have them."""

    batches: int  # taken in; the next one is due for an entry that an index does not take
    offsets: bytes
    times: bytes


def make_entries(limits: IndexLimits, batches: Int64Array, state: Int64Array) -> IndexEntries:
    """Make the index entries of batches, and bring the state up to date (`index_state`).

    batches: rows that begin with size, last offset and largest time, in the order of the file.
    """
    global _uncompiled_left
    most = len(batches)
    if most > _uncompiled_left or "numba.core" in sys.modules:
        offsets, times = np.empty(most, np.int64), np.empty((most, 2), np.int64)
        done, offset_count, time_count = _kernel()(limits, batches, state, offsets, times)
    else:
        _uncompiled_left -= most
        known, rows = state.tolist(), batches.tolist()
        put, put_times = [0] * most, [[0, 0] for _ in rows]
        done, offset_count, time_count = _put_entries(limits, rows, known, put, put_times)
        state[:], offsets, times = known, np.array(put), np.array(put_times).reshape(-1, 2)
    if not offset_count:  # most single batches have no entry
        return IndexEntries(done, b"", b"")
    entries = np.empty(time_count, time_index.ENTRY)
    entries["timestamp"], entries["relative_offset"] = times[:time_count].T
    return IndexEntries(done, offsets[:offset_count].astype(">i8").tobytes(), entries.tobytes())


class IndexBuilder:
    """Makes both indexes of a segment from columns of its batches, some of them at a time.

    What it keeps in between is the entries, not the batches: a segment may have ten million.
    """

    def __init__(self, base_offset: int, index_interval_bytes: int) -> None:
        self._limits = IndexLimits(base_offset, index_interval_bytes, _NO_LIMIT, _NO_LIMIT)
        self._offsets, self._times = bytearray(), bytearray()
        self._state = index_state(IndexState(0, 0, _NO_TIMESTAMP, 0, _NO_TIMESTAMP))
        self._problem: str | None = None
        self._problem_position = 0

    def add(self, sizes: Int64Array, last_offsets: Int64Array, max_timestamps: Int64Array) -> None:
        """Take in the next batches, in file order; the first one of all starts at position 0.

        last_offsets and max_timestamps are those of the batch headers.
        """
        assert len(last_offsets) == len(max_timestamps) == len(sizes), "columns differ in length"
        base = self._limits.base_offset
        outside = (last_offsets < base) | (last_offsets - base > MAX_RELATIVE_OFFSET)
        if outside.any() and self._problem is None:
            first = int(outside.argmax())
            offset = int(last_offsets[first])
            self._problem_position = int(self._state[_POSITION] + sizes[:first].sum())
            self._problem = f"offset {offset} does not fit a segment with base offset {base}"
        if self._problem:
            self._state[_POSITION] += sizes.sum()
            return
        batches = np.stack((sizes, last_offsets, max_timestamps), axis=1)
        entries = make_entries(self._limits, batches, self._state)
        self._offsets += entries.offsets
        self._times += entries.times

    @property
    def bytes_since_entry(self) -> int:
        """The bytes from the batch that got the last entry of the offset index to the end."""
        return int(self._state[_SINCE_ENTRY])

    def finish(self) -> SegmentIndexes:
        """Give the indexes of all batches. Where `problem` is set, they are of no use."""
        log_bytes = int(self._state[_POSITION])
        if log_bytes > MAX_LOG_BYTES:
            self._problem = f"a segment of {log_bytes} bytes, at most {MAX_LOG_BYTES} are possible"
            self._problem_position = 0
        if self._problem:
            return SegmentIndexes(b"", b"", 0, self._problem, self._problem_position)
        times = bytes(self._times)
        if self._state[_MAX_TIMESTAMP] > self._state[_LAST_INDEXED]:  # C-14.2
            last = tuple(self._state[[_MAX_TIMESTAMP, _OFFSET_OF_MAX]])
            times += np.array([last], time_index.ENTRY).tobytes()
        before_last = int(self._state[_BEFORE_LAST])
        return SegmentIndexes(bytes(self._offsets), times, before_last, None)


def build_indexes(
    base_offset: int,
    sizes: Int64Array,
    last_offsets: Int64Array,
    max_timestamps: Int64Array,
    index_interval_bytes: int,
) -> SegmentIndexes:
    """Build the indexes of a segment all of whose batches are at hand; see IndexBuilder."""
    builder = IndexBuilder(base_offset, index_interval_bytes)
    builder.add(sizes, last_offsets, max_timestamps)
    return builder.finish()


def rebuild_indexes(
    headers: Iterator[BatchHeader], base_offset: int, index_interval_bytes: int
) -> SegmentIndexes:
    """Build both indexes of a sound segment from the headers of its batches, in order."""
    builder = IndexBuilder(base_offset, index_interval_bytes)
    while some := [
        (h.size_bytes, h.last_offset, h.max_timestamp) for h in islice(headers, _BATCHES_AT_ONCE)
    ]:
        builder.add(*np.array(some, np.int64).T.copy())
    return builder.finish()


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


def made_to_fit(indexes: SegmentIndexes, segment_index_bytes: int) -> SegmentIndexes:
    """Leave out entries until both indexes have the room that segment.index.bytes gives.

    Of an index that is too large every second entry stays, or every third, and so on: each of them
    is as true as before, a lookup finds an earlier one and reads on from there. The last entry of
    the time index, by which a segment's largest timestamp is known, always stays (F-12.8).
    """
    offsets = np.frombuffer(indexes.offset_index, offset_index.ENTRY)
    times = np.frombuffer(indexes.time_index, time_index.ENTRY)
    before_last = times[:-1]
    return indexes._replace(
        offset_index=_some(offsets, segment_index_bytes // offsets.itemsize).tobytes(),
        time_index=_some(before_last, segment_index_bytes // times.itemsize - 1).tobytes()
        + times[-1:].tobytes(),
    )


def _some(entries: NDArray[np.void], room: int) -> NDArray[np.void]:
    """Every n-th entry, with the smallest n that leaves no more than there is room for."""
    every = len(entries) // (max(room, 0) + 1) + 1
    return entries[every - 1 :: every]


@cache
def _kernel() -> Callable[..., tuple[int, int, int]]:
    from storage.kernels.kernel import kernel

    return kernel(_put_entries)


def _put_entries(
    limits: IndexLimits, batches: Any, state: Any, offsets: Any, times: Any
) -> tuple[int, int, int]:
    """Put entries into offsets and times; return how many batches were taken in, and both counts.

    offsets: takes both halves of an entry as one number. times: rows of time and relative offset.
    All are arrays for the kernel; without it lists of Python's numbers, which are quicker.
    """
    offset_count = time_count = 0
    for batch in range(len(batches)):
        row = batches[batch]
        size, last_offset, timestamp = row[0], row[1], row[2]
        is_due = state[_SINCE_ENTRY] > limits.interval_bytes
        if is_due and (offset_count >= limits.offset_entries or time_count >= limits.time_entries):
            return batch, offset_count, time_count
        if timestamp > state[_MAX_TIMESTAMP]:
            state[_MAX_TIMESTAMP] = timestamp
            state[_OFFSET_OF_MAX] = last_offset - limits.base_offset
        if is_due:
            offsets[offset_count] = (last_offset - limits.base_offset) << 32 | state[_POSITION]
            offset_count += 1
            state[_BEFORE_LAST] = state[_TIME_ENTRIES]
            if state[_MAX_TIMESTAMP] > state[_LAST_INDEXED]:
                entry = times[time_count]
                entry[0], entry[1] = state[_MAX_TIMESTAMP], state[_OFFSET_OF_MAX]
                time_count += 1
                state[_LAST_INDEXED] = state[_MAX_TIMESTAMP]
                state[_TIME_ENTRIES] += 1
            state[_SINCE_ENTRY] = 0
        state[_SINCE_ENTRY] += size
        state[_POSITION] += size
    return len(batches), offset_count, time_count
