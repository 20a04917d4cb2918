"""The records of a v2 batch as Kafka's broker decodes them, with its errors for what is none.

A record is read on through whatever follows it, and only then held against its length. Source:
Kafka, DefaultRecord.readFrom, ByteUtils, Utils.readBytes; spec F-5.
"""

from collections.abc import Callable

from storage.formats.record import CutFieldError, MalformedRecordError, Record, decode_fields
from storage.formats.varint import (
    Bytes,
    CutVarintError,
    MalformedVarintError,
    decode_varint,
    decode_varlong,
)
from storage.log.errors import (
    BufferUnderflowError,
    IllegalArgumentError,
    InvalidRecordError,
    LogError,
)

_Decode = Callable[[Bytes, int], tuple[int, int]]


def read_record(data: Bytes, at: int, base_offset: int, base_time: int) -> tuple[Record, int]:
    """Give the record at that index, and the index behind it. Raise InvalidRecordError, or
    IllegalArgumentError where its length is no number.
    """
    try:
        length, start = _decoded(decode_varint, data, at)
    except BufferUnderflowError as error:
        raise InvalidRecordError(f"the batch ends within a record: {error}") from None
    if len(data) - start < length:
        left = len(data) - start
        raise InvalidRecordError(f"a record of {length} bytes, and {left} are left")
    try:
        if start == len(data):
            raise CutVarintError("no attributes are left")
        record, end = decode_fields(data, start, base_offset, base_time)
    except (MalformedVarintError, CutFieldError) as error:
        cause = _kafkas(error)
        raise InvalidRecordError(f"bytes that are no record: {cause}") from cause
    except MalformedRecordError as error:
        raise InvalidRecordError(str(error)) from None
    if end - start != length:
        raise InvalidRecordError(f"a record of {length} bytes that ends after {end - start}")
    return record, end


def read_unpacked(data: bytes, at: int, base_offset: int, base_time: int) -> tuple[Record, int]:
    """As read_record, of bytes that were compressed: a record ends where its length says so, and
    whatever is no number is an InvalidRecordError, too.
    """
    try:
        length, start = _decoded(decode_varint, data, at)
    except (BufferUnderflowError, IllegalArgumentError) as error:
        cause = IllegalArgumentError(str(error))  # past the end Kafka reads on
        raise InvalidRecordError(f"a length that is none: {error}") from cause
    if length < 0:
        cause = IllegalArgumentError(f"{length} bytes")
        raise InvalidRecordError(f"a record of {length} bytes") from cause
    end = start + length
    record, _ = read_record(data[at:end], 0, base_offset, base_time)
    return record, end


def read_head(data: bytes, at: int, base_offset: int, base_time: int) -> tuple[Record, int]:
    """As read_record, in a fifth of the time, for who asks for offset, time and whether there is a
    key: b"" stands for any key, and no value and no headers are given.
    """
    try:
        length, after = _short(data, at)
        end = after + length
        time_delta, after = _signed(data, after + 1, decode_varlong)
        offset_delta, after = _signed(data, after, decode_varint)
        key_bytes, after = _signed(data, after, decode_varint)
        value_bytes, after = _signed(data, after + max(key_bytes, 0), decode_varint)
        after += max(value_bytes, 0)
        if data[after] == 0 and after + 1 == end:  # no headers, and nothing behind them
            time = base_time + time_delta
            if -(2**63) <= time < 2**63:
                key = None if key_bytes < 0 else b""
                return Record(base_offset + offset_delta, time, key, None), end
    except (IndexError, IllegalArgumentError, BufferUnderflowError):
        pass  # what is unusual, or no record, is read with care
    record, end = read_record(data, at, base_offset, base_time)
    key = None if record.key is None else b""
    return Record(record.offset, record.timestamp, key, None), end


def _short(data: bytes, at: int) -> tuple[int, int]:
    """A length of one or two bytes. IndexError for any other, and for a negative one."""
    number = data[at]
    if number >= 0x80:
        number = number & 0x7F | data[at + 1] << 7
        at += 1
        if number >= 0x4000:
            raise IndexError
    if number & 1:
        raise IndexError
    return number >> 1, at + 1


def _signed(data: bytes, at: int, decode: _Decode) -> tuple[int, int]:
    number = data[at]
    if number < 0x80:
        return number >> 1 ^ -(number & 1), at + 1
    return _decoded(decode, data, at)


def _decoded(decode: _Decode, data: Bytes, at: int) -> tuple[int, int]:
    """Decode a number. Raise the broker's errors for what is none."""
    try:
        return decode(data, at)
    except MalformedVarintError as error:
        raise _kafkas(error) from None


def _kafkas(error: MalformedVarintError | CutFieldError) -> LogError:
    """Return what the broker raises in the place of an error."""
    if isinstance(error, CutVarintError):
        return BufferUnderflowError(str(error))
    if isinstance(error, CutFieldError):
        return IllegalArgumentError(f"{error.expected} bytes, and {error.left} are left")
    return IllegalArgumentError(str(error))
