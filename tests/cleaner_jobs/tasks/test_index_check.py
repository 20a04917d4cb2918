"""An index fits its log if each entry leads to a batch that begins at its offset or before it."""

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleaner_jobs.messages import Source
from cleaner_jobs.tasks.index_check import IndexCheck, first_unfitting, first_unordered
from storage.errors import CorruptFileError
from storage.file_names import INDEX, LOG, file_name
from storage.files.local import LOCAL
from storage.formats.batch_columns import BASE_OFFSET, BATCH_COLUMNS, POSITION, SIZE, Int64Array
from tests.support.made_values import stretch

BASE = 100
BATCH_BYTES, BATCHES, OFFSETS = 70, 6, 10  # of a batch: 100 to 109 at byte 0, 110 to 119 at 70, …
Entry = tuple[int, int]  # offset, position

SOUND: list[list[Entry]] = [
    [],
    [(119, 70)],
    [(110, 70)],
    [(119, 70), (139, 210), (159, 350)],
    [(129, 70), (139, 210)],  # as older brokers have it: the last offset of several batches
]
WRONG: list[tuple[list[Entry], int]] = [  # and the number of the first wrong entry
    ([(119, 71)], 0),
    ([(119, 69)], 0),
    ([(109, 70)], 0),  # would skip the batch before
    ([(119, 70), (138, 280)], 1),
    ([(119, 70), (139, 210), (159, 351)], 2),
    ([(119, 70), (159, 420)], 1),  # behind the log
    ([(119, 70), (118, 140)], 1),
    ([(119, 140), (129, 70)], 1),
]


def rows_of(first: int, end: int) -> Int64Array:
    rows = np.zeros((end - first, BATCH_COLUMNS), np.int64)
    number = np.arange(first, end)
    rows[:, POSITION], rows[:, SIZE] = number * BATCH_BYTES, BATCH_BYTES
    rows[:, BASE_OFFSET] = BASE + number * OFFSETS
    return rows


def check(folder: Path, entries: Sequence[Entry], windows: Sequence[int]) -> None:
    """Hold the entries against the log, in windows that end before these batches."""
    data = b"".join(
        (offset - BASE).to_bytes(4, "big") + position.to_bytes(4, "big")
        for offset, position in entries
    )
    (folder / file_name(BASE, INDEX)).write_bytes(data)
    path = str(folder / file_name(BASE, LOG))
    log_bytes = BATCHES * BATCH_BYTES
    index = IndexCheck(stretch(Source(path, BASE, log_bytes, 0, 0, 0, 0), 0, log_bytes), LOCAL)
    for first, end in zip([0, *windows], [*windows, BATCHES], strict=True):
        index.check(rows_of(first, end))
    index.finish()


@pytest.mark.parametrize("windows", [[], [3], [1, 2, 3, 4, 5]])
class TestHowever:
    @pytest.mark.parametrize("entries", SOUND)
    def test_one_that_fits(self, tmp_path: Path, entries: list[Entry], windows: list[int]) -> None:
        check(tmp_path, entries, windows)

    @pytest.mark.parametrize(("entries", "wrong"), WRONG)
    def test_one_that_does_not(
        self, tmp_path: Path, entries: list[Entry], wrong: int, windows: list[int]
    ) -> None:
        """F-9.4."""
        with pytest.raises(CorruptFileError) as caught:
            check(tmp_path, entries, windows)
        assert caught.value.path == str(tmp_path / file_name(BASE, INDEX))
        assert caught.value.position == 8 * wrong


def test_only_the_entries_of_a_stretch_are_held_against_it(tmp_path: Path) -> None:
    """Two stretches, cut where a batch starts: the other one's entries are the other's affair."""
    (tmp_path / file_name(BASE, INDEX)).write_bytes(
        b"\0\0\0\x13\0\0\0\x46" + b"\0\0\0\x3b\0\0\x01\x5f"  # 119 at 70, and 159 at 351
    )
    source = Source(str(tmp_path / file_name(BASE, LOG)), BASE, BATCHES * BATCH_BYTES, 0, 0, 0, 0)
    first = IndexCheck(stretch(source, 0, 3 * BATCH_BYTES), LOCAL)
    first.check(rows_of(0, 3))
    first.finish()
    second = IndexCheck(stretch(source, 3 * BATCH_BYTES, 6 * BATCH_BYTES), LOCAL)
    second.check(rows_of(3, 6))
    with pytest.raises(CorruptFileError, match="byte 8: entry"):
        second.finish()


def test_one_that_is_not_there_is_no_problem(tmp_path: Path) -> None:
    source = Source(str(tmp_path / file_name(BASE, LOG)), BASE, 420, 0, 0, 0, 0)
    index = IndexCheck(stretch(source, 0, 420), LOCAL)
    index.check(rows_of(0, 6))
    index.finish()


BASE_OF_ENTRIES = 1000
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
    rows[:, BASE_OFFSET] = BASE_OF_ENTRIES + 2 * np.arange(len(sizes))
    expected = None
    for number, (offset, position) in enumerate(pairs):
        leads_to = [i for i, at in enumerate(starts[:-1]) if at <= position < starts[i + 1]]
        if leads_to and expected is None:
            (row,) = leads_to
            if starts[row] != position or 2 * row > offset:
                expected = number, row
    found, first = None, 0
    for at in range(0, len(rows), a_window):
        first, row = first_unfitting(
            entries_of(pairs), BASE_OF_ENTRIES, first, rows[at : at + a_window]
        )
        if row >= 0:
            found = first, at + row
            break
    assert found == expected
