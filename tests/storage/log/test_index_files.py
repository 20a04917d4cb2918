"""Offset, time and transaction index of a segment in use: edge cases EE-7 to EE-17."""

import pytest

from storage.formats.index_entry import OffsetPosition
from storage.formats.txn_index import AbortedTxn
from storage.kafka_versions import BY_NAME, NEWEST
from storage.log.errors import (
    BufferOverflowError,
    IllegalArgumentError,
    IllegalStateError,
    IndexOffsetOverflowError,
    InvalidOffsetError,
    KafkaError,
)
from storage.log.index_files import OffsetIndexFile, TimeIndexFile, TxnIndexFile
from tests.support.files.memory import MemoryFiles


def offset_index(base_offset: int, room: int) -> OffsetIndexFile:
    return OffsetIndexFile(MemoryFiles(), "/index", base_offset, room)


def time_index(room: int, base_offset: int = 0) -> TimeIndexFile:
    return TimeIndexFile(MemoryFiles(), "/timeindex", base_offset, room)


def test_an_index_has_room_for_whole_entries() -> None:
    """EE-7."""
    with pytest.raises(IllegalArgumentError):
        _ = offset_index(0, 7).entries
    with pytest.raises(IllegalArgumentError):
        _ = time_index(11).is_full
    index = offset_index(0, 47)
    assert index.entries == 0
    assert index.file.max_entries == 5


@pytest.mark.parametrize("offset", [49, 50 + 2**31])
def test_an_offset_too_far_from_the_base_is_refused(offset: int) -> None:
    """EE-8, L-4.9."""
    index = offset_index(50, 40)
    with pytest.raises(IndexOffsetOverflowError):
        index.append(offset, 0)
    assert index.entries == 0


def test_entries_rise_until_the_index_is_full() -> None:
    """EE-9, L-5.1."""
    index = offset_index(50, 16)
    index.append(51, 0)
    with pytest.raises(InvalidOffsetError):
        index.append(51, 10)
    index.append(52, 10)
    for offset in (53, 51):
        with pytest.raises(IllegalArgumentError):
            index.append(offset, 20)


def test_it_is_cut_off_by_offset_and_stays_as_long() -> None:
    """EE-10, L-4.7."""
    files = MemoryFiles()
    index = OffsetIndexFile(files, "/index", 0, 80)
    for offset in range(1, 10):
        index.append(offset, offset * 10)
    for offset, last in ((12, 9), (9, 8), (5, 4), (1, 0)):
        index.truncate_to(offset)
        assert index.last_offset == last
        assert len(files.read_bytes("/index")) == 80
    assert index.entries == 0


@pytest.mark.parametrize(
    ("target", "found"),
    [(0, 10), (5, 10), (10, 10), (11, 23), (23, 23), (50, 50), (51, None)],
)
def test_the_upper_bound_is_not_exact_at_the_first_entry(target: int, found: int | None) -> None:
    """EE-11, EE-12, L-4.4, L-5.2: for the position of the first entry the second one comes."""
    index = offset_index(0, 80)
    for number, position in enumerate((0, 10, 23, 37, 50)):
        index.append(number + 1, position)
    entry = index.upper_bound(OffsetPosition(0, 0), target)
    assert (None if entry is None else entry.position) == found
    wrapped = index.upper_bound(OffsetPosition(0, 5), 2**31 - 1)
    assert wrapped is not None
    assert wrapped.position == 0


@pytest.mark.parametrize(("target", "found"), [(9, 10), (10, None), (11, None)])
def test_the_upper_bound_in_one_entry(target: int, found: int | None) -> None:
    """EE-13."""
    index = offset_index(0, 80)
    index.append(1, 10)
    entry = index.upper_bound(OffsetPosition(0, 0), target)
    assert (None if entry is None else entry.position) == found


def test_lookups_in_a_long_index_are_those_of_a_plain_search() -> None:
    """L-4.3: the warm section changes nothing in a sound index."""
    index = offset_index(0, 8 * 3000)
    for number in range(3000):
        index.append(number * 2 + 1, number)
    for target in (0, 1, 2, 3_949, 3_950, 3_951, 5_998, 5_999, 9_999):
        number = min((target - 1) // 2, 2999)
        expected = OffsetPosition(number * 2 + 1, number) if target else OffsetPosition(0, 0)
        assert index.lookup(target) == expected


def test_a_time_index_keeps_a_slot_for_its_last_entry() -> None:
    """EE-14, EE-15."""
    index = time_index(60)
    for number in range(1, 5):
        index.maybe_append(number * 10, number)
    for time, offset in ((1, 0), (40, 4)):
        with pytest.raises(IllegalArgumentError):
            index.maybe_append(time, offset)
    index.maybe_append(50, 5, skip_full_check=True)
    with pytest.raises(BufferOverflowError):
        index.maybe_append(60, 6, skip_full_check=True)
    with pytest.raises(InvalidOffsetError):
        index.maybe_append(70, 1, skip_full_check=True)
    with pytest.raises(IllegalStateError):
        index.maybe_append(7, 9, skip_full_check=True)
    index.maybe_append(50, 9, skip_full_check=True)
    assert index.last == (50, 5)


def test_a_time_entry_too_far_from_the_base_leaves_nothing() -> None:
    """EE-16, L-6.2: Kafka's leaves its timestamp behind, and the next entry in a wrong place."""
    index = time_index(60)
    with pytest.raises(IndexOffsetOverflowError):
        index.maybe_append(10, 2**31)
    assert index.file.entries == 0
    index.maybe_append(20, 5)
    assert index.lookup(20) == (20, 5)


def test_an_index_that_is_cut_while_it_is_opened_has_what_was_read_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = MemoryFiles()
    files.replace_file("/index", bytes.fromhex("0000000100000007 0000000300000009 00000005"))
    kind = type(files.open_to_change("/index"))
    monkeypatch.setattr(kind, "size", lambda _: 40)  # as it was before
    index = OffsetIndexFile(files, "/index", 50, 40)
    assert (index.entries, index.last_offset) == (2, 53)


def test_the_transactions_of_a_segment_are_cut_off_by_the_markers() -> None:
    """L-7.1, L-7.3: a file with the first entry; what is kept is known to the next append."""
    files = MemoryFiles()
    index = TxnIndexFile(files, "/txnindex", 0, NEWEST)
    assert not files.exists("/txnindex")
    for last in (9, 19, 29):
        index.append(AbortedTxn(1, last - 5, last, last + 1))
    index.truncate_to(19)
    assert [txn.last_offset for txn in index.entries()] == [9]
    with pytest.raises(IllegalArgumentError):
        index.append(AbortedTxn(1, 5, 9, 10))
    index.truncate_to(10)  # past the last entry: nothing
    index.reset()
    assert files.read_bytes("/txnindex") == b""
    index.append(AbortedTxn(1, 2, 3, 4))
    index.flush()
    assert index.size_bytes == 34


def test_a_torn_entry_of_a_transaction_stays_in_front() -> None:
    """EE-17, L-7.2."""
    files = MemoryFiles()
    index = TxnIndexFile(files, "/txnindex", 0, NEWEST)
    index.append(AbortedTxn(1, 5, 9, 10))
    with pytest.raises(IllegalArgumentError):
        index.append(AbortedTxn(1, 5, 9, 10))
    files.truncate_file("/txnindex", 44)
    opened = TxnIndexFile(files, "/txnindex", 0, NEWEST)
    assert len(list(opened.entries())) == 1
    opened.append(AbortedTxn(1, 2, 3, 4))
    assert files.read_bytes("/txnindex")[44:46] == b"\0\0"
    assert opened.size_bytes == 78


@pytest.mark.parametrize(
    ("version", "refused_since"),
    [(0, None), (1, "4.4"), (0xFF, "4.4"), (0x100, "4.1"), (0x8000, "4.4"), (0xFFFF, "4.4")],
)
@pytest.mark.parametrize("kafka", BY_NAME)
def test_the_version_of_an_entry_is_two_bytes_since_4_4(
    version: int, refused_since: str | None, kafka: str
) -> None:
    """V-8: up to 4.3 the first byte, with its sign, is at most 0."""
    files = MemoryFiles()
    index = TxnIndexFile(files, "/txnindex", 0, BY_NAME[kafka])
    index.append(AbortedTxn(1, 5, 9, 10))
    files.replace_file("/txnindex", version.to_bytes(2) + files.read_bytes("/txnindex")[2:])
    opened = TxnIndexFile(files, "/txnindex", 0, BY_NAME[kafka])
    if refused_since is None or kafka < refused_since:
        assert [txn.last_offset for txn in opened.entries()] == [9]
    else:
        with pytest.raises(KafkaError, match="byte 0: an entry of version"):
            list(opened.entries())
