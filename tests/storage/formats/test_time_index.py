"""Time index, spec F-10. The bytes in KAFKAS were written by Kafka 4.3.1."""

from pathlib import Path

import numpy as np
import pytest

from storage.errors import CorruptFileError
from storage.formats import time_index
from storage.formats.index_entry import time_at
from storage.formats.time_index import ENTRY, TimestampOffset, check, decode, last

# for the log of test_segment_indexes: base offset 0, interval 300
KAFKAS = bytes.fromhex(
    "0000000000000046000041770000000000000047000041a3"
    "000000000000005a000041a6000000000000005f000041a8"
)
ENTRIES = [(70, 16759), (71, 16803), (90, 16806), (95, 16808)]
PATH = "00000000000000000000.timeindex"


def test_a_file_of_kafkas_is_read() -> None:  # F-10.1
    entries = decode(KAFKAS, PATH)
    assert entries.tolist() == ENTRIES
    check(entries, PATH)
    check(decode(b"", PATH), PATH)


@pytest.mark.parametrize("zeros", [0, 1, 2, 1000])
def test_the_zeros_behind_the_entries_of_an_active_segment_are_not_entries(zeros: int) -> None:
    assert decode(KAFKAS + bytes(12 * zeros), PATH).tolist() == ENTRIES
    if zeros != 1:
        assert decode(bytes(12 * zeros), PATH).tolist() == []


def test_a_record_of_the_epoch_itself_is_an_entry() -> None:
    assert decode(bytes(12), PATH).tolist() == [(0, 0)]


@pytest.mark.parametrize("kept", [kept for kept in range(len(KAFKAS)) if kept % 12])
def test_an_entry_cut_short_is_corrupt(kept: int) -> None:
    where = rf"byte {kept // 12 * 12}: entry has {kept % 12} of 12 bytes"
    with pytest.raises(CorruptFileError, match=where):
        decode(KAFKAS[:kept], PATH)


@pytest.mark.parametrize(
    ("entries", "bad"),
    [
        ([(5, 1), (5, 2)], 1),
        ([(5, 1), (4, 2)], 1),
        ([(5, 2), (6, 2), (7, 1)], 2),
        ([(-1, 0)], 0),
        ([(5, -1)], 0),
    ],
)
def test_timestamps_have_to_ascend_and_offsets_not_to_descend(
    entries: list[tuple[int, int]], bad: int
) -> None:  # F-10.1
    with pytest.raises(CorruptFileError, match=rf"{PATH}, byte {12 * bad}: entry .*ascend"):
        check(np.array(entries, ENTRY), PATH)


def test_the_same_offset_may_follow() -> None:
    check(np.array([(5, 2), (6, 2)], ENTRY), PATH)


def test_the_last_entry_tells_the_largest_timestamp_of_a_segment(tmp_path: Path) -> None:  # F-10.5
    (tmp_path / PATH).write_bytes(KAFKAS)
    entries = time_index.read(str(tmp_path / PATH))
    assert last(entries, 1000) == TimestampOffset(95, 17808)
    assert last(entries[:0], 1000) == TimestampOffset(None, 1000)


def test_the_time_of_one_entry_is_read_by_its_number(tmp_path: Path) -> None:
    (tmp_path / PATH).write_bytes(KAFKAS[:-1])
    assert [time_at(str(tmp_path / PATH), n) for n in range(3)] == [70, 71, 90]
    for number, kept in ((3, 11), (4, 0)):
        with pytest.raises(CorruptFileError, match=rf"byte {12 * number}: .* {kept} of 12"):
            time_at(str(tmp_path / PATH), number)
