"""Kafka's bookkeeping of transactions over plain lists, slow and obvious.

Written from compaction C-8 alone: the tables C-8.2 to C-8.5 line by line, no heap, no numbers of
batches, no ranges. Nothing of `compactor.cleaning.transactions` is used.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from storage.formats.txn_index import AbortedTxn

DATA, ABORT, COMMIT, OTHER, EMPTY = "data", "abort", "commit", "other", "empty"


class Batch(NamedTuple):
    """A transactional or a control batch."""

    kind: str
    producer_id: int
    base_offset: int
    last_offset: int
    records: int = 1
    horizon: str = "none"  # or ahead, passed
    position: int = 0


class Segment(NamedTuple):
    group: int
    base_offset: int
    end_offset: int
    batches: tuple[Batch, ...]


class Log(NamedTuple):
    segments: tuple[Segment, ...]
    indexes: tuple[tuple[int, tuple[AbortedTxn, ...]], ...]  # base offset of the segment, entries
    log_start_offset: int
    first_dirty_offset: int
    first_uncleanable_offset: int
    map_start: tuple[int, int]  # segment, position


@dataclass
class Decided:
    aborted: set[int] = field(default_factory=set)  # base offsets of data batches
    aborted_for_map: set[int] = field(default_factory=set)  # of those that the map reads
    discardable: list[int] = field(default_factory=list)
    changed_groups: set[int] = field(default_factory=set)
    txn_indexes: dict[int, list[AbortedTxn]] = field(default_factory=dict)
    control_records_dropped: int = 0


def loaded(log: Log, from_offset: int, end_offset: int) -> list[AbortedTxn]:
    """C-8.2."""
    containing = max(s.base_offset for s in log.segments if s.base_offset <= from_offset)
    found = []
    for base_offset, entries in log.indexes:
        if base_offset < containing:
            continue
        for entry in entries:
            if entry.last_offset >= log.log_start_offset and entry.first_offset < end_offset:
                found.append(entry)
            if entry.last_stable_offset >= end_offset:
                return found
    return found


class Books:
    """C-8.1."""

    def __init__(self) -> None:
        self.known: list[AbortedTxn] = []
        self.aborted: dict[int, tuple[AbortedTxn, bool]] = {}
        self.committed: set[int] = set()

    def before(self, batch: Batch) -> None:
        """C-8.3."""
        due = [entry for entry in self.known if entry.first_offset <= batch.last_offset]
        self.known = [entry for entry in self.known if entry.first_offset > batch.last_offset]
        for entry in sorted(due, key=lambda entry: entry.first_offset):
            if entry.producer_id not in self.aborted:
                self.aborted[entry.producer_id] = (entry, False)

    def data(self, batch: Batch) -> bool:
        """C-8.4: whether it is discarded."""
        self.before(batch)
        if batch.producer_id in self.aborted:
            entry, _ = self.aborted[batch.producer_id]
            self.aborted[batch.producer_id] = (entry, True)
            return True
        self.committed.add(batch.producer_id)
        return False

    def control(self, batch: Batch) -> tuple[bool, AbortedTxn | None]:
        """C-8.5: whether it may be discarded, and the entry to write."""
        self.before(batch)
        if batch.kind == EMPTY:
            return True, None
        if batch.kind == ABORT:
            entry, has_data = self.aborted.pop(batch.producer_id, (None, False))
            return (False, entry) if has_data else (True, None)
        if batch.kind == COMMIT:
            if batch.producer_id in self.committed:
                self.committed.remove(batch.producer_id)
                return False, None
            return True, None
        return False, None


def decide(log: Log) -> Decided:
    found = Decided()
    _clean(log, found)
    _build_map(log, found)
    return found


def _clean(log: Log, found: Decided) -> None:
    books = Books()
    for number, segment in enumerate(log.segments):
        in_group = [s for s in log.segments[number + 1 :] if s.group == segment.group]
        end_offset = in_group[0].base_offset if in_group else segment.end_offset
        books.known += loaded(log, segment.base_offset, end_offset)
        for batch in segment.batches:
            if batch.kind == DATA:
                if books.data(batch):
                    found.aborted.add(batch.base_offset)
                continue
            may_go, entry = books.control(batch)
            if entry is not None:
                found.txn_indexes.setdefault(segment.group, []).append(entry)
            if may_go:
                found.discardable.append(batch.base_offset)
                if batch.horizon == "passed":
                    found.control_records_dropped += batch.records
                if batch.horizon != "ahead" or batch.kind == EMPTY:  # C-10.6
                    found.changed_groups.add(segment.group)


def _build_map(log: Log, found: Decided) -> None:
    """C-7.5."""
    books = Books()
    books.known += loaded(log, log.first_dirty_offset, log.first_uncleanable_offset)
    start, position = log.map_start
    for number, segment in enumerate(log.segments):
        for batch in segment.batches:
            if number < start or (number == start and batch.position < position):
                continue
            if batch.kind != DATA:
                books.control(batch)
            elif books.data(batch):
                found.aborted_for_map.add(batch.base_offset)


def is_read_by_map(log: Log, batch: Batch) -> bool:
    return any(
        batch in segment.batches and (number, batch.position) >= log.map_start
        for number, segment in enumerate(log.segments)
    )
