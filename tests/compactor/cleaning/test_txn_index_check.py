"""Entries of transaction indexes held against the markers that a log has, by hand (F-11)."""

from collections.abc import Collection, Mapping

import numpy as np
import pytest

from cleaner_jobs.txn_batches import ABORT, COMMIT, DATA, TXN_BATCH, TxnBatches
from compactor.cleaning.transactions import LogTransactions, Marker, SegmentOfRound, check_indexes
from compactor.jobs.log_indexes import TxnIndexOfSegment
from storage.errors import CorruptFileError
from storage.formats.txn_index import AbortedTxn
from storage.formats.txn_index_columns import columns_of

Row = tuple[int, int, int]  # offset, producer id, kind
# Producer 1 commits 0-1, aborts 4-7; producer 2 aborts 5-8, and what it has at 11 in segment 20.
ROWS: list[Row] = [
    (0, 1, DATA), (1, 1, COMMIT), (4, 1, DATA), (5, 2, DATA), (7, 1, ABORT), (8, 2, ABORT),
    (11, 2, DATA),
]  # fmt: skip
SOUND = [AbortedTxn(1, 4, 7, 5), AbortedTxn(2, 5, 8, 9)]
LATER = {2: Marker(21, is_abort=True)}
LATER_ENTRY = AbortedTxn(2, 11, 21, 22)


def batches(rows: list[Row]) -> TxnBatches:
    made = np.zeros(len(rows), TXN_BATCH)
    made["base_offset"] = made["last_offset"] = [offset for offset, _, _ in rows]
    made["producer_id"] = [producer for _, producer, _ in rows]
    made["kind"] = [kind for _, _, kind in rows]
    return made


def log(own: list[AbortedTxn], later: list[AbortedTxn]) -> LogTransactions:
    segment = SegmentOfRound(0, 0, 12)
    indexes = [TxnIndexOfSegment(base, columns_of(of)) for base, of in ((0, own), (20, later))]
    return LogTransactions([segment], lambda: iter([(0, batches(ROWS))]), indexes, 0, 0, 20, (0, 0))


def found_later(producer_ids: Collection[int]) -> Mapping[int, Marker]:
    assert list(producer_ids) == [2]  # of others nothing is open
    return LATER


def test_entries_of_the_log_are_taken() -> None:
    assert check_indexes(log(SOUND, [LATER_ENTRY]), "/t-0", found_later) == 0


@pytest.mark.parametrize(
    ("own", "later", "missing"),
    [([], [LATER_ENTRY], 2), (SOUND[:1], [LATER_ENTRY], 1), (SOUND, [], 1), ([], [], 3)],
)
def test_aborted_data_without_an_entry_is_counted(
    own: list[AbortedTxn], later: list[AbortedTxn], missing: int
) -> None:
    """E-53."""
    assert check_indexes(log(own, later), "/t-0", found_later) == missing


@pytest.mark.parametrize(
    ("own", "later"),
    [
        ([SOUND[0]._replace(first_offset=5), SOUND[1]], LATER_ENTRY),
        (SOUND, LATER_ENTRY._replace(first_offset=12)),
    ],
)
def test_so_is_data_before_the_first_offset_of_its_entry(
    own: list[AbortedTxn], later: AbortedTxn
) -> None:
    """It may be of a committed transaction whose marker an earlier cleaning has removed."""
    assert check_indexes(log(own, [later]), "/t-0", found_later) == 1


@pytest.mark.parametrize(
    ("number", "wrong", "told"),
    [
        (0, {"producer_id": 2}, "the marker at 7 is of producer 1"),
        (0, {"producer_id": 3}, "the marker at 7 is of producer 1"),
        (0, {"first_offset": 0}, "first offset 0, but a marker of producer 1 stands at 1"),
        (0, {"first_offset": 1}, "first offset 1, but a marker of producer 1 stands at 1"),
        (0, {"last_offset": 6}, "there is no abort marker of producer 1 at 6"),
        (0, {"last_offset": 4}, "there is no abort marker of producer 1 at 4"),
        (0, {"last_stable_offset": 6}, "last stable offset 6 is past an open transaction"),
        (1, {"last_stable_offset": 10}, "last stable offset 10 is past an open transaction"),
        (1, {"last_offset": 12}, "there is no abort marker of producer 2 at 12"),
    ],
)
def test_an_entry_that_its_log_contradicts_is_corrupt(
    number: int, wrong: dict[str, int], told: str
) -> None:
    own = list(SOUND)
    own[number] = own[number]._replace(**wrong)
    with pytest.raises(CorruptFileError) as caught:
        check_indexes(log(own, [LATER_ENTRY]), "/t-0", found_later)
    assert (caught.value.path, caught.value.position) == (f"/t-0/{0:020}.txnindex", 34 * number)
    assert caught.value.problem == f"entry {number} does not fit the log: {told}"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"producer_id": 1}, "the marker at 21 is of producer 2"),
        ({"last_offset": 20, "last_stable_offset": 21}, "producer 2 has no abort marker at 20"),
        ({"last_offset": 25}, "first offset 11, but a marker of producer 2 stands at 21"),
    ],
)
def test_so_is_one_behind_the_round_whose_data_the_round_reads(
    wrong: dict[str, int], told: str
) -> None:
    entry = LATER_ENTRY._replace(**wrong)
    with pytest.raises(CorruptFileError) as caught:
        check_indexes(log(SOUND, [entry]), "/t-0", found_later)
    assert (caught.value.path, caught.value.position) == (f"/t-0/{20:020}.txnindex", 0)
    assert caught.value.problem.endswith(told)
