"""Kernels that count the versions and bytes of each key, whatever the number of keys.

A *counted run* is what up to about a million records of one log say of their keys: for each key an
entry of its latest record there and, if it has more, one before it of all the others together.
Entries are three uint64, as those of the offset map, and are merged by hash partitions like them:

    word 0      the first half of the key's hash
    word 1      the 40 topmost bits of the second half; bits 1-23 how many records the entry stands
                for; bit 0 whether the latest of them is a tombstone
    word 2      bits 32-63 offset of the latest of them, less the first offset of the run; bits 0-31
                the bytes of all of them

Two keys are the same where 104 bits of their hashes are: of a thousand million keys, one in 10^13
such logs would count two of them as one. Source: compaction C-7.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.inspect_values import (
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
from storage.formats.batch_columns import IN_MAP, TOMBSTONE, Int64Array, UInt64Array
from storage.kernels.kernel import inlined, kernel
from storage.kernels.memory_access import prefetch

HASH_MASK = ~((1 << 24) - 1) & (2**64 - 1)  # of word 1
VERSIONS_SHIFT, VERSIONS_MASK = 1, (1 << 23) - 1
OFFSET_SHIFT, BYTES_MASK = 32, (1 << 32) - 1
MAX_RUN_BYTES = BYTES_MASK  # of the records of one counted run
TAG_MASK = 0xFFFFFFFF00000000  # of a slot: the top half of word 1, over an index plus one
OTHERS_SHIFT, NOT_LATEST = 32, 2**64 - 1  # of what count_keys fills in
KEY_COLUMNS = 3  # of merged keys: versions, bytes, index of the latest entry
_LATEST = 2
AHEAD = 24  # records: so far ahead of its turn the slot of one is fetched


@inlined
def _key_of(table: UInt64Array, entries: UInt64Array, keys: Any, entry: Any, number: Any) -> Any:
    """The index of an entry's key in `keys`, or number after having put it there."""
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
def count_keys(
    columns: Any,
    sizes: NDArray[np.uint32],
    count: int,
    table: UInt64Array,
    others: UInt64Array,
) -> int:
    """Count the records of each key among the first count of parsed columns.

    columns: as of parse_records; those records count that are IN_MAP. table: (slots, 2), a power of
    two of slots with room for count keys; what it held is lost. others: (>= count,), filled: of the
    latest record of a key how many others there are, shifted by OTHERS_SHIFT, and their bytes; of
    any other record NOT_LATEST. Returns how many entries pack_keys makes of them.

    From the last record to the first, so that a slot, which holds all of a key that is compared and
    the number of its latest record, never changes.
    """
    first_hash, second_hash, _, states = columns
    table[:] = 0
    mask = np.uint64(table.shape[0] - 1)
    entries: Any = np.int64(0)
    for i in range(count - 1, -1, -1):
        if i >= AHEAD:
            prefetch(table, np.int64(first_hash[i - AHEAD] & mask) * 2)
        others[i] = np.uint64(NOT_LATEST)
        if states[i] & np.uint8(IN_MAP) == 0:
            continue
        first, second = first_hash[i], second_hash[i] & np.uint64(HASH_MASK)
        slot = first & mask
        while table[slot, 1] != 0 and (
            table[slot, 0] != first or table[slot, 1] & np.uint64(HASH_MASK) != second
        ):
            slot = (slot + np.uint64(1)) & mask
        held = table[slot, 1]
        if held == 0:
            table[slot, 0] = first
            table[slot, 1] = second | np.uint64(i + 1)
            others[i] = np.uint64(0)
            entries += 1
        else:
            latest = np.int64(held & np.uint64(~HASH_MASK & 0xFFFFFFFF)) - 1
            entries += np.int64(others[latest] == 0)
            others[latest] += np.uint64(1 << OTHERS_SHIFT) + np.uint64(sizes[i])
    return int(entries)


@kernel
def pack_keys(
    columns: Any,
    sizes: NDArray[np.uint32],
    counted: tuple[UInt64Array, int],
    run: tuple[int, int],
    entries: UInt64Array,
    starts: UInt64Array,
) -> int:
    """Lay out the entries of counted keys by hash partition; return how many there are.

    counted: others, as count_keys has filled them in, and of how many records. run: what offsets
    are relative to, and how many topmost bits of a first hash name its hash partition. entries:
    (as many as count_keys says, 3). starts: (2 ** bits + 1,), filled: hash partition p is entries
    starts[p]:starts[p + 1].
    """
    first_hash, second_hash, offsets, states = columns
    others, count = counted
    first_offset, bits = run
    shift = np.uint64(64 - bits)
    starts[:] = 0
    for i in range(count):
        if others[i] != np.uint64(NOT_LATEST):
            p = np.int64(first_hash[i] >> shift) if bits else 0
            starts[p + 1] += np.uint64(2) if others[i] else np.uint64(1)
    for p in range(starts.shape[0] - 1):
        starts[p + 1] += starts[p]
    total = starts[starts.shape[0] - 1]
    for i in range(count):
        if others[i] == np.uint64(NOT_LATEST):
            continue
        p = np.int64(first_hash[i] >> shift) if bits else 0
        second = second_hash[i] & np.uint64(HASH_MASK)
        offset = np.uint64(offsets[i] - first_offset) << np.uint64(OFFSET_SHIFT)
        at = np.int64(starts[p])
        if others[i]:
            versions = (others[i] >> np.uint64(OTHERS_SHIFT)) << np.uint64(VERSIONS_SHIFT)
            entries[at, 0] = first_hash[i]
            entries[at, 1] = second | versions
            entries[at, 2] = offset | (others[i] & np.uint64(BYTES_MASK))
            at += 1
        tombstone = np.uint64(1) if states[i] & np.uint8(TOMBSTONE) else np.uint64(0)
        entries[at, 0] = first_hash[i]
        entries[at, 1] = second | np.uint64(1 << VERSIONS_SHIFT) | tombstone
        entries[at, 2] = offset | np.uint64(sizes[i])
        starts[p] = np.uint64(at + 1)
    for p in range(starts.shape[0] - 1, 0, -1):
        starts[p] = starts[p - 1]
    starts[0] = np.uint64(0)
    return int(total)


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
        if entries[latest, 1] & np.uint64(1) == 0:
            sums[LIVE_KEYS] += 1
            sums[LIVE_BYTES] += np.int64(entries[latest, 2] & np.uint64(BYTES_MASK))
        bits = 0
        left = versions
        while left > 0:
            left >>= 1
            bits += 1
        sums[VERSION_CLASSES_AT + bits] += 1
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
