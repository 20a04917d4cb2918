"""What becomes of the transactions of a log, beside plain lists and by hand counts (C-8)."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleaner_jobs import txn_batches
from cleaner_jobs.txn_batches import TXN_BATCH, TxnBatches
from compactor.cleaning import transactions
from compactor.cleaning.transactions import LogTransactions, SegmentOfRound, decide, exact_ranges
from compactor.jobs.log_indexes import (
    FOR_CLEANING,
    FOR_MAP,
    TxnIndexOfSegment,
    expected_ranges,
)
from storage.formats.txn_index import AbortedTxn
from storage.formats.txn_index_columns import Entries, columns_of
from tests.support import reference_transactions as reference
from tests.support.reference_transactions import (
    ABORT,
    COMMIT,
    DATA,
    EMPTY,
    OTHER,
    Batch,
    Log,
    Segment,
    is_read_by_map,
)

KINDS = {
    DATA: txn_batches.DATA,
    ABORT: txn_batches.ABORT,
    COMMIT: txn_batches.COMMIT,
    OTHER: txn_batches.OTHER_CONTROL,
    EMPTY: txn_batches.EMPTY_CONTROL,
}
HORIZONS = {
    "none": txn_batches.NO_HORIZON,
    "ahead": txn_batches.HORIZON_AHEAD,
    "passed": txn_batches.HORIZON_PASSED,
}


def as_rows(batches: Sequence[Batch]) -> TxnBatches:
    return np.array(
        [
            (
                *(b.position, b.base_offset, b.last_offset, b.producer_id, 0),
                *(KINDS[b.kind], b.records, HORIZONS[b.horizon]),
            )
            for b in batches
        ],
        TXN_BATCH,
    )


def transactions_of(log: Log, run: int = 100) -> LogTransactions:
    """run: so many batches at a time."""

    def batches() -> Iterator[tuple[int, TxnBatches]]:
        for number, segment in enumerate(log.segments):
            for start in range(0, len(segment.batches), run):
                yield number, as_rows(segment.batches[start : start + run])

    return LogTransactions(
        segments=[SegmentOfRound(s.group, s.base_offset, s.end_offset) for s in log.segments],
        batches=batches,
        indexes=[
            TxnIndexOfSegment(base_offset, columns_of(entries))
            for base_offset, entries in log.indexes
        ],
        log_start_offset=log.log_start_offset,
        first_dirty_offset=log.first_dirty_offset,
        first_uncleanable_offset=log.first_uncleanable_offset,
        map_start=log.map_start,
    )


def data_of(log: Log) -> list[Batch]:
    return [b for segment in log.segments for b in segment.batches if b.kind == DATA]


def flags_of(log: Log, run: int = 100) -> dict[int, int]:
    """What the ranges say of each data batch, one range after another."""
    ranges = exact_ranges(transactions_of(log, run)).tolist()
    return {
        batch.base_offset: sum(
            flags
            for producer_id, first, last, flags in ranges
            if producer_id == batch.producer_id and first <= batch.last_offset <= last
        )
        for batch in data_of(log)
    }


# Random logs and indexes, sound or not.

PRODUCERS = st.sampled_from([1, 2, 3])
OFFSETS = st.integers(0, 45)
ENTRIES = st.builds(
    lambda pid, first, length, ahead: AbortedTxn(pid, first, first + length, first + ahead),
    PRODUCERS,
    OFFSETS,
    st.integers(0, 20),
    st.integers(0, 30),
)


@st.composite
def logs(draw: st.DrawFn) -> Log:
    offset, group, segments = draw(st.integers(0, 3)), 0, []
    for _ in range(draw(st.integers(1, 4))):
        base_offset, position, batches = offset, 0, []
        for _ in range(draw(st.integers(0, 6))):
            offset += draw(st.sampled_from([0, 0, 1, 3]))
            last_offset = offset + draw(st.sampled_from([0, 0, 1, 2]))
            kind = draw(st.sampled_from([DATA, DATA, DATA, ABORT, ABORT, COMMIT, OTHER, EMPTY]))
            horizon = "none" if kind == DATA else draw(st.sampled_from(list(HORIZONS)))
            records = 0 if kind == EMPTY else draw(st.integers(1, 2))
            pid = draw(PRODUCERS)
            batches.append(Batch(kind, pid, offset, last_offset, records, horizon, position))
            offset, position = last_offset + 1, position + 100
        end_offset = max(base_offset, offset - draw(st.sampled_from([0, 0, 1])))
        segments.append(Segment(group, base_offset, end_offset, tuple(batches)))
        offset += draw(st.sampled_from([0, 0, 1]))
        offset = max(offset, base_offset + 1)
        group += draw(st.sampled_from([0, 1]))
    bases = [segment.base_offset for segment in segments]
    indexes = tuple(
        (base_offset, tuple(draw(st.lists(ENTRIES, max_size=4))))
        for base_offset in [*bases, offset, offset + 5]
        if draw(st.booleans())
    )
    indexes = tuple(index for index in indexes if index[1])
    first_dirty_offset = draw(st.integers(bases[0], offset))
    containing = max(i for i, base in enumerate(bases) if base <= first_dirty_offset)
    position = 100 * draw(st.integers(0, 3))
    log_start_offset = draw(st.sampled_from([0, 0, 5, 12]))
    return Log(
        tuple(segments), indexes, log_start_offset, first_dirty_offset, offset,
        (containing, position),
    )  # fmt: skip


def entries_of(txn_indexes: Mapping[int, Entries]) -> dict[int, list[AbortedTxn]]:
    return {
        group: [AbortedTxn(*entry) for entry in entries.tolist()]
        for group, entries in txn_indexes.items()
    }


@given(logs(), st.sampled_from([1, 2, 100]), st.sampled_from([2, 64]))
@settings(max_examples=200)
def test_decisions_are_those_of_the_plain_lists(log: Log, run: int, rows: int) -> None:
    """C-8.1 to C-8.8, C-7.5; whatever is read at once, and however small the tables begin."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transactions, "FIRST_ROWS", rows)
        found, flags = decide(transactions_of(log, run)), flags_of(log, run)
    expected = reference.decide(log)
    assert found.discardable.tolist() == expected.discardable
    assert found.changed_groups == expected.changed_groups
    assert sum(found.control_records_dropped.values()) == expected.control_records_dropped
    assert entries_of(found.txn_indexes) == expected.txn_indexes
    assert {offset for offset, own in flags.items() if own & FOR_CLEANING} == expected.aborted
    read = {batch.base_offset for batch in data_of(log) if is_read_by_map(log, batch)}
    for_map = {offset for offset in read if flags[offset] & FOR_MAP}
    assert for_map == expected.aborted_for_map


@given(logs())
@settings(max_examples=150)
def test_the_scan_was_right_if_it_flagged_what_is_decided(log: Log) -> None:
    """Below the first dirty offset the map does not count: nothing is put there."""
    found, expected = decide(transactions_of(log)), reference.decide(log)
    entries = [entry for _, own in log.indexes for entry in own]
    agrees = True
    for batch in data_of(log):
        scanned = any(
            entry.producer_id == batch.producer_id
            and entry.last_offset >= log.log_start_offset
            and entry.first_offset <= batch.last_offset <= entry.last_offset
            for entry in entries
        )
        agrees &= scanned == (batch.base_offset in expected.aborted)
        if batch.last_offset >= log.first_dirty_offset and is_read_by_map(log, batch):
            agrees &= scanned == (batch.base_offset in expected.aborted_for_map)
        elif batch.last_offset >= log.first_dirty_offset:  # as for the cleaning
            agrees &= scanned == (batch.base_offset in expected.aborted)
    assert found.agrees == agrees


@given(logs())
def test_ranges_ascend_and_do_not_overlap(log: Log) -> None:
    """As `flag_aborted` searches them."""
    for ranges in (
        exact_ranges(transactions_of(log)),
        expected_ranges(transactions_of(log).indexes, log.log_start_offset),
    ):
        assert ranges.dtype == np.int64 and ranges.flags.c_contiguous
        rows = ranges.tolist()
        assert all(first <= last for _, first, last, _ in rows)
        assert all(a[0] < b[0] or (a[0] == b[0] and a[2] < b[1]) for a, b in pairwise(rows))


@given(st.lists(ENTRIES, max_size=8), st.sampled_from([0, 10]))
def test_expected_ranges_cover_what_an_entry_covers(
    entries: list[AbortedTxn], log_start_offset: int
) -> None:
    """C-8.2: but for entries that end below the log start."""
    indexes = [TxnIndexOfSegment(0, columns_of(entries))]
    ranges = expected_ranges(indexes, log_start_offset).tolist()
    held = [entry for entry in entries if entry.last_offset >= log_start_offset]
    for pid in (1, 2, 3):
        for offset in range(70):
            covered = any(r[0] == pid and r[1] <= offset <= r[2] for r in ranges)
            assert covered == any(
                e.producer_id == pid and e.first_offset <= offset <= e.last_offset for e in held
            )
    assert all(flags == FOR_MAP | FOR_CLEANING for *_, flags in ranges)


# Hand counts. One segment from 0, all of it dirty, unless said otherwise.


def data(pid: int, offset: int, last_offset: int | None = None) -> Batch:
    last = offset if last_offset is None else last_offset
    return Batch(DATA, pid, offset, last, position=100 * offset)


def control(kind: str, pid: int, offset: int, horizon: str = "none") -> Batch:
    return Batch(kind, pid, offset, offset, 0 if kind == EMPTY else 1, horizon, 100 * offset)


def one_segment(*batches: Batch, entries: Sequence[AbortedTxn] = ()) -> Log:
    end_offset = batches[-1].last_offset + 1
    indexes = ((0, tuple(entries)),) if entries else ()
    return Log((Segment(0, 0, end_offset, batches),), indexes, 0, 0, end_offset, (0, 0))


def aborted_in(log: Log) -> list[int]:
    flags = flags_of(log)
    return [offset for offset, own in flags.items() if own & FOR_CLEANING]


def test_data_of_an_aborted_transaction() -> None:
    """C-8.4: from its first offset to its marker; of that producer alone."""
    log = one_segment(
        data(1, 0),
        data(1, 1, 2),
        data(2, 3),
        data(1, 4),
        control(ABORT, 1, 5),
        data(1, 6),
        control(COMMIT, 1, 7),
        entries=[AbortedTxn(1, 1, 5, 6)],
    )
    assert aborted_in(log) == [1, 4]
    assert decide(transactions_of(log)).agrees


def test_a_batch_whose_last_offset_reaches_the_first_one_is_of_the_transaction() -> None:
    """C-8.3: first offset <= last offset of the batch."""
    for first_offset, aborted in ((2, [0]), (3, [])):
        log = one_segment(
            data(1, 0, 2), control(ABORT, 1, 5), entries=[AbortedTxn(1, first_offset, 5, 6)]
        )
        assert aborted_in(log) == aborted


@pytest.mark.parametrize(
    ("batches", "discardable", "entries"),
    [
        ([control(EMPTY, 1, 2)], [2], []),
        ([data(1, 1), control(ABORT, 1, 2)], [], [AbortedTxn(1, 1, 2, 3)]),  # with data: E-44
        ([control(ABORT, 1, 2)], [2], []),  # its data is gone: E-45, E-46
        ([data(2, 1), control(ABORT, 1, 2)], [2], []),
        ([control(ABORT, 3, 2)], [2], []),  # no entry at all
        ([data(2, 1), control(COMMIT, 2, 2)], [], []),  # E-40, E-41
        ([control(COMMIT, 2, 2)], [2], []),  # E-42
        ([data(2, 0), control(COMMIT, 2, 1), control(COMMIT, 2, 2)], [2], []),
        ([control(OTHER, 2, 2)], [], []),
        ([data(1, 0), control(COMMIT, 1, 1), control(ABORT, 1, 2)], [1], [AbortedTxn(1, 0, 2, 3)]),
        ([data(2, 0), control(ABORT, 2, 1), control(COMMIT, 2, 2)], [1], []),  # C-8.6
        ([data(1, 1, 1)._replace(records=0), control(ABORT, 1, 2)], [], [AbortedTxn(1, 1, 2, 3)]),
    ],
)
def test_which_markers_may_be_discarded(
    batches: list[Batch], discardable: list[int], entries: list[AbortedTxn]
) -> None:
    """C-8.5; an entry of producer 1 from the first batch on is known."""
    first = batches[0].base_offset if batches[0].kind == DATA else 1
    found = decide(transactions_of(one_segment(*batches, entries=[AbortedTxn(1, first, 2, 3)])))
    assert found.discardable.tolist() == discardable
    assert entries_of(found.txn_indexes).get(0, []) == entries


def test_the_horizon_of_a_marker_that_may_go_decides_what_changes() -> None:
    """C-10.3, C-10.6: none yet, or it has passed: not a copy."""
    for horizon, changed, dropped in (
        ("none", [0], {}),
        ("ahead", [], {}),
        ("passed", [0], {0: 1}),
    ):
        found = decide(transactions_of(one_segment(control(ABORT, 1, 0, horizon))))
        assert (list(found.changed_groups), found.control_records_dropped) == (changed, dropped)
    found = decide(transactions_of(one_segment(data(1, 0), control(COMMIT, 1, 1, "passed"))))
    assert (list(found.changed_groups), found.control_records_dropped) == ([], {})


@pytest.mark.parametrize(("log_start_offset", "aborted"), [(5, [0, 3]), (6, [])])
def test_an_entry_that_ends_below_the_log_start_is_not_known(
    log_start_offset: int, aborted: list[int]
) -> None:
    """C-8.2: its data counts as committed, and its entry is not copied."""
    log = one_segment(
        data(1, 0), data(1, 3), control(ABORT, 1, 5), entries=[AbortedTxn(1, 0, 5, 6)]
    )._replace(log_start_offset=log_start_offset)
    found = decide(transactions_of(log))
    assert aborted_in(log) == aborted
    assert bool(found.txn_indexes) == bool(aborted)
    assert found.agrees


TWO_SEGMENTS = (
    Segment(0, 0, 3, (data(1, 0), data(2, 2))),
    Segment(1, 3, 8, (data(1, 3), control(ABORT, 1, 4), data(2, 6), control(ABORT, 2, 7))),
)
ENTRY_1, ENTRY_2 = AbortedTxn(1, 0, 4, 2), AbortedTxn(2, 2, 7, 8)


def test_a_transaction_over_groups_has_its_entry_where_its_marker_is() -> None:
    """E-50; found in the index of a later segment."""
    log = Log(TWO_SEGMENTS, ((3, (ENTRY_1, ENTRY_2)),), 0, 0, 8, (0, 0))
    found = decide(transactions_of(log))
    assert aborted_in(log) == [0, 2, 3, 6]
    assert entries_of(found.txn_indexes) == {1: [ENTRY_1, ENTRY_2]}
    assert found.discardable.tolist() == []


def test_the_walk_ends_behind_the_entry_that_reaches_the_range() -> None:
    """C-8.2: what stands behind it is not loaded for the first segment, which ends at 3."""
    reaching = AbortedTxn(1, 0, 4, 3)
    log = Log(TWO_SEGMENTS, ((3, (reaching, ENTRY_2)),), 0, 0, 8, (0, 0))
    assert aborted_in(log) == [0, 3, 6]
    log = Log(TWO_SEGMENTS, ((3, (ENTRY_1, ENTRY_2)),), 0, 0, 8, (0, 0))
    assert aborted_in(log) == [0, 2, 3, 6]  # 2 is below 3, so the walk goes on
    earlier = Log(TWO_SEGMENTS, ((0, (ENTRY_2,)), (3, (ENTRY_1,))), 0, 0, 8, (0, 0))
    assert aborted_in(earlier) == [2, 3, 6]


def test_a_marker_in_the_active_segment() -> None:
    """E-51: data goes by the active segment's index; no entry is written."""
    log = Log(TWO_SEGMENTS[:1], ((3, (ENTRY_1, ENTRY_2)),), 0, 0, 3, (0, 0))
    found = decide(transactions_of(log))
    assert aborted_in(log) == [0, 2]
    assert not found.txn_indexes and not len(found.discardable)
    assert found.agrees


@pytest.mark.parametrize(("position", "for_map"), [(200, [3]), (0, [0])])
def test_a_marker_before_the_first_batch_read_is_missed_by_the_map(
    position: int, for_map: list[int]
) -> None:
    """C-7.11, run P: where the index on disk leads to batch 2, and where it is empty."""
    log = one_segment(
        data(1, 0),
        control(ABORT, 1, 1),
        data(1, 3),
        control(COMMIT, 1, 4),
        entries=[AbortedTxn(1, 0, 1, 2)],
    )._replace(first_dirty_offset=2, map_start=(0, position))
    found = decide(transactions_of(log))
    flags = flags_of(log)
    assert [o for o, own in flags.items() if own & FOR_CLEANING] == [0]
    assert [o for o in flags if flags[o] & FOR_MAP and o in (0, 3) and o * 100 >= position] == (
        for_map
    )
    assert found.agrees == (position == 0)


def test_an_entry_whose_marker_is_missing_is_known_to_the_cleaning_alone() -> None:
    """The map loads from the index of the segment of the first dirty offset on (C-8.2)."""
    segments = (Segment(0, 0, 2, ()), Segment(0, 2, 4, (data(1, 2), control(COMMIT, 1, 3))))
    log = Log(segments, ((0, (AbortedTxn(1, 0, 1, 2),)),), 0, 2, 4, (1, 0))
    found = decide(transactions_of(log))
    assert exact_ranges(transactions_of(log)).tolist() == [[1, 2, 2, FOR_CLEANING]]
    assert found.discardable.tolist() == [3]
    assert not found.agrees


def test_a_log_without_transactions_of_its_own() -> None:
    log = transactions_of(Log((Segment(0, 0, 5, ()),), (), 0, 0, 5, (0, 0)))
    found = decide(log)
    assert exact_ranges(log).shape == (0, 4)
    assert found.agrees and not found.txn_indexes and not len(found.discardable)
