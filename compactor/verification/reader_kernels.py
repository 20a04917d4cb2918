"""Kernels of the reader's proof: entries of a log, records of batches, the latest offset of a key.

Written apart from those that scan and rewrite (`storage.formats.batch_columns`, `cleaner_jobs`), on
purpose: two readers of one format do not make the same mistake. Only the keyed hash is shared.
Layout: Kafka, DefaultRecord, Records.LOG_OVERHEAD; log-format F-3.1, F-5.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.kernels.kernel import inlined, kernel
from storage.kernels.key_hash import hash_key
from storage.kernels.memory_access import load_be_int32

SLACK_BYTES = 64  # readable after what a kernel is given
FREE = -1  # offset of a slot without a key

HAS_KEY, TOMBSTONE = 1, 2  # kinds of a record, as bits

ByteArray = NDArray[np.uint8]
Int64Array = NDArray[np.int64]
UInt64Array = NDArray[np.uint64]
Secret = tuple[np.uint64, np.uint64]


@kernel
def frame_entries(buffer: ByteArray, end: int, positions: Int64Array) -> tuple[int, int, bool]:
    """Fill positions with where the whole entries of buffer[:end] begin.

    Returns how many, the position after them, and whether the bytes at it can be no entry.
    """
    at = count = 0
    while at + 17 <= end and count < positions.shape[0]:
        size = load_be_int32(buffer, at + 8) + 12
        if size < 26 or buffer[at + 16] > 2:
            return count, at, True
        if at + size > end:
            break
        positions[count] = at
        count += 1
        at += size
    return count, at, False


@inlined
def _varint(buffer: ByteArray, at: Any) -> tuple[Any, Any]:
    """Read a zig-zag varint of up to ten bytes; return it and the position after it."""
    value, shift = np.uint64(0), np.uint64(0)
    while True:
        byte = np.uint64(buffer[at])
        at += 1
        value |= (byte & np.uint64(0x7F)) << shift
        shift += np.uint64(7)
        if byte < np.uint64(0x80) or shift > np.uint64(63):
            break
    return np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1)), at


@kernel
def read_records(
    payload: ByteArray, bounds: Int64Array, bases: Int64Array, secret: Secret, columns: Any
) -> tuple[int, int]:
    """Walk the records of batches; payload[bounds[i, 0]:bounds[i, 1]] are those of batch i.

    bases: base offset, base timestamp and number of records of each batch. columns: offset,
    timestamp, two halves of the key's hash, two of the hash of all from the key on, kind, batch.
    Returns the entries filled, and the batch whose records do not parse (-1: none).
    """
    offsets, timestamps, keys, contents, kinds, batches = columns
    low, high = secret
    filled = 0
    for i in range(bases.shape[0]):
        at, end = bounds[i, 0], bounds[i, 1]
        for _ in range(bases[i, 2]):
            length, at = _varint(payload, at)
            if length < 0 or at > end or length > end - at:
                return filled, i
            stop = at + length
            timestamp_delta, at = _varint(payload, at + 1)
            if at > stop:
                return filled, i
            offset_delta, at = _varint(payload, at)
            if at > stop:
                return filled, i
            content = at
            key_length, at = _varint(payload, at)
            if at > stop or key_length > stop - at:
                return filled, i
            kind = 0
            first, second = np.uint64(0), np.uint64(0)
            if key_length >= 0:
                kind |= HAS_KEY
                first, second = hash_key(payload, at, key_length, low, high)
                at += key_length
            value_length, at = _varint(payload, at)
            if at > stop or value_length > stop - at:
                return filled, i
            if value_length < 0:
                kind |= TOMBSTONE
            keys[filled, 0], keys[filled, 1] = first, second
            first, second = hash_key(payload, content, stop - content, low, high)
            contents[filled, 0], contents[filled, 1] = first, second
            offsets[filled] = bases[i, 0] + offset_delta
            timestamps[filled] = bases[i, 1] + timestamp_delta
            kinds[filled] = kind
            batches[filled] = i
            filled += 1
            at = stop
        if at != end and bases[i, 2] > 0:
            return filled, i
    return filled, -1


@kernel
def put_latest(
    table_keys: UInt64Array,
    table_offsets: Int64Array,
    keys: UInt64Array,
    offsets: Int64Array,
) -> int:
    """Set the offset of each key, in their order; return how many keys are new."""
    mask = np.uint64(table_offsets.shape[0] - 1)
    new = 0
    for i in range(offsets.shape[0]):
        slot = keys[i, 0] & mask
        while table_offsets[slot] != FREE and (
            table_keys[slot, 0] != keys[i, 0] or table_keys[slot, 1] != keys[i, 1]
        ):
            slot = (slot + np.uint64(1)) & mask
        if table_offsets[slot] == FREE:
            new += 1
            table_keys[slot, 0], table_keys[slot, 1] = keys[i, 0], keys[i, 1]
        table_offsets[slot] = offsets[i]
    return new


@kernel
def get_latest(
    table_keys: UInt64Array, table_offsets: Int64Array, keys: UInt64Array, out: Int64Array
) -> None:
    """Fill `out` with the offset of each key; FREE for an unknown one."""
    mask = np.uint64(table_offsets.shape[0] - 1)
    for i in range(out.shape[0]):
        slot = keys[i, 0] & mask
        while table_offsets[slot] != FREE and (
            table_keys[slot, 0] != keys[i, 0] or table_keys[slot, 1] != keys[i, 1]
        ):
            slot = (slot + np.uint64(1)) & mask
        out[i] = table_offsets[slot]


class LatestOffsets:
    """The latest offset of each key, by the key's hash: 24 bytes a slot, at most 2/3 in use."""

    def __init__(self) -> None:
        self._keys = np.empty((1024, 2), np.uint64)
        self._offsets = np.full(1024, FREE, np.int64)
        self.count = 0

    def put(self, keys: UInt64Array, offsets: Int64Array) -> None:
        """Take records in the order of the log."""
        slots = len(self._offsets)
        while (self.count + len(offsets)) * 3 > slots * 2:
            slots *= 2
        if slots > len(self._offsets):
            used = self._offsets != FREE
            old_keys, old_offsets = self._keys[used], self._offsets[used]
            self._keys = np.empty((slots, 2), np.uint64)
            self._offsets = np.full(slots, FREE, np.int64)
            put_latest(self._keys, self._offsets, old_keys, old_offsets)
        self.count += put_latest(self._keys, self._offsets, keys, offsets)

    def of(self, keys: UInt64Array) -> Int64Array:
        """Return the latest offset of each key; FREE for an unknown one."""
        found = np.empty(len(keys), np.int64)
        get_latest(self._keys, self._offsets, keys, found)
        return found
