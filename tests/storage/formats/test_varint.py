"""Varints as in the table of F-5.2, and the limits of a reader."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.formats.varint import (
    MalformedVarintError,
    decode_varint,
    decode_varlong,
    encode_varint,
    encode_varlong,
)

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)

TABLE = [
    (0, "00"),
    (-1, "01"),
    (1, "02"),
    (-2, "03"),
    (63, "7e"),
    (64, "8001"),
    (-64, "7f"),
    (2147483647, "feffffff0f"),
    (-2147483648, "ffffffff0f"),
]


@pytest.mark.parametrize(("value", "hexadecimal"), TABLE)
def test_the_published_table(value: int, hexadecimal: str) -> None:
    data = bytes.fromhex(hexadecimal)
    assert encode_varint(value) == encode_varlong(value) == data
    assert decode_varint(b"\xff" + data, 1) == decode_varlong(b"\xff" + data, 1)
    assert decode_varint(b"\xff" + data, 1) == (value, 1 + len(data))


def test_the_ends_of_a_varlong() -> None:
    assert encode_varlong(2**63 - 1).hex() == "feffffffffffffffff01"
    assert encode_varlong(-(2**63)).hex() == "ffffffffffffffffff01"


@given(INT32, INT64)
def test_what_is_written_is_read(number: int, long_number: int) -> None:
    assert decode_varint(encode_varint(number), 0) == (number, len(encode_varint(number)))
    data = encode_varlong(long_number)
    assert decode_varlong(data, 0) == (long_number, len(data))
    for kept in range(len(data)):
        with pytest.raises(MalformedVarintError, match="cut short"):
            decode_varlong(data[:kept], 0)


def test_longer_forms_than_need_be_are_read() -> None:
    assert decode_varint(bytes.fromhex("8080808000"), 0) == (0, 5)
    assert decode_varint(bytes.fromhex("828000"), 0) == (1, 3)
    assert decode_varlong(bytes.fromhex("80808080808080808000"), 0) == (0, 10)


def test_a_varint_of_more_bytes_than_there_can_be_is_malformed() -> None:
    with pytest.raises(MalformedVarintError, match="32 bits goes on after 5 bytes"):
        decode_varint(bytes.fromhex("808080808000"), 0)
    with pytest.raises(MalformedVarintError, match="64 bits goes on after 10 bytes"):
        decode_varlong(bytes.fromhex("8080808080808080808000"), 0)
