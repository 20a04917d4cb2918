"""How far a cleaning may have gone, and what it may have done to offsets, producers and files.

The log before has segments 0, 10, 20 and the active one at 30; it ends at 35.
"""

import os
from pathlib import Path

import pytest

from compactor.verification import reader_bounds
from compactor.verification.reader_bounds import RemovalBounds, Side, bounds_of
from storage.file_names import Segment
from storage.formats import checkpoint
from storage.formats.producer_snapshot import EXPIRATION_MS, ProducerEntry
from storage.log import log_dir
from storage.log.log_dir import LogDirListing, PartitionListing, list_partition
from storage.log.producer_state import ProducerState

NOW_MS = 2 * EXPIRATION_MS
LISTING = PartitionListing(
    topic="t",
    partition=0,
    path="/logs/t-0",
    segments=tuple(Segment(base, 1, 0, 0, None, 0, 0) for base in (0, 10, 20, 30)),
    snapshot_offsets=(),
    unfinished=(),
    stray=(),
)
IDLE = ProducerState({}, None)
KNOWN = ProducerEntry(7, 0, 5, 12, 0, NOW_MS - 1, None, None)


def side(
    cleaned_to: int | None = None,
    log_start: int = 0,
    log_end: int = 35,
    producers: ProducerState = IDLE,
) -> Side:
    return Side(
        listing=LISTING,
        log_start_offset=log_start,
        log_end_offset=log_end,
        cleaned_to=cleaned_to,
        producers=producers,
        has_clean_shutdown=True,
    )


def producers(entry: ProducerEntry | None, unstable: int | None = None) -> ProducerState:
    return ProducerState({entry.producer_id: entry} if entry else {}, unstable)


def _bounds(end: int, rewritten_end: int, is_cut_short: bool) -> RemovalBounds:
    return RemovalBounds(
        log_start_offset=0,
        end=end,
        rewritten_end=rewritten_end,
        log_end_offset=35,
        complete_to=None if is_cut_short else end,
    )


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, 30, _bounds(30, 30, is_cut_short=False)),
        (None, 20, _bounds(20, 20, is_cut_short=False)),
        (10, 15, _bounds(15, 20, is_cut_short=False)),  # the map ended inside a segment
        (None, 33, _bounds(30, 30, is_cut_short=False)),  # never into the active one
        (None, None, _bounds(30, 30, is_cut_short=True)),  # nobody says how far it came
        (10, 10, _bounds(30, 30, is_cut_short=True)),
        (10, None, _bounds(30, 30, is_cut_short=True)),
    ],
)
def test_how_far_a_cleaning_may_have_gone(
    before: int | None, after: int | None, expected: RemovalBounds
) -> None:
    assert bounds_of(side(before), side(after)) == expected


def test_the_log_start_is_the_one_after_retention() -> None:
    assert bounds_of(side(), side(30, log_start=10)).log_start_offset == 10


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        (side(), side(30), None),
        (side(), side(log_end=34), "log end offset 34, before 35"),
        (side(), side(log_end=36), None),  # appended since
        (side(log_start=5), side(log_start=4), "log start offset 4, before 5"),
        (side(log_start=5), side(log_start=10), None),
        (side(20), side(20), None),
        (side(20), side(None), None),  # a broker drops entries, too
        (side(20), side(10), "is 10, before 20: it has moved back"),
        (side(40), side(10), None),  # past the end: it was repaired
        (side(3, log_start=5), side(5, log_start=5), None),
        (side(), side(31), "is 31, before None: the active segment begins at 30"),
    ],
)
def test_offsets(before: Side, after: Side, problem: str | None) -> None:
    found = [f.problem for f in reader_bounds.check_offsets(before, after, NOW_MS)]
    assert len(found) == (problem is not None)
    assert all(str(problem) in each for each in found)


def test_a_cleaning_stops_at_an_open_transaction() -> None:
    state = producers(KNOWN._replace(current_txn_first_offset=15), 15)
    before, after = side(producers=state), side(16, producers=state)
    [found] = reader_bounds.check_offsets(before, after, NOW_MS)
    assert found.problem.endswith("a transaction is open since offset 15")
    assert not [*reader_bounds.check_offsets(before, side(15, producers=state), NOW_MS)]


def test_open_transactions_stay_open() -> None:
    before = side(producers=ProducerState({}, 15))
    [found] = reader_bounds.check_offsets(before, side(), NOW_MS)
    assert found.problem == "the oldest open transaction begins at None, before at 15"


@pytest.mark.parametrize(
    ("before", "after", "is_sound"),
    [
        (KNOWN, KNOWN, True),
        (KNOWN, None, False),
        (KNOWN._replace(timestamp=NOW_MS - EXPIRATION_MS), None, True),
        (KNOWN._replace(timestamp=NOW_MS - EXPIRATION_MS + 1), None, False),
        (KNOWN._replace(timestamp=0, current_txn_first_offset=15), None, False),
        (KNOWN._replace(timestamp=0), KNOWN._replace(timestamp=0, last_sequence=4), False),
        (None, KNOWN, False),
    ],
)
def test_a_broker_knows_the_same_producers(
    before: ProducerEntry | None, after: ProducerEntry | None, is_sound: bool
) -> None:
    """But one that has expired may be forgotten, unless its transaction is open (C-23.4)."""
    then, now = (side(producers=producers(entry)) for entry in (before, after))
    assert len([*reader_bounds.check_offsets(then, now, NOW_MS)]) == (not is_sound)


def test_high_watermarks_and_recovery_points_do_not_go_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_dir, "log_end_offset", lambda _: 35)
    logs = LogDirListing("/logs", (LISTING,), (), True, True)
    before = {checkpoint.REPLICATION: {("t", 0): 30}, checkpoint.RECOVERY_POINT: {("t", 0): 20}}
    risen = {checkpoint.REPLICATION: {("t", 0): 35}, checkpoint.RECOVERY_POINT: {("t", 0): 21}}
    for other in (before, risen):
        assert [*reader_bounds.check_checkpoints(before, other, logs)] == []
    other = {checkpoint.REPLICATION: {("t", 0): 36}, checkpoint.RECOVERY_POINT: {("t", 0): 19}}
    gone = {checkpoint.REPLICATION: {("t", 0): 29}, checkpoint.RECOVERY_POINT: {("u", 0): 20}}
    for after, problems in (
        (other, ["t-0 has 36, before 30", "t-0 has 19, before 20"]),
        (gone, ["t-0 has 29, before 30", "t-0 has None, before 20"]),
    ):
        found = [*reader_bounds.check_checkpoints(before, after, logs)]
        assert [f.problem for f in found] == problems
        names = checkpoint.REPLICATION, checkpoint.RECOVERY_POINT
        assert [f.path for f in found] == [f"/logs/{name}" for name in names]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (b"abc", b"abc", True),
        (b"abc", b"abd", False),
        (b"abc", b"ab", False),
        (b"", b"", True),
        (None, None, True),
        (b"", None, False),
        (None, b"abc", False),
        (b"a" * (1 << 20) + b"b", b"a" * (1 << 20) + b"c", False),
    ],
)
def test_whether_two_files_are_the_same(
    tmp_path: Path, one: bytes | None, other: bytes | None, expected: bool
) -> None:
    for name, data in (("one", one), ("other", other)):
        if data is not None:
            (tmp_path / name).write_bytes(data)
    assert reader_bounds.is_same(str(tmp_path / "one"), str(tmp_path / "other")) is expected


def listed(root: Path, **files: bytes) -> PartitionListing:
    root.mkdir()
    for name, data in files.items():
        (root / name.replace("_", ".")).write_bytes(data)
    return list_partition(str(root), "t", 0)


def test_only_files_of_the_log_make_it_another(tmp_path: Path) -> None:
    log = "00000000000000000000_log"
    before = listed(tmp_path / "before", **{log: b"abc"})
    with_metadata = listed(tmp_path / "a", **{log: b"abc", "partition_metadata": b""})
    with_notes = listed(tmp_path / "b", **{log: b"abc", "notes_txt": b""})
    assert not reader_bounds.is_untouched(before, with_metadata)
    assert reader_bounds.is_untouched(before, with_notes)
    assert not reader_bounds.is_untouched(before, listed(tmp_path / "c", **{log: b"abd"}))
    assert not reader_bounds.is_linked(before, with_notes)


def test_a_copy_made_with_hard_links_is_known(tmp_path: Path) -> None:
    before = listed(tmp_path / "before", **{"00000000000000000000_log": b"abc"})
    after = listed(tmp_path / "after")
    name = "00000000000000000000.log"
    os.link(tmp_path / "before" / name, tmp_path / "after" / name)
    assert reader_bounds.is_linked(before, after)
