"""What is noted of transactional batches, and which are flagged: against plain loops, by chance."""

from random import Random
from typing import Any

import numpy as np
import pytest

from cleaner_jobs.kernels.transaction_kernels import flag_aborted, flag_discardable
from cleaner_jobs.tasks.scan import txn_batches
from cleaner_jobs.txn_batches import (
    ABORT,
    COMMIT,
    DATA,
    EMPTY_CONTROL,
    HORIZON_AHEAD,
    HORIZON_PASSED,
    NO_HORIZON,
    OTHER_CONTROL,
)
from storage.formats.batch_columns import (
    ABORTED_FOR_CLEANING,
    ABORTED_FOR_MAP,
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    BATCH_COLUMNS,
    DISCARDABLE,
    LAST_OFFSET,
    POSITION,
    PRODUCER_ID,
    RECORDS_COUNT,
    TXN_FLAGS,
    Int64Array,
)
from tests.support.reference_batch import CONTROL, HORIZON, TRANSACTIONAL

NOW_MS = 500
KINDS = (0, TRANSACTIONAL, TRANSACTIONAL, CONTROL, TRANSACTIONAL | CONTROL)
TYPES = {0: ABORT, 1: COMMIT, 2: OTHER_CONTROL, 7: OTHER_CONTROL}  # of a control record, by its key
FLAGS = (ABORTED_FOR_MAP, ABORTED_FOR_CLEANING, ABORTED_FOR_MAP | ABORTED_FOR_CLEANING)


def random_rows(chance: Random, count: int) -> Int64Array:
    """Batches of few producers, in the order of their offsets."""
    rows = np.zeros((count, BATCH_COLUMNS), np.int64)
    offset = 0
    for number, row in enumerate(rows):
        row[POSITION] = 100 * number
        row[BASE_OFFSET] = offset
        offset += chance.randint(1, 5)
        row[LAST_OFFSET] = offset - 1
        row[ATTRIBUTES] = chance.choice(KINDS) | chance.choice((0, HORIZON))
        row[BASE_TIMESTAMP] = chance.choice((NOW_MS - 1, NOW_MS, NOW_MS + 1))
        row[PRODUCER_ID] = chance.randrange(4)
        row[RECORDS_COUNT] = chance.randrange(3)
    return rows


def random_ranges(chance: Random, end_offset: int) -> list[tuple[int, int, int, int]]:
    """Of some producers, ascending, and apart from one another."""
    ranges = []
    for producer_id in range(4):
        last = -1
        while chance.random() < 0.7 and last < end_offset:
            first = last + 1 + chance.randrange(8)
            last = first + chance.randrange(12)
            ranges.append((producer_id, first, last, chance.choice(FLAGS)))
    return ranges


def test_data_within_a_range_of_its_producer_is_flagged() -> None:
    chance, flagged = Random(5), 0
    for _ in range(60):
        rows = random_rows(chance, 60)
        ranges = random_ranges(chance, int(rows[-1, LAST_OFFSET]))
        expected = [
            sum(
                flags
                for producer_id, first, last, flags in ranges
                if row[PRODUCER_ID] == producer_id
                and first <= row[LAST_OFFSET] <= last
                and row[ATTRIBUTES] & TRANSACTIONAL
                and not row[ATTRIBUTES] & CONTROL
            )
            for row in rows.tolist()
        ]
        flag_aborted(rows, np.array(ranges, np.int64).reshape(-1, 4))
        assert rows[:, TXN_FLAGS].tolist() == expected
        flagged += len(rows) - expected.count(0)
    assert flagged > 50


def noted(row: Any, segment: int, types: list[int]) -> tuple[Any, ...]:
    """One batch, as its columns say; types: of its records."""
    kind = DATA
    if row[ATTRIBUTES] & CONTROL:
        kind = TYPES[types[0]] if types else EMPTY_CONTROL
    horizon = NO_HORIZON
    if row[ATTRIBUTES] & HORIZON:
        horizon = HORIZON_PASSED if row[BASE_TIMESTAMP] <= NOW_MS else HORIZON_AHEAD
    return (
        row[POSITION],
        row[BASE_OFFSET],
        row[LAST_OFFSET],
        row[PRODUCER_ID],
        segment,
        kind,
        row[RECORDS_COUNT],
        horizon,
    )


@pytest.mark.parametrize("seed", range(40))
def test_every_transactional_or_control_batch_is_noted_in_order(seed: int) -> None:
    chance = Random(seed)
    rows = random_rows(chance, 30)
    types = [[chance.choice(list(TYPES)) for _ in range(row[RECORDS_COUNT])] for row in rows]
    expected = [
        noted(row, 3, its)
        for row, its in zip(rows.tolist(), types, strict=True)
        if row[ATTRIBUTES] & (TRANSACTIONAL | CONTROL)
    ]
    hashes = np.array([one for its in types for one in its], np.uint64)
    assert txn_batches(rows, 3, NOW_MS, hashes).tolist() == expected


def test_where_there_are_none_nothing_is_noted() -> None:
    rows = np.zeros((3, BATCH_COLUMNS), np.int64)
    assert not len(txn_batches(rows, 0, NOW_MS, np.zeros(0, np.uint64)))


@pytest.mark.parametrize("seed", range(10))
def test_control_batches_with_these_base_offsets_are_flagged(seed: int) -> None:
    chance = Random(seed)
    rows = random_rows(chance, 30)
    offsets = sorted(chance.sample(rows[:, BASE_OFFSET].tolist(), 10))
    rows[:, TXN_FLAGS] = ABORTED_FOR_MAP
    flag_discardable(rows, np.array(offsets, np.int64))
    expected = [
        ABORTED_FOR_MAP
        | (DISCARDABLE if row[ATTRIBUTES] & CONTROL and row[BASE_OFFSET] in offsets else 0)
        for row in rows.tolist()
    ]
    assert rows[:, TXN_FLAGS].tolist() == expected
