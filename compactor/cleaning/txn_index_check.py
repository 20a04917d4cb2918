"""Whether the transaction indexes of a log fit its markers. Pure.

Nothing in a `.txnindex` is covered by a checksum, and it decides what is aborted: one wrong bit,
and committed records would go for good. But the log says it, too: an entry stands for one abort
marker, and of data of its producer since the marker before it. An entry that the log contradicts
sets the log aside. Data before an abort marker that no entry covers is taken for committed, as by
Kafka and its readers (E-53), and the markers are counted. Source: Kafka,
ProducerStateManager.lastStableOffset; log-format F-11.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.kernels.transactions import (
    ENTRY_FIRST,
    ENTRY_LAST,
    ENTRY_PRODUCER,
    FIRST_DATA,
    FOUND_COLUMNS,
    IS_KNOWN,
    MARKER_BEFORE,
    MARKER_OWNER,
    NONE,
    follow_markers,
    judge_entries,
    with_open_data,
)
from cleaner_jobs.txn_batches import ABORT, COMMIT, TXN_BATCH, Int64Array, TxnBatches, words_of
from compactor.cleaning.aborted_ranges import all_entries
from compactor.cleaning.later_markers import Marker
from compactor.cleaning.transactions import LogTransactions, ProducerTable
from storage.errors import CorruptFileError
from storage.file_names import TXN_INDEX, file_name
from storage.formats import txn_index
from storage.formats.txn_index import AbortedTxn
from storage.formats.txn_index_columns import Entries

# Gives, of some producers, the first marker of each behind the segments of the round.
LaterMarkers = Callable[[Collection[int]], Mapping[int, Marker]]


def check_indexes(log: LogTransactions, path: str, later_markers: LaterMarkers) -> int:
    """Return before how many abort markers there is data in the round that no entry covers.

    path: the partition directory. Raise CorruptFileError at an entry that cannot be.
    """
    entries = all_entries(log.indexes)
    _check_stable_offsets(log, entries, path)
    markers = _Markers(entries)
    for _, batches in log.batches():
        markers.follow(batches)
    open_at_end = markers.with_open_data()
    if open_at_end:
        markers.follow(_as_batches(later_markers(open_at_end)))
    found = markers.judged()
    ends = _segment_ends(log)
    wrong = np.flatnonzero(_is_wrong(entries, found, ends))
    if len(wrong):
        number = int(wrong[0])
        entry = AbortedTxn(*entries[number].tolist())
        problem = _problem(entry, found[number].tolist(), int(ends[number]))
        raise _corrupt(log, path, number, problem)
    return markers.unlisted


class _Markers:
    """Goes through batches in order, and holds entries against the markers among them."""

    def __init__(self, entries: Entries) -> None:
        self._entries, self._producers = entries, ProducerTable()
        self._order = np.argsort(entries[:, ENTRY_LAST], kind="stable")
        self._found = np.empty((len(entries), FOUND_COLUMNS), np.int64)
        self._judged = 0
        self.unlisted = 0  # abort markers with data that no entry covers

    def follow(self, batches: TxnBatches) -> None:
        rows, done = words_of(batches), 0
        while done < len(rows):
            done, self._judged, self._producers.used, unlisted = follow_markers(
                (rows, done),
                (self._entries, self._order, self._judged),
                (self._producers.rows, self._producers.used),
                self._found,
            )
            self.unlisted += unlisted
            if done < len(rows):
                self._producers.grow()

    def with_open_data(self) -> list[int]:
        """The producers that have data behind their last marker."""
        producer_ids = np.empty(self._producers.used, np.int64)
        count = with_open_data(self._producers.rows, producer_ids)
        found: list[int] = producer_ids[:count].tolist()
        return found

    def judged(self) -> Int64Array:
        """What was found of each entry, once all batches are done."""
        entries = self._entries, self._order, self._judged
        end = np.iinfo(np.int64).max
        self._judged = judge_entries(entries, self._producers.rows, end, self._found)
        return self._found


def _as_batches(markers: Mapping[int, Marker]) -> TxnBatches:
    """Markers of producers as what a scan leaves of them."""
    batches = np.zeros(len(markers), TXN_BATCH)
    in_order = sorted(markers.items(), key=lambda found: found[1].offset)
    for number, (producer_id, marker) in enumerate(in_order):
        batches[number]["producer_id"] = producer_id
        batches[number]["base_offset"] = batches[number]["last_offset"] = marker.offset
        batches[number]["kind"] = ABORT if marker.is_abort else COMMIT
    return batches


def _check_stable_offsets(log: LogTransactions, entries: Entries, path: str) -> None:
    """The last stable offset of an entry lies behind no transaction that was open at its marker.

    It is where a search for aborted transactions ends (C-8.2).
    """
    _, first_offsets, last_offsets, stable_offsets = entries.T
    lowest_from = np.minimum.accumulate(first_offsets[::-1])[::-1]
    lowest_behind = np.append(lowest_from[1:], np.iinfo(np.int64).max)[: len(entries)]
    wrong = np.flatnonzero(stable_offsets > np.minimum(last_offsets + 1, lowest_behind))
    if len(wrong):
        number = int(wrong[-1])
        problem = f"last stable offset {stable_offsets[number]} is past an open transaction"
        raise _corrupt(log, path, number, problem)


def _segment_ends(log: LogTransactions) -> Int64Array:
    """For each entry the end of its segment, or -1 where the round does not read that."""
    ends = {segment.base_offset: segment.end_offset for segment in log.segments}
    of_indexes = np.array([ends.get(i.base_offset, -1) for i in log.indexes], np.int64)
    return np.repeat(of_indexes, [len(index.entries) for index in log.indexes])


def _is_wrong(entries: Entries, found: Int64Array, ends: Int64Array) -> NDArray[np.bool_]:
    """Whether an entry cannot be, by what was found of it."""
    owners, known = found[:, MARKER_OWNER], found[:, IS_KNOWN] != 0
    of_another = (owners != NONE) & (owners != entries[:, ENTRY_PRODUCER])
    without = (ends >= 0) & ~(known & (entries[:, ENTRY_LAST] < ends))
    behind = found[:, MARKER_BEFORE] >= entries[:, ENTRY_FIRST]
    without_marker = (found[:, FIRST_DATA] != NONE) & ~known
    wrong: NDArray[np.bool_] = of_another | without | behind | without_marker
    return wrong


def _problem(entry: AbortedTxn, found: Sequence[int], segment_end: int) -> str:
    owner, before, _, is_known = found
    if owner not in (NONE, entry.producer_id):
        return f"the marker at {entry.last_offset} is of producer {owner}"
    if segment_end >= 0 and not (is_known and entry.last_offset < segment_end):
        return f"there is no abort marker of producer {entry.producer_id} at {entry.last_offset}"
    if before >= entry.first_offset:
        return (
            f"first offset {entry.first_offset}, but a marker of producer {entry.producer_id} "
            f"stands at {before}"
        )
    return f"producer {entry.producer_id} has no abort marker at {entry.last_offset}"


def _corrupt(log: LogTransactions, path: str, number: int, problem: str) -> CorruptFileError:
    """number: of the entry among those of all indexes."""
    for index in log.indexes:
        if number < len(index.entries):
            break
        number -= len(index.entries)
    file = os.path.join(path, file_name(index.base_offset, TXN_INDEX))
    problem_of_entry = f"entry {number} does not fit the log: {problem}"
    return CorruptFileError(file, number * txn_index.ENTRY.size, problem_of_entry)
