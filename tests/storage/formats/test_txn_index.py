"""Aborted transactions, spec F-11."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.formats import txn_index, txn_index_columns
from storage.formats.txn_index import Aborted, AbortedTxn, check, decode, encode, search

# written by Kafka 4.3.1 for a transaction with data at 3 and 4 and its abort marker at 6
KAFKAS = bytes.fromhex("00000000000000000002000000000000000300000000000000060000000000000007")
ABORTED = AbortedTxn(producer_id=2, first_offset=3, last_offset=6, last_stable_offset=7)
OTHER = AbortedTxn(producer_id=9, first_offset=1, last_offset=8, last_stable_offset=9)


def test_an_entry_of_kafkas_is_read_and_written_alike() -> None:  # F-11.1
    assert encode(ABORTED) == KAFKAS
    assert list(decode(KAFKAS + encode(OTHER), "6.txnindex")) == [ABORTED, OTHER]
    assert list(decode(b"", "6.txnindex")) == []


@pytest.mark.parametrize("kept", range(1, 34))
def test_an_entry_cut_short_anywhere_is_corrupt(kept: int) -> None:
    with pytest.raises(CorruptFileError, match=rf"6\.txnindex, byte 34: .* {kept} of 34"):
        list(decode(KAFKAS + KAFKAS[:kept], "6.txnindex"))


def test_another_version_is_not_supported() -> None:
    with pytest.raises(UnsupportedFormatError, match="byte 34: version 1, expected 0"):
        list(decode(KAFKAS + b"\x00\x01" + KAFKAS[2:], "6.txnindex"))


def test_entries_have_to_rise_and_to_end_in_their_segment() -> None:  # F-11.2, F-11.6
    check([ABORTED, OTHER], 6, "6.txnindex")
    with pytest.raises(CorruptFileError, match="byte 0: last offset 6, expected 7"):
        check([ABORTED], 7, "7.txnindex")
    with pytest.raises(CorruptFileError, match="byte 34: last offset 6, expected 7"):
        check([ABORTED, ABORTED], 6, "6.txnindex")
    with pytest.raises(CorruptFileError, match="byte 0: first offset -1 is negative"):
        check([ABORTED._replace(first_offset=-1)], 0, "0.txnindex")
    with pytest.raises(CorruptFileError, match="first offset 10 is past last offset 8"):
        check([OTHER._replace(first_offset=10)], 0, "0.txnindex")


@pytest.mark.parametrize(
    ("from_offset", "end_offset", "found", "is_complete"),
    [
        (0, 20, [ABORTED, OTHER], False),
        (6, 20, [ABORTED, OTHER], False),
        (7, 20, [OTHER], False),
        (9, 20, [], False),
        (0, 9, [ABORTED, OTHER], True),
        (0, 7, [ABORTED], True),  # everything below 7 was decided: the second is not looked at
        (0, 3, [], True),
        (0, 8, [ABORTED, OTHER], True),
    ],
)
def test_a_fetch_finds_the_transactions_of_its_range(
    from_offset: int, end_offset: int, found: list[AbortedTxn], is_complete: bool
) -> None:  # F-11.5
    assert search([ABORTED, OTHER], from_offset, end_offset) == Aborted(found, is_complete)


def test_a_segment_without_the_file_has_no_entries(tmp_path: Path) -> None:  # F-11.4
    path = tmp_path / "00000000000000000006.txnindex"
    assert txn_index.read(str(path)) == []
    path.write_bytes(KAFKAS)
    assert txn_index.read(str(path)) == [ABORTED]


@pytest.mark.parametrize("kept", range(len(KAFKAS) + 1))
def test_columns_are_the_entries_or_raise_what_these_raise(kept: int) -> None:
    """However much of a file is there."""
    data = (KAFKAS + KAFKAS)[: len(KAFKAS) + kept]
    try:
        expected = [list(entry) for entry in decode(data, "6.txnindex")]
    except CorruptFileError as error:
        with pytest.raises(CorruptFileError, match=re.escape(str(error))):
            txn_index_columns.decode_columns(data, "6.txnindex")
    else:
        assert txn_index_columns.decode_columns(data, "6.txnindex").tolist() == expected


def test_columns_of_another_version_and_of_no_file(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFormatError, match="byte 34: version 1, expected 0"):
        txn_index_columns.decode_columns(KAFKAS + b"\x00\x01" + KAFKAS[2:], "6.txnindex")
    assert txn_index_columns.read_columns(str(tmp_path / "6.txnindex")).shape == (0, 4)
    assert txn_index_columns.encode_columns(txn_index_columns.columns_of([ABORTED])) == KAFKAS


@pytest.mark.parametrize(
    ("entries", "base_offset"),
    [
        ([], 7),
        ([ABORTED, OTHER], 6),
        ([ABORTED], 7),
        ([ABORTED, ABORTED], 6),
        ([ABORTED._replace(first_offset=-1)], 0),
        ([OTHER._replace(first_offset=10)], 0),
    ],
)
def test_columns_are_checked_as_entries_are(entries: list[AbortedTxn], base_offset: int) -> None:
    columns, told = txn_index_columns.columns_of(entries), []
    checks: list[Callable[[], None]] = [
        lambda: check(entries, base_offset, "6.txnindex"),
        lambda: txn_index_columns.check_columns(columns, base_offset, "6.txnindex"),
    ]
    for checked in checks:
        try:
            checked()
        except CorruptFileError as error:
            told.append(str(error))
    assert len(told) in (0, 2) and len(set(told)) <= 1
