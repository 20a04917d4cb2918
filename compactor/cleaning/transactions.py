"""Decide about the transactions of a log: the one part of cleaning that needs its whole order.

`decide_transactions` takes what the scan left of a log's transactional and control batches, and
writes what the rewrite needs. `Stages` imports this module, with its kernels, only where a log has
transactions. The parts, which are pure but for `later_markers` and the files of the result:

1. `check_indexes`: do the transaction indexes fit the markers of the log? No checksum covers a
   `.txnindex`, and it decides what is aborted: one wrong bit, and committed records would go for
   good. But the log says it, too: an entry stands for one abort marker, and for data of its
   producer since the marker before it. An entry that the log contradicts sets the log aside. Data
   before an abort marker that no entry covers counts as committed, as Kafka and its readers take it
   (E-53), and these markers are counted. A transaction that is open where the segments of the round
   end takes its marker from the segments after them (`later_markers`).
2. `decide`: what becomes of each batch? The batches are followed twice, as Kafka's cleaner goes
   through the log twice: once for the map, from where the dirty range begins, and once for the
   cleaning, from the first segment on. Both passes run at once, over a part of the log at a time:
   memory holds the rows of that part, the entries of the transaction indexes, and a row for each
   producer.
3. `exact_ranges`, where the scan took other batches for aborted: it is done again with these.

Source: Kafka, CleanedTransactionMetadata, UnifiedLog.collectAbortedTransactions,
Cleaner.buildOffsetMap, Cleaner.cleanSegments, ProducerStateManager.lastStableOffset; compaction
C-7.5, C-7.11, C-8; log-format F-11.
"""

import os
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.kernels.transaction_kernels import (
    ENTRY_FIRST,
    ENTRY_LAST,
    ENTRY_PRODUCER,
    FIRST_DATA,
    IS_KNOWN,
    MARKER_BEFORE,
    MARKER_COLUMNS,
    MARKER_OWNER,
    NONE,
    TABLE_COLUMNS,
    AbortedTxns,
    flags_in_ranges,
    follow_markers,
    follow_transactions,
    judge_entries,
    move_table,
    with_open_data,
)
from cleaner_jobs.messages import LogPlan, Part
from cleaner_jobs.txn_batches import (
    ABORT,
    COMMIT,
    DATA,
    EMPTY_CONTROL,
    HORIZON_AHEAD,
    HORIZON_PASSED,
    TXN_BATCH,
    Int64Array,
    TxnBatches,
    read_txn_batches,
    words_of,
)
from cleaner_jobs.work_file import write_checked
from compactor.cleaning.stage_values import TransactionsOfLog, TxnDecisions
from compactor.jobs.log_indexes import (
    FOR_CLEANING,
    FOR_MAP,
    TxnIndexOfSegment,
    all_entries,
    expected_ranges,
    map_start,
    save_for_tasks,
    transaction_file,
)
from storage.errors import CorruptFileError
from storage.file_names import LOG, TXN_INDEX, file_name
from storage.files.files import Disk
from storage.files.local import LOCAL
from storage.formats import txn_index, txn_index_columns
from storage.formats.control_record import ControlType
from storage.formats.txn_index import AbortedTxn
from storage.formats.txn_index_columns import Entries
from storage.log.log_dir import list_partition
from storage.log.segment_reader import read_batch_headers, read_marker

FIRST_ROWS = 64  # of a table of producers


class SegmentOfRound(NamedTuple):
    """A source segment, and where the records that the scan read in it end."""

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


class Marker(NamedTuple):
    """The end of a transaction."""

    offset: int
    is_abort: bool


# Gives, of some producers, the first marker of each after the segments of the round.
LaterMarkers = Callable[[Collection[int]], Mapping[int, Marker]]


def decide_transactions(
    plan: LogPlan,
    parts: Sequence[Part],
    indexes: Sequence[TxnIndexOfSegment],
    work_dir: str,
    disk: Disk = LOCAL,
) -> TransactionsOfLog:
    """Decide about the transactions of a log. parts: all of it, in its order.

    Raise CorruptFileError where an index contradicts the log; WorkFileError; OSError.
    """
    found = _log_transactions(plan, parts, indexes, disk)
    unlisted_aborts = check_indexes(found, plan.path, partial(later_markers, plan))
    decisions = decide(found)
    discardable_files, txn_index_files = _save(plan, decisions, work_dir, disk)
    exact = ""
    if not decisions.agrees:
        exact = save_for_tasks(plan, work_dir, "exact", exact_ranges(found), disk)
    return TransactionsOfLog(decisions, unlisted_aborts, discardable_files, txn_index_files, exact)


def check_indexes(log: LogTransactions, path: str, later_markers: LaterMarkers) -> int:
    """Count the abort markers after data of the round that no entry covers.

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


def later_markers(plan: LogPlan, producer_ids: Collection[int]) -> dict[int, Marker]:
    """Return the first marker of each of some producers after the segments of the round.

    Reads batch headers until each has one: transactions that are open where a round ends are short.
    """
    partition = list_partition(plan.path, plan.topic, plan.partition, LOCAL)  # as tasks read it
    first = max(s.base_offset for group in plan.groups for s in group.segments) + 1
    found: dict[int, Marker] = {}
    for segment in partition.segments:
        if segment.base_offset < first or len(found) == len(producer_ids):
            continue
        log_path = os.path.join(plan.path, file_name(segment.base_offset, LOG))
        for position, header in read_batch_headers(log_path, files=partition.access):
            producer_id = header.producer_id
            if not (header.is_control and header.records_count and producer_id in producer_ids):
                continue
            kind = read_marker(header, log_path, position, partition.access)
            found.setdefault(producer_id, Marker(header.base_offset, kind is ControlType.ABORT))
            if len(found) == len(producer_ids):
                break
    return found


def decide(log: LogTransactions) -> TxnDecisions:
    """Go through the batches of a log in order, and say what becomes of them."""
    indexes = _Indexes(log)
    expected = expected_ranges(log.indexes, log.log_start_offset)
    result, agrees = _Result(), True
    for run in _track(log, indexes):
        scanned = np.empty(len(run.batches), np.uint8)
        flags_in_ranges(words_of(run.batches), expected, scanned)
        differs = run.flags ^ scanned
        # never in the map, aborted or not
        differs[run.batches["last_offset"] < log.first_dirty_offset] &= FOR_CLEANING
        agrees &= not differs.any()
        result.add_controls(run, indexes.entries)
    return TxnDecisions(
        agrees=agrees,
        discardable=np.concatenate([np.empty(0, np.int64), *result.discardable]),
        changed_groups=frozenset(result.changed_groups),
        txn_indexes={g: np.concatenate(found) for g, found in result.txn_indexes.items()},
        control_records_dropped=result.control_records_dropped,
    )


def exact_ranges(log: LogTransactions) -> Int64Array:
    """Ranges that give each data batch its flags, and cover no other one; for `flag_aborted`."""
    found = [np.empty((0, 4), np.int64)]
    for run in _track(log, _Indexes(log)):
        data = run.batches["kind"] == DATA
        last_offsets = run.batches["last_offset"][data]
        columns = run.batches["producer_id"][data], last_offsets, last_offsets, run.flags[data]
        found.append(_merged(np.stack(columns, axis=1).astype(np.int64)))
    ranges = _merged(np.concatenate(found))
    return np.ascontiguousarray(ranges[ranges[:, 3] != 0])


def _log_transactions(
    plan: LogPlan, parts: Sequence[Part], indexes: Sequence[TxnIndexOfSegment], disk: Disk
) -> LogTransactions:
    ends = {
        (part.group, section.segment): section.last_offset + 1
        for part in parts
        for section in part.sections
    }
    segments = [
        SegmentOfRound(g, segment.base_offset, ends.get((g, s), segment.base_offset))
        for g, group in enumerate(plan.groups)
        for s, segment in enumerate(group.segments)
    ]
    return LogTransactions(
        segments=segments,
        batches=partial(_batches, plan, parts, disk),
        indexes=indexes,
        log_start_offset=plan.log_start_offset,
        first_dirty_offset=plan.first_dirty_offset,
        first_uncleanable_offset=plan.first_uncleanable_offset,
        map_start=map_start(plan, disk),
    )


def _batches(plan: LogPlan, parts: Sequence[Part], disk: Disk) -> Iterator[tuple[int, TxnBatches]]:
    """The rows of one part after another, cut where a segment ends."""
    first_segments = np.cumsum([0, *(len(group.segments) for group in plan.groups)]).tolist()
    for part in parts:
        if part.txn_batches:
            batches = read_txn_batches(part, disk)
            cuts = np.flatnonzero(np.diff(batches["segment"])) + 1
            for run in np.split(batches, cuts):
                yield first_segments[part.group] + int(run["segment"][0]), run


def _save(
    plan: LogPlan, decisions: TxnDecisions, work_dir: str, disk: Disk
) -> tuple[dict[int, str], dict[int, str]]:
    """Write which control batches of each group may be discarded, and its new `.txnindex`.

    Returns the names of both, by group; groups without any have none.
    """
    edges = [group.base_offset for group in plan.groups[1:]]
    of_groups = np.split(decisions.discardable, np.searchsorted(decisions.discardable, edges))
    discardable_files, txn_index_files = {}, {}
    for group, offsets in enumerate(of_groups):
        if len(offsets):
            discardable_files[group] = save_for_tasks(
                plan, work_dir, f"discardable-{group}", offsets, disk
            )
    for group, entries in decisions.txn_indexes.items():
        path = f"{transaction_file(plan, work_dir, 'group')}-{group}"
        write_checked(path, txn_index_columns.encode_columns(entries), disk)
        txn_index_files[group] = path
    return discardable_files, txn_index_files


class ProducerTable:
    """A table of producers for the kernels, made larger where one of them has no room."""

    def __init__(self) -> None:
        self.rows = np.zeros((FIRST_ROWS, TABLE_COLUMNS), np.int64)
        self.used = 0

    def grow(self) -> None:
        larger = np.zeros((2 * len(self.rows), TABLE_COLUMNS), np.int64)
        move_table(self.rows, larger)
        self.rows = larger


class _Markers:
    """Goes through batches in order, and holds entries against the markers among them."""

    def __init__(self, entries: Entries) -> None:
        self._entries, self._producers = entries, ProducerTable()
        self._order = np.argsort(entries[:, ENTRY_LAST], kind="stable")
        self._markers = np.empty((len(entries), MARKER_COLUMNS), np.int64)
        self._judged = 0
        self.unlisted = 0  # abort markers with data that no entry covers

    def follow(self, batches: TxnBatches) -> None:
        rows, done = words_of(batches), 0
        while done < len(rows):
            done, self._judged, self._producers.used, unlisted = follow_markers(
                (rows, done),
                (self._entries, self._order, self._judged),
                (self._producers.rows, self._producers.used),
                self._markers,
            )
            self.unlisted += unlisted
            if done < len(rows):
                self._producers.grow()

    def with_open_data(self) -> list[int]:
        """The producers that have data after their last marker."""
        producer_ids = np.empty(self._producers.used, np.int64)
        count = with_open_data(self._producers.rows, producer_ids)
        found: list[int] = producer_ids[:count].tolist()
        return found

    def judged(self) -> Int64Array:
        """Return what the batches say of each entry, once all of them are done."""
        entries = self._entries, self._order, self._judged
        end = np.iinfo(np.int64).max
        self._judged = judge_entries(entries, self._producers.rows, end, self._markers)
        return self._markers


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
    """Check that no transaction open at an entry's marker lies below its last stable offset.

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


def _is_wrong(entries: Entries, judged: Int64Array, ends: Int64Array) -> NDArray[np.bool_]:
    """Whether an entry cannot be, by what the batches say of it."""
    owners, known = judged[:, MARKER_OWNER], judged[:, IS_KNOWN] != 0
    of_another = (owners != NONE) & (owners != entries[:, ENTRY_PRODUCER])
    without = (ends >= 0) & ~(known & (entries[:, ENTRY_LAST] < ends))
    behind = judged[:, MARKER_BEFORE] >= entries[:, ENTRY_FIRST]
    without_marker = (judged[:, FIRST_DATA] != NONE) & ~known
    wrong: NDArray[np.bool_] = of_another | without | behind | without_marker
    return wrong


def _problem(entry: AbortedTxn, judged: Sequence[int], segment_end: int) -> str:
    owner, before, _, is_known = judged
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


class _TrackedBatches(NamedTuple):
    """What was decided about a run of batches."""

    segment: SegmentOfRound
    batches: TxnBatches
    verdicts: NDArray[np.uint8]  # of the cleaning, as `follow_transactions` gives them
    kept_entries: Int64Array
    flags: NDArray[np.uint8]  # of data batches; 0 for others


class _TransactionTracker:
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
        """Take in batches (C-8.4, C-8.5), and return two columns.

        The first says whether each batch is aborted, or a control batch that may go; the second
        has the entry that goes with a control batch that may not, or -1.
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


def _track(log: LogTransactions, indexes: _Indexes) -> Iterator[_TrackedBatches]:
    cleaning, mapping = _TransactionTracker(indexes.entries), _TransactionTracker(indexes.entries)
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
        yield _TrackedBatches(log.segments[number], batches, verdicts, kept_entries, flags)


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

    def add_controls(self, run: _TrackedBatches, entries: Entries) -> None:
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


def _merged(ranges: Int64Array) -> Int64Array:
    """Neighbours of one producer and with the same flags as one; by producer, then in order."""
    ranges = ranges[np.argsort(ranges[:, 0], kind="stable")]
    changes = np.any(np.diff(ranges[:, [0, 3]], axis=0) != 0, axis=1)
    starts = np.concatenate(([0], np.flatnonzero(changes) + 1)) if len(ranges) else np.empty(0, int)
    merged = ranges[starts]
    merged[:, 2] = ranges[np.concatenate((starts[1:], [len(ranges)]))[: len(starts)] - 1, 2]
    return merged
