"""What becomes of batches, and which stay though they are empty."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleaner_jobs.kernels.kept_batches import (
    COPY,
    DROP,
    EMPTY,
    MAX_INT64,
    REBUILD,
    REBUILD_WITH_HORIZON,
    KeptBatches,
    decide_batches,
    delete_horizon,
)
from cleaner_jobs.messages import ActiveProducer
from storage.formats import batch_columns as columns
from storage.formats.batch_columns import (
    ABORTED,
    ABORTED_FOR_CLEANING,
    ABORTED_FOR_MAP,
    CONTROL_RECORD,
    DISCARDABLE,
    EXPIRED,
    IN_MAP,
    KEEP,
    NULL_KEY,
    SUPERSEDED,
    TOMBSTONE,
)
from tests.support.reference_batch import CONTROL, HORIZON, TRANSACTIONAL

PRODUCERS = (ActiveProducer(9, 0, None), ActiveProducer(7, 1, 20), ActiveProducer(3, 0, 0))
NOBODY = KeptBatches.of(1000, ())
NOW_MS = 10000
MARKER = CONTROL | TRANSACTIONAL

Made = tuple[list[int], dict[int, int]]  # states of its records; columns of its row


def decide(made: list[Made], kept: KeptBatches) -> tuple[list[int], list[int]]:
    rows = np.zeros((len(made), columns.BATCH_COLUMNS), np.int64)
    rows[:, columns.PRODUCER_ID] = -1
    for row, (states, header) in zip(rows, made, strict=True):
        row[columns.RECORDS_COUNT] = len(states)
        for column, value in header.items():
            row[column] = value
    all_states = np.array([state for states, _ in made for state in states], np.uint8)
    actions, kept_records = np.full(len(made), 99, np.uint8), np.full(len(made), 99, np.int32)
    decide_batches(rows, all_states, kept, NOW_MS, actions, kept_records)
    return actions.tolist(), kept_records.tolist()


def action(states: list[int], kept: KeptBatches = NOBODY, **header: int) -> int:
    row = {getattr(columns, name.upper()): value for name, value in header.items()}
    return decide([(states, row)], kept)[0][0]


@pytest.mark.parametrize(
    ("states", "attributes", "expected"),
    [
        ([KEEP, KEEP], 0, COPY),  # E-20
        ([KEEP, IN_MAP], HORIZON, COPY),
        ([KEEP, ABORTED | IN_MAP], 0, REBUILD),
        ([ABORTED, ABORTED | TOMBSTONE], TRANSACTIONAL, DROP),  # E-40, C-10.6
        ([KEEP, SUPERSEDED], 0, REBUILD),
        ([SUPERSEDED, NULL_KEY, EXPIRED], HORIZON, DROP),
        ([TOMBSTONE], 0, REBUILD_WITH_HORIZON),  # E-21: nothing goes, and yet
        ([TOMBSTONE | IN_MAP, KEEP], 0, REBUILD_WITH_HORIZON),  # E-11
        ([TOMBSTONE, SUPERSEDED], HORIZON, REBUILD),  # E-22: it has one
        ([TOMBSTONE], HORIZON, COPY),  # E-9
        ([TOMBSTONE | SUPERSEDED, KEEP], 0, REBUILD),  # the tombstone goes: no horizon (E-7)
        ([TOMBSTONE | NULL_KEY, KEEP], 0, REBUILD),
        ([TOMBSTONE | EXPIRED, KEEP], HORIZON, REBUILD),
        ([], 0, DROP),
    ],
)
def test_a_batch_is_copied_rebuilt_or_dropped(
    states: list[int], attributes: int, expected: int
) -> None:
    assert action(states, attributes=attributes) == expected


@pytest.mark.parametrize(
    ("producer_id", "last_offset", "expected"),
    [
        (7, 20, EMPTY),  # C-10.4, E-27
        (7, 19, DROP),  # E-28: it has written since
        (8, 20, DROP),  # not active
        (9, 20, DROP),  # active, but only a marker of it is known
        (3, 0, EMPTY),
        (-1, 20, DROP),
        (100, 20, DROP),  # behind the last known one
        (-1, 999, EMPTY),  # C-10.5: the last batch of the round
        (8, 999, EMPTY),
        (-1, 998, DROP),  # E-67
        (-1, 1000, DROP),
    ],
)
@pytest.mark.parametrize("states", [[], [SUPERSEDED]])
def test_some_batches_stay_as_a_header(
    producer_id: int, last_offset: int, expected: int, states: list[int]
) -> None:
    kept = KeptBatches.of(1000, PRODUCERS)
    assert action(states, kept, producer_id=producer_id, last_offset=last_offset) == expected


@pytest.mark.parametrize(
    ("flags", "attributes", "base_timestamp", "expected"),
    [
        (0, MARKER, 0, COPY),  # its transaction has data (C-10.6)
        (0, MARKER | HORIZON, NOW_MS - 1, COPY),  # as it has again, after a horizon was given
        (DISCARDABLE, MARKER, 0, REBUILD_WITH_HORIZON),  # C-10.3
        (DISCARDABLE, MARKER | HORIZON, NOW_MS + 1, COPY),
        (DISCARDABLE, MARKER | HORIZON, NOW_MS, DROP),  # C-10.2: horizon <= now
        (DISCARDABLE, MARKER | HORIZON, -1, DROP),
        (DISCARDABLE, TRANSACTIONAL, NOW_MS, COPY),  # not a control batch
        (ABORTED_FOR_MAP | ABORTED_FOR_CLEANING, MARKER | HORIZON, NOW_MS, COPY),
    ],
)
def test_a_marker_is_given_a_horizon_and_goes_once_it_has_passed(
    flags: int, attributes: int, base_timestamp: int, expected: int
) -> None:
    header = {"txn_flags": flags, "attributes": attributes, "base_timestamp": base_timestamp}
    assert action([CONTROL_RECORD], NOBODY, **header) == expected


@pytest.mark.parametrize("flags", [0, DISCARDABLE])
def test_an_empty_control_batch_goes_unless_it_is_protected(flags: int) -> None:
    """C-10.6."""
    header = {"txn_flags": flags, "attributes": MARKER}
    assert action([], NOBODY, **header) == DROP
    assert action([], NOBODY, **header, last_offset=999) == EMPTY


@pytest.mark.parametrize(
    ("producer_id", "epoch", "last_offset", "attributes", "expected"),
    [
        (9, 4, 5, MARKER, EMPTY),  # C-10.4: no data is known of it in this epoch
        (9, 4, 77, MARKER, EMPTY),  # each marker of the epoch
        (9, 3, 5, MARKER, DROP),  # E-49: of an epoch before
        (9, 5, 5, MARKER, DROP),
        (9, 4, 5, TRANSACTIONAL, DROP),  # not a control batch
        (7, 1, 5, MARKER, DROP),  # a producer with a data offset keeps that batch alone
        (7, 1, 20, MARKER, EMPTY),
    ],
)
def test_the_markers_of_a_producer_without_data_stay_as_a_header(
    producer_id: int, epoch: int, last_offset: int, attributes: int, expected: int
) -> None:
    kept = KeptBatches.of(1000, (ActiveProducer(9, 4, None), ActiveProducer(7, 1, 20)))
    states = [CONTROL_RECORD] if attributes == MARKER else [ABORTED]
    header = {
        "txn_flags": DISCARDABLE if attributes == MARKER else 0,
        "attributes": attributes | HORIZON,
        "base_timestamp": NOW_MS,
        "producer_id": producer_id,
        "producer_epoch": epoch,
        "last_offset": last_offset,
    }
    assert action(states, kept, **header) == expected


def test_what_is_known_of_producers_is_sorted() -> None:
    kept = KeptBatches.of(5, PRODUCERS)
    assert kept.producer_ids.tolist() == [3, 7, 9]
    assert kept.last_data_offsets.tolist() == [0, 20, -1]
    assert kept.epochs.tolist() == [0, 1, 0]
    assert {column.dtype for column in kept[1:]} == {np.dtype(np.int64)}
    assert [len(column) for column in KeptBatches.of(5, ())[1:]] == [0, 0, 0]


@given(st.lists(st.lists(st.integers(0, 63), max_size=4), max_size=5))
def test_states_are_shared_out_by_the_batches_counts(batches: list[list[int]]) -> None:
    _, kept = decide([(states, {columns.ATTRIBUTES: HORIZON}) for states in batches], NOBODY)
    assert kept == [sum(state & 7 == 0 for state in states) for states in batches]


@pytest.mark.parametrize(
    ("now_ms", "retention_ms", "expected"),
    [
        (10000, 1000, 11000),
        (10000, 0, 10000),  # E-12
        (1, MAX_INT64 - 1, MAX_INT64),
        (1, MAX_INT64, -1),  # C-11.8
        (MAX_INT64, MAX_INT64, -1),
    ],
)
def test_a_horizon_that_does_not_fit_is_none(now_ms: int, retention_ms: int, expected: int) -> None:
    assert delete_horizon(now_ms, retention_ms) == expected
