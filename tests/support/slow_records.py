"""A slow counterpart of the kernel that parses records, after F-5 and strict as F-4.8 asks."""

from typing import NamedTuple


class SlowRecord(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


class BadRecordsError(Exception):
    """what: the number of the first record that is wrong, or bytes that are left over."""

    def __init__(self, what: str, number: int) -> None:
        super().__init__(what, number)
        self.what, self.number = what, number


class _Cursor:
    """Reads forward to an end, and fails beyond it."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]  # IndexError beyond the end

    def varint(self, bits: int) -> int:
        number = 0
        for shift in range(0, bits, 7):
            byte = self.byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                number &= (1 << bits) - 1
                return (number >> 1) ^ -(number & 1)
        raise ValueError("a varint too long")

    def nullable(self) -> bytes | None:
        length = self.varint(32)
        return None if length < 0 else self.take(length)

    def take(self, length: int) -> bytes:
        if not 0 <= length <= len(self.data) - self.at:
            raise ValueError("a length beyond the end")
        self.at += length
        return self.data[self.at - length : self.at]


def parse(payload: bytes, base_offset: int, last_offset: int, count: int) -> list[SlowRecord]:
    """The records of one batch, with timestamps as deltas; or BadRecordsError."""
    cursor, previous = _Cursor(payload), base_offset - 1
    records: list[SlowRecord] = []
    for number in range(count):
        try:
            record = _record(_Cursor(cursor.take(cursor.varint(32))), base_offset)
        except (IndexError, ValueError) as error:
            raise BadRecordsError("record", number) from error
        if not previous < record.offset <= last_offset:
            raise BadRecordsError("record", number)
        previous = record.offset
        records.append(record)
    if count and cursor.at != len(payload):
        raise BadRecordsError("left over", len(payload) - cursor.at)
    return records


def _record(cursor: _Cursor, base_offset: int) -> SlowRecord:
    cursor.byte()  # attributes: none is defined
    timestamp_delta = cursor.varint(64)
    offset = base_offset + cursor.varint(32)
    key, value = cursor.nullable(), cursor.nullable()
    headers = cursor.varint(32)
    if not 0 <= headers <= len(cursor.data) - cursor.at:
        raise ValueError("more headers than bytes")
    for _ in range(headers):
        cursor.take(cursor.varint(32))
        cursor.nullable()
    if cursor.at != len(cursor.data):
        raise ValueError("bytes after the headers")
    return SlowRecord(offset, timestamp_delta, key, value)
