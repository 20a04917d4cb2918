"""An index fits its log if each entry leads to a batch that begins at its offset or before it."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from cleaner_jobs.task_values import Source
from cleaner_jobs.tasks.index_check import IndexCheck
from storage.errors import CorruptFileError
from storage.file_names import INDEX, LOG, file_name
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
    index = IndexCheck(stretch(Source(path, BASE, log_bytes, 0, 0, 0, 0), 0, log_bytes))
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
    first = IndexCheck(stretch(source, 0, 3 * BATCH_BYTES))
    first.check(rows_of(0, 3))
    first.finish()
    second = IndexCheck(stretch(source, 3 * BATCH_BYTES, 6 * BATCH_BYTES))
    second.check(rows_of(3, 6))
    with pytest.raises(CorruptFileError, match="byte 8: entry"):
        second.finish()


def test_one_that_is_not_there_is_no_problem(tmp_path: Path) -> None:
    source = Source(str(tmp_path / file_name(BASE, LOG)), BASE, 420, 0, 0, 0, 0)
    index = IndexCheck(stretch(source, 0, 420))
    index.check(rows_of(0, 6))
    index.finish()
