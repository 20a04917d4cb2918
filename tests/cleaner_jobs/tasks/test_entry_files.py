"""Entries that are shared out over files come back whole, in the order of the log."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleaner_jobs.messages import ENTRY_BYTES
from cleaner_jobs.problems import WorkFileError
from cleaner_jobs.tasks.entry_files import Entries, EntrySpill
from storage.files.local import LOCAL

HASHES = st.integers(0, 2**64 - 1)


def entries_of(parts: list[list[int]]) -> Entries:
    """Entries with these second hashes, numbered from 0."""
    hashes = [second for own in parts for second in own]
    rows = np.zeros((len(hashes), 3), np.uint64)
    rows[:, 1], rows[:, 2] = hashes, np.arange(len(hashes))
    return Entries(rows, np.array([len(own) for own in parts], np.int64))


@given(
    st.lists(st.lists(HASHES, max_size=5), min_size=2, max_size=5),
    st.sampled_from([2, 4, 8]),
    st.integers(1, 4),
)
def test_each_turn_has_its_share_of_the_keys(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[int]], turns: int, cut: int
) -> None:
    directory = tmp_path_factory.mktemp("spill")
    whole = entries_of(parts)
    numbered = [(part, second) for part, own in enumerate(parts) for second in own]
    with EntrySpill(str(directory / "spill"), turns, len(parts)) as spill:
        first = [*parts[:cut], *[[] for _ in parts[cut:]]]
        second = [*[[] for _ in parts[:cut]], *parts[cut:]]
        at = sum(map(len, first))
        for given_parts, rows in ((first, whole.rows[:at]), (second, whole.rows[at:])):
            spill.add(Entries(rows, entries_of(given_parts).counts))
        for turn in range(turns):
            rows, counts = spill.turn(turn)
            expected = [
                (part, number)
                for number, (part, second_hash) in enumerate(numbered)
                if second_hash * turns >> 64 == turn
            ]
            assert rows[:, 2].tolist() == [number for _, number in expected]
            assert np.repeat(np.arange(len(parts)), counts).tolist() == [p for p, _ in expected]
    assert LOCAL.list_names(str(directory)) == ([], [])


@pytest.mark.parametrize("change", [b"", b"x", bytes(ENTRY_BYTES), bytes(2 * ENTRY_BYTES)])
def test_what_is_not_what_was_written_is_told(tmp_path: Path, change: bytes) -> None:
    with EntrySpill(str(tmp_path / "spill"), 2, 1) as spill:
        spill.add(entries_of([[1]]))
        (tmp_path / "spill-0").write_bytes(change)
        with pytest.raises(WorkFileError, match=r"spill-0.*not what was written"):
            spill.turn(0)
    assert LOCAL.list_names(str(tmp_path)) == ([], [])
