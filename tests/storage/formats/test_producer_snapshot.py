"""Producer snapshots, spec F-14.1. KAFKAS and EMPTY were written by Kafka 4.3.1."""

from pathlib import Path

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.formats import producer_snapshot
from storage.formats.producer_snapshot import ProducerEntry, decode, encode

EMPTY = bytes.fromhex("000148674bc700000000")
KAFKAS = bytes.fromhex(
    "0001d8d0dce600000003"
    "000000000000000100000000000000000000000000020000000000000000000003e800000000ffffffffffffffff"
    "0000000000000002000000000001000000000000000400000001000000000000008cffffffff0000000000000003"
    "0000000000000007000100000001000000000000000100000001000000000000006effffffffffffffffffffffff"
)
ENTRIES = [
    ProducerEntry(1, 0, 0, 2, 0, 1000, 0, None),  # committed: the marker's time, not its offset
    ProducerEntry(2, 0, 1, 4, 1, 140, None, 3),  # an open transaction since offset 3
    ProducerEntry(7, 1, 1, 1, 1, 110, None, None),
]
PATH = "00000000000000000006.snapshot"


def test_a_snapshot_of_kafkas_is_read_and_written_alike() -> None:
    assert decode(KAFKAS, PATH) == ENTRIES
    assert encode(ENTRIES) == KAFKAS
    assert decode(EMPTY, PATH) == []
    assert encode([]) == EMPTY


@pytest.mark.parametrize("kept", range(len(KAFKAS)))
def test_a_snapshot_cut_short_anywhere_is_corrupt(kept: int) -> None:
    with pytest.raises(CorruptFileError, match=rf"{PATH}, byte"):
        decode(KAFKAS[:kept], PATH)


@pytest.mark.parametrize("position", range(2, len(KAFKAS)))
def test_a_flipped_bit_anywhere_behind_the_version_is_found(position: int) -> None:
    damaged = bytearray(KAFKAS)
    damaged[position] ^= 0x10
    with pytest.raises(CorruptFileError, match="byte 2: CRC"):
        decode(bytes(damaged), PATH)


def test_a_count_that_does_not_fit_is_corrupt_even_with_a_sound_crc() -> None:
    data = encode([])[:6] + b"\x00\x00\x00\x01"
    crc = crc32c(data[6:])
    with pytest.raises(
        CorruptFileError, match="byte 6: a count of 1 for entries of 46 bytes in a file of 10"
    ):
        decode(data[:2] + crc.to_bytes(4, "big") + data[6:], PATH)


def test_another_version_is_not_supported() -> None:
    with pytest.raises(UnsupportedFormatError, match="version 2, expected 1"):
        decode(b"\x00\x02" + KAFKAS[2:], PATH)


INT64 = st.integers(0, 2**63 - 1)
INT32 = st.integers(0, 2**31 - 1)
ENTRY = st.builds(
    ProducerEntry,
    INT64,
    st.integers(-1, 2**15 - 1),
    st.none() | INT32,
    st.none() | INT64,
    INT32,
    st.integers(-1, 2**63 - 1),
    st.none() | INT32,
    st.none() | INT64,
)


@given(st.lists(ENTRY))
def test_what_is_written_is_read(entries: list[ProducerEntry]) -> None:
    assert decode(encode(entries), PATH) == entries


def test_a_file_is_written_and_read(tmp_path: Path) -> None:
    path = str(tmp_path / PATH)
    producer_snapshot.write(path, ENTRIES)
    assert Path(path).read_bytes() == KAFKAS
    assert producer_snapshot.read(path) == ENTRIES
