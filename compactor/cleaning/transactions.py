"""The one part of cleaning that needs the order of a whole log: its transactions. Pure.

What the scan left of transactional and control batches is gone through twice, as Kafka's cleaner
goes through the log twice: once for the map, from where the dirty range begins, and once for the
cleaning, from the first segment on. Both at once, and a part of the log at a time: what is held
are the rows of that part, the entries of the transaction indexes, and a row for each producer.
Source: Kafka, CleanedTransactionMetadata, UnifiedLog.collectAbortedTransactions,
Cleaner.buildOffsetMap, Cleaner.cleanSegments; compaction C-7.5, C-7.11, C-8.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.kernels.transactions import (
    ENTRY_FIRST,
    ENTRY_LAST,
    TABLE_COLUMNS,
    AbortedTxns,
    flags_in_ranges,
    follow_transactions,
    move_table,
)
from cleaner_jobs.txn_batches import (
    DATA,
    EMPTY_CONTROL,
    HORIZON_AHEAD,
    HORIZON_PASSED,
    Int64Array,
    TxnBatches,
    words_of,
)
from compactor.cleaning.aborted_ranges import (
    FOR_CLEANING,
    FOR_MAP,
    TxnIndexOfSegment,
    all_entries,
    expected_ranges,
)
from compactor.cleaning.stage_values import Decisions
from storage.formats.txn_index_columns import Entries

FIRST_ROWS = 64  # of a table of producers


class SegmentOfRound(NamedTuple):
    """A source segment, and where the records that the scan found in it end."""

    group: int
    base_offset: int
    end_offset: int  # exclusive; the base offset where it has no record


# Gives, anew at each call, runs of rows in the order of the log, each with its segment's number.
RunsOfBatches = Callable[[], Iterator[tuple[int, TxnBatches]]]


@dataclass(frozen=True, slots=True)
class LogTransactions:
    """All that decides about the transactions of one log in one round."""

    segments: Sequence[SegmentOfRound]
    batches: RunsOfBatches
    indexes: Sequence[TxnIndexOfSegment]  # of all segments, the active one among them
    log_start_offset: int
    first_dirty_offset: int
    first_uncleanable_offset: int
    map_start: tuple[int, int]  # number in segments, position in the file: where map building reads


class ProducerTable:
    """A table of producers for the kernels, made larger where one of them has no room."""

    def __init__(self) -> None:
        self.rows = np.zeros((FIRST_ROWS, TABLE_COLUMNS), np.int64)
        self.used = 0

    def grow(self) -> None:
        larger = np.zeros((2 * len(self.rows), TABLE_COLUMNS), np.int64)
        move_table(self.rows, larger)
        self.rows = larger


class _Books:
    """C-8.1: which producers are in an aborted transaction, which in one to be committed."""

    def __init__(self, entries: Entries) -> None:
        self._entries, self._producers = entries, ProducerTable()
        self._known, self._taken = np.empty(0, np.int64), 0

    def load(self, numbers: Int64Array) -> None:
        """Know of more aborted transactions."""
        known = np.concatenate((self._known[self._taken :], numbers))
        order = np.argsort(self._entries[known, ENTRY_FIRST], kind="stable")
        self._known, self._taken = known[order], 0

    def follow(self, batches: TxnBatches) -> tuple[NDArray[np.uint8], Int64Array]:
        """Take in batches (C-8.4, C-8.5): whether each is aborted, or a control batch that may go;
        and the entry that goes with a control batch that may not, or -1.
        """
        out = np.empty(len(batches), np.uint8), np.empty(len(batches), np.int64)
        rows, done = words_of(batches), 0
        while done < len(rows):
            done, self._taken, self._producers.used = follow_transactions(
                (rows, done),
                AbortedTxns(self._entries, self._known, self._taken),
                (self._producers.rows, self._producers.used),
                out,
            )
            if done < len(rows):
                self._producers.grow()
        return out


class _Indexes:
    """The transaction indexes of a log, searched as C-8.2 says."""

    def __init__(self, log: LogTransactions) -> None:
        self._log_start_offset = log.log_start_offset
        self._segment_base_offsets = [segment.base_offset for segment in log.segments]
        self._base_offsets = [index.base_offset for index in log.indexes]
        self._ends = np.cumsum([len(index.entries) for index in log.indexes], dtype=int).tolist()
        self.entries = all_entries(log.indexes)

    def collect(self, from_offset: int, end_offset: int) -> Int64Array:
        """The numbers of the entries that are loaded for [from_offset, end_offset)."""
        at = bisect_right(self._segment_base_offsets, from_offset) - 1
        base_offset = self._segment_base_offsets[at] if at >= 0 else from_offset
        first = bisect_right(self._base_offsets, base_offset - 1)
        start = end = self._ends[first - 1] if first else 0
        for number in range(first, len(self._ends)):
            own_start, end = end, self._ends[number]
            reaching = np.flatnonzero(self.entries[own_start:end, 3] >= end_offset)
            if len(reaching):
                end = own_start + int(reaching[0]) + 1
                break
        held = self.entries[start:end]
        wanted = held[:, ENTRY_LAST] >= self._log_start_offset
        return start + np.flatnonzero(wanted & (held[:, ENTRY_FIRST] < end_offset))


class _Followed(NamedTuple):
    """What the books say of a run of batches."""

    segment: SegmentOfRound
    batches: TxnBatches
    verdicts: NDArray[np.uint8]  # of the cleaning, as _Books.follow gives them
    kept_entries: Int64Array
    flags: NDArray[np.uint8]  # of data batches; 0 for others


def decide(log: LogTransactions) -> Decisions:
    """Go through the batches of a log in order, and say what becomes of them."""
    indexes = _Indexes(log)
    expected = expected_ranges(log.indexes, log.log_start_offset)
    result, agrees = _Result(), True
    for run in _follow(log, indexes):
        scanned = np.empty(len(run.batches), np.uint8)
        flags_in_ranges(words_of(run.batches), expected, scanned)
        differs = run.flags ^ scanned
        # never in the map, aborted or not
        differs[run.batches["last_offset"] < log.first_dirty_offset] &= FOR_CLEANING
        agrees &= not differs.any()
        result.add_controls(run, indexes.entries)
    return Decisions(
        agrees=agrees,
        discardable=np.concatenate([np.empty(0, np.int64), *result.discardable]),
        changed_groups=frozenset(result.changed_groups),
        txn_indexes={g: np.concatenate(found) for g, found in result.txn_indexes.items()},
        control_records_dropped=result.control_records_dropped,
    )


def exact_ranges(log: LogTransactions) -> Int64Array:
    """Ranges that give each data batch its flags, and cover no other one; for `flag_aborted`."""
    found = [np.empty((0, 4), np.int64)]
    for run in _follow(log, _Indexes(log)):
        data = run.batches["kind"] == DATA
        last_offsets = run.batches["last_offset"][data]
        columns = run.batches["producer_id"][data], last_offsets, last_offsets, run.flags[data]
        found.append(_merged(np.stack(columns, axis=1).astype(np.int64)))
    ranges = _merged(np.concatenate(found))
    return np.ascontiguousarray(ranges[ranges[:, 3] != 0])


def _merged(ranges: Int64Array) -> Int64Array:
    """Neighbours of one producer and with the same flags as one; by producer, then in order."""
    ranges = ranges[np.argsort(ranges[:, 0], kind="stable")]
    changes = np.any(np.diff(ranges[:, [0, 3]], axis=0) != 0, axis=1)
    starts = np.concatenate(([0], np.flatnonzero(changes) + 1)) if len(ranges) else np.empty(0, int)
    merged = ranges[starts]
    merged[:, 2] = ranges[np.concatenate((starts[1:], [len(ranges)]))[: len(starts)] - 1, 2]
    return merged


def _follow(log: LogTransactions, indexes: _Indexes) -> Iterator[_Followed]:
    cleaning, mapping = _Books(indexes.entries), _Books(indexes.entries)
    mapping.load(indexes.collect(log.first_dirty_offset, log.first_uncleanable_offset))
    loaded = 0
    for number, batches in log.batches():
        while loaded <= number:
            cleaning.load(_collect_for(log.segments, loaded, indexes))
            loaded += 1
        verdicts, kept_entries = cleaning.follow(batches)
        in_map = verdicts.copy()  # as for the cleaning, where it is not read
        first = _first_read(log, number, batches)
        if log.indexes:
            in_map[first:], _ = mapping.follow(batches[first:])
        is_data = batches["kind"] == DATA
        flags = (verdicts * FOR_CLEANING | in_map * FOR_MAP) * is_data
        yield _Followed(log.segments[number], batches, verdicts, kept_entries, flags)


def _collect_for(segments: Sequence[SegmentOfRound], number: int, indexes: _Indexes) -> Int64Array:
    segment = segments[number]
    end_offset = segment.end_offset
    if number + 1 < len(segments) and segments[number + 1].group == segment.group:
        end_offset = segments[number + 1].base_offset
    return indexes.collect(segment.base_offset, end_offset)


def _first_read(log: LogTransactions, number: int, batches: TxnBatches) -> int:
    """How many batches of a segment stand before the place where map building begins to read."""
    segment, position = log.map_start
    if number != segment:
        return 0 if number > segment else len(batches)
    return int(np.searchsorted(batches["position"], position))


class _Result:
    """What the control batches of one pass come to."""

    def __init__(self) -> None:
        self.discardable: list[Int64Array] = []
        self.changed_groups: set[int] = set()
        self.txn_indexes: dict[int, list[Entries]] = defaultdict(list)
        self.control_records_dropped: dict[int, int] = defaultdict(int)

    def add_controls(self, run: _Followed, entries: Entries) -> None:
        group = run.segment.group
        kept = run.kept_entries[run.kept_entries >= 0]
        if len(kept):
            self.txn_indexes[group].append(entries[kept])
        going = run.batches[(run.batches["kind"] != DATA) & (run.verdicts != 0)]
        if not len(going):
            return
        self.discardable.append(going["base_offset"].astype(np.int64))
        if np.any((going["horizon"] != HORIZON_AHEAD) | (going["kind"] == EMPTY_CONTROL)):
            self.changed_groups.add(group)
        passed = going["horizon"] == HORIZON_PASSED
        if passed.any():
            self.control_records_dropped[group] += int(going["records"][passed].sum())
