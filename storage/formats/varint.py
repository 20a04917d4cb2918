"""Zig-zag varints, the integers inside a v2 record (spec F-5.2).

A number n becomes (n << 1) ^ (n >> 31), or >> 63 for a varlong, and that goes out in groups of
seven bits, the lowest first, all but the last with bit 0x80 set. Source: Kafka, ByteUtils.
"""

from storage.errors import LogCompactionError

Bytes = bytes | bytearray | memoryview

_VARINT_BITS, _VARLONG_BITS = 32, 64
_FIRST_SHORT, _END_SHORT = -64, 4096  # lengths and deltas that nearly every record has


class MalformedVarintError(LogCompactionError):
    """A varint is cut short or too long; the reader of the file adds path and position."""


class CutVarintError(MalformedVarintError):
    """The bytes end inside a varint."""


def encode_varint(value: int) -> bytes:
    """Return the shortest form of an int32."""
    return _encode(value, _VARINT_BITS)


def encode_varlong(value: int) -> bytes:
    """Return the shortest form of an int64."""
    return _encode(value, _VARLONG_BITS)


def decode_varint(data: Bytes, at: int) -> tuple[int, int]:
    """Return the int32 at that index and the index after it. Forms longer than need be are read.

    Raise MalformedVarintError where data ends inside, or a fifth byte says that a sixth follows.
    """
    if at < len(data) and data[at] < 0x80:  # nearly every one
        return data[at] >> 1 ^ -(data[at] & 1), at + 1
    return _decode(data, at, _VARINT_BITS)


def decode_varlong(data: Bytes, at: int) -> tuple[int, int]:
    """Decode an int64 as decode_varint does, of at most ten bytes."""
    if at < len(data) and data[at] < 0x80:
        return data[at] >> 1 ^ -(data[at] & 1), at + 1
    return _decode(data, at, _VARLONG_BITS)


def _encode(value: int, bits: int) -> bytes:
    if _FIRST_SHORT <= value < _END_SHORT:
        return _SHORT[value - _FIRST_SHORT]
    return _encode_any(value, bits)


def _encode_any(value: int, bits: int) -> bytes:
    assert -(1 << bits - 1) <= value < 1 << bits - 1, f"{value} has more than {bits} bits"
    rest = value << 1 ^ value >> bits - 1
    rest &= (1 << bits) - 1  # Python's integers have no width of their own
    groups = bytearray()
    while rest > 0x7F:
        groups.append(rest & 0x7F | 0x80)
        rest >>= 7
    groups.append(rest)
    return bytes(groups)


def _decode(data: Bytes, at: int, bits: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, bits, 7):
        if at >= len(data):
            raise CutVarintError("a varint is cut short")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            number &= (1 << bits) - 1  # what the last group has too many falls off, as in Java
            return number >> 1 ^ -(number & 1), at
    raise MalformedVarintError(f"a varint of {bits} bits goes on after {shift // 7 + 1} bytes")


_SHORT = tuple(_encode_any(value, _VARINT_BITS) for value in range(_FIRST_SHORT, _END_SHORT))
