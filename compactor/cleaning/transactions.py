"""The one part of cleaning that needs the order of a whole log: its transactions. Pure.

What the scan left of transactional and control batches is gone through twice, as Kafka's cleaner
goes through the log twice: once for the map, from where the dirty range begins, and once for the
cleaning, from the first segment on. Source: Kafka, CleanedTransactionMetadata,
UnifiedLog.collectAbortedTransactions, Cleaner.buildOffsetMap, Cleaner.cleanSegments; compaction
C-7.5, C-7.11, C-8.
"""

import heapq
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from cleaner_jobs.tasks.txn_batches import (
    ABORT,
    COMMIT,
    DATA,
    EMPTY_CONTROL,
    HORIZON_AHEAD,
    HORIZON_PASSED,
    RANGE_COLUMNS,
    Int64Array,
    TxnBatches,
)
from storage.formats.txn_index import AbortedTxn

FOR_MAP, FOR_CLEANING = 1, 2  # flags of an aborted range


class TxnIndexOfSegment(NamedTuple):
    """The entries of one segment's `.txnindex`, by rising last offset."""

    base_offset: int
    entries: Sequence[AbortedTxn]


class SegmentOfRound(NamedTuple):
    """A source segment, and what the scan found in it."""

    group: int
    base_offset: int
    end_offset: int  # exclusive, of its records; the base offset where it has none
    batches: TxnBatches


@dataclass(frozen=True, slots=True)
class LogTransactions:
    """All that decides about the transactions of one log in one round."""

    segments: Sequence[SegmentOfRound]
    indexes: Sequence[TxnIndexOfSegment]  # of all segments, the active one among them
    log_start_offset: int
    first_dirty_offset: int
    first_uncleanable_offset: int
    map_start: tuple[int, int]  # number in segments, position in the file: where map building reads


class Decisions(NamedTuple):
    """What becomes of the transactions of one log."""

    aborted_ranges: Int64Array  # (n, RANGE_COLUMNS)
    agrees: bool  # whether the scan, which went by the expected ranges, was right
    discardable: Int64Array  # base offsets of control batches, ascending
    changed_groups: frozenset[int]  # those in which a control batch is not copied as it is
    txn_indexes: dict[int, list[AbortedTxn]]  # by group: the entries of its destination
    control_records_dropped: dict[int, int]  # by group


class _Bookkeeping:
    """C-8.1: which producers are in an aborted transaction, which in one to be committed."""

    def __init__(self) -> None:
        self._known: list[tuple[int, int, AbortedTxn]] = []  # a heap by first offset
        self._loaded = 0
        self._aborted: dict[int, AbortedTxn] = {}
        self._with_data: set[int] = set()  # of _aborted: a data batch was seen
        self._committed: set[int] = set()

    def load(self, entries: Iterable[AbortedTxn]) -> None:
        for entry in entries:
            heapq.heappush(self._known, (entry.first_offset, self._loaded, entry))
            self._loaded += 1

    def _consume(self, last_offset: int) -> None:
        while self._known and self._known[0][0] <= last_offset:
            entry = heapq.heappop(self._known)[2]
            self._aborted.setdefault(entry.producer_id, entry)

    def is_aborted(self, producer_id: int, last_offset: int) -> bool:
        """Take in a transactional data batch (C-8.4)."""
        self._consume(last_offset)
        if producer_id in self._aborted:
            self._with_data.add(producer_id)
            return True
        self._committed.add(producer_id)
        return False

    def after_control(
        self, kind: int, producer_id: int, last_offset: int
    ) -> tuple[bool, AbortedTxn | None]:
        """Take in a control batch (C-8.5): whether it may be discarded, and the index entry that
        goes with one that may not.
        """
        self._consume(last_offset)
        if kind == ABORT:
            entry = self._aborted.pop(producer_id, None)
            if entry is not None and producer_id in self._with_data:
                self._with_data.discard(producer_id)
                return False, entry
            return True, None
        if kind == COMMIT:
            had_data = producer_id in self._committed
            self._committed.discard(producer_id)
            return not had_data, None
        return kind == EMPTY_CONTROL, None


class _Indexes:
    """The transaction indexes of a log, searched as C-8.2 says."""

    def __init__(self, log: LogTransactions) -> None:
        self._log_start_offset = log.log_start_offset
        self._segment_base_offsets = [segment.base_offset for segment in log.segments]
        self._base_offsets = [index.base_offset for index in log.indexes]
        self._entries = [list(index.entries) for index in log.indexes]
        self._columns = [np.array(entries, np.int64).reshape(-1, 4) for entries in self._entries]

    def collect(self, from_offset: int, end_offset: int) -> Iterator[AbortedTxn]:
        """Yield the entries that are loaded for [from_offset, end_offset)."""
        at = bisect_right(self._segment_base_offsets, from_offset) - 1
        base_offset = self._segment_base_offsets[at] if at >= 0 else from_offset
        first = bisect_right(self._base_offsets, base_offset - 1)
        for entries, columns in zip(self._entries[first:], self._columns[first:], strict=True):
            ends = np.flatnonzero(columns[:, 3] >= end_offset)
            count = int(ends[0]) + 1 if len(ends) else len(entries)
            held = columns[:count]
            wanted = (held[:, 2] >= self._log_start_offset) & (held[:, 1] < end_offset)
            for number in np.flatnonzero(wanted).tolist():
                yield entries[number]
            if len(ends):
                return


def expected_ranges(indexes: Iterable[TxnIndexOfSegment], log_start_offset: int) -> Int64Array:
    """What is aborted by the indexes alone: from an entry's first offset to its marker.

    So it is in every log that a broker wrote. `decide` finds out whether it is so here.
    """
    by_producer: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for index in indexes:
        for entry in index.entries:
            if entry.last_offset >= log_start_offset:
                by_producer[entry.producer_id].append((entry.first_offset, entry.last_offset))
    rows: list[tuple[int, int, int, int]] = []
    for producer_id in sorted(by_producer):
        end = -1
        for first_offset, last_offset in sorted(by_producer[producer_id]):
            if first_offset <= end:
                end = max(end, last_offset)
                rows[-1] = (*rows[-1][:2], end, FOR_MAP | FOR_CLEANING)
            else:
                end = last_offset
                rows.append((producer_id, first_offset, end, FOR_MAP | FOR_CLEANING))
    return np.array(rows, np.int64).reshape(-1, RANGE_COLUMNS)


def decide(log: LogTransactions) -> Decisions:
    """Go through the batches of a log in order, and say what becomes of them."""
    indexes = _Indexes(log)
    cleaning = _cleaning_pass(log, indexes)
    data = _concatenated(log)
    data = data[data["kind"] == DATA]
    flags = np.where(cleaning.aborted, FOR_CLEANING, 0)
    in_map = _map_pass(log, indexes, cleaning.aborted)
    flags |= np.where(in_map, FOR_MAP, 0)
    expected = _flags_by_ranges(data, expected_ranges(log.indexes, log.log_start_offset))
    differs = flags != expected
    below = data["last_offset"] < log.first_dirty_offset  # never in the map, aborted or not
    differs[below] = (flags[below] ^ expected[below]) & FOR_CLEANING != 0
    return Decisions(
        aborted_ranges=_exact_ranges(data, flags),
        agrees=not differs.any(),
        discardable=np.array(cleaning.discardable, np.int64),
        changed_groups=frozenset(cleaning.changed_groups),
        txn_indexes=cleaning.txn_indexes,
        control_records_dropped=cleaning.control_records_dropped,
    )


def _concatenated(log: LogTransactions) -> TxnBatches:
    return np.concatenate([segment.batches for segment in log.segments])


class _CleaningPass:
    """What one pass over all segments, from the first on, comes to."""

    def __init__(self) -> None:
        self.aborted: list[bool] = []  # of each data batch
        self.discardable: list[int] = []
        self.changed_groups: set[int] = set()
        self.txn_indexes: dict[int, list[AbortedTxn]] = defaultdict(list)
        self.control_records_dropped: dict[int, int] = defaultdict(int)


def _columns(batches: TxnBatches) -> Iterator[tuple[int, int, int]]:
    """Kind, producer id and last offset of each."""
    names = ("kind", "producer_id", "last_offset")
    return zip(*(batches[name].tolist() for name in names), strict=True)


def _cleaning_pass(log: LogTransactions, indexes: _Indexes) -> _CleaningPass:
    result, books = _CleaningPass(), _Bookkeeping()
    for number, segment in enumerate(log.segments):
        following = log.segments[number + 1 : number + 2]
        end_offset = segment.end_offset
        if following and following[0].group == segment.group:
            end_offset = following[0].base_offset
        books.load(indexes.collect(segment.base_offset, end_offset))
        for i, (kind, producer_id, last_offset) in enumerate(_columns(segment.batches)):
            if kind == DATA:
                result.aborted.append(books.is_aborted(producer_id, last_offset))
                continue
            may_go, entry = books.after_control(kind, producer_id, last_offset)
            if entry is not None:
                result.txn_indexes[segment.group].append(entry)
            if may_go:
                _note_discardable(result, segment, i)
    return result


def _note_discardable(result: _CleaningPass, segment: SegmentOfRound, number: int) -> None:
    batch = segment.batches[number]
    result.discardable.append(int(batch["base_offset"]))
    if batch["horizon"] != HORIZON_AHEAD or batch["kind"] == EMPTY_CONTROL:
        result.changed_groups.add(segment.group)
    if batch["horizon"] == HORIZON_PASSED:
        result.control_records_dropped[segment.group] += int(batch["records"])


def _map_pass(log: LogTransactions, indexes: _Indexes, unread: list[bool]) -> list[bool]:
    """Whether each data batch is aborted for the map; as for the cleaning, where it is not read."""
    if not log.indexes:
        return unread
    books, aborted = _Bookkeeping(), []
    books.load(indexes.collect(log.first_dirty_offset, log.first_uncleanable_offset))
    start_segment, start_position = log.map_start
    for number, segment in enumerate(log.segments):
        batches = segment.batches
        is_read = np.full(len(batches), number >= start_segment)
        if number == start_segment:
            is_read = batches["position"] >= start_position
        for (kind, producer_id, last_offset), read in zip(
            _columns(batches), is_read.tolist(), strict=True
        ):
            if kind != DATA:
                if read:
                    books.after_control(kind, producer_id, last_offset)
            elif read:
                aborted.append(books.is_aborted(producer_id, last_offset))
            else:
                aborted.append(unread[len(aborted)])
    return aborted


def _flags_by_ranges(data: TxnBatches, ranges: Int64Array) -> Int64Array:
    """The flags that ranges give to each batch."""
    flags = np.zeros(len(data), np.int64)
    order = np.argsort(data["producer_id"], kind="stable")
    producer_ids, last_offsets = data["producer_id"][order], data["last_offset"][order]
    changes = (np.flatnonzero(np.diff(ranges[:, 0])) + 1).tolist()
    for start, end in pairwise([0, *changes, len(ranges)] if len(ranges) else []):
        own = ranges[start:end]
        low, high = (np.searchsorted(producer_ids, own[0, 0], s) for s in ("left", "right"))
        at = np.searchsorted(own[:, 1], last_offsets[low:high], "right") - 1
        inside = (at >= 0) & (last_offsets[low:high] <= own[at, 2])
        flags[order[low:high]] = np.where(inside, own[at, 3], 0)
    return flags


def _exact_ranges(data: TxnBatches, flags: Int64Array) -> Int64Array:
    """Ranges that give each batch its flags, and cover no other one."""
    order = np.argsort(data["producer_id"], kind="stable")
    producer_ids, last_offsets = data["producer_id"][order], data["last_offset"][order]
    flags = flags[order]
    changes = (np.diff(producer_ids) != 0) | (np.diff(flags) != 0)
    starts = np.concatenate(([0], np.flatnonzero(changes) + 1)) if len(data) else np.empty(0, int)
    ends = np.concatenate((starts[1:], [len(data)])) - 1 if len(data) else starts
    columns = producer_ids[starts], last_offsets[starts], last_offsets[ends], flags[starts]
    ranges = np.stack(columns, axis=1).astype(np.int64)
    return np.ascontiguousarray(ranges[ranges[:, 3] != 0])
