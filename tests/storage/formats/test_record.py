"""One record by the byte (F-5), against bytes laid out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.formats.record import MalformedRecordError, Record, decode, encode
from storage.formats.varint import MalformedVarintError

FULL = Record(103, 990, b"key", b"", ((b"h", b"x"), (b"", None)))
FULL_BYTES = bytes.fromhex(
    "1e"  # length 15
    "00"  # attributes
    "13"  # timestamp delta -10
    "06"  # offset delta 3
    "06 6b6579"  # key
    "00"  # value: there, but empty
    "04"  # two headers
    "02 68 02 78"
    "00 01"  # no key bytes, null value
)

OPTIONAL_BYTES = st.none() | st.binary(max_size=80)
RECORDS = st.builds(
    Record,
    st.integers(1000, 1000 + 2**31 - 1),
    st.integers(-1, 2**62),
    OPTIONAL_BYTES,
    OPTIONAL_BYTES,
    st.lists(st.tuples(st.binary(max_size=20), OPTIONAL_BYTES), max_size=3).map(tuple),
)


def test_a_record_has_the_published_layout() -> None:
    assert encode(FULL, base_offset=100, base_timestamp=1000) == FULL_BYTES
    assert decode(b"??" + FULL_BYTES, 2, 100, 1000) == (FULL, 2 + len(FULL_BYTES))


def test_times_too_far_apart_wrap_as_they_do_in_java() -> None:
    """A producer may send them: an error here would end more than the work on its log."""
    farthest = Record(0, 2**63 - 1, None, None)
    data = bytes.fromhex("1e00ffffffffffffffffff0100 01 01 00")  # delta -2^63
    assert encode(farthest, 0, -1) == data
    assert decode(data, 0, 0, -1) == (farthest, len(data))
    late = bytes.fromhex("0c001400 01 01 00")  # delta 10
    assert decode(late, 0, 0, 2**63 - 5)[0].timestamp == 5 - 2**63


def test_a_small_record_takes_seven_bytes_more_than_its_key_and_value() -> None:
    """F-5.5."""
    assert len(encode(Record(0, 0, b"key", b"value"), 0, 0)) == 7 + 3 + 5


@given(RECORDS, st.integers(0, 1000), st.integers(-1, 2**62))
def test_what_is_written_is_read(record: Record, base_offset: int, base_timestamp: int) -> None:
    record = record._replace(offset=min(record.offset, base_offset + 2**31 - 1))
    data = encode(record, base_offset, base_timestamp)
    assert decode(data, 0, base_offset, base_timestamp) == (record, len(data))


@pytest.mark.parametrize("kept", range(len(FULL_BYTES)))
def test_a_record_cut_short_anywhere_is_malformed(kept: int) -> None:
    with pytest.raises((MalformedRecordError, MalformedVarintError)):
        decode(FULL_BYTES[:kept], 0, 100, 1000)


def test_any_negative_length_is_null_but_not_of_a_header_key() -> None:
    """F-5.3."""
    null_by_minus_five = bytes.fromhex("0e 00 00 00 09 09 00 ")
    with pytest.raises(MalformedRecordError):
        decode(null_by_minus_five, 0, 0, 0)  # declares a byte more than there is
    data = bytes.fromhex("0c 00 00 00 09 09 00")
    assert decode(data, 0, 0, 0)[0] == Record(0, 0, None, None)
    with pytest.raises(MalformedRecordError, match="header without a key"):
        decode(bytes.fromhex("10 00 00 00 01 01 02 01 01"), 0, 0, 0)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("01", "a record of -1 bytes"),
        ("0e 00 00 00 01 01 00 00", "ends 1 bytes early"),
        ("0c 00 00 00 01 01 01", "a count of -1 for headers"),
        ("0c 00 00 00 01 01 10", "a count of 8 for headers, 0 bytes left"),
        ("0c 00 00 00 01 0a 00", "5 bytes expected, 1 left"),
    ],
)
def test_lengths_that_do_not_add_up(data: str, problem: str) -> None:
    with pytest.raises(MalformedRecordError, match=problem):
        decode(bytes.fromhex(data), 0, 0, 0)
