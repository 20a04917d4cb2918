"""Offset index, spec F-9. The bytes in KAFKAS were written by Kafka 4.3.1."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import CorruptFileError
from storage.formats import offset_index
from storage.formats.index_entry import OffsetPosition, read_last
from storage.formats.offset_index import ENTRY, check, decode, search

# for the log of test_segment_indexes: base offset 0, interval 300
KAFKAS = bytes.fromhex("0000417900000184000041a3000002e8000041a70000044c")
ENTRIES = [(16761, 388), (16803, 744), (16807, 1100)]
PATH = "00000000000000000000.index"


def test_a_file_of_kafkas_is_read() -> None:  # F-9.1
    entries = decode(KAFKAS, PATH)
    assert entries.tolist() == ENTRIES
    check(entries, 1278, PATH)


@pytest.mark.parametrize("zeros", [0, 1, 2, 1000])
def test_the_zeros_behind_the_entries_of_an_active_segment_are_not_entries(
    zeros: int, tmp_path: Path
) -> None:  # F-9.2
    data = KAFKAS + bytes(8 * zeros)
    assert decode(data, PATH).tolist() == ENTRIES
    assert decode(bytes(8 * zeros), PATH).tolist() == []
    path = tmp_path / PATH
    path.write_bytes(data)
    assert offset_index.read(str(path)).tolist() == ENTRIES
    assert read_last(str(path), 5) == OffsetPosition(16812, 1100)
    path.write_bytes(bytes(8 * zeros))
    assert read_last(str(path), 5) == OffsetPosition(5, 0)


@pytest.mark.parametrize("kept", [kept for kept in range(len(KAFKAS)) if kept % 8])
def test_an_entry_cut_short_is_corrupt(kept: int) -> None:
    where = rf"byte {kept // 8 * 8}: entry has {kept % 8} of 8 bytes"
    with pytest.raises(CorruptFileError, match=where):
        decode(KAFKAS[:kept], PATH)


@pytest.mark.parametrize(
    ("entries", "bad"),
    [
        ([(5, 10), (5, 20)], 1),
        ([(5, 10), (4, 20)], 1),
        ([(5, 10), (6, 10)], 1),
        ([(5, 10), (6, 9)], 1),
        ([(5, 10), (6, 20), (7, 100)], 2),  # at the end of the log there is no batch
        ([(-1, 10)], 0),
        ([(5, -10)], 0),
        ([(0, 0), (0, 0), (7, 10)], 1),
    ],
)
def test_entries_have_to_ascend_within_the_log(entries: list[tuple[int, int]], bad: int) -> None:
    with pytest.raises(CorruptFileError, match=rf"{PATH}, byte {8 * bad}: entry .*ascend"):
        check(np.array(entries, ENTRY), 100, PATH)


def test_no_entries_are_sound() -> None:
    check(decode(b"", PATH), 0, PATH)


@pytest.mark.parametrize(
    ("target", "found"),
    [
        (0, (100, 0)),
        (16860, (100, 0)),
        (16861, (16861, 388)),
        (16902, (16861, 388)),
        (16903, (16903, 744)),
        (2**40, (16907, 1100)),
    ],
)
def test_the_entry_not_past_the_target_is_found(target: int, found: tuple[int, int]) -> None:
    assert search(decode(KAFKAS, PATH), 100, target) == found  # F-9.3, with base offset 100


@given(st.sets(st.integers(1, 60)), st.integers(-5, 70), st.sampled_from([0, 7, 2**40]))
def test_a_search_is_the_last_of_the_entries_not_past_it(
    relative_offsets: set[int], target: int, base: int
) -> None:
    rows = [(offset, 100 * offset) for offset in sorted(relative_offsets)]
    below = [(base + o, p) for o, p in rows if base + o <= base + target]
    expected = below[-1] if below else (base, 0)
    assert search(np.array(rows, ENTRY), base, base + target) == expected


COUNTS = st.one_of(st.integers(0, 300), st.integers(100, 3000))  # 128 are read at once


@given(used=COUNTS, unused=COUNTS, step=st.sampled_from([9, 4096, 65536]))
def test_the_last_entry_is_found_by_halving(
    used: int, unused: int, step: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "halving.index"
    path.write_bytes(np.array([(n, step * n) for n in range(1, used + 1)], ENTRY).tobytes())
    with path.open("ab") as file:
        file.write(bytes(8 * unused))
    assert read_last(str(path), 10) == ((10 + used, step * used) if used else (10, 0))
