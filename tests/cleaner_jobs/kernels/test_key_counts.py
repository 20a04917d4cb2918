"""The kernels that count versions and bytes of keys beside dictionaries; hashes are made up so that
they get close, sizes and numbers of versions so that they are about what an entry has place for.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleaner_jobs.inspection_counters import (
    HEAVY_COLUMNS,
    KEY_SUMS,
    KEYED_BYTES,
    KEYED_RECORDS,
    KEYS,
    LIVE_BYTES,
    LIVE_KEYS,
    VERSION_CLASSES_AT,
)
from cleaner_jobs.kernels.key_counts import (
    BYTES_MASK,
    KEY_COLUMNS,
    LATEST_BYTES_MASK,
    VERSIONS_MASK,
    fold_keys,
    fold_slots,
    merge_keys,
    spread_keys,
    sum_keys,
)
from cleaner_jobs.kernels.offset_map import table_slots
from storage.formats.batch_columns import IN_MAP, TOMBSTONE

MASK = 2**64 - 1
# the same slot for several, the same tag for several, one half equal and the other not
FIRST_HALVES = [0, 1, 2**12, 2**57, 2**60, 2**63, MASK]
SECOND_HALVES = [0, 2**24, 2**32, 2**32 + 2**24, 2**63, MASK]
UNSEEN_BITS = 2**24 - 1  # of a second half: two keys that differ there alone count as one
SIZES = [0, 7, 100, LATEST_BYTES_MASK - 1, LATEST_BYTES_MASK, LATEST_BYTES_MASK + 1, 2**31]
STATES = [0, IN_MAP, IN_MAP, IN_MAP, IN_MAP | TOMBSTONE]

Key = tuple[int, int]


class Made(NamedTuple):
    """A record of a log."""

    key: Key
    size: int
    state: int


MADE = st.builds(
    Made,
    st.tuples(st.sampled_from(FIRST_HALVES), st.sampled_from(SECOND_HALVES)),
    st.sampled_from(SIZES),
    st.sampled_from(STATES),
)


def folded(
    made: list[Made], first_offset: int, bits: tuple[int, int]
) -> tuple[np.ndarray[Any, Any], list[int]]:
    """The entries of a run whose records have consecutive offsets, and where hash partitions start.
    bits: of hash partitions, and of buckets."""
    columns = (
        np.array([record.key[0] for record in made], np.uint64),
        np.array([record.key[1] for record in made], np.uint64),
        np.arange(first_offset, first_offset + len(made)),
        np.array([record.state for record in made], np.uint8),
    )
    sizes = np.array([record.size for record in made], np.uint32)
    entries = np.full((len(made) + 1, 3), MASK, np.uint64)
    edges = np.full((1 << bits[1]) + 1, -1, np.int64)
    run = len(made), first_offset
    largest = spread_keys(columns, sizes, run, entries, edges)
    assert largest == max(int(end - start) for start, end in pairwise(edges))
    starts = np.full((1 << bits[0]) + 1, MASK, np.uint64)
    table = np.full(fold_slots(largest), MASK, np.uint64)
    kept = fold_keys(entries, edges, table, starts)
    assert entries[len(made) :].tolist() == [[MASK] * 3]
    return entries[:kept], starts.tolist()


def counted(runs: list[list[Made]], bits: tuple[int, int], top: int) -> tuple[Any, ...]:
    """Sums over all hash partitions, and the heaviest keys of all."""
    sums = np.zeros(KEY_SUMS, np.int64)
    by_versions, by_bytes = np.zeros((2, top, HEAVY_COLUMNS), np.int64)
    first_offsets = np.cumsum([10**12, *(len(run) + 5 for run in runs[:-1])])
    found = [folded(run, int(at), bits) for run, at in zip(runs, first_offsets, strict=True)]
    for p in range(1 << bits[0]):
        blocks = [entries[starts[p] : starts[p + 1]] for entries, starts in found]
        rows = np.concatenate(blocks)
        edges = np.concatenate(([0], np.cumsum([len(block) for block in blocks])))
        table, keys = (
            np.zeros(table_slots(len(rows)), np.uint64),
            np.zeros((len(rows) + 1, KEY_COLUMNS), np.int64),
        )
        count = merge_keys(rows, len(rows), table, keys)
        sum_keys(rows, (keys, count), (edges, first_offsets), sums, (by_versions, by_bytes))
    return sums, by_versions.tolist(), by_bytes.tolist()


def counted_slowly(runs: list[list[Made]], top: int) -> tuple[Any, ...]:
    """By a dictionary of the records of each key."""
    keys: dict[Key, list[tuple[int, int, bool]]] = {}
    at = 10**12
    for run in runs:
        for offset, record in enumerate(run, at):
            if record.state & IN_MAP:
                key = record.key[0], record.key[1] & ~UNSEEN_BITS
                is_tombstone = record.state & TOMBSTONE != 0
                keys.setdefault(key, []).append((offset, record.size, is_tombstone))
        at += len(run) + 5
    sums = np.zeros(KEY_SUMS, np.int64)
    heavy = []
    for records in keys.values():
        offset, size, is_tombstone = records[-1]
        total = sum(record[1] for record in records)
        sums[KEYS] += 1
        sums[KEYED_RECORDS] += len(records)
        sums[KEYED_BYTES] += total
        sums[LIVE_KEYS] += not is_tombstone
        sums[LIVE_BYTES] += 0 if is_tombstone else size
        sums[VERSION_CLASSES_AT + len(records).bit_length()] += 1
        heavy.append([len(records), total, offset])
    return sums, *(_heaviest(heavy, column, top) for column in (0, 1))


def _heaviest(heavy: list[list[int]], column: int, top: int) -> list[list[int]]:
    rows = sorted(heavy, key=lambda row: (-row[column], row[2]))[:top]
    return [*rows, *[[0, 0, 0]] * (top - len(rows))]


@given(
    runs=st.lists(st.lists(MADE, max_size=40), min_size=1, max_size=4),
    bits=st.sampled_from([(0, 0), (0, 3), (2, 2), (2, 5)]),
)
def test_versions_and_bytes_of_keys_are_those_of_a_dictionary(
    runs: list[list[Made]], bits: tuple[int, int]
) -> None:
    sums, *heavy = counted(runs, bits, 6)
    expected, *expected_heavy = counted_slowly(runs, 6)
    assert sums.tolist() == expected.tolist()
    if all(record.size for run in runs for record in run):  # a row of zeros is a free one
        assert heavy == expected_heavy


@pytest.mark.parametrize("around", [VERSIONS_MASK, 2 * VERSIONS_MASK, 4 * VERSIONS_MASK])
@pytest.mark.parametrize("size", [1, LATEST_BYTES_MASK, LATEST_BYTES_MASK + 1, BYTES_MASK >> 9])
def test_a_key_may_have_more_versions_and_bytes_than_an_entry(around: int, size: int) -> None:
    """Of all that an entry can say, one less, as many, and one more."""
    for versions in (around - 1, around, around + 1):
        runs = [[Made((5, 2**30), size, IN_MAP)] * versions, [Made((5, 2**30), 3, IN_MAP)]]
        sums, *heavy = counted(runs, (0, 0), 1)
        expected, *expected_heavy = counted_slowly(runs, 1)
        assert (sums.tolist(), heavy) == (expected.tolist(), expected_heavy)


def test_a_key_takes_one_entry_of_a_run_where_that_has_place() -> None:
    entries, starts = folded([Made((1, 2**40), 90, IN_MAP)] * 300, 7, (0, 0))
    assert (len(entries), starts) == (1, [0, 1])
