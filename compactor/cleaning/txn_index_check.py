"""Whether the transaction indexes of a log fit its markers. Pure.

Nothing in a `.txnindex` is covered by a checksum, and it decides what is aborted: one wrong bit,
and committed records would go for good. But the log says it, too: an entry stands for one abort
marker, and of data of its producer since the marker before it. An entry that the log contradicts
sets the log aside. Data before an abort marker that no entry covers is taken for committed, as by
Kafka and its readers (E-53), and the markers are counted. Source: Kafka,
ProducerStateManager.lastStableOffset; log-format F-11.
"""

import os
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from cleaner_jobs.tasks.txn_batches import ABORT, COMMIT, DATA
from compactor.cleaning.transactions import LogTransactions, TxnIndexOfSegment
from storage.errors import CorruptFileError
from storage.file_names import TXN_INDEX, file_name
from storage.formats import txn_index
from storage.formats.txn_index import AbortedTxn


class Marker(NamedTuple):
    """The end of a transaction."""

    offset: int
    is_abort: bool


# Gives, of some producers, the first marker of each behind the segments of the round.
LaterMarkers = Callable[[Collection[int]], Mapping[int, Marker]]


@dataclass(slots=True)
class _Producer:
    """Where the data and the markers of one producer stand, by rising offset."""

    data: list[int] = field(default_factory=list)
    markers: list[int] = field(default_factory=list)
    aborts: set[int] = field(default_factory=set)  # of the markers

    def marker_before(self, offset: int) -> int:
        at = bisect_left(self.markers, offset)
        return self.markers[at - 1] if at else -1

    def first_data_of(self, marker: int) -> int | None:
        """The first data of the transaction that this marker ends; None if none is left."""
        at = bisect_right(self.data, self.marker_before(marker))
        return self.data[at] if at < len(self.data) and self.data[at] < marker else None


def check_indexes(log: LogTransactions, path: str, later_markers: LaterMarkers) -> int:
    """Return before how many abort markers there is data in the round that no entry covers.

    path: the partition directory. Raise CorruptFileError at an entry that cannot be.
    """
    _check_stable_offsets(log, path)
    producers = _producers(log)
    open_at_end = [
        producer_id
        for producer_id, found in producers.items()
        if found.data and (not found.markers or found.data[-1] > found.markers[-1])
    ]
    for producer_id, marker in (later_markers(open_at_end) if open_at_end else {}).items():
        producers[producer_id].markers.append(marker.offset)
        if marker.is_abort:
            producers[producer_id].aborts.add(marker.offset)
    owners = {marker: p for p, found in producers.items() for marker in found.markers}
    ends = {segment.base_offset: segment.end_offset for segment in log.segments}
    listed = set()
    for index in log.indexes:
        for number, entry in enumerate(index.entries):
            owner = owners.get(entry.last_offset, entry.producer_id)
            problem = _problem(entry, producers[entry.producer_id], ends.get(index.base_offset))
            if owner != entry.producer_id:
                problem = f"the marker at {entry.last_offset} is of producer {owner}"
            if problem is not None:
                raise _corrupt(path, index, number, problem)
            if _covers(entry, producers[entry.producer_id]):
                listed.add((entry.producer_id, entry.last_offset))
    return sum(
        found.first_data_of(marker) is not None and (producer_id, marker) not in listed
        for producer_id, found in producers.items()
        for marker in found.aborts
    )


def _check_stable_offsets(log: LogTransactions, path: str) -> None:
    """The last stable offset of an entry lies behind no transaction that was open at its marker.

    It is where a search for aborted transactions ends (C-8.2).
    """
    lowest_first_offset = np.iinfo(np.int64).max
    for index in reversed(log.indexes):
        for number in reversed(range(len(index.entries))):
            entry = index.entries[number]
            if entry.last_stable_offset > min(entry.last_offset + 1, lowest_first_offset):
                problem = (
                    f"last stable offset {entry.last_stable_offset} is past an open transaction"
                )
                raise _corrupt(path, index, number, problem)
            lowest_first_offset = min(lowest_first_offset, entry.first_offset)


def _producers(log: LogTransactions) -> dict[int, _Producer]:
    found: dict[int, _Producer] = defaultdict(_Producer)
    names = ("kind", "producer_id", "base_offset", "last_offset")
    for segment in log.segments:
        columns = (segment.batches[name].tolist() for name in names)
        for kind, producer_id, base_offset, last_offset in zip(*columns, strict=True):
            if kind == DATA:
                found[producer_id].data.append(base_offset)
            elif kind in (ABORT, COMMIT):
                found[producer_id].markers.append(last_offset)
                if kind == ABORT:
                    found[producer_id].aborts.add(last_offset)
    return found


def _problem(entry: AbortedTxn, found: _Producer, segment_end: int | None) -> str | None:
    """What its producer says against an entry. segment_end: None where the round does not read."""
    is_known = entry.last_offset in found.aborts
    if segment_end is not None and not (is_known and entry.last_offset < segment_end):
        return f"there is no abort marker of producer {entry.producer_id} at {entry.last_offset}"
    before = found.marker_before(entry.last_offset)
    if before >= entry.first_offset:
        return (
            f"first offset {entry.first_offset}, but a marker of producer {entry.producer_id} "
            f"stands at {before}"
        )
    if found.first_data_of(entry.last_offset) is not None and not is_known:
        return f"producer {entry.producer_id} has no abort marker at {entry.last_offset}"
    return None


def _covers(entry: AbortedTxn, found: _Producer) -> bool:
    """Whether all that stands between two markers is in the transaction that the second one ends.

    What comes before it may be of a committed one whose marker a cleaning has removed since.
    """
    first_data = found.first_data_of(entry.last_offset)
    return first_data is None or entry.first_offset <= first_data


def _corrupt(path: str, index: TxnIndexOfSegment, number: int, problem: str) -> CorruptFileError:
    file = os.path.join(path, file_name(index.base_offset, TXN_INDEX))
    problem_of_entry = f"entry {number} does not fit the log: {problem}"
    return CorruptFileError(file, number * txn_index.ENTRY.size, problem_of_entry)
