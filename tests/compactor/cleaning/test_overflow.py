"""C-16: a segment whose offsets lie too far apart is split, then cleaned in the same run.

Golden: a log that Kafka 4.3.1 wrote, segments 0 and 13 put into one `.log` by hand (the way of
C-26, run M), and what is left of it after the two passes that Kafka's cleaner takes, at clock
10000 with `delete.retention.ms` 1000.
"""

import os
from pathlib import Path

import pytest

from compactor.cleaning.overflow import Splitting, split_overflowing
from compactor.outcome.round_report import CleaningReport, Counts, LogReport, LogStatus
from compactor.planning.round_plan import RoundPlan
from storage.file_names import INDEX, LOG, SNAPSHOT, TIME_INDEX, TXN_INDEX, file_name
from storage.files.files import Disk
from storage.files.local import LOCAL
from storage.formats import checkpoint, txn_index
from storage.formats.txn_index import AbortedTxn
from tests.compactor.plan_logs import plan_log_dirs, with_settings
from tests.compactor.small_rounds import flip
from tests.support.file_states import state_of
from tests.support.files.watched import Operation, WatchedDisk
from tests.support.local_round import LocalRound
from tests.support.made_log import files_of, keyed, make_partition

NEAR = bytes.fromhex(
    "00000000000000000000005400000000029ae6ffee00000000000300000000000000640000000000000067ffffff"
    "ffffffffffffffffffffff000000041000000002610231001000020202620231000e000404026301001000060602"
    "64023100000000000000000a0000004c0000000002788f281f00000000000200000000000000c800000000000000"
    "caffffffffffffffffffffffffffff00000003100000000261023200100002020262023200100004040265023100"
)
FAR = bytes.fromhex(
    "000000008000000200000043000000000216d7fd1c000000000001000000000000012c000000000000012dffffff"
    "ffffffffffffffffffffff00000002100000000262023300100002020266023100"
)
ACTIVE = bytes.fromhex(
    "00000000800000040000003a0000000002cd62222800000000000000000000000001900000000000000190ffffff"
    "ffffffffffffffffffffff0000000110000000027a023100"
)
NEAR_CLEANED = bytes.fromhex(
    "00000000000000000000004600000000021c34b0740040000000030000000000002af80000000000000067ffffff"
    "ffffffffffffffffffffff000000021200a3aa0104026301001400a1aa01060264023100000000000000000a0000"
    "00430000000002aca1aa8900000000000200000000000000c800000000000000caffffffffffffffffffffffffff"
    "ff00000002100000000261023200100004040265023100"
)
NEAR_TIMES, FAR_TIMES = (
    bytes.fromhex("00000000000000ca0000000c"),
    bytes.fromhex("000000000000012d00000001"),
)
ACTIVE_BASE = 2147483652
FAR_BASE = 2147483650
MTIME_NS = 4_000_000_000
NOW_MS = 10_000
SETTINGS = with_settings({"delete.retention.ms": "1000", "min.cleanable.dirty.ratio": "0"})


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    made = make_partition(tmp_path / "logs", {0: [NEAR], ACTIVE_BASE: [ACTIVE]})
    (made / file_name(0, LOG)).write_bytes(NEAR + FAR)
    os.utime(made / file_name(0, LOG), ns=(MTIME_NS, MTIME_NS))
    for path in made.glob("*.snapshot"):
        path.unlink()
    return made


def planned(partition: Path) -> RoundPlan:
    return plan_log_dirs([str(partition.parent)], SETTINGS, NOW_MS)


def split(partition: Path, dry_run: bool = False, disk: Disk = LOCAL) -> RoundPlan:
    splitting = Splitting(dry_run, disk=disk)
    return split_overflowing(planned(partition), lambda: planned(partition), splitting)


def run(local: LocalRound, partition: Path, dry_run: bool = False) -> LogReport:
    report: CleaningReport = local.run(split(partition, dry_run, local.disk), dry_run)
    (log,) = report.logs
    return log


def test_a_segment_is_split_batch_by_batch(partition: Path) -> None:
    """C-16.3: verbatim, each new segment with its own indexes and the time of the source."""
    plan = split(partition)
    assert [s.base_offset for g in plan.logs[0].groups for s in g.segments] == [0, FAR_BASE]
    assert {n: d for n, d in files_of(partition).items() if int(n[:20]) < ACTIVE_BASE} == {
        file_name(0, LOG): NEAR,
        file_name(0, INDEX): b"",
        file_name(0, TIME_INDEX): NEAR_TIMES,
        file_name(FAR_BASE, LOG): FAR,
        file_name(FAR_BASE, INDEX): b"",
        file_name(FAR_BASE, TIME_INDEX): FAR_TIMES,
    }
    for base_offset in (0, FAR_BASE):
        for kind in (LOG, INDEX, TIME_INDEX):
            stat = (partition / file_name(base_offset, kind)).stat()
            assert stat.st_mtime_ns == MTIME_NS


def test_the_log_is_cleaned_in_the_same_run_as_by_kafkas_two_passes(
    local: LocalRound, partition: Path
) -> None:
    report = run(local, partition)
    assert report.status is LogStatus.CLEANED
    assert report.notes == (
        "00000000000000000000.log was split first, "
        "because it holds offsets more than 2,147,483,647 above its base offset",
    )
    assert {n: d for n, d in files_of(partition).items() if int(n[:20]) < ACTIVE_BASE} == {
        file_name(0, LOG): NEAR_CLEANED,
        file_name(0, INDEX): b"",
        file_name(0, TIME_INDEX): NEAR_TIMES,
        file_name(FAR_BASE, LOG): FAR,
        file_name(FAR_BASE, INDEX): b"",
        file_name(FAR_BASE, TIME_INDEX): FAR_TIMES,
    }
    assert report.counts == Counts(
        records_read=9,
        records_kept=6,
        dropped_superseded=3,
        batches_read=3,
        batches_kept=3,
        batches_rebuilt=2,
    )
    entries = checkpoint.read(str(partition.parent / checkpoint.CLEANER_OFFSET))
    assert entries == {("orders", 0): ACTIVE_BASE}


def test_a_dry_run_says_that_it_would_be_split(local: LocalRound, partition: Path) -> None:
    before = state_of(partition.parent)
    report = run(local, partition, dry_run=True)
    assert report.status is LogStatus.WOULD_CLEAN
    assert "would be split first" in report.notes[0] and "does not count" in report.notes[1]
    assert state_of(partition.parent) == before


def test_a_damaged_segment_is_left_as_it_was(local: LocalRound, partition: Path) -> None:
    """What is not sound is not split either."""
    flip(partition / file_name(0, LOG), 180)
    before = files_of(partition)
    report = run(local, partition)
    assert report.status is LogStatus.SET_ASIDE
    assert "00000000000000000000.log, byte 96: " in (report.reason or "")
    assert files_of(partition) == before


def test_a_full_disk_leaves_the_log_as_it_was(local: LocalRound, partition: Path) -> None:
    before = files_of(partition)

    def full(operation: Operation) -> None:
        if operation.name == "rename":
            raise OSError(28, os.strerror(28), *operation.paths)

    local.disk = WatchedDisk(LOCAL, full)
    report = run(local, partition)
    assert report.status is LogStatus.FAILED
    assert "No space left" in (report.reason or "")
    assert files_of(partition) == before


def test_a_split_ends_where_the_first_batch_starts(tmp_path: Path) -> None:
    """C-16.3: named after its first batch, here not the base of the source, whose snapshot goes.

    Offsets 5 and 5 + 2^31 - 1 fit one segment, the next offset does not.
    """
    last = 5 + 2**31 - 1
    batches = [keyed(5, "ab"), keyed(last, "c"), keyed(last + 1, "d")]
    made = make_partition(tmp_path / "logs", {0: [NEAR], last + 10: [keyed(last + 10, "a")]})
    odd = make_partition(tmp_path / "odd", {5: batches[:2], last + 1: batches[2:]})
    log = made / file_name(0, LOG)
    log.write_bytes(b"".join((odd / file_name(n, LOG)).read_bytes() for n in (5, last + 1)))
    for path in made.glob("*.snapshot"):
        if path.name != file_name(0, SNAPSHOT):
            path.unlink()
    made_bases = [s.base_offset for g in split(made).logs[0].groups for s in g.segments]
    assert made_bases == [5, last + 1]
    expected = {n: d for n, d in files_of(odd).items() if not n.endswith(SNAPSHOT)}
    assert {n: d for n, d in files_of(made).items() if int(n[:20]) < last + 10} == expected


def test_an_ordinary_log_is_not_read(partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where the next base offset is far enough can there be such an offset."""
    for path in partition.iterdir():
        path.unlink()
    for base_offset, data in ((0, NEAR), (2**31, FAR), (ACTIVE_BASE, ACTIVE)):
        (partition / file_name(base_offset, LOG)).write_bytes(data)
        (partition / file_name(base_offset, INDEX)).write_bytes(b"")
    plan = planned(partition)

    def read(*_: object, **__: object) -> None:
        raise AssertionError("it was read")

    monkeypatch.setattr("compactor.cleaning.overflow.read_batch_headers", read)
    assert split_overflowing(plan, lambda: plan, Splitting()) == plan


def test_aborted_transactions_go_where_their_markers_are(partition: Path) -> None:
    """Kafka's split leaves .txnindex behind; an entry belongs to the segment of its marker."""
    near, far = AbortedTxn(7, 1, 12, 13), AbortedTxn(8, 2, FAR_BASE + 1, FAR_BASE + 2)
    plan = planned(partition)
    data = b"".join(map(txn_index.encode, (near, far)))
    (partition / file_name(0, TXN_INDEX)).write_bytes(data)
    split_overflowing(plan, lambda: plan, Splitting())
    for base_offset, txn in ((0, near), (FAR_BASE, far)):
        assert txn_index.read(str(partition / file_name(base_offset, TXN_INDEX))) == [txn]
