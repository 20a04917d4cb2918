"""The kernels of the offset map beside dictionaries; hashes are made up so that they get close."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleaner_jobs import offset_map
from cleaner_jobs.offset_map import (
    collect_verdict,
    mark_superseded,
    merge_latest,
    pack_part,
    select_entries,
    sum_fingerprints,
    table_slots,
)
from storage.batch_columns import CLEAN, EXPIRED, KEEP, NULL_KEY, SUPERSEDED, TOMBSTONE

MASK = 2**64 - 1
# the same slot for several, the same tag for several, one half equal and the other not
FIRST_HALVES = [0, 1, 16, 2**60, 2**63, MASK, MASK - 15]
SECOND_HALVES = [0, 1, 2**32, 2**32 + 1, 2**63, MASK]
STATES = [KEEP, KEEP, TOMBSTONE, TOMBSTONE | EXPIRED]

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
        return self.state & 3

    @property
    def is_clean(self) -> bool:
        return bool(self.state & CLEAN)


@st.composite
def parsed(draw: st.DrawFn) -> list[Row]:
    """Records of one part; those of the clean section come first."""
    rows: list[Row] = []
    offset = draw(st.sampled_from([0, 5, 2**40]))
    clean = draw(st.integers(0, 6))
    for number in range(draw(st.integers(0, 24))):
        state = draw(st.sampled_from(STATES)) | (CLEAN if number < clean else 0)
        key = draw(st.sampled_from(FIRST_HALVES)), draw(st.sampled_from(SECOND_HALVES))
        if draw(st.integers(0, 9)) == 0:
            state, key = NULL_KEY | state & (TOMBSTONE | CLEAN), (0, 0)
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
    """C-7: of the dirty section only the latest record of a key stays in the map."""
    latest = {row.key: row.offset for row in rows if not row.is_clean and row.reason != NULL_KEY}
    return [
        row._replace(state=row.state & ~3 | SUPERSEDED)
        if not row.is_clean and row.reason != NULL_KEY and latest[row.key] != row.offset
        else row
        for row in rows
    ]


@given(parsed())
def test_within_a_part_the_later_dirty_record_wins(rows: list[Row]) -> None:
    columns, expected = columns_of(rows), marked(rows)
    table = np.zeros(table_slots(len(rows)), np.int32)  # what it held does not count
    count = mark_superseded(columns, 0, len(rows), table)
    assert columns[3].tolist() == [row.state for row in expected]
    assert count == sum(a != b for a, b in zip(rows, expected, strict=True))


@given(parsed())
def test_fingerprints_are_summed_over_the_first_records(rows: list[Row]) -> None:
    half = len(rows) // 2
    expected = sum(map(fingerprint, rows[:half])) & MASK
    assert int(sum_fingerprints(columns_of(rows), half)) == expected


@given(parsed(), st.integers(0, 3))
def test_a_part_holds_what_may_survive_by_hash_partition(rows: list[Row], bits: int) -> None:
    rows = marked(rows)
    first_offset = rows[0].offset if rows else 0
    rows = [row for row in rows if row.offset - first_offset < 2**32]  # what a part may span
    entries = np.zeros((max(1, len(rows)), offset_map.ENTRY_WORDS), np.uint64)
    starts = np.full(2**bits + 1, 99, np.uint64)
    count, fingerprints = pack_part(
        columns_of(rows), len(rows), first_offset, bits, entries, starts
    )
    may_stay = [(i, row) for i, row in enumerate(rows) if row.reason not in (SUPERSEDED, NULL_KEY)]
    assert count == len(may_stay)
    assert int(fingerprints) == sum(fingerprint(row) for _, row in may_stay) & MASK
    for partition in range(2**bits):
        own = [(i, row) for i, row in may_stay if row.first >> 64 - bits == partition or not bits]
        start, end = starts[partition : partition + 2].tolist()
        assert entries[start:end].tolist() == [list(entry(i, row, first_offset)) for i, row in own]


def entry(ordinal: int, row: Row, first_offset: int) -> tuple[int, int, int]:
    meta = (row.reason == EXPIRED) << 63 | row.is_clean << 62
    return row.first, row.second, meta | ordinal << 32 | row.offset - first_offset


@st.composite
def merged(draw: st.DrawFn) -> list[Row]:
    """Entries of a hash partition in the order of the log: of a log's parts one after another."""
    rows = [row for row in draw(parsed()) if row.reason != NULL_KEY]
    return [row._replace(offset=number) for number, row in enumerate(rows)]


def entries_of(rows: list[Row]) -> Any:
    return np.array([entry(i, row, 0) for i, row in enumerate(rows)], np.uint64).reshape(-1, 3)


@given(merged())
def test_over_parts_the_latest_dirty_record_wins(rows: list[Row]) -> None:
    """C-11.2: those of the clean section only lose, and against the dirty section alone."""
    latest = {row.key: row.offset for row in rows if not row.is_clean}
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
    first_offset = data.draw(st.sampled_from([0, 2**40]))
    ordinals = np.zeros(len(rows), np.uint32)
    count, expired, dropped = collect_verdict(
        entries_of(rows), np.array(flags, np.uint8), first_offset, ordinals
    )
    absolute = [row._replace(offset=row.offset + first_offset) for row in rows]
    gone = [row for row, flag in zip(absolute, flags, strict=True) if flag or row.reason == EXPIRED]
    assert ordinals[:count].tolist() == [i for i, flag in enumerate(flags) if flag]
    assert expired == len(gone) - count
    assert int(dropped) == sum(map(fingerprint, gone)) & MASK


@pytest.mark.parametrize("turns", [1, 2, 4])
def test_turns_share_all_entries_out_by_the_second_hash(turns: int) -> None:
    rows = [Row(1, second << 61, i, KEEP) for i, second in enumerate([0, 7, 3, 4, 4, 1, 6])]
    source, seen = entries_of(rows), []
    for turn in range(turns):
        target = np.zeros((len(rows) + 1, 3), np.uint64)
        shift = 64 - (turns.bit_length() - 1)
        filled = select_entries(source, target, 1, shift, turn)
        share = target[1:filled].tolist()
        assert share == [e for e in source.tolist() if e[1] * turns >> 64 == turn]
        seen += share
    assert sorted(seen) == sorted(source.tolist())


@pytest.mark.parametrize("entries", [0, 1, 10, 11, 100, 1 << 20])
def test_a_table_is_a_power_of_two_and_not_full(entries: int) -> None:
    slots = table_slots(entries)
    assert slots & slots - 1 == 0
    assert slots * 2 >= entries * 3
    assert slots >= 16


def test_a_hot_key_leaves_one_record() -> None:
    rows = [Row(5, 6, offset, KEEP) for offset in range(5000)]
    columns = columns_of(rows)
    assert mark_superseded(columns, 0, 5000, np.zeros(table_slots(5000), np.int32)) == 4999
    assert columns[3].tolist() == [SUPERSEDED] * 4999 + [KEEP]
