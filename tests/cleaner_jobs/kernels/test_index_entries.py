"""The kernels say of index entries what a look at each of them by itself says."""

from itertools import accumulate

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cleaner_jobs.kernels.index_entries import first_unfitting, first_unordered
from storage.formats.batch_columns import BASE_OFFSET, BATCH_COLUMNS, POSITION, SIZE, Int64Array

BASE = 1000
NUMBERS = st.integers(-1, 12)
ENTRIES = st.lists(st.tuples(NUMBERS, NUMBERS), max_size=5)
SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=6)


def entries_of(pairs: list[tuple[int, int]]) -> Int64Array:
    return np.array(pairs, np.int64).reshape(-1, 2)


@given(ENTRIES, st.integers(0, 12))
def test_entries_are_in_order_where_each_is_beyond_all_before_it(
    pairs: list[tuple[int, int]], log_bytes: int
) -> None:
    wrong = [
        number
        for number, (offset, position) in enumerate(pairs)
        if offset < 0
        or not 0 <= position < log_bytes
        or any(offset <= before or position <= at for before, at in pairs[:number])
    ]
    assert first_unordered(entries_of(pairs), log_bytes) == min(wrong, default=-1)


@given(
    st.lists(st.integers(0, 20), unique=True, max_size=6).map(sorted),
    st.lists(st.integers(0, 9), unique=True, min_size=6, max_size=6).map(sorted),
    SIZES,
    st.integers(0, 4),
    st.integers(1, 3),
)
def test_each_entry_leads_to_the_start_of_a_batch_that_is_not_behind_its_offset(
    positions: list[int], offsets: list[int], sizes: list[int], start: int, a_window: int
) -> None:
    """start: of the first batch. a_window: batches that are looked at together."""
    pairs = list(zip(offsets, positions, strict=False))
    starts = list(accumulate(sizes, initial=start))
    rows = np.zeros((len(sizes), BATCH_COLUMNS), np.int64)
    rows[:, POSITION], rows[:, SIZE] = starts[:-1], sizes
    rows[:, BASE_OFFSET] = BASE + 2 * np.arange(len(sizes))
    expected = None
    for number, (offset, position) in enumerate(pairs):
        leads_to = [i for i, at in enumerate(starts[:-1]) if at <= position < starts[i + 1]]
        if leads_to and expected is None:
            (row,) = leads_to
            if starts[row] != position or 2 * row > offset:
                expected = number, row
    found, first = None, 0
    for at in range(0, len(rows), a_window):
        first, row = first_unfitting(entries_of(pairs), BASE, first, rows[at : at + a_window])
        if row >= 0:
            found = first, at + row
            break
    assert found == expected
