"""A record that a complete cleaning would not have left is found; where that is not certain, not.

What has to go stands in compaction C-11.2 and C-10.2; what a map that begins in the middle of a
segment makes of transactions, in C-7.11.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compactor.verification.evidence import CleaningClock
from compactor.verification.overdue import LastBatches
from compactor.verification.reader_log import BATCH
from storage.file_names import TXN_INDEX, file_name
from storage.formats import checkpoint
from storage.formats.producer_snapshot import ProducerEntry
from tests.compactor.verification.test_verify_against import AT_NOW, NAME, Pair
from tests.support.made_log import (
    ABORT_KEY,
    NOW_MS,
    TXN,
    batch,
    index_entry,
    keyed,
    make_partition,
    marker,
    of_producer,
    record,
    write_segment,
)
from tests.support.reference_batch import HORIZON, ReferenceBatch, encode

Segments = Mapping[int, Sequence[bytes | ReferenceBatch]]
ACTIVE = {20: [keyed(20, "z")]}
EXACT = CleaningClock(NOW_MS, is_exact=True)
STAYS = "is still there"


def lazy(root: Path, segments: Segments, cleaned_to: int | None, was: int | None = None) -> Pair:
    """A log that is said to have been cleaned up to an offset, and has every record that it had.

    was: where the cleaner's checkpoint stood before.
    """
    pair = Pair(root / "before", root / "after")
    make_partition(pair.old, {**segments, **ACTIVE})
    shutil.copytree(pair.old, pair.new)
    for side, offset in zip(pair, (was, cleaned_to), strict=True):
        if offset is not None:
            checkpoint.write(str(side / checkpoint.CLEANER_OFFSET), {NAME: offset})
    return pair


def problems(pair: Pair, clock: CleaningClock = AT_NOW) -> list[str]:
    return [finding.problem for finding in pair.hold(clock).findings]


def superseded(*offsets: int) -> list[str]:
    return [
        f"offset {o}: a record superseded by a later record of its key {STAYS}" for o in offsets
    ]


# segments, up to where the log was cleaned, as the checkpoints say, and before, what is found
LAZY: dict[str, tuple[Segments, int, int | None, list[str]]] = {
    "the checkpoint alone has moved": (
        {0: [keyed(0, "aba"), keyed(3, ".b")]},
        20,
        None,
        [*superseded(0, 1), f"offset 3: a record without a key {STAYS}"],
    ),
    # offset 0 is superseded at 5 alone, and the record at 4 has no key: the map ended at 4
    "behind the end of the cleaning": ({0: [keyed(0, "abcd"), keyed(4, ".a")]}, 4, None, []),
    # C-7.5: only keys of the dirty part, from offset 4 on, are in the map
    "twice in the clean part": (
        {0: [keyed(0, "aabb")], 4: [keyed(4, "b")]},
        20,
        4,
        superseded(2, 3),
    ),
    # C-4.1: a checkpoint that cannot be counts as none, and the whole log was dirty
    "a checkpoint past the end": ({0: [keyed(0, "aa")]}, 20, 22, superseded(0)),
    "a checkpoint below 0": ({0: [keyed(0, "aa")]}, 20, -1, superseded(0)),
}


@pytest.mark.parametrize("name", LAZY)
def test_what_is_left_though_the_checkpoint_says_that_it_was_cleaned(
    tmp_path: Path, name: str
) -> None:
    segments, cleaned_to, was, expected = LAZY[name]
    assert problems(lazy(tmp_path, segments, cleaned_to, was)) == expected


def test_nothing_is_found_where_the_checkpoint_stands_still(tmp_path: Path) -> None:
    found = lazy(tmp_path, {0: [keyed(0, "aba."), keyed(4, "a")]}, None).hold()
    assert (found.findings, found.untouched) == ([], 1)


def with_entry(pair: Pair, base_offset: int, entry: bytes) -> Pair:
    """Put an entry into the index of aborted transactions on both sides."""
    for side in pair:
        (side / "orders-0" / file_name(base_offset, TXN_INDEX)).write_bytes(entry)
    return pair


def test_an_aborted_record_has_to_go(tmp_path: Path) -> None:
    aborted = of_producer(keyed(0, "ab"), 8, TXN)
    segments: Segments = {0: [aborted, marker(2, 8, ABORT_KEY), keyed(3, "c")]}
    pair = with_entry(lazy(tmp_path, segments, 20), 0, index_entry(8, 0, 2, 3))
    expected = [f"offset {o}: a record of an aborted transaction {STAYS}" for o in (0, 1)]
    assert problems(pair) == expected


@pytest.mark.parametrize(
    ("clock", "horizon_ms", "is_found"),
    [
        (EXACT, NOW_MS, True),
        (EXACT, NOW_MS + 1, False),
        (AT_NOW, NOW_MS, False),  # the cleaning may have been earlier
    ],
)
def test_a_tombstone_has_to_go_once_its_horizon_is_reached(
    tmp_path: Path, clock: CleaningClock, horizon_ms: int, is_found: bool
) -> None:
    gone = replace(batch(record(0, b"a", None)), attributes=HORIZON, base_timestamp=horizon_ms)
    pair = lazy(tmp_path, {0: [gone, keyed(1, "b")]}, 20)
    told = f"offset 0: a record that is a tombstone past its delete horizon {STAYS}"
    assert problems(pair, clock) == ([told] if is_found else [])


@pytest.mark.parametrize(("was", "is_found"), [(6, False), (4, True), (None, True)])
def test_a_map_that_begins_within_a_segment_may_miss_keys_of_transactions(
    tmp_path: Path, was: int | None, is_found: bool
) -> None:
    """C-7.11: it did not see the marker at 5, and takes what producer 8 writes next for aborted."""
    segments: Segments = {
        0: [keyed(0, "a")],
        4: [
            encode(of_producer(keyed(4, "x"), 8, TXN)),
            marker(5, 8, ABORT_KEY),
            encode(of_producer(keyed(6, "a"), 8, TXN)),
            marker(7, 8, b"\0\0\0\1"),
        ],
    }
    pair = with_entry(lazy(tmp_path, segments, 20, was=was), 4, index_entry(8, 4, 5, 6))
    assert (superseded(0)[0] in problems(pair)) is is_found


@pytest.mark.parametrize(
    ("clock", "cleaned_to", "is_found"), [(EXACT, 20, True), (AT_NOW, 20, False), (EXACT, 2, False)]
)
def test_an_empty_batch_is_there_for_the_last_of_its_producer_alone(
    tmp_path: Path, clock: CleaningClock, cleaned_to: int, is_found: bool
) -> None:
    """C-10.4, C-10.5: the one at 1 is not, the one at 2 is; where a cleaning ends it stays, too."""
    first, last = (
        replace(
            of_producer(keyed(1 + n, "b"), 8, 0), base_sequence=n, base_timestamp=-1, records=()
        )
        for n in range(2)
    )
    pair = lazy(tmp_path, {0: [keyed(0, "a"), first, last, keyed(3, "c")]}, cleaned_to)
    told = f"offset 1: an empty batch that is not the last of its producer {STAYS}"
    assert problems(pair, clock) == ([told] if is_found else [])


def test_below_the_log_start_nothing_may_go_but_with_its_segment(tmp_path: Path) -> None:
    """No reader sees it; but no cleaning has a reason to take the latest record of a key."""
    pair = lazy(tmp_path, {0: [keyed(0, "a"), keyed(1, "b")]}, 20)
    for side in pair:
        checkpoint.write(str(side / checkpoint.LOG_START), {NAME: 1})
    write_segment(pair.new / "orders-0", 0, [keyed(1, "b")])
    assert problems(pair) == ["offset 0: the latest record of its key is gone without a reason"]


WITH_DATA = ProducerEntry(7, 2, 5, 40, 3, 1000, None, None)  # its last data batch ended at 40
WITH_MARKER = ProducerEntry(8, 3, None, None, 0, 1000, 0, None)  # only a marker in this epoch
LAST = LastBatches({7: WITH_DATA, 8: WITH_MARKER})
DATA, MARKER = 0x10, 0x30


def last_batch(producer_id: int, epoch: int, last_offset: int, attributes: int) -> np.void:
    made = np.zeros(1, BATCH)
    made["producer_id"], made["producer_epoch"] = producer_id, epoch
    made["last_offset"], made["attributes"] = last_offset, attributes
    found: np.void = made[0]
    return found


@pytest.mark.parametrize(
    ("made", "is_last"),
    [
        (last_batch(7, 2, 40, DATA), True),
        (last_batch(7, 1, 40, DATA), True),  # known by the offset alone
        (last_batch(7, 2, 41, DATA), False),
        (last_batch(7, 2, 39, DATA), False),
        (last_batch(7, 2, 41, MARKER), False),  # where there was data its marker says nothing
        (last_batch(8, 3, 12, MARKER), True),
        (last_batch(8, 2, 12, MARKER), False),  # of an earlier epoch
        (last_batch(8, 3, 12, DATA), False),
        (last_batch(9, 3, 12, MARKER), False),  # nobody knows it
        (last_batch(-1, -1, 40, 0), False),
    ],
)
def test_the_last_of_its_producer(made: np.void, is_last: bool) -> None:
    assert LAST.has(made) is is_last
