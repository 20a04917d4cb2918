"""A kernel that puts the hash of a part of each key in the place of the key's: to count records by
consumer group, or by topic, as by key.

The keys are those of `__consumer_offsets`: a type, then the group's name, and, of the two types for
committed offsets, the topic's. Source: Kafka, OffsetCommitKey and other keys of the coordinator.
"""

from typing import Any

import numpy as np

from cleaner_jobs.inspect_values import BY_TOPIC
from storage.formats.batch_columns import (
    ATTRIBUTES,
    IN_MAP,
    RECORDS_COUNT,
    TXN_FLAGS,
    UNREAD,
    ByteArray,
    Int64Array,
)
from storage.formats.batch_header import CONTROL
from storage.kernels.kernel import inlined, kernel
from storage.kernels.key_hash import hash_key
from storage.kernels.memory_access import load_be_int16
from storage.kernels.varint_kernel import read_varint, read_varlong

LAST_OFFSET_COMMIT_TYPE = 1


@inlined
def _part_of(payloads: ByteArray, at: Any, end: Any, part: Any) -> tuple[Any, Any]:
    """Where the name begins in a key, and its length; a length below zero: it has none."""
    if end - at < 4:
        return at, np.int64(-1)
    record_type = load_be_int16(payloads, at)
    length = load_be_int16(payloads, at + 2)
    at += 4
    if length < 0 or length > end - at:
        return at, np.int64(-1)
    if part == BY_TOPIC:
        at += length
        if record_type < 0 or record_type > LAST_OFFSET_COMMIT_TYPE or end - at < 2:
            return at, np.int64(-1)
        length = load_be_int16(payloads, at)
        at += 2
        if length > end - at:
            return at, np.int64(-1)
    return at, length


@kernel
def hash_key_parts(
    payloads: ByteArray,
    bounds: Int64Array,
    rows: Int64Array,
    counting: tuple[int, Any],
    columns: Any,
    record: int,
) -> None:
    """Hash a part of each key; take records out of the map whose key has none.

    payloads, bounds, rows: as of parse_records, which has found nothing wrong with them. counting:
    BY_GROUP or BY_TOPIC, and the halves of the hash key. columns: as it has filled them in, from
    record on.
    """
    part, (low, high) = counting
    first_hash, second_hash, _, states = columns
    for i in range(rows.shape[0]):
        count = rows[i, RECORDS_COUNT]
        if rows[i, ATTRIBUTES] & CONTROL != 0 or rows[i, TXN_FLAGS] & UNREAD == UNREAD:
            record += count
            continue
        at = bounds[i, 0]
        for _ in range(count):
            length, body = read_varint(payloads, at)
            at = body + length
            _, field = read_varlong(payloads, body + 1)
            _, field = read_varint(payloads, field)
            key_length, field = read_varint(payloads, field)
            if states[record] & np.uint8(IN_MAP) != 0:
                start, size = _part_of(payloads, field, field + key_length, part)
                if size >= 0:
                    hashes = hash_key(payloads, start, size, low, high)
                    first_hash[record] = hashes[0]
                    second_hash[record] = hashes[1]
                else:
                    states[record] &= np.uint8(~IN_MAP & 0xFF)
            record += 1
