"""Which batches readers take for aborted: a small log by hand, by its indexes and by its markers.

offset   segment
  0      0        data of producer 1           aborted at 4
  1      0        data of producer 2           committed at 3
  2      0        data of nobody's transaction
  3      0        commit of producer 2
  4      1        abort of producer 1
  5      1        data of producer 1           committed at 7
  6      1        data of producer 3           never ends
  7      2        commit of producer 1
"""

import numpy as np
import pytest

from compactor.verification.reader_log import BATCH, Batches
from compactor.verification.reader_transactions import ConsumerView, MarkerView
from storage.formats.txn_index import AbortedTxn

DATA, MARKER, PLAIN = 0x10, 0x30, 0
ABORT, COMMIT, NONE = 0, 1, -1
ROWS = [
    (0, 0, 1, DATA, NONE),
    (1, 0, 2, DATA, NONE),
    (2, 0, -1, PLAIN, NONE),
    (3, 0, 2, MARKER, COMMIT),
    (4, 1, 1, MARKER, ABORT),
    (5, 1, 1, DATA, NONE),
    (6, 1, 3, DATA, NONE),
    (7, 2, 1, MARKER, COMMIT),
]
ENDS = [4, 7, 8]
TXN = AbortedTxn(producer_id=1, first_offset=0, last_offset=4, last_stable_offset=5)
INDEXES = [[], [TXN], []]  # an entry stands in the segment of its marker


def batches(rows: list[tuple[int, int, int, int, int]] = ROWS) -> Batches:
    made = np.zeros(len(rows), BATCH)
    names = ("base_offset", "segment", "producer_id", "attributes", "marker")
    for name, column in zip(names, zip(*rows, strict=True), strict=True):
        made[name] = column
    made["last_offset"] = made["base_offset"]
    return made


def aborted(view: ConsumerView | MarkerView, read: Batches) -> list[int]:
    return [int(offset) for offset in read["base_offset"][view.of(read)]]


def test_both_say_the_same_of_a_sound_log() -> None:
    assert aborted(ConsumerView(INDEXES, ENDS, 0), batches()) == [0]
    view = MarkerView()
    view.read(batches())
    assert aborted(view, batches()) == [0]


def test_without_an_entry_a_consumer_is_given_what_was_aborted() -> None:
    assert aborted(ConsumerView([[], [], []], ENDS, 0), batches()) == []


def test_a_marker_that_is_gone_ends_its_transaction_with_the_fetch() -> None:
    """That of offset 1 has been cleaned away; what producer 1 writes in segment 1 is committed."""
    rows = [(0, 0, 1, DATA, NONE), (4, 1, 1, DATA, NONE), (5, 1, 1, MARKER, COMMIT)]
    gone = AbortedTxn(producer_id=1, first_offset=0, last_offset=1, last_stable_offset=2)
    assert aborted(ConsumerView([[gone], []], [4, 6], 0), batches(rows)) == [0]


def test_an_entry_of_a_transaction_that_was_committed_hides_it() -> None:
    wrong = AbortedTxn(producer_id=2, first_offset=1, last_offset=3, last_stable_offset=8)
    assert aborted(ConsumerView([[wrong], [TXN], []], ENDS, 0), batches()) == [1]


def test_a_search_ends_where_all_is_decided() -> None:
    """With an entry whose last stable offset is past the segment no later index is looked at."""
    stops = AbortedTxn(producer_id=9, first_offset=0, last_offset=1, last_stable_offset=4)
    assert aborted(ConsumerView([[stops], [TXN], []], ENDS, 0), batches()) == []
    goes_on = stops._replace(last_stable_offset=3)
    assert aborted(ConsumerView([[goes_on], [TXN], []], ENDS, 0), batches()) == [0]


@pytest.mark.parametrize(("log_start", "found"), [(0, [0]), (4, [0]), (5, [])])
def test_a_transaction_that_ended_below_the_log_start_does_not_count(
    log_start: int, found: list[int]
) -> None:
    assert aborted(ConsumerView(INDEXES, ENDS, log_start), batches()) == found


def test_a_transaction_that_has_no_end_is_not_aborted() -> None:
    """Its reader waits for the end; a marker without data begins nothing either."""
    view = MarkerView()
    view.marker(3, 5, ABORT)
    view.data(3, 6)
    assert aborted(view, batches()) == []


def test_other_control_records_end_nothing() -> None:
    view = MarkerView()
    for kind in (2, -1):  # a leader's change; one that was emptied
        view.data(1, 0)
        view.marker(1, 1, kind)
    view.marker(1, 4, ABORT)
    assert aborted(view, batches()) == [0]
