"""The kernels of the offset map beside dictionaries; hashes are made up so that they get close."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleaner_jobs.kernels import offset_map
from cleaner_jobs.kernels.offset_map import (
    SUM_COLUMNS,
    collect_superseded,
    count_in_batches,
    drop_superseded,
    keep_latest,
    merge_latest,
    pack_part,
    sum_fingerprints,
    table_slots,
)
from storage.formats.batch_columns import (
    ABORTED,
    ATTRIBUTES,
    BATCH_COLUMNS,
    CONTROL_RECORD,
    EXPIRED,
    IN_MAP,
    KEEP,
    LEGACY,
    NULL_KEY,
    RECORDS_COUNT,
    SUPERSEDED,
    TOMBSTONE,
)

MASK = 2**64 - 1
# the same slot for several, the same tag for several, one half equal and the other not
FIRST_HALVES = [0, 1, 16, 2**60, 2**63, MASK, MASK - 15]
SECOND_HALVES = [0, 1, 2**32, 2**32 + 1, 2**63, MASK]
STATES = [KEEP, KEEP, TOMBSTONE, TOMBSTONE | EXPIRED, ABORTED]
REASON_BITS = 7

Key = tuple[int, int]


class Row(NamedTuple):
    """One parsed record."""

    first: int
    second: int
    offset: int
    state: int

    @property
    def key(self) -> Key:
        return self.first, self.second

    @property
    def reason(self) -> int:
        return self.state & REASON_BITS

    @property
    def is_in_map(self) -> bool:
        return bool(self.state & IN_MAP)

    @property
    def may_stay(self) -> bool:
        return self.reason in (KEEP, EXPIRED) and not self.state & CONTROL_RECORD

    @property
    def has_entry(self) -> bool:
        return self.may_stay or (self.reason == ABORTED and self.is_in_map)


@st.composite
def parsed(draw: st.DrawFn) -> list[Row]:
    """Records of one part; those that are only looked up stand anywhere (C-7.5, C-7.11)."""
    rows: list[Row] = []
    offset = draw(st.sampled_from([0, 5, 2**40]))
    for _ in range(draw(st.integers(0, 24))):
        state = draw(st.sampled_from(STATES)) | draw(st.sampled_from([0, IN_MAP, IN_MAP]))
        key = draw(st.sampled_from(FIRST_HALVES)), draw(st.sampled_from(SECOND_HALVES))
        odd = draw(st.integers(0, 14))
        if odd == 0:
            state, key = NULL_KEY | state & TOMBSTONE, (0, 0)
        elif odd == 1:  # its first hash is its type
            state, key = CONTROL_RECORD | state & TOMBSTONE, (draw(st.integers(0, 5)), 0)
        rows.append(Row(*key, offset, state))
        offset += draw(st.sampled_from([1, 1, 2, 2**31]))
    return rows


def columns_of(rows: list[Row]) -> tuple[Any, ...]:
    kinds: list[Any] = [np.uint64, np.uint64, np.int64, np.uint8]
    columns = zip(*rows, strict=True) if rows else [[], [], [], []]
    return tuple(np.array(list(c), kind) for c, kind in zip(columns, kinds, strict=True))


def fingerprint(row: Row) -> int:
    """Murmur's way of mixing, over both hashes and the offset."""
    x = row.first ^ (row.offset * 0x9E3779B97F4A7C15 & MASK)
    x ^= x >> 32
    x = x * 0xD6E8FEB86659FD93 & MASK
    x ^= row.second
    x ^= x >> 32
    x = x * 0xD6E8FEB86659FD93 & MASK
    return x ^ x >> 32


def marked(rows: list[Row]) -> list[Row]:
    """C-7: only the latest record of a key stays in the map; an aborted one goes anyway."""
    latest = {row.key: row.offset for row in rows if row.is_in_map}
    found = []
    for row in rows:
        if row.is_in_map and latest[row.key] != row.offset:
            if row.reason == ABORTED:
                row = row._replace(state=row.state & ~IN_MAP)
            else:
                row = row._replace(state=row.state & ~REASON_BITS | SUPERSEDED)
        found.append(row)
    return found


@given(parsed())
def test_fingerprints_are_summed_over_the_data_among_the_first_records(rows: list[Row]) -> None:
    half = len(rows) // 2
    data = [row for row in rows[:half] if not row.state & CONTROL_RECORD]
    count, checksum = sum_fingerprints(columns_of(rows), half)
    assert (count, int(checksum)) == (len(data), sum(map(fingerprint, data)) & MASK)


@given(parsed(), st.integers(0, 3))
def test_a_part_holds_what_may_survive_by_hash_partition(rows: list[Row], bits: int) -> None:
    """C-7: of the records of a part that are in its map, the latest of each key."""
    first_offset = rows[0].offset if rows else 0
    rows = [row for row in rows if row.offset - first_offset < 2**32]  # what a part may span
    columns, expected = columns_of(rows), marked(rows)
    entries = np.zeros((max(1, len(rows)), offset_map.ENTRY_WORDS), np.uint64)
    starts = np.full(2**bits + 1, 99, np.uint64)
    largest = pack_part(columns, first_offset, bits, entries, starts)
    places = [hash_partition_of(row, bits) for row in rows if row.has_entry]
    assert largest == max(map(places.count, places), default=0)
    table = np.full(table_slots(largest), 7, np.uint64)  # what it held does not count
    found = keep_latest(columns[3], first_offset, entries, starts, table)
    may_stay = [row for row in expected if row.may_stay]
    superseded = sum(row.reason == SUPERSEDED for row in expected)
    checksum = sum(map(fingerprint, may_stay)) & MASK
    assert (*found[:2], int(found[2])) == (superseded, len(may_stay), checksum)
    assert columns[3].tolist() == [row.state for row in expected]
    held = [(i, row) for i, row in enumerate(expected) if row.has_entry]
    assert (starts[0], starts[-1]) == (0, len(held))
    for hash_partition in range(2**bits):
        own = [(i, row) for i, row in held if hash_partition_of(row, bits) == hash_partition]
        start, end = starts[hash_partition : hash_partition + 2].tolist()
        assert entries[start:end].tolist() == [list(entry(i, row, first_offset)) for i, row in own]


def hash_partition_of(row: Row, bits: int) -> int:
    return row.first >> 64 - bits if bits else 0


def entry(ordinal: int, row: Row, first_offset: int) -> tuple[int, int, int]:
    meta = (row.reason == EXPIRED) << 63 | (not row.is_in_map) << 62 | (row.reason == ABORTED) << 61
    return row.first, row.second, meta | ordinal << 32 | row.offset - first_offset


@st.composite
def merged(draw: st.DrawFn) -> list[Row]:
    """Entries of a hash partition in the order of the log: of a log's parts one after another."""
    rows = [row for row in draw(parsed()) if row.has_entry]
    return [row._replace(offset=number) for number, row in enumerate(rows)]


def entries_of(rows: list[Row]) -> Any:
    return np.array([entry(i, row, 0) for i, row in enumerate(rows)], np.uint64).reshape(-1, 3)


@given(merged())
def test_over_parts_the_latest_record_in_the_map_wins(rows: list[Row]) -> None:
    """C-11.2: a record is compared by its offset, in the map or looked up; C-7.11: one that is only
    looked up may be the later one, and stays.
    """
    latest = {row.key: row.offset for row in rows if row.is_in_map}
    superseded = np.full(len(rows) + 1, 7, np.uint8)
    table = np.full(table_slots(len(rows)), 123, np.uint64)
    keys = merge_latest(entries_of(rows), len(rows), table, superseded)
    assert keys == len(latest)
    expected = [row.offset < latest.get(row.key, -1) for row in rows]
    assert superseded[: len(rows)].tolist() == expected


@given(merged(), st.data())
def test_a_verdict_names_what_is_superseded_and_counts_what_is_expired(
    rows: list[Row], data: st.DataObject
) -> None:
    flags = [data.draw(st.booleans()) for _ in rows]
    cut = data.draw(st.integers(0, len(rows)))
    edges, first_offsets = np.array([0, cut, len(rows)]), np.array([2**40, 0])
    ordinals, sums = np.zeros(len(rows), np.uint32), np.full((2, SUM_COLUMNS), 9, np.uint64)
    count = collect_superseded(
        entries_of(rows), np.array(flags, np.uint8), (edges, first_offsets), (ordinals, sums)
    )
    judged = [(i, row) for i, row in enumerate(rows) if row.may_stay]
    assert ordinals[:count].tolist() == [i for i, _ in judged if flags[i]]
    for part, (start, end) in enumerate(pairwise(edges.tolist())):
        gone = [
            (i, row._replace(offset=row.offset + int(first_offsets[part])))
            for i, row in judged
            if start <= i < end and (flags[i] or row.reason == EXPIRED)
        ]
        superseded = sum(flags[i] for i, _ in gone)
        fingerprints = sum(fingerprint(row) for _, row in gone) & MASK
        assert sums[part].tolist() == [superseded, len(gone) - superseded, fingerprints]


@pytest.mark.parametrize("entries", [0, 1, 10, 11, 100, 1 << 20])
def test_a_table_is_a_power_of_two_and_not_full(entries: int) -> None:
    slots = table_slots(entries)
    assert slots & slots - 1 == 0
    assert slots * 2 >= entries * 3
    assert slots >= 16


@pytest.mark.parametrize("bits", [0, 2])
def test_a_hot_key_leaves_one_record(bits: int) -> None:
    rows = [Row(5, 6, offset, IN_MAP) for offset in range(5000)]
    columns = columns_of(rows)
    entries, starts = np.zeros((5000, 3), np.uint64), np.zeros(2**bits + 1, np.uint64)
    assert pack_part(columns, 0, bits, entries, starts) == 5000
    table = np.zeros(table_slots(5000), np.uint64)
    assert keep_latest(columns[3], 0, entries, starts, table)[:2] == (4999, 1)
    assert columns[3].tolist() == [SUPERSEDED | IN_MAP] * 4999 + [IN_MAP]
    assert entries[0].tolist() == [5, 6, 4999 << 32 | 4999]
    assert starts.tolist() == [0] + [1] * 2**bits


def test_many_keys_in_few_slots_are_told_apart() -> None:
    """Each hash partition fills its share of the table as far as it ever is filled."""
    rng = np.random.default_rng(7)
    firsts, seconds = rng.integers(0, 2**63, (2, 3000)).tolist()
    which = rng.integers(0, 3000, 9000).tolist()
    rows = [Row(firsts[k], seconds[k], i, IN_MAP) for i, k in enumerate(which)]
    columns, expected = columns_of(rows), marked(rows)
    entries, starts = np.zeros((9000, 3), np.uint64), np.zeros(9, np.uint64)
    table = np.zeros(table_slots(pack_part(columns, 0, 3, entries, starts)), np.uint64)
    keep_latest(columns[3], 0, entries, starts, table)
    assert columns[3].tolist() == [row.state for row in expected]


HORIZON = 0x40
STATE_REASON_BITS = 7
REASONS = [KEEP, SUPERSEDED, NULL_KEY, EXPIRED, ABORTED]
ALL_STATES = st.builds(
    lambda *bits: sum(bits),
    st.sampled_from(REASONS),
    st.sampled_from([0, TOMBSTONE]),
    st.sampled_from([0, IN_MAP, CONTROL_RECORD]),
)


@given(st.lists(ALL_STATES, min_size=1), st.data())
def test_a_verdict_gives_its_records_their_reason_and_no_others(
    before: list[int], data: st.DataObject
) -> None:
    ordinals = data.draw(st.lists(st.integers(0, len(before) - 1), unique=True))
    states = np.array(before, np.uint8)
    assert drop_superseded(states, np.array(sorted(ordinals), np.uint32))
    assert states.tolist() == [
        state - state % 8 + SUPERSEDED if i in ordinals else state for i, state in enumerate(before)
    ]


@pytest.mark.parametrize("ordinal", [3, 4, 2**31, 2**32 - 1])
def test_a_record_that_is_not_there_is_told(ordinal: int) -> None:
    states = np.zeros(3, np.uint8)
    assert not drop_superseded(states, np.array([0, ordinal], np.uint32))
    assert drop_superseded(states, np.array([0, 2], np.uint32))


@given(st.lists(st.tuples(st.sampled_from([0, HORIZON, LEGACY, 1]), st.lists(ALL_STATES))))
def test_what_is_counted_of_batches(batches: list[tuple[int, list[int]]]) -> None:
    rows = np.zeros((len(batches), BATCH_COLUMNS), np.int64)
    rows[:, ATTRIBUTES] = [attributes for attributes, _ in batches]
    rows[:, RECORDS_COUNT] = [len(states) for _, states in batches]
    states = np.array([state for _, of_batch in batches for state in of_batch], np.uint8)
    tombstones = [
        state
        for attributes, of_batch in batches
        for state in of_batch
        if attributes != HORIZON
        and state & TOMBSTONE
        and state & STATE_REASON_BITS in (KEEP, SUPERSEDED, EXPIRED)
    ]
    assert count_in_batches(rows, states) == (
        sum(not of_batch for _, of_batch in batches),
        sum(attributes == LEGACY for attributes, _ in batches),
        len(tombstones),
    )
