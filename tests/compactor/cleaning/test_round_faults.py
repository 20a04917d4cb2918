"""Rounds that go wrong: damage, drift, faults of our own, full disks. The log stays as it was."""

import errno
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xxhash

from cleaner_jobs.messages import LogPlan, Rewritten, Verdict
from cleaner_jobs.tasks import segment_facts
from compactor.cleaning import swapper
from compactor.cleaning.stage_values import FinishedGroup
from compactor.cleaning.swapper import GroupSwapper
from compactor.outcome.round_report import LogStatus
from storage.file_names import CLEANED, INDEX, LOG, SWAP, TIME_INDEX, file_name
from storage.files.files import Disk, FileAttributes
from storage.files.local import LOCAL, LocalFiles
from storage.formats import checkpoint
from tests.compactor.small_rounds import (
    GROUPS,
    check_one_failed,
    drift_goes_unseen,
    flip,
    logs_in,
    only,
    plan_of_both,
    two_logs,
)
from tests.support.files.watched import Operation, WatchedDisk
from tests.support.local_round import LocalRound, Rows
from tests.support.made_log import (
    batch,
    batches_of,
    files_of,
    log_of,
    make_partition,
    plan_of,
    record,
    round_of,
)


def test_a_corrupt_batch_sets_its_log_aside_and_the_round_goes_on(
    local: LocalRound, tmp_path: Path
) -> None:
    good, bad, _ = two_logs(tmp_path)
    flip(log_of(bad, 4), 70)
    plan = plan_of_both(good, bad)
    where = f"{log_of(bad, 4)}, byte 0: checksum"
    check_one_failed(local, tmp_path, LogStatus.SET_ASIDE, where, plan)


def test_a_bit_that_falls_over_between_scan_and_rewrite_is_noticed(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drift_goes_unseen(monkeypatch)
    _, bad, plan = two_logs(tmp_path)
    local.before["rewrite"] = lambda: flip(log_of(bad, 8), 70)
    # the damage itself is what the log is left with
    report = local.run(plan)
    assert report.logs[1].status is LogStatus.SET_ASIDE
    assert f"{log_of(bad, 8)}, byte 0: checksum" in (report.logs[1].reason or "")


@pytest.mark.parametrize("at", [57, 60])  # of the records count: millions more, one more
def test_a_count_that_grows_between_scan_and_rewrite_reads_nothing_else(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Kernels do not look where the states of the records end."""
    drift_goes_unseen(monkeypatch)
    good, bad, plan = two_logs(tmp_path)
    local.before["rewrite"] = lambda: flip(log_of(bad, 8), at)
    report = local.run(plan)
    assert report.logs[1].status is LogStatus.SET_ASIDE
    assert str(log_of(bad, 8)) in (report.logs[1].reason or "")
    assert (report.logs[0].status, len(batches_of(good, 0))) == (LogStatus.CLEANED, 1)


# faults of our own, which the proof must see before anything is swapped in


def edit(rows: Rows, kind: str, change: Callable[[list[object]], None], log_id: int = 1) -> Rows:
    """Change the first row of that kind and log."""
    edited, done = [], False
    for row_kind, value in rows:
        values = json.loads(value)
        if row_kind == kind and values[0] == log_id and not done:
            change(values)
            done = True
        edited.append((row_kind, json.dumps(values)))
    assert done
    return edited


def test_a_verdict_on_the_wrong_record_is_caught(local: LocalRound, tmp_path: Path) -> None:
    """One ordinal turned over, its checksum made to fit: another record goes, another stays."""
    _, _, plan = two_logs(tmp_path)

    def turn_over(rows: Rows) -> Rows:
        verdict = next(Verdict(*json.loads(v)) for k, v in rows if json.loads(v)[0] == 1)
        path = Path(verdict.file)
        data = bytearray(path.read_bytes())
        index_at = verdict.block_at
        start = int.from_bytes(data[index_at : index_at + 8], "little")
        end = int.from_bytes(data[index_at + 32 : index_at + 40], "little")
        at = index_at + 32 * (verdict.parts + 1) + 4 * start
        ordinals = np.frombuffer(bytes(data[at : at + 4 * (end - start)]), np.uint32).copy()
        ordinals[0] = next(o for o in range(8) if o not in ordinals and o not in (1, 5))
        data[at : at + 4 * (end - start)] = ordinals.tobytes()
        checksum = xxhash.xxh3_64_intdigest(ordinals.tobytes())
        data[index_at + 8 : index_at + 16] = checksum.to_bytes(8, "little")
        path.write_bytes(data)
        return rows

    local.after["resolve"] = turn_over
    check_one_failed(local, tmp_path, LogStatus.FAILED, "", plan)


def drop_group(rows: Rows) -> Rows:
    return [r for r in rows if json.loads(r[1])[:2] != [1, 1]]


def drop_verdict(rows: Rows) -> Rows:
    return [r for r in rows if json.loads(r[1])[0] != 1]


def change_value(kind: str, name: str, by: int) -> Callable[[Rows], Rows]:
    fields = Verdict._fields if kind == "verdict" else Rewritten._fields
    place = fields.index(name)

    def change(values: list[object]) -> None:
        value = values[place]
        assert isinstance(value, int)
        values[place] = value + by

    return lambda rows: edit(rows, kind, change)


@pytest.mark.parametrize(
    ("stage", "fault", "reason"),
    [
        ("resolve", drop_verdict, "1 hash partitions was resolved exactly once"),
        ("rewrite", change_value("rewritten", "records_kept", -1), "records that were to stay"),
        ("rewrite", change_value("rewritten", "kept_fingerprints", 1), "other records than"),
        ("rewrite", change_value("rewritten", "dropped", 1), "records that were to stay"),
        ("rewrite", change_value("rewritten", "dropped_fingerprints", 1), "other records than"),
    ],
)
def test_sums_that_do_not_fit_leave_the_log_as_it_was(
    local: LocalRound,
    tmp_path: Path,
    stage: str,
    fault: Callable[[Rows], Rows],
    reason: str,
) -> None:
    _, _, plan = two_logs(tmp_path)
    local.after[stage] = fault
    check_one_failed(local, tmp_path, LogStatus.FAILED, reason, plan)


@pytest.mark.parametrize(
    ("stage", "fault", "reason"),
    [
        ("rewrite", drop_group, "segment group 1 was not rewritten"),
        (
            "resolve",
            change_value("verdict", "superseded", 1),
            "to go: 3; that went: 2",
        ),
        ("resolve", change_value("verdict", "dropped_fingerprints", 1), "or others"),
    ],
)
def test_a_log_of_which_something_was_left_out_keeps_its_checkpoint(
    local: LocalRound,
    tmp_path: Path,
    stage: str,
    fault: Callable[[Rows], Rows],
    reason: str,
) -> None:
    """Groups that are proven are swapped in by then, as in Kafka when its cleaner stops (C-6.5)."""
    good, _, plan = two_logs(tmp_path)
    local.after[stage] = fault
    report = local.run(plan)
    assert [log.status for log in report.logs] == [LogStatus.CLEANED, LogStatus.FAILED]
    assert reason in (report.logs[1].reason or "")
    entries = checkpoint.read(str(good.parent / checkpoint.CLEANER_OFFSET))
    assert entries == {("orders", 0): 12}


def test_a_part_that_is_lost_is_noticed(local: LocalRound, tmp_path: Path) -> None:
    _, _, plan = two_logs(tmp_path)
    local.after["scan"] = lambda rows: [r for r in rows if json.loads(r[1])[:2] != [1, 1]]
    check_one_failed(local, tmp_path, LogStatus.SET_ASIDE, "segment 8 was", plan)


def test_a_record_that_is_lost_on_the_way_to_disk_is_noticed(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is read back is believed, not what was meant to be written."""
    _, bad, plan = two_logs(tmp_path)
    finish = segment_facts.finish_like

    def lose_the_last_batch(descriptor: int, model: FileAttributes, disk: Disk) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if str(bad) in path and file_name(0, LOG) in path:
            os.ftruncate(descriptor, 0)
        finish(descriptor, model, disk)

    monkeypatch.setattr("cleaner_jobs.tasks.rewrite_task.finish_like", lose_the_last_batch)
    check_one_failed(local, tmp_path, LogStatus.FAILED, "not those that were written", plan)


@pytest.mark.parametrize("size", [0, 50, 100])
def test_a_staged_segment_of_another_length_than_reported_is_not_swapped_in(
    local: LocalRound, tmp_path: Path, size: int
) -> None:
    """An empty one would pass for a group of which nothing was left."""
    _, bad, plan = two_logs(tmp_path)

    def resize(rows: Rows) -> Rows:
        (staged,) = bad.glob(f"{file_name(0, LOG)}.compactor-*")
        assert staged.stat().st_size == 83
        os.truncate(staged, size)
        return rows

    local.after["rewrite"] = resize
    reason = f"byte {min(size, 83)}: {size} bytes are there, 83 were written"
    check_one_failed(local, tmp_path, LogStatus.FAILED, reason, plan)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (LOG, lambda staged: flip(staged, -1)),
        (INDEX, lambda staged: staged.write_bytes(bytes(8))),
        (TIME_INDEX, lambda staged: staged.write_bytes(b"")),
        (TIME_INDEX, lambda staged: staged.write_bytes(bytes(12))),
    ],
)
def test_a_staged_file_of_other_bytes_than_reported_is_not_swapped_in(
    local: LocalRound, tmp_path: Path, kind: str, change: Callable[[Path], object]
) -> None:
    """By a wrong index readers would skip records, silently."""
    _, bad, plan = two_logs(tmp_path)

    def spoil(rows: Rows) -> Rows:
        (staged,) = bad.glob(f"{file_name(0, kind)}.compactor-*")
        change(staged)
        return rows

    local.after["rewrite"] = spoil
    check_one_failed(local, tmp_path, LogStatus.FAILED, "not the bytes that were written", plan)


def test_a_log_of_which_a_group_was_never_finished_is_not_cleaned(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All its sums fit; its checkpoint would be taken for that of a log without dirty records."""
    good, _, plan = two_logs(tmp_path)
    give = GroupSwapper.give

    def lose_the_second(swapper: GroupSwapper, plan: LogPlan, group: FinishedGroup) -> None:
        if (plan.log_id, group.group) != (1, 1):
            give(swapper, plan, group)

    monkeypatch.setattr(GroupSwapper, "give", lose_the_second)
    report = local.run(plan)
    assert [log.status for log in report.logs] == [LogStatus.CLEANED, LogStatus.FAILED]
    assert "1 of 2 segment groups were swapped in" in (report.logs[1].reason or "")
    entries = checkpoint.read(str(good.parent / checkpoint.CLEANER_OFFSET))
    assert entries == {("orders", 0): 12}


# disks


def test_a_full_disk_while_a_piece_is_written_leaves_nothing(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, bad, plan = two_logs(tmp_path)
    write = segment_facts.write_like

    def full(path: str, data: bytes, model: FileAttributes, disk: Disk) -> None:
        if str(bad) in path:
            with open(path, "xb") as out:
                out.write(b"half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        write(path, data, model, disk)

    monkeypatch.setattr("cleaner_jobs.tasks.rewrite_task.write_like", full)
    check_one_failed(local, tmp_path, LogStatus.FAILED, "No space left on device", plan)


def test_what_cannot_be_brought_to_disk_is_not_swapped_in(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, bad, plan = two_logs(tmp_path)

    def sync(path: str) -> None:
        if str(bad) in path:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    monkeypatch.setattr(LocalFiles, "sync_file", staticmethod(sync))
    check_one_failed(local, tmp_path, LogStatus.FAILED, "Input/output error", plan)


def test_a_file_size_limit_is_met_in_a_process_of_its_own(tmp_path: Path) -> None:
    """The kernel refuses the write itself: RLIMIT_FSIZE, as a quota or a full disk would."""
    records = [record(i, b"%d" % (i % 2000), b"v" * 100) for i in range(2100)]
    partition = make_partition(tmp_path / "logs", {0: [batch(*records)], 3000: []})
    before = files_of(partition)
    code = textwrap.dedent(
        """
        import resource, signal, sys
        from pathlib import Path
        import pytest
        from tests.support.local_round import open_local_round
        from tests.support.made_log import plan_of, round_of

        with pytest.MonkeyPatch.context() as patches:
            local = open_local_round(Path(sys.argv[1]), patches)
            plan = round_of(plan_of(Path(sys.argv[2]), [[0]], 3000))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            limit = 100_000
            local.before["rewrite"] = lambda: resource.setrlimit(
                resource.RLIMIT_FSIZE, (limit, limit)
            )
            log = local.run(plan).logs[0]
            print(log.status, log.reason)
        """
    )
    arguments = [sys.executable, "-c", code, str(tmp_path / "work"), str(partition)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert "failed" in done.stdout and "File too large" in done.stdout, done.stderr
    assert files_of(partition) == before


def test_staged_files_of_a_run_that_died_are_swept(local: LocalRound, tmp_path: Path) -> None:
    partition = logs_in(tmp_path)
    left = partition / (file_name(0, LOG) + ".compactor-dead-rewrite-0-1")
    left.write_bytes(b"half")
    plan = round_of(plan_of(partition, GROUPS, 12))
    local.run(plan, dry_run=True)
    assert left.exists()  # a dry run holds no lock: they may be another's
    local.run(plan)
    assert not left.exists()


def test_a_swap_that_fails_stops_its_log_and_earlier_groups_stay(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-6.5: and the checkpoint is not moved."""
    monkeypatch.setattr(swapper, "GROUPS_AT_ONCE", 1)
    partition = logs_in(tmp_path)

    def refuse(operation: Operation) -> None:
        name = file_name(8, TIME_INDEX) + CLEANED
        if operation.name == "rename" and os.path.basename(operation.paths[1]) == name:
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), *operation.paths)

    local.disk = WatchedDisk(LOCAL, refuse)
    before = files_of(partition)
    report = local.run(round_of(plan_of(partition, GROUPS, 12)))
    assert only(report)[0] is LogStatus.FAILED
    assert len(batches_of(partition, 0)) == 1
    after = files_of(partition)
    for kind in (LOG, INDEX, TIME_INDEX):
        assert after[file_name(8, kind)] == before[file_name(8, kind)]
    assert not any("compactor" in name or SWAP in name for name in after)
    assert not (partition.parent / checkpoint.CLEANER_OFFSET).exists()
