"""The reader's proof finds each kind of lie, and none in what is true.

One log, before and after a cleaning, both laid out by hand from the rules: the logs by reference
batches, what has to stay and what may go by the tables of compaction C-10, C-11 and C-22.
"""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from compactor.verification.evidence import CleaningClock
from compactor.verification.verify_against import Comparison, verify_against
from storage.file_names import LOG, SNAPSHOT, TXN_INDEX, file_name
from storage.formats import checkpoint, producer_snapshot
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.record import Record
from tests.support.file_states import state_of
from tests.support.legacy_writer import encode_message
from tests.support.local_round import NoProgress
from tests.support.made_log import (
    ABORT_KEY,
    COMMIT_KEY,
    NOW_MS,
    TXN,
    batch,
    index_entry,
    keyed,
    log_of,
    make_partition,
    marker,
    of_producer,
    record,
    write_segment,
)
from tests.support.reference_batch import HORIZON, ReferenceBatch, ReferenceRecord, encode

Batches = dict[str, bytes]
NAME = ("orders", 0)
CLEANED_TO, END = 20, 22
AT_NOW = CleaningClock(NOW_MS)
ABORTED_TXN = index_entry(8, 5, 7, 8)


def with_horizon(made: ReferenceBatch, horizon_ms: int) -> bytes:
    return encode(replace(made, attributes=HORIZON, base_timestamp=horizon_ms))


def left(made: ReferenceBatch, first: int, end: int | None = None) -> ReferenceBatch:
    """C-11.10: rebuilt of some of its records."""
    records = made.records[first:end]
    latest = max(record.timestamp for record in records)
    base = records[0].timestamp
    return replace(made, base_timestamp=base, max_timestamp=latest, records=records)


def emptied(made: ReferenceBatch) -> bytes:
    """C-11.9."""
    return encode(replace(made, base_timestamp=-1, records=()))


PLAIN = keyed(0, "abc")
IDEMPOTENT = of_producer(keyed(3, "xy"), 7, 0)
ABORTED = of_producer(keyed(5, "ab"), 8, TXN)
COMMITTED = of_producer(batch(record(8, b"k", headers := b"v")), 9, TXN)
ABORT, COMMIT = marker(7, 8, ABORT_KEY), marker(9, 9, COMMIT_KEY)
EXPIRED = with_horizon(batch(record(10, b"d", None)), NOW_MS)
TOMBSTONE = with_horizon(batch(record(11, b"e", None)), NOW_MS + 1)
NO_KEY = encode(batch(record(12, None)))
LATER = ReferenceRecord(13, 1234, b"a", b"new", ((b"h", b"1"), (b"i", None)))
SECOND = replace(keyed(13, "axy"), records=(LATER, *keyed(13, "axy").records[1:]))
OLD_MARKER = marker(16, 7, COMMIT_KEY, NOW_MS)  # its data went in an earlier round
YOUNG_MARKER = marker(17, 7, COMMIT_KEY, NOW_MS + 1)
ACTIVE = encode(keyed(20, "cf"))


def before() -> dict[int, list[bytes]]:
    first = [encode(PLAIN), encode(IDEMPOTENT), encode(ABORTED), ABORT, encode(COMMITTED), COMMIT]
    first += [EXPIRED, TOMBSTONE, NO_KEY]
    return {0: first, 13: [encode(SECOND), OLD_MARKER, YOUNG_MARKER], 20: [ACTIVE]}


def after() -> Batches:
    """The one cleaned segment, by name of what its batches come from."""
    return {
        "plain": encode(left(PLAIN, 1)),
        "idempotent": emptied(IDEMPOTENT),  # superseded, last of producer 7
        "aborted": emptied(ABORTED),  # last of producer 8
        "abort": ABORT,
        "committed": encode(COMMITTED),
        "commit": COMMIT,
        "tombstone": TOMBSTONE,
        "second": encode(SECOND),
        "young marker": YOUNG_MARKER,
    }


class Pair(NamedTuple):
    """The two log directories."""

    old: Path
    new: Path

    def hold(self, clock: CleaningClock = AT_NOW) -> Comparison:
        return verify_against(str(self.new), str(self.old), None, clock, NoProgress())

    def found(self) -> str:
        """The one finding, without the directory."""
        [finding] = self.hold().findings
        return str(finding).replace(f"{self.new}/", "after/").replace(f"{self.old}/", "before/")

    def problems(self) -> list[str]:
        return [finding.problem for finding in self.hold().findings]

    def write(self, batches: Batches) -> None:
        """Make the cleaned segment of these."""
        partition = self.new / "orders-0"
        write_segment(partition, 0, list(batches.values()))


def write_sides(root: Path, cleaned: Batches, cleaned_to: int | None = CLEANED_TO) -> Pair:
    pair = Pair(root / "before", root / "after")
    old = make_partition(pair.old, before())
    (old / file_name(0, TXN_INDEX)).write_bytes(ABORTED_TXN)
    (old / LEADER_EPOCH_CHECKPOINT).write_text("0\n1\n0 0\n")
    for name in (checkpoint.REPLICATION, checkpoint.RECOVERY_POINT):
        checkpoint.write(str(pair.old / name), {NAME: END})
    shutil.copytree(pair.old, pair.new)
    new = pair.new / "orders-0"
    for path in new.glob(f"{13:020d}.*"):
        path.unlink()
    pair.write(cleaned)
    if cleaned_to is not None:
        checkpoint.write(str(pair.new / checkpoint.CLEANER_OFFSET), {NAME: cleaned_to})
    return pair


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return write_sides(tmp_path, after())


def test_a_true_result_has_a_reason_for_all_that_is_gone(pair: Pair) -> None:
    was = state_of(pair.old.parent)
    found = pair.hold()
    assert found.findings == []
    [held] = found.partitions
    assert held.gone == {
        "superseded": 3,  # a, x, y
        "tombstone": 1,
        "aborted": 2,
        "null_key": 1,
        "below_log_start": 0,
        "marker": 1,
        "truncated": 0,
    }
    assert (held.records_before, held.records_after) == (18, 10)
    assert held.keys == 8  # a b c x y k d e
    assert (held.disputed_batches, held.is_cut_short) == (0, False)
    assert (found.untouched, found.linked, found.unmatched) == (0, 0, ())
    assert state_of(pair.old.parent) == was


def drop(name: str) -> Callable[[Batches], None]:
    def lie(batches: Batches) -> None:
        del batches[name]

    return lie


def put(name: str, made: bytes | ReferenceBatch) -> Callable[[Batches], None]:
    def lie(batches: Batches) -> None:
        batches[name] = made if isinstance(made, bytes) else encode(made)

    return lie


def altered(**fields: object) -> Callable[[Batches], None]:
    """The record of `a` at offset 13, otherwise than it was."""
    made = replace(LATER, **fields)  # type: ignore[arg-type]
    return put("second", replace(SECOND, records=(made, *SECOND.records[1:])))


def resequenced(**fields: int) -> Callable[[Batches], None]:
    return put("committed", replace(COMMITTED, **fields))  # type: ignore[arg-type]


LIES = {
    "a lone record is dropped": (
        put("plain", left(PLAIN, 2)),
        "before/orders-0/00000000000000000000.log, byte 0: offset 1: the latest record of its key "
        "is gone without a reason",
    ),
    "a batch is dropped": (drop("committed"), "offset 8: the latest record of its key is gone"),
    "a tombstone goes early": (drop("tombstone"), "offset 11: the latest record of its key, a to"),
    "a value": (altered(value=b"old"), "after/orders-0/00000000000000000000.log, byte "),
    "a value, in words": (altered(value=b"old"), "offset 13: value is not what it was"),
    "an empty value for none": (altered(value=None), "offset 13: value is not what it was"),
    "a key": (altered(key=b"A"), "offset 13: key is not what it was"),
    "a header": (altered(headers=((b"h", b"1"), (b"i", b""))), "offset 13: headers are not"),
    "a header is lost": (altered(headers=((b"h", b"1"),)), "offset 13: headers are not"),
    "a timestamp": (altered(timestamp=1235), "offset 13: timestamp is not what it was"),
    "a sequence number": (resequenced(base_sequence=1), "offset 8: sequence number is not"),
    "a producer": (resequenced(producer_id=10), "offset 8: producer id 10 (before 9) is not"),
    "a producer epoch": (resequenced(producer_epoch=1), "offset 8: producer epoch 1 (before 0)"),
    "a leader epoch": (resequenced(leader_epoch=1), "offset 8: leader epoch 1 (before 0)"),
    "an aborted record rises": (
        put("aborted", ABORTED),
        "offset 5: a record of an aborted transaction is still there",
    ),
    "a superseded record stays": (
        put("plain", PLAIN),
        "offset 0: a record superseded by a later record of its key is still there",
    ),
    "a marker goes before its data": (
        drop("commit"),
        "offset 9: a marker is gone, and data of its transaction is left at offset 8",
    ),
    "a marker goes early": (drop("young marker"), "offset 17: a marker is gone before its delete"),
    "a producer's last batch": (
        drop("idempotent"),
        "offset 3: the last batch of producer 7 is gone, and its sequence number with it",
    ),
    "an aborted producer's last batch": (drop("aborted"), "the last batch of producer 8 is gone"),
    "an empty batch of nobody": (
        put("tombstone", TOMBSTONE + emptied(replace(keyed(12, "z"), producer_id=3))),
        "offset 12: there was no such batch before",
    ),
    "a new record": (
        put("young marker", YOUNG_MARKER + encode(keyed(18, "z"))),
        "offset 18: a record that was not there before",
    ),
    "a longer batch": (
        put("plain", replace(PLAIN, last_offset=4, records=PLAIN.records[1:])),
        "offset 0: there was no such batch before",
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_about_batches_is_found(pair: Pair, name: str) -> None:
    lie, expected = LIES[name]
    batches = after()
    lie(batches)
    if name == "a longer batch":  # it would cover offset 3
        del batches["idempotent"]
    pair.write(batches)
    told = [str(finding) for finding in pair.hold().findings]
    told = [t.replace(f"{pair.new}/", "after/").replace(f"{pair.old}/", "before/") for t in told]
    assert any(expected in text for text in told), told


def test_an_aborted_record_without_its_entry_is_shown_to_readers(pair: Pair) -> None:
    batches = after()
    batches["aborted"] = encode(ABORTED)
    pair.write(batches)
    (pair.new / "orders-0" / file_name(0, TXN_INDEX)).unlink()
    told = pair.problems()
    assert told[:2] == [f"offset {o}: now shown to readers of committed records" for o in (5, 6)]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (index_entry(9, 8, 9, 10), "offset 8: now hidden from readers of committed records"),
        (index_entry(9, 8, 9, 10)[:-1], "entry has 33 of 34 bytes"),
    ],
)
def test_a_wrong_entry_hides_a_committed_record(pair: Pair, entry: bytes, problem: str) -> None:
    (pair.new / "orders-0" / file_name(0, TXN_INDEX)).write_bytes(ABORTED_TXN + entry)
    assert any(problem in told for told in pair.problems())


def test_an_index_that_lied_before_is_a_note_and_no_finding(tmp_path: Path) -> None:
    """E-53: consumers saw aborted records before, and do so now."""
    batches = after()
    batches["plain"] = encode(left(PLAIN, 2))  # a and b are superseded
    batches["aborted"] = encode(left(ABORTED, 1))
    pair = write_sides(tmp_path, batches)
    for root in pair:
        (root / "orders-0" / file_name(0, TXN_INDEX)).unlink()
    found = pair.hold()
    assert found.findings == []
    assert [p.disputed_batches for p in found.partitions] == [1]


def test_a_producer_that_aborted_commits_again(tmp_path: Path) -> None:
    """F-11.5: the marker ends what its entry began."""
    committed = encode(of_producer(keyed(2, "b"), 8))
    kept = [marker(1, 8, ABORT_KEY), committed, marker(3, 8, COMMIT_KEY)]
    first = [encode(of_producer(keyed(0, "a"), 8)), *kept, encode(keyed(4, "c."))]
    pair = Pair(tmp_path / "before", tmp_path / "after")
    old = make_partition(pair.old, {0: first, 6: [encode(keyed(6, "d"))]})
    (old / file_name(0, TXN_INDEX)).write_bytes(index_entry(8, 0, 1, 2))
    shutil.copytree(pair.old, pair.new)
    pair.write({"kept": b"".join(kept), "c": encode(replace(keyed(4, "c"), last_offset=5))})
    checkpoint.write(str(pair.new / checkpoint.CLEANER_OFFSET), {NAME: 6})
    found = pair.hold()
    assert found.findings == []
    [held] = found.partitions
    assert (held.gone["aborted"], held.gone["null_key"], held.keys) == (1, 1, 2)
    assert held.disputed_batches == 0


class TestWhatMaySupersede:
    def test_an_aborted_record_does_not(self, pair: Pair) -> None:
        """C-7.10: b at offset 1 has only an aborted successor, at 6."""
        pair.write(after() | {"plain": encode(left(PLAIN, 2))})
        assert "offset 1: the latest record of its key is gone" in pair.found()

    def test_a_record_behind_the_end_does_not(self, pair: Pair) -> None:
        """C-7.5: c at offset 2 has a successor in the active segment."""
        pair.write(after() | {"plain": encode(left(PLAIN, 1, 2))})
        assert "offset 2: the latest record of its key is gone" in pair.found()

    def test_a_partial_round_ends_inside_a_segment(self, tmp_path: Path) -> None:
        """C-7.8, C-11.2: x at 3 and y at 4 have successors at 14 and 15, behind the end."""
        pair = write_sides(tmp_path, after(), cleaned_to=14)
        told = [finding.problem for finding in pair.hold().findings]
        expected = "the latest record of its key is gone without a reason"
        assert told == [f"offset {offset}: {expected}" for offset in (3, 4)]

    def test_a_round_without_checkpoint_is_held_up_to_the_active_segment(
        self, tmp_path: Path
    ) -> None:
        """C-6.5: killed after the swap, before the checkpoint."""
        found = write_sides(tmp_path, after(), cleaned_to=None).hold()
        assert found.findings == []
        assert [p.is_cut_short for p in found.partitions] == [True]


@pytest.mark.parametrize(("as_of_ms", "count"), [(NOW_MS, 0), (NOW_MS - 1, 2)])
def test_a_horizon_is_reached_to_the_millisecond(pair: Pair, as_of_ms: int, count: int) -> None:
    """C-11.7 d: the tombstone at 10 and the marker at 16."""
    assert len(pair.hold(CleaningClock(as_of_ms)).findings) == count


class TestOffsetsAndFiles:
    def test_the_active_segment_is_nobodys_to_change(self, pair: Pair) -> None:
        path = pair.new / "orders-0" / file_name(20, LOG)
        path.write_bytes(encode(keyed(20, "cg")))
        assert "20.log, byte 0: has changed" in pair.found()

    def test_the_epochs_of_leaders(self, pair: Pair) -> None:
        (pair.new / "orders-0" / LEADER_EPOCH_CHECKPOINT).write_text("0\n1\n0 5\n")
        assert LEADER_EPOCH_CHECKPOINT in pair.found()

    def test_a_first_segment_that_is_lost(self, pair: Pair) -> None:
        """C-18.4: only retention raises the log start, and writes it down first."""
        for path in (pair.new / "orders-0").glob(f"{0:020d}.*"):
            path.unlink()
        write_segment(pair.new / "orders-0", 13, [encode(SECOND), OLD_MARKER, YOUNG_MARKER])
        told = " ".join(map(str, pair.hold().findings))
        assert "the log begins at offset 13, before at 0, and log-start-offset-checkpoint" in told

    def test_retention_is_a_reason_and_reported(self, pair: Pair) -> None:
        for path in (pair.new / "orders-0").glob(f"{0:020d}.*"):
            path.unlink()
        write_segment(pair.new / "orders-0", 13, [encode(SECOND), OLD_MARKER, YOUNG_MARKER])
        checkpoint.write(str(pair.new / checkpoint.LOG_START), {NAME: 13})
        for root in pair:
            producer_snapshot.write(str(root / "orders-0" / file_name(END, SNAPSHOT)), [])
        found = pair.hold()
        assert found.findings == []
        [held] = found.partitions
        assert (held.log_start_before, held.log_start_offset) == (0, 13)
        assert held.gone["below_log_start"] == 13

    def test_a_partition_that_is_gone(self, pair: Pair) -> None:
        shutil.rmtree(pair.new / "orders-0")
        assert pair.found() == "after/orders-0, byte 0: the partition is gone"

    def test_a_partition_without_a_copy_is_reported(self, pair: Pair) -> None:
        shutil.copytree(pair.new / "orders-0", pair.new / "extra-0")
        found = pair.hold()
        assert (found.findings, found.unmatched) == ([], ("extra-0",))

    def test_damage_ends_the_comparison_of_one_partition(self, pair: Pair) -> None:
        for root in pair:
            shutil.copytree(root / "orders-0", root / "other-0")
        path = pair.new / "orders-0" / file_name(0, LOG)
        path.write_bytes(path.read_bytes()[:-1])
        told = "79 of 80 bytes; from here on, nothing of this partition was compared"
        assert told in pair.found()
        assert [p.name for p in pair.hold().partitions] == ["other-0"]


def test_an_untouched_partition_is_not_read(tmp_path: Path) -> None:
    """Also a damaged one: it was set aside. Its copy may be made of hard links."""
    old = make_partition(tmp_path / "before", before())
    (old / file_name(0, LOG)).write_bytes(b"damaged")
    new = tmp_path / "after"
    shutil.copytree(tmp_path / "before", new, copy_function=os.link)
    found = Pair(tmp_path / "before", new).hold()
    assert (found.untouched, found.linked, found.findings) == (1, 1, [])


def test_findings_of_one_partition_have_an_end(tmp_path: Path) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    lost = make_partition(tmp_path / "before", {0: [encode(keyed(0, letters))], 26: []})
    shutil.copytree(tmp_path / "before", tmp_path / "after")
    write_segment(tmp_path / "after" / lost.name, 0, [])
    checkpoint.write(str(tmp_path / "after" / checkpoint.CLEANER_OFFSET), {NAME: 26})
    problems = [f.problem for f in Pair(tmp_path / "before", tmp_path / "after").hold().findings]
    assert [p.split(":")[0] for p in problems[:-1]] == [f"offset {o}" for o in range(20)]
    assert problems[-1] == "there is more; the rest of this partition was not looked at"


@pytest.mark.parametrize(("log_start_offset", "is_fine"), [(7, True), (None, False)])
def test_a_legacy_tombstone_may_go_with_the_segments_that_count_as_clean(
    tmp_path: Path, log_start_offset: int | None, is_fine: bool
) -> None:
    """C-6.1: those below the log start do, too, where the cleaner's checkpoint is below it."""
    pair = Pair(tmp_path / "before", tmp_path / "after")
    tombstone, other = Record(6, NOW_MS, b"d", None), Record(8, NOW_MS, b"e", b"v")
    old = make_partition(pair.old, {0: [keyed(0, "a")], 6: [keyed(6, "d")], 10: [keyed(10, "z")]})
    path = log_of(old, 6)
    stamp = path.stat().st_mtime_ns
    path.write_bytes(b"".join(encode_message(1, one) for one in (tombstone, other)))
    os.utime(path, ns=(stamp, stamp))
    for name, offset in ((checkpoint.CLEANER_OFFSET, 6), (checkpoint.LOG_START, log_start_offset)):
        if offset is not None:
            checkpoint.write(str(pair.old / name), {NAME: offset})
    shutil.copytree(pair.old, pair.new)
    checkpoint.write(str(pair.new / checkpoint.CLEANER_OFFSET), {NAME: 10})
    kept = ReferenceRecord(8, NOW_MS, b"e", b"v")
    cleaned = ReferenceBatch(8, 8, -1, 0, NOW_MS, NOW_MS, records=(kept,))
    write_segment(pair.new / "orders-0", 6, [cleaned])
    early = [problem for problem in pair.problems() if "tombstone before its" in problem]
    assert (early == []) == is_fine
    assert is_fine or early[0].startswith("offset 6: the latest record of its key")
