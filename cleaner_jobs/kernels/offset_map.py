"""Kernels of the offset map: which record is the latest of its key.

A *part* is what up to about a million records of one log say about their keys: one 24-byte entry
for each key, of its latest record among them, and one for each record that is only looked up, laid
out by hash partition. Entries carry no absolute offset: parts are merged in the order of the log,
so the later entry is the later record. An entry is three uint64: the two halves of the key's hash,
and

    bit 63      the record is an expired tombstone
    bit 62      the record is looked up in the map, not put there (C-7.5, C-7.11)
    bit 61      the record is in the map, though it goes whatever the map says: its batch is
                aborted for the cleaning, and was not for the map
    bits 32-60  ordinal of the record in its part
    bits 0-31   offset of the record, less the first offset of its part

Sources: design, Kafka's SkimpyOffsetMap and Cleaner.buildOffsetMap (compaction C-7, C-11.2).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.messages import ENTRY_BYTES
from storage.formats.batch_columns import (
    ABORTED,
    ATTRIBUTES,
    CONTROL_RECORD,
    EXPIRED,
    IN_MAP,
    KEEP,
    LEGACY,
    REASON_MASK,
    RECORDS_COUNT,
    SUPERSEDED,
    TOMBSTONE,
    Int64Array,
    UInt64Array,
)
from storage.formats.batch_header import DELETE_HORIZON
from storage.kernels.kernel import inlined, kernel
from storage.kernels.memory_access import prefetch

ENTRY_WORDS = ENTRY_BYTES // 8
SUM_COLUMNS = 3  # of collect_superseded
ORDINAL_SHIFT = 32
ORDINAL_MASK = (1 << 29) - 1
OFFSET_MASK = (1 << 32) - 1
EXPIRED_BIT = 1 << 63
LOOKED_UP_BIT = 1 << 62
MAP_ONLY_BIT = 1 << 61
AHEAD = 24  # records: so far ahead of its turn the slot of one is fetched

UInt8Array = NDArray[np.uint8]


def table_slots(entries: int) -> int:
    """Return a power of two that leaves the open-addressing table at most two thirds full."""
    return 1 << max(4, int(entries * 3 // 2).bit_length())


@inlined
def fingerprint(first_hash: Any, second_hash: Any, offset: Any) -> Any:
    """Return a 64-bit number for one (key, offset).

    Two sets of records with the same sum of these are the same.
    """
    x = first_hash ^ (np.uint64(offset) * np.uint64(0x9E3779B97F4A7C15))
    x ^= x >> np.uint64(32)
    x *= np.uint64(0xD6E8FEB86659FD93)
    x ^= second_hash
    x ^= x >> np.uint64(32)
    x *= np.uint64(0xD6E8FEB86659FD93)
    return x ^ (x >> np.uint64(32))


@kernel
def sum_fingerprints(columns: Any, count: int) -> tuple[int, np.uint64]:
    """Count the data records among parsed columns, and sum their fingerprints, modulo 2^64.

    count: how many records, from the first on, are looked at.
    """
    first_hash, second_hash, offsets, states = columns
    records = 0
    total = np.uint64(0)
    for i in range(count):
        if states[i] & np.uint8(CONTROL_RECORD) == 0:
            records += 1
            total += fingerprint(first_hash[i], second_hash[i], offsets[i])
    return records, total


@inlined
def _has_entry(state: Any) -> bool:
    """Return whether a record may survive, or is in the map though it does not."""
    reason = state & np.uint8(REASON_MASK)
    if reason == np.uint8(KEEP) or reason == np.uint8(EXPIRED):
        return bool(state & np.uint8(CONTROL_RECORD) == 0)
    return bool(reason == np.uint8(ABORTED) and state & np.uint8(IN_MAP) != 0)


@kernel
def pack_part(
    columns: Any,
    first_offset: int,
    hash_partition_bits: int,
    entries: UInt64Array,
    starts: UInt64Array,
) -> int:
    """Lay out an entry for each record that may survive, by hash partition, each in log order.

    Records that are in the map alone get an entry, too.

    columns: of the records of a part, and of no other. first_offset: what the entries' offsets are
    relative to. hash_partition_bits: the hash partition of a record is that many topmost bits of
    its first hash. entries: room for one of each record, (>= count, 3) uint64. starts:
    (2 ** hash_partition_bits + 1,) uint64, filled: hash partition p is entries
    starts[p]:starts[p + 1]. Returns how many the largest one has.
    """
    first_hash, second_hash, offsets, states = columns
    hash_partitions = starts.shape[0] - 1
    shift = np.uint64(64 - hash_partition_bits)
    starts[:] = 0
    for i in range(states.shape[0]):
        if _has_entry(states[i]):
            p = np.int64(first_hash[i] >> shift) if hash_partition_bits else 0
            starts[p + 1] += np.uint64(1)
    largest: Any = np.uint64(0)
    for p in range(hash_partitions):
        largest = max(largest, starts[p + 1])
        starts[p + 1] += starts[p]
    for i in range(states.shape[0]):
        if _has_entry(states[i]):
            reason = states[i] & np.uint8(REASON_MASK)
            p = np.int64(first_hash[i] >> shift) if hash_partition_bits else 0
            at = starts[p]
            starts[p] = at + np.uint64(1)
            meta = (np.uint64(i) << np.uint64(ORDINAL_SHIFT)) | np.uint64(offsets[i] - first_offset)
            if reason == np.uint8(EXPIRED):
                meta |= np.uint64(EXPIRED_BIT)
            if states[i] & np.uint8(IN_MAP) == 0:
                meta |= np.uint64(LOOKED_UP_BIT)
            if reason == np.uint8(ABORTED):
                meta |= np.uint64(MAP_ONLY_BIT)
            entries[at, 0] = first_hash[i]
            entries[at, 1] = second_hash[i]
            entries[at, 2] = meta
    for p in range(hash_partitions, 0, -1):
        starts[p] = starts[p - 1]
    starts[0] = np.uint64(0)
    return int(largest)


@kernel
def keep_latest(
    states: UInt8Array,
    first_offset: int,
    entries: UInt64Array,
    starts: UInt64Array,
    table: UInt64Array,
) -> tuple[int, int, np.uint64]:
    """Mark the records of a part that a later one supersedes, and take their entries out.

    states: of the records. first_offset, entries, starts: as pack_part has left them; the entries
    that stay move together. table: uint64, with a power of two of slots that has room for the
    largest hash partition; what it held is lost. Returns how many were marked, and, of those that
    may survive, their number and the sum of their fingerprints. An aborted record that is
    superseded is taken out of the map instead: it has a reason to go, and is not counted twice.

    Hash partition by hash partition, because the processor's cache holds one and its table. From
    the last entry to the first, so that who is met first stays. A slot is that of merge_latest.
    """
    tag_mask = np.uint64(0xFFFFFFFF00000000)
    marked = survivors = 0
    checksum = np.uint64(0)
    end: Any = np.int64(0)
    out: Any = np.int64(0)
    for p in range(starts.shape[0] - 1):
        start = end
        end = np.int64(starts[p + 1])
        slots = 16
        while slots * 2 < (end - start) * 3:
            slots *= 2
        mask = np.uint64(slots - 1)
        table[:slots] = 0
        kept = end
        for i in range(end - 1, start - 1, -1):
            if i - start >= AHEAD:
                prefetch(table, np.int64(entries[i - AHEAD, 0] & mask))
            first = entries[i, 0]
            second = entries[i, 1]
            meta = entries[i, 2]
            stays = True
            if meta & np.uint64(LOOKED_UP_BIT) == 0:
                here = (second & tag_mask) | np.uint64(kept)  # one more than where it goes
                slot = first & mask
                while table[slot] != 0:
                    if (table[slot] ^ here) & tag_mask == 0:
                        other = np.int64(table[slot] & ~tag_mask) - 1
                        if entries[other, 0] == first and entries[other, 1] == second:
                            stays = False
                            break
                    slot = (slot + np.uint64(1)) & mask
                if stays:
                    table[slot] = here
            if stays:
                kept -= 1
                entries[kept, 0] = first
                entries[kept, 1] = second
                entries[kept, 2] = meta
                if meta & np.uint64(MAP_ONLY_BIT) == 0:
                    survivors += 1
                    offset = first_offset + np.int64(meta & np.uint64(OFFSET_MASK))
                    checksum += fingerprint(first, second, offset)
                continue
            ordinal = np.int64((meta >> np.uint64(ORDINAL_SHIFT)) & np.uint64(ORDINAL_MASK))
            if meta & np.uint64(MAP_ONLY_BIT):
                states[ordinal] &= np.uint8(~IN_MAP & 0xFF)
            else:
                kept_bits = states[ordinal] & np.uint8(~REASON_MASK & 0xFF)
                states[ordinal] = kept_bits | np.uint8(SUPERSEDED)
                marked += 1
        starts[p] = np.uint64(out)
        for i in range(kept, end):
            entries[out, 0] = entries[i, 0]
            entries[out, 1] = entries[i, 1]
            entries[out, 2] = entries[i, 2]
            out += 1
    starts[starts.shape[0] - 1] = np.uint64(out)
    return marked, survivors, checksum


@kernel
def merge_latest(
    entries: UInt64Array, count: int, table: UInt64Array, superseded: UInt8Array
) -> int:
    """Decide which of entries[:count], which are in log order, a later record supersedes.

    table: uint64, a power of two of slots with room for count keys. superseded: (>= count,) uint8,
    filled with 0 or 1. Returns how many distinct keys the map has.

    From the last entry to the first: what is looked up may be the later one, too (C-11.2). A slot
    holds the index of an entry, plus one, under the top half of its second hash.
    """
    table[:] = 0
    mask = np.uint64(table.shape[0] - 1)
    tag_mask = np.uint64(0xFFFFFFFF00000000)
    keys = 0
    for i in range(count - 1, -1, -1):
        if i >= AHEAD:
            prefetch(table, np.int64(entries[i - AHEAD, 0] & mask))
        first = entries[i, 0]
        second = entries[i, 1]
        here = (second & tag_mask) | np.uint64(i + 1)
        slot = first & mask
        superseded[i] = 0
        while True:
            held = table[slot]
            if held == 0:
                if entries[i, 2] & np.uint64(LOOKED_UP_BIT) == 0:
                    table[slot] = here
                    keys += 1
                break
            if (held ^ here) & tag_mask == 0:
                other = np.int64(held & ~tag_mask) - 1
                if entries[other, 0] == first and entries[other, 1] == second:
                    superseded[i] = 1
                    break
            slot = (slot + np.uint64(1)) & mask
    return keys


@kernel
def collect_superseded(
    entries: UInt64Array,
    superseded: UInt8Array,
    parts: tuple[NDArray[np.int64], NDArray[np.int64]],
    out: tuple[NDArray[np.uint32], UInt64Array],
) -> int:
    """Write the ordinals of the superseded entries, those of one part after those of another.

    parts: where the entries of each part start and end, one number more than there are parts; what
    the offsets of each are relative to. out: the ordinals; and, of each part, how many entries are
    superseded, how many more are expired tombstones, and the sum of the fingerprints of both,
    modulo 2^64 (SUM_COLUMNS). Returns how many ordinals there are.
    """
    edges, first_offsets = parts
    ordinals, sums = out
    count = 0
    for part in range(first_offsets.shape[0]):
        expired = 0
        before = count
        checksum = np.uint64(0)
        for i in range(edges[part], edges[part + 1]):
            meta = entries[i, 2]
            if meta & np.uint64(MAP_ONLY_BIT):
                continue
            gone = False
            if superseded[i]:
                ordinals[count] = np.uint32(
                    (meta >> np.uint64(ORDINAL_SHIFT)) & np.uint64(ORDINAL_MASK)
                )
                count += 1
                gone = True
            elif meta & np.uint64(EXPIRED_BIT):
                expired += 1
                gone = True
            if gone:
                offset = first_offsets[part] + np.int64(meta & np.uint64(OFFSET_MASK))
                checksum += fingerprint(entries[i, 0], entries[i, 1], offset)
        sums[part, 0] = np.uint64(count - before)
        sums[part, 1] = np.uint64(expired)
        sums[part, 2] = checksum
    return count


@kernel
def drop_superseded(states: UInt8Array, ordinals: NDArray[np.uint32]) -> bool:
    """Mark the records of these ordinals as superseded.

    Returns False where there is no such record; then the states are of no use.
    """
    for ordinal in ordinals:
        if ordinal >= states.shape[0]:
            return False
        kept_bits = states[ordinal] & np.uint8(~REASON_MASK & 0xFF)
        states[ordinal] = kept_bits | np.uint8(SUPERSEDED)
    return True


@kernel
def count_in_batches(rows: Int64Array, states: UInt8Array) -> tuple[int, int, int]:
    """Return how many batches are empty, how many legacy, and how many tombstones lack a horizon.

    The tombstones counted are those that may stay, in batches without a delete horizon. states: of
    all records of the batches.
    """
    empty = legacy = tombstones = 0
    at: Any = 0
    for i in range(rows.shape[0]):
        end: Any = at + rows[i, RECORDS_COUNT]
        empty += at == end
        legacy += rows[i, ATTRIBUTES] & LEGACY != 0
        if rows[i, ATTRIBUTES] & DELETE_HORIZON == 0:
            for j in range(at, end):
                reason = states[j] & np.uint8(REASON_MASK)
                may_stay = reason in (KEEP, SUPERSEDED, EXPIRED)
                tombstones += may_stay and states[j] & np.uint8(TOMBSTONE) != 0
        at = end
    return empty, legacy, tombstones
