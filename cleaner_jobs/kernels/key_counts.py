"""Kernels that count the versions and bytes of each key, whatever the number of keys.

A *counted run* is what up to about a million records of one log say of their keys: as a rule one
entry for each key. Entries are three uint64, as those of the offset map, and are merged by hash
partitions like them:

    word 0      the first half of the key's hash
    word 1      the 40 topmost bits of the second half; bits 10-23 the bytes of the latest of the
                records that the entry stands for, if they are several; bits 1-9 how many they are;
                bit 0 whether the latest of them is a tombstone
    word 2      bits 32-63 offset of the latest of them, less the first offset of the run; bits 0-31
                the bytes of all of them

A key has another entry where one has no place for the next record; the later one stands after.
Records are shared out by their keys into buckets that the cache holds before they are counted.

Two keys are the same where 104 bits of their hashes are: of a thousand million keys, one in 10^13
such logs would count two of them as one. Source: compaction C-7.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.inspection_counters import (
    BY_TOPIC,
    BYTES,
    KEYED_BYTES,
    KEYED_RECORDS,
    KEYS,
    LIVE_BYTES,
    LIVE_KEYS,
    OFFSET,
    VERSION_CLASSES_AT,
    VERSIONS,
)
from storage.formats.batch_columns import (
    ATTRIBUTES,
    IN_MAP,
    RECORDS_COUNT,
    TOMBSTONE,
    TXN_FLAGS,
    UNREAD,
    ByteArray,
    Int64Array,
    UInt64Array,
)
from storage.formats.batch_header import CONTROL
from storage.kernels.kernel import inlined, kernel
from storage.kernels.key_hash import hash_key
from storage.kernels.memory_access import bit_length, load_be_int16, prefetch
from storage.kernels.varint_kernel import read_varint, read_varlong

HASH_MASK = ~((1 << 24) - 1) & (2**64 - 1)  # of word 1
VERSIONS_SHIFT, VERSIONS_MASK = 1, (1 << 9) - 1
LATEST_BYTES_SHIFT, LATEST_BYTES_MASK = 10, (1 << 14) - 1
TOMBSTONE_BIT = 1
OFFSET_SHIFT, BYTES_MASK = 32, (1 << 32) - 1
MAX_RUN_BYTES = BYTES_MASK  # of the records of one counted run
TAG_MASK = 0xFFFFFFFF00000000  # of a slot: the top half of word 1, over an index plus one
BUCKET_BITS = 5  # a million records are shared out to so many buckets at least: 2 ** 5
KEY_COLUMNS = 3  # of merged keys: versions, bytes, index of the latest entry
_LATEST = 2
FOLD_SLOTS = 3  # for each record of a bucket, at least
FOLD_AHEAD = 12  # records, as AHEAD
AHEAD = 24  # records: so far ahead of its turn the slot of one is fetched


def fold_slots(largest: int) -> int:
    """Return how many slots a table has to have for the largest bucket."""
    return 1 << max(4, (FOLD_SLOTS * largest - 1).bit_length())


@kernel
def spread_keys(
    columns: Any,
    sizes: NDArray[np.uint32],
    run: tuple[int, int],
    entries: UInt64Array,
    edges: Int64Array,
) -> int:
    """Make an entry of each record that is IN_MAP, those of one bucket after those of another.

    columns: see parse_records. sizes: in bytes, of each record. run: how many records there are,
    and what offsets are relative to. entries: (>= records, 3), filled; those of a bucket in the
    order of the log. edges: (a power of two of buckets + 1,), filled: bucket b, which a key's first
    hash names by its topmost bits, is entries edges[b]:edges[b + 1]. Returns how many entries the
    largest bucket has.
    """
    first_hash, second_hash, offsets, states = columns
    count, first_offset = run
    buckets = edges.shape[0] - 1
    bits = 0
    while 1 << bits < buckets:
        bits += 1
    shift = np.uint64(63 - bits)
    edges[:] = 0
    for i in range(count):
        if states[i] & np.uint8(IN_MAP) != 0:
            edges[_bucket_of(first_hash[i], shift) + 1] += 1
    largest: Any = np.int64(0)
    for b in range(buckets):
        largest = max(largest, edges[b + 1])
        edges[b + 1] += edges[b]
    for i in range(count):
        state = states[i]
        if state & np.uint8(IN_MAP) == 0:
            continue
        first = first_hash[i]
        b = _bucket_of(first, shift)
        at = edges[b]
        edges[b] = at + 1
        word = (second_hash[i] & np.uint64(HASH_MASK)) | np.uint64(1 << VERSIONS_SHIFT)
        if state & np.uint8(TOMBSTONE) != 0:
            word |= np.uint64(TOMBSTONE_BIT)
        entries[at, 0] = first
        entries[at, 1] = word
        offset = np.uint64(offsets[i] - first_offset)
        entries[at, 2] = (offset << np.uint64(OFFSET_SHIFT)) | np.uint64(sizes[i])
    for b in range(buckets, 0, -1):
        edges[b] = edges[b - 1]
    edges[0] = 0
    return int(largest)


@inlined
def _bucket_of(first_hash: Any, shift: Any) -> Any:
    """Return the bucket of a key: the top bits of its hash. shift: 63 minus their number.

    Shifted in two steps, because one shift by 64 would change nothing.
    """
    return np.int64((first_hash >> np.uint64(1)) >> shift)


@kernel
def fold_keys(
    entries: UInt64Array, edges: Int64Array, table: UInt64Array, starts: UInt64Array
) -> int:
    """Join the entries of each key, in place; return how many are left.

    entries, edges: as spread_keys has filled them in. table: a power of two of slots, with room for
    the keys of a bucket; what it held is lost. starts: (a power of two of hash partitions + 1,), at
    most as many as there are buckets, filled: hash partition p is entries starts[p]:starts[p + 1].
    """
    buckets = edges.shape[0] - 1
    in_partition = buckets // (starts.shape[0] - 1)
    kept: Any = np.int64(0)
    starts[0] = np.uint64(0)
    for b in range(buckets):
        slots: Any = np.int64(16)
        while slots < (edges[b + 1] - edges[b]) * FOLD_SLOTS:
            slots *= 2
        table[:slots] = 0
        mask = np.uint64(slots - 1)
        for i in range(edges[b], edges[b + 1]):
            if i + FOLD_AHEAD < edges[b + 1]:
                prefetch(table, np.int64(entries[i + FOLD_AHEAD, 0] & mask))
            slot, found = _slot_of(table, mask, entries, i)
            if found >= 0 and _join(entries, found, i):
                continue
            for j in range(3):
                entries[kept, j] = entries[i, j]
            table[slot] = (entries[i, 1] & np.uint64(TAG_MASK)) | np.uint64(kept + 1)
            kept += 1
        if (b + 1) % in_partition == 0:
            starts[(b + 1) // in_partition] = np.uint64(kept)
    return int(kept)


@inlined
def _slot_of(table: UInt64Array, mask: Any, entries: UInt64Array, entry: Any) -> tuple[Any, Any]:
    """Return the slot of an entry's key, and the index of the entry that it holds, or -1."""
    first, second = entries[entry, 0], entries[entry, 1]
    slot = first & mask
    while True:
        held = table[slot]
        if held == 0:
            return slot, np.int64(-1)
        if (held ^ second) & np.uint64(TAG_MASK) == 0:
            other = np.int64(held & np.uint64(0xFFFFFFFF)) - 1
            if (
                entries[other, 0] == first
                and (entries[other, 1] ^ second) & np.uint64(HASH_MASK) == 0
            ):
                return slot, other
        slot = (slot + np.uint64(1)) & mask


@inlined
def _join(entries: UInt64Array, held: Any, later: Any) -> bool:
    """Let one entry stand for another one, a later single record, too; false: it has no place."""
    word, size = entries[held, 1], entries[later, 2] & np.uint64(BYTES_MASK)
    versions = (word >> np.uint64(VERSIONS_SHIFT)) & np.uint64(VERSIONS_MASK)
    total = (entries[held, 2] & np.uint64(BYTES_MASK)) + size  # has place: see MAX_RUN_BYTES
    if versions == np.uint64(VERSIONS_MASK) or size > np.uint64(LATEST_BYTES_MASK):
        return False
    entries[held, 1] = (
        (word & np.uint64(HASH_MASK))
        | (size << np.uint64(LATEST_BYTES_SHIFT))
        | ((versions + np.uint64(1)) << np.uint64(VERSIONS_SHIFT))
        | (entries[later, 1] & np.uint64(TOMBSTONE_BIT))
    )
    entries[held, 2] = (entries[later, 2] & ~np.uint64(BYTES_MASK)) | total
    return True


@inlined
def _latest_bytes(entries: UInt64Array, entry: Any) -> Any:
    """Return the bytes of the latest record that an entry stands for."""
    word = entries[entry, 1]
    if (word >> np.uint64(VERSIONS_SHIFT)) & np.uint64(VERSIONS_MASK) == np.uint64(1):
        return np.int64(entries[entry, 2] & np.uint64(BYTES_MASK))
    return np.int64((word >> np.uint64(LATEST_BYTES_SHIFT)) & np.uint64(LATEST_BYTES_MASK))


@inlined
def _key_of(table: UInt64Array, entries: UInt64Array, keys: Any, entry: Any, number: Any) -> Any:
    """Return the index of an entry's key in `keys`, or number after having put it there."""
    first, second = entries[entry, 0], entries[entry, 1] & np.uint64(HASH_MASK)
    here = (second & np.uint64(TAG_MASK)) | np.uint64(number + 1)
    mask = np.uint64(table.shape[0] - 1)
    slot = first & mask
    while True:
        found = table[slot]
        if found == 0:
            table[slot] = here
            return np.int64(number)
        if (found ^ here) & np.uint64(TAG_MASK) == 0:
            key = np.int64(found & np.uint64(0xFFFFFFFF)) - 1
            other = keys[key, _LATEST]
            if entries[other, 0] == first and entries[other, 1] & np.uint64(HASH_MASK) == second:
                return np.int64(key)
        slot = (slot + np.uint64(1)) & mask


@kernel
def merge_keys(entries: UInt64Array, count: int, table: UInt64Array, keys: Int64Array) -> int:
    """Count the records of each key among the first count of entries, in the order of the log.

    table: a power of two of slots with room for count keys. keys: (>= count, KEY_COLUMNS), filled
    from the top: records, their bytes, and the number of the latest entry. Returns how many keys.
    """
    table[:] = 0
    mask = np.uint64(table.shape[0] - 1)
    found: Any = np.int64(0)
    for i in range(count):
        if i + AHEAD < count:
            prefetch(table, np.int64(entries[i + AHEAD, 0] & mask))
        key = _key_of(table, entries, keys, i, found)
        if key == found:
            keys[key, VERSIONS] = keys[key, BYTES] = 0
            found += 1
        versions = (entries[i, 1] >> np.uint64(VERSIONS_SHIFT)) & np.uint64(VERSIONS_MASK)
        keys[key, VERSIONS] += np.int64(versions)
        keys[key, BYTES] += np.int64(entries[i, 2] & np.uint64(BYTES_MASK))
        keys[key, _LATEST] = i
    return int(found)


@kernel
def sum_keys(
    entries: UInt64Array,
    keys: tuple[Int64Array, int],
    runs: tuple[Int64Array, Int64Array],
    sums: Int64Array,
    heavy: tuple[Int64Array, Int64Array],
) -> None:
    """Add merged keys up, and keep those with most versions and those with most bytes.

    keys: as merge_keys has filled them in, and how many. runs: where the entries of each counted
    run start and end, one number more than there are runs; what the offsets of each are relative
    to. sums: KEY_SUMS, added to. heavy: (n, HEAVY_COLUMNS) by versions, and by bytes; the first
    row has the most, and rows of zeros are free.
    """
    held, count = keys
    by_versions, by_bytes = heavy
    for i in range(count):
        versions, size, latest = held[i, VERSIONS], held[i, BYTES], held[i, _LATEST]
        sums[KEYS] += 1
        sums[KEYED_RECORDS] += versions
        sums[KEYED_BYTES] += size
        if entries[latest, 1] & np.uint64(TOMBSTONE_BIT) == 0:
            sums[LIVE_KEYS] += 1
            sums[LIVE_BYTES] += _latest_bytes(entries, latest)
        sums[VERSION_CLASSES_AT + bit_length(versions)] += 1
        last = by_versions.shape[0] - 1
        if versions >= by_versions[last, VERSIONS] or size >= by_bytes[last, BYTES]:
            offset = _offset_of(entries[latest, 2], latest, runs)
            _keep_heavy(by_versions, VERSIONS, (versions, size, offset))
            _keep_heavy(by_bytes, BYTES, (versions, size, offset))


@inlined
def _offset_of(word: Any, entry: Any, runs: Any) -> Any:
    edges, first_offsets = runs
    run = np.searchsorted(edges, entry, side="right") - 1
    return first_offsets[run] + np.int64(word >> np.uint64(OFFSET_SHIFT))


@inlined
def _keep_heavy(rows: Int64Array, column: int, key: Any) -> None:
    """Put a key in its place; of two with as many the one whose latest record is older."""
    value, offset = key[column], key[OFFSET]
    at = rows.shape[0]
    while at > 0 and (
        rows[at - 1, column] < value
        or (rows[at - 1, column] == value and rows[at - 1, OFFSET] > offset)
    ):
        at -= 1
    if at == rows.shape[0]:
        return
    for i in range(rows.shape[0] - 1, at, -1):
        for j in range(rows.shape[1]):
            rows[i, j] = rows[i - 1, j]
    rows[at, VERSIONS], rows[at, BYTES], rows[at, OFFSET] = key


LAST_OFFSET_COMMIT_TYPE = 1


@inlined
def _part_of(payloads: ByteArray, at: Any, end: Any, part: Any) -> tuple[Any, Any]:
    """Return where the name begins in a key, and its length; a length below zero: it has none."""
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

    payloads, bounds, rows: see parse_records, which has found nothing wrong with them. counting:
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
