"""What retention leaves on disk, step by step (C-18.3, C-18.4, C-23.7)."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from compactor.cleaning.retention_round import NOT_RETAINED, apply_retention
from compactor.outcome.round_report import LogReport, LogStatus, RetentionReport, SegmentCounts
from compactor.planning.log_retention import LogRetention, deletion_of
from compactor.settings.config import load_config
from storage.file_names import INDEX, LOG, SNAPSHOT, TIME_INDEX, TXN_INDEX, file_name
from storage.files.local import LOCAL
from storage.formats import checkpoint, leader_epoch_checkpoint, producer_snapshot
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT, EpochEntry
from storage.log.log_dir import list_partition
from storage.log.retention import RetentionLimits
from tests.compactor.plan_logs import BATCH_BYTES, Shape, build, plan_log_dirs
from tests.support.files.watched import CHANGES, Operation, WatchedFiles
from tests.support.local_round import LocalRound

ONE = SegmentCounts(1, BATCH_BYTES)


def log(root: Path) -> Path:
    """Segments 0, 2, 4 of times 1000, 2000, 3000; leader epochs of its own."""
    log_dir = Path(build(root / "d", Shape(producer_id=7)))
    partition = log_dir / "t-0"
    epochs = [EpochEntry(0, 0), EpochEntry(3, 1), EpochEntry(5, 4)]
    leader_epoch_checkpoint.write(str(partition / LEADER_EPOCH_CHECKPOINT), epochs)
    return partition


def retention_of(partition: Path, **limits: int) -> LogRetention:
    rules = RetentionLimits(
        limits.get("log_start", 0),
        limits.get("high_watermark"),
        limits.get("now_ms", 0),
        limits.get("retention_ms"),
        limits.get("retention_bytes"),
    )
    found = deletion_of(list_partition(str(partition), "t", 0), rules)
    return LogRetention(str(partition.parent), "t", 0, str(partition), rules, 86_400_000, found)


def report_on(partition: Path, status: LogStatus = LogStatus.PASSED_OVER) -> LogReport:
    return LogReport(str(partition.parent), "t", 0, status)


def epochs_of(partition: Path) -> list[EpochEntry]:
    return leader_epoch_checkpoint.read(str(partition / LEADER_EPOCH_CHECKPOINT))


def segment_names(partition: Path) -> set[str]:
    return {p.name for p in partition.iterdir() if p.name[0] == "0"}


def files(*bases: int, snapshots: tuple[int, ...] = ()) -> set[str]:
    kinds = (LOG, INDEX, TIME_INDEX)
    found = {file_name(base, kind) for base in bases for kind in kinds}
    return found | {file_name(base, SNAPSHOT) for base in snapshots}


def test_time_deletes_the_first_segment_and_what_belongs_to_it(tmp_path: Path) -> None:
    """C-18.4: checkpoint raised, epoch 3 covers offset 2 and begins there, snapshots stay."""
    partition = log(tmp_path)
    (partition / file_name(0, TXN_INDEX)).write_bytes(b"")
    before = {name: (partition.parent / name).read_bytes() for name in
              (checkpoint.RECOVERY_POINT, checkpoint.CLEANER_OFFSET)}  # fmt: skip
    retention = retention_of(partition, now_ms=2500, retention_ms=1000)
    (report,) = apply_retention([retention], [report_on(partition)])
    assert report.retention == RetentionReport(time=ONE, log_start_offset=2)
    assert segment_names(partition) == files(2, 4, snapshots=(2, 4, 6))
    assert epochs_of(partition) == [EpochEntry(3, 2), EpochEntry(5, 4)]
    starts = checkpoint.read(str(partition.parent / checkpoint.LOG_START))
    assert starts == {("t", 0): 2}
    assert before == {name: (partition.parent / name).read_bytes() for name in before}


def test_when_all_goes_an_empty_segment_and_its_snapshot_stay(tmp_path: Path) -> None:
    """C-18.3: the snapshot at the log end is the one of the shutdown."""
    partition = log(tmp_path)
    snapshot = (partition / file_name(6, SNAPSHOT)).read_bytes()
    retention = retention_of(partition, now_ms=9000, retention_ms=1000)
    (report,) = apply_retention([retention], [report_on(partition)])
    assert report.retention == RetentionReport(
        time=SegmentCounts(3, 3 * BATCH_BYTES), log_start_offset=6
    )
    assert segment_names(partition) == files(6, snapshots=(6,))
    assert all((partition / file_name(6, kind)).stat().st_size == 0 for kind in (LOG, INDEX))
    assert (partition / file_name(6, SNAPSHOT)).read_bytes() == snapshot
    assert epochs_of(partition) == [EpochEntry(5, 6)]


def test_a_snapshot_at_the_log_end_is_made_where_there_is_none(tmp_path: Path) -> None:
    """From the one at 4 and the batch 4-5 behind it: producer 7, its sequence 5."""
    partition = log(tmp_path)
    (partition / file_name(6, SNAPSHOT)).unlink()
    retention = retention_of(partition, now_ms=9000, retention_ms=1000)
    apply_retention([retention], [report_on(partition)])
    (entry,) = producer_snapshot.read(str(partition / file_name(6, SNAPSHOT)))
    assert (entry.producer_id, entry.last_sequence, entry.last_offset) == (7, 5, 5)


def test_size_and_log_start_are_counted_apart(tmp_path: Path) -> None:
    partition = log(tmp_path)
    retention = retention_of(partition, log_start=3, retention_bytes=BATCH_BYTES)
    (report,) = apply_retention([retention], [report_on(partition)])
    assert report.retention == RetentionReport(log_start=ONE, size=ONE, log_start_offset=4)


def test_a_log_start_inside_a_segment_is_not_lowered(tmp_path: Path) -> None:
    """E-14: 0 goes, 2 stays, and the epoch that covers offset 3 begins there."""
    partition = log(tmp_path)
    path = str(partition.parent / checkpoint.LOG_START)
    checkpoint.write(path, {("t", 0): 3, ("gone", 1): 9})
    (report,) = apply_retention([retention_of(partition, log_start=3)], [report_on(partition)])
    assert report.retention == RetentionReport(log_start=ONE, log_start_offset=3)
    assert checkpoint.read(path) == {("t", 0): 3, ("gone", 1): 9}
    assert epochs_of(partition) == [EpochEntry(3, 3), EpochEntry(5, 4)]


@pytest.mark.parametrize("status", [LogStatus.FAILED, LogStatus.SET_ASIDE])
def test_a_log_that_failed_is_left_alone(tmp_path: Path, status: LogStatus) -> None:
    partition = log(tmp_path)
    before = segment_names(partition)
    retention = retention_of(partition, now_ms=9000, retention_ms=1000)
    report = report_on(partition, status)
    left = replace(report, notes=(NOT_RETAINED,))
    assert apply_retention([retention], [report]) == (left,)
    assert segment_names(partition) == before


def test_damaged_leader_epochs_stop_it_before_anything_is_done(tmp_path: Path) -> None:
    partition = log(tmp_path)
    (partition / LEADER_EPOCH_CHECKPOINT).write_text("0\n2\n1 5\n1 6\n")
    before = segment_names(partition)
    retention = retention_of(partition, now_ms=9000, retention_ms=1000)
    (report,) = apply_retention([retention], [report_on(partition, LogStatus.CLEANED)])
    assert report.status is LogStatus.FAILED
    assert (report.reason or "").startswith("cleaned, but retention stopped: ")
    assert segment_names(partition) == before
    assert checkpoint.read(str(partition.parent / checkpoint.LOG_START)) == {}


@pytest.mark.parametrize("content", [b"", None])
def test_without_leader_epochs_there_is_none_to_cut(tmp_path: Path, content: bytes | None) -> None:
    """Δ7: a log of legacy batches only has an empty file; older brokers wrote none."""
    partition = log(tmp_path)
    path = partition / LEADER_EPOCH_CHECKPOINT
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    retention = retention_of(partition, now_ms=2500, retention_ms=1000)
    apply_retention([retention], [report_on(partition)])
    assert segment_names(partition) == files(2, 4, snapshots=(2, 4, 6))
    assert (path.read_bytes() if path.exists() else None) == content


def test_without_indexes_the_batches_tell_the_time(tmp_path: Path) -> None:
    """F-16.1: a broker makes new indexes where .index is missing; without .timeindex only, none.

    The batches have their times all the same, whatever the time of the file is.
    """
    partition = log(tmp_path)
    (partition / file_name(0, INDEX)).unlink()
    (partition / file_name(0, TIME_INDEX)).unlink()
    os.utime(partition / file_name(0, LOG), ns=(0, 0))
    assert not retention_of(partition, now_ms=2000, retention_ms=1000).estimate.by_rule
    assert retention_of(partition, now_ms=2001, retention_ms=1000).estimate.by_rule
    (partition / file_name(0, INDEX)).write_bytes(b"")
    assert not retention_of(partition, now_ms=2000, retention_ms=1000).estimate.by_rule
    assert retention_of(partition, now_ms=2001, retention_ms=1000).estimate.by_rule


def test_zeros_behind_the_active_time_index_are_no_entries(tmp_path: Path) -> None:
    """F-10: beside a live broker the file has its full size."""
    partition = log(tmp_path)
    with (partition / file_name(4, TIME_INDEX)).open("ab") as out:
        out.write(bytes(120))
    estimate = retention_of(partition, now_ms=3500, retention_ms=1000).estimate
    assert (estimate.rolls_at, estimate.log_start_offset) == (None, 4)


def test_a_crash_anywhere_leaves_a_log_that_a_broker_takes(tmp_path: Path) -> None:
    """After each change: no hole, no data above the log start lost, and a second run ends it."""

    class PowerLossError(Exception):
        pass

    changes = 0
    for changes in range(100):
        partition = log(tmp_path / str(changes))
        retention = retention_of(partition, now_ms=9000, retention_ms=1000)
        left = iter(range(changes))

        def crash(operation: Operation) -> None:
            if operation.name in CHANGES and next(left, None) is None:  # noqa: B023
                raise PowerLossError

        try:
            files = WatchedFiles(LOCAL, crash)
            apply_retention([retention], [report_on(partition)], files=files)
            break
        except PowerLossError:
            pass
        _as_a_broker_loads(partition)
    else:
        pytest.fail("it never ended")
    # the new segment, checkpoint, epochs, 9 renames, the snapshots at 2 and 4, 9 removals
    assert changes == 3 + 1 + 1 + 9 + 2 + 9


def _as_a_broker_loads(partition: Path) -> None:
    """F-16.1: .deleted and lone indexes go; what is left must reach from the log start to 6."""
    for path in partition.iterdir():
        if path.suffix == ".deleted":
            path.unlink()
    logs = {p.name[:20] for p in partition.glob("*.log")}
    for path in [*partition.glob("*.index"), *partition.glob("*.timeindex")]:
        if path.name[:20] not in logs:
            path.unlink()
    starts = checkpoint.read(str(partition.parent / checkpoint.LOG_START))
    bases = sorted(int(name) for name in logs)
    log_start = max(starts.get(("t", 0), 0), bases[0])
    assert log_start in (0, 6)  # all or nothing, as readers see it
    expected = [base for base in (0, 2, 4, 6) if base >= bases[0]]
    assert bases == expected or bases == expected[:-1]
    retention = retention_of(partition, log_start=log_start, now_ms=9000, retention_ms=1000)
    apply_retention([retention], [report_on(partition)])
    assert segment_names(partition) - files(snapshots=(2, 4)) == files(6, snapshots=(6,))


def test_a_round_cleans_then_retains_and_a_dry_one_tells_the_same(
    local: LocalRound, tmp_path: Path
) -> None:
    """C-18.5, C-18.6: 0 and 2 merge and carry 2000, so that at 3500 all of it goes."""
    log_dir = build(tmp_path / "d", Shape())
    config = load_config(settings={"cleanup.policy": "compact,delete", "retention.ms": "1400"})
    dry = local.run(plan_log_dirs([log_dir], config, 3300), dry_run=True).logs[0]
    assert (dry.status, dry.retention) == (LogStatus.WOULD_CLEAN, RetentionReport())
    early = local.run(plan_log_dirs([log_dir], config, 3300)).logs[0]
    assert (early.status, early.retention) == (LogStatus.CLEANED, RetentionReport())
    late = local.run(plan_log_dirs([log_dir], config, 3500)).logs[0]
    assert late.status is LogStatus.PASSED_OVER  # all of it is clean
    assert (late.retention.time.segments, late.retention.log_start_offset) == (1, 4)
    assert checkpoint.read(f"{log_dir}/{checkpoint.CLEANER_OFFSET}") == {("t", 0): 4}
