"""Kernels over transactions, beside plain dictionaries, and between fences."""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cleaner_jobs.kernels.transaction_kernels import (
    MARKER_COLUMNS,
    TABLE_COLUMNS,
    AbortedTxns,
    flags_in_ranges,
    follow_markers,
    follow_transactions,
    judge_entries,
    move_table,
    with_open_data,
)
from cleaner_jobs.txn_batches import (
    ABORT,
    COMMIT,
    DATA,
    EMPTY_CONTROL,
    OTHER_CONTROL,
    TXN_BATCH,
    Int64Array,
    words_of,
)
from storage.formats.txn_index import AbortedTxn
from storage.formats.txn_index_columns import columns_of
from tests.bounds.guarded import Fences

FENCES = Fences(Random(1))
END = 1 << 40


class Row(NamedTuple):
    kind: int
    producer_id: int
    base_offset: int
    last_offset: int


PRODUCERS = st.sampled_from([1, 2, 3, 2**40, -1])
KINDS = st.sampled_from([DATA, DATA, DATA, ABORT, ABORT, COMMIT, OTHER_CONTROL, EMPTY_CONTROL])
ENTRIES = st.builds(
    lambda producer_id, first, length: AbortedTxn(producer_id, first, first + length, 0),
    PRODUCERS,
    st.integers(0, 40),
    st.integers(0, 12),
)


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    made, offset = [], 0
    for _ in range(draw(st.integers(0, 25))):
        offset += draw(st.sampled_from([0, 0, 1, 3]))
        last_offset = offset + draw(st.sampled_from([0, 0, 1, 2]))
        made.append(Row(draw(KINDS), draw(PRODUCERS), offset, last_offset))
        offset = last_offset + 1
    return made


def words(made: Sequence[Row]) -> Int64Array:
    batches = np.zeros(len(made), TXN_BATCH)
    for number, row in enumerate(made):
        for name, value in row._asdict().items():
            batches[number][name] = value
    return words_of(batches)


def larger(table: Int64Array) -> Int64Array:
    twice = np.zeros((2 * len(table), TABLE_COLUMNS), np.int64)
    FENCES.call(move_table, (table, twice))
    return twice


@given(rows(), st.lists(ENTRIES, max_size=8))
@settings(max_examples=150)
def test_books_are_kept_as_with_dictionaries(made: list[Row], entries: list[AbortedTxn]) -> None:
    """C-8.1, C-8.4, C-8.5, from a table for one producer on."""
    entries.sort(key=lambda entry: entry.first_offset)
    table: Int64Array = np.zeros((2, TABLE_COLUMNS), np.int64)
    used = taken = done = 0
    verdicts, kept = np.full(len(made), 9, np.uint8), np.full(len(made), 9, np.int64)
    known, out = np.arange(len(entries)), (verdicts, kept)
    while done < len(made):
        aborted = AbortedTxns(columns_of(entries), known, taken)
        done, taken, used = FENCES.call(
            follow_transactions,
            ((words(made), done), aborted, (table, used), out),
        )
        table = larger(table) if done < len(made) else table
    expected = _kept_in_dictionaries(made, entries)
    assert list(zip(verdicts.tolist(), kept.tolist(), strict=True)) == expected


def _kept_in_dictionaries(
    made: Sequence[Row], entries: Sequence[AbortedTxn]
) -> list[tuple[bool, int]]:
    waiting, aborted = list(enumerate(entries)), dict[int, int]()
    with_data, committed, found = set[int](), set[int](), list[tuple[bool, int]]()
    for kind, producer_id, _, last_offset in made:
        while waiting and waiting[0][1].first_offset <= last_offset:
            number, entry = waiting.pop(0)
            aborted.setdefault(entry.producer_id, number)
        if kind == DATA:
            is_aborted = producer_id in aborted
            (with_data if is_aborted else committed).add(producer_id)
            found.append((is_aborted, -1))
        elif kind == ABORT:
            entry_number = aborted.pop(producer_id, -1)
            stays = entry_number >= 0 and producer_id in with_data
            with_data.discard(producer_id)
            found.append((not stays, entry_number if stays else -1))
        elif kind == COMMIT:
            found.append((producer_id not in committed, -1))
            committed.discard(producer_id)
        else:
            found.append((kind == EMPTY_CONTROL, -1))
    return found


@given(rows(), st.lists(ENTRIES, max_size=8))
@settings(max_examples=150)
def test_entries_are_judged_as_with_lists(made: list[Row], entries: list[AbortedTxn]) -> None:
    """Each by the markers and data of its producer, looked up anew."""
    order = np.array(sorted(range(len(entries)), key=lambda i: entries[i].last_offset), np.int64)
    table: Int64Array = np.zeros((2, TABLE_COLUMNS), np.int64)
    used = judged = done = 0
    found = np.full((len(entries), MARKER_COLUMNS), 99, np.int64)
    unlisted = 0
    while done < len(made):
        done, judged, used, more = FENCES.call(
            follow_markers,
            ((words(made), done), (columns_of(entries), order, judged), (table, used), found),
        )
        unlisted += more
        table = larger(table) if done < len(made) else table
    last = (columns_of(entries), order, judged)
    assert FENCES.call(judge_entries, (last, table, END, found)) == len(entries)
    assert found.tolist() == [_judged_by_lists(made, entry) for entry in entries]
    aborts = [row for row in made if row.kind == ABORT]
    assert unlisted == sum(not _is_listed(made, entries, abort) for abort in aborts)
    open_producers = np.zeros(used, np.int64)
    count = FENCES.call(with_open_data, (table, open_producers))
    producers = {row.producer_id for row in made}
    assert set(open_producers[:count].tolist()) == {
        p for p in producers if _first_data(made, p, END) is not None
    }


def _marker_before(made: Sequence[Row], producer_id: int, offset: int) -> int:
    markers = [
        row.last_offset
        for row in made
        if row.producer_id == producer_id and row.kind in (ABORT, COMMIT)
    ]
    return max((marker for marker in markers if marker < offset), default=-1)


def _first_data(made: Sequence[Row], producer_id: int, marker: int) -> int | None:
    before = _marker_before(made, producer_id, marker)
    data = [row.base_offset for row in made if (row.producer_id, row.kind) == (producer_id, DATA)]
    return min((offset for offset in data if before < offset < marker), default=None)


def _judged_by_lists(made: Sequence[Row], entry: AbortedTxn) -> list[int]:
    producer_id, _, last_offset, _ = entry
    at = [row for row in made if row.kind in (ABORT, COMMIT) and row.last_offset == last_offset]
    first_data = _first_data(made, producer_id, last_offset)
    return [
        at[0].producer_id if at else -1,
        _marker_before(made, producer_id, last_offset),
        -1 if first_data is None else first_data,
        int(any((row.producer_id, row.kind) == (producer_id, ABORT) for row in at)),
    ]


def _is_listed(made: Sequence[Row], entries: Sequence[AbortedTxn], abort: Row) -> bool:
    first_data = _first_data(made, abort.producer_id, abort.last_offset)
    return first_data is None or any(
        (entry.producer_id, entry.last_offset) == (abort.producer_id, abort.last_offset)
        and entry.first_offset <= first_data
        for entry in entries
    )


@given(rows(), st.lists(st.tuples(PRODUCERS, st.integers(0, 40), st.integers(1, 3)), max_size=6))
def test_flags_are_those_of_the_range_that_covers_a_batch(
    made: list[Row], starts: list[tuple[int, int, int]]
) -> None:
    """Ranges of five offsets that do not overlap."""
    ranges = {(producer_id, first // 6): flags for producer_id, first, flags in starts}
    laid_out = [[p, 6 * n, 6 * n + 4, flags] for (p, n), flags in sorted(ranges.items())]
    flags = np.full(len(made), 9, np.uint8)
    table = np.array(laid_out, np.int64).reshape(-1, 4)
    FENCES.call(flags_in_ranges, (words(made), table, flags))
    assert flags.tolist() == [
        sum(
            own
            for p, first, last, own in laid_out
            if row.kind == DATA and p == row.producer_id and first <= row.last_offset <= last
        )
        for row in made
    ]
