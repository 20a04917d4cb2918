"""Whether a record stands within its batch, and in the form in which Kafka writes it.

A record that does not goes through the reader of single records (`storage.formats.record`), which
takes other forms that Kafka reads, and says what is wrong with the rest. Nothing read before counts
here: a file may have changed since it was scanned, with a checksum that fits. Each length is held
against the end of what there is before it is gone by. A varint is read whole, up to ten bytes:
buffers have SLACK_BYTES after their last record. Layout: log-format F-5.
"""

from typing import Any

import numpy as np

from storage.formats.batch_columns import ByteArray
from storage.kernels.kernel import inlined
from storage.kernels.varint_kernel import read_varint, read_varlong, varint_bytes

NO_SUCH_RECORD = -1  # where the body of a record would begin
MAX_VARINT_BYTES = 5  # of 32 bits, of which the last byte holds four
LAST_BYTE_BELOW = np.uint8(0x10)


@inlined
def record_end(payload: ByteArray, at: Any, end: Any) -> tuple[Any, Any]:
    """Return where the body of the record at `at` begins, and where it ends: within `end`.

    NO_SUCH_RECORD and `end` if it does not, or has no room for the fields that every record has.
    """
    if at >= end:
        return np.int64(NO_SUCH_RECORD), end
    length, body = read_varint(payload, at)
    if length < 6 or body > end or length > end - body:
        return np.int64(NO_SUCH_RECORD), end
    return body, body + length


@inlined
def record_time_delta(payload: ByteArray, body: Any, end: Any) -> tuple[Any, Any]:
    """Return the timestamp delta, and the position after it.

    The position is NO_SUCH_RECORD if it is not below end.
    """
    delta, rest = read_varlong(payload, body + 1)
    if rest >= end:
        return delta, np.int64(NO_SUCH_RECORD)
    return delta, rest


@inlined
def _is_shortest(payload: ByteArray, at: Any, end: Any, value: Any) -> bool:
    """Return whether a varint is as Kafka writes it: no byte, and no bit, too many."""
    if end - at != varint_bytes(value):
        return False
    return bool(end - at < MAX_VARINT_BYTES or payload[end - 1] < LAST_BYTE_BELOW)


@inlined
def _canonical_length(payload: ByteArray, at: Any, end: Any) -> tuple[Any, Any, bool]:
    """Return a length, the position after it, and whether it is as Kafka writes it and fits.

    Of a null there is nothing after.
    """
    if at >= end:
        return np.int64(0), at, False
    value, behind = read_varint(payload, at)
    fine = _is_shortest(payload, at, behind, value) and value >= -1
    return value, behind, fine and behind <= end and value <= end - behind


@inlined
def is_canonical(payload: ByteArray, at: Any, end: Any) -> bool:
    """Return whether a record that ends at `end` is, from its offset delta on, as Kafka writes it.

    Header keys beyond ASCII count as not canonical: Kafka decodes and encodes them (C-11.11 b).
    """
    delta, behind = read_varint(payload, at)
    if not _is_shortest(payload, at, behind, delta) or behind > end:
        return False
    at = behind
    for _ in range(2):  # key and value
        length, at, fine = _canonical_length(payload, at, end)
        if not fine:
            return False
        if length > 0:
            at += length
    count, at, fine = _canonical_length(payload, at, end)
    if not fine or count < 0:
        return False
    for _ in range(count):
        length, at, fine = _canonical_length(payload, at, end)
        if not fine or length < 0:
            return False
        for i in range(at, at + length):
            if payload[i] >= np.uint8(0x80):
                return False
        at += length
        length, at, fine = _canonical_length(payload, at, end)
        if not fine:
            return False
        if length > 0:
            at += length
    return bool(at == end)
