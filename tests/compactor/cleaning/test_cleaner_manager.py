"""Whole rounds without Spark: to the byte, dry and wet, unchanged segments, checkpoints."""

import errno
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compactor.cleaning import cleaner_manager, removals, swapper
from compactor.cleaning.cleaner_checkpoints import write_checkpoints
from compactor.finalizer import swap_group
from compactor.outcome.round_report import LogReport, LogStatus
from compactor.planning import layout
from compactor.planning.round_plan import RoundPlan
from storage.file_names import INDEX, LOG, SNAPSHOT, TIME_INDEX, TXN_INDEX, file_name
from storage.files.disk_hints import (
    Close,
    background_closes_deferred,
    close_in_background,
    wait_until_freed,
)
from storage.formats import batch_windows, checkpoint
from tests.compactor.small_rounds import COUNTS, GROUPS, logs_in, only
from tests.support import worked_example
from tests.support.file_states import open_below
from tests.support.local_round import LocalRound
from tests.support.made_log import (
    MTIME_NS,
    NOW_MS,
    batch,
    batches_of,
    files_of,
    keyed,
    log_of,
    make_partition,
    plan_of,
    record,
    round_of,
)
from tests.support.reference_batch import HORIZON, ReferenceBatch, decode, encode
from tests.support.worked_example import AFTER_ROUND_1, AFTER_ROUND_2, SOURCE


def test_the_worked_example_in_two_rounds(local: LocalRound, tmp_path: Path) -> None:
    """C-25: bytes, both indexes, times, checkpoint."""
    partition = make_partition(tmp_path / "logs", {0: [SOURCE], 4: [keyed(4, "x")]})
    for now_ms, expected in ((10_000, AFTER_ROUND_1), (11_000, AFTER_ROUND_2)):
        report = local.run(round_of(plan_of(partition, [[0]], 4), now_ms=now_ms))
        assert only(report) == (LogStatus.CLEANED, None)
        assert batches_of(partition, 0) == [expected]
        assert (partition / file_name(0, INDEX)).read_bytes() == b""
        assert (partition / file_name(0, TIME_INDEX)).read_bytes() == worked_example.TIME_INDEX
        assert log_of(partition, 0).stat().st_mtime_ns == MTIME_NS
        entries = checkpoint.read(str(partition.parent / checkpoint.CLEANER_OFFSET))
        assert entries == {("orders", 0): 4}
    assert report.logs[0].counts.dropped_tombstone == 1
    assert os.listdir(local.work_dir) == []


def test_a_dry_run_tells_what_a_run_then_does_and_writes_nothing(
    local: LocalRound, tmp_path: Path
) -> None:
    partition = logs_in(tmp_path)
    before = files_of(partition)
    plan = round_of(plan_of(partition, GROUPS, 12))
    dry = local.run(plan, dry_run=True)
    assert files_of(partition) == before
    assert not (partition.parent / checkpoint.CLEANER_OFFSET).exists()
    wet = local.run(plan)
    assert only(dry) == (LogStatus.WOULD_CLEAN, None)
    assert replace(dry.logs[0], status=LogStatus.CLEANED) == wet.logs[0]
    assert wet.logs[0].counts == COUNTS
    assert (wet.logs[0].segments_before, wet.logs[0].segments_after) == (3, 2)
    assert wet.logs[0].bytes_before == sum(len(before[file_name(base, LOG)]) for base in (0, 4, 8))
    assert wet.logs[0].bytes_after == sum(log_of(partition, b).stat().st_size for b in (0, 8))


def test_the_room_of_what_was_replaced_comes_back_when_all_is_written(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names go first; then the checkpoint is on disk; and only then the disk is kept busy."""
    monkeypatch.setattr(removals, "LARGE_BYTES", 1)
    partition, open_then, are_deferred = logs_in(tmp_path), set[str](), threading.Event()

    @contextmanager
    def defer() -> Iterator[None]:
        with background_closes_deferred():
            are_deferred.set()
            yield

    def close_when_deferred(closes: Sequence[Close]) -> None:
        """A group that is swapped in while others are rewritten may give its room back at once."""
        assert are_deferred.wait(60)
        close_in_background(closes)

    def look(*arguments: Any) -> Any:
        open_then.update(deleted_and_open(tmp_path))
        return write_checkpoints(*arguments)

    monkeypatch.setattr(cleaner_manager, "background_closes_deferred", defer)
    monkeypatch.setattr(removals, "close_in_background", close_when_deferred)
    monkeypatch.setattr(cleaner_manager, "write_checkpoints", look)
    local.run(round_of(plan_of(partition, GROUPS, 12)))
    originals = [str(log_of(partition, base)) for base in (0, 4, 8)]
    assert {f"{path} (deleted)" for path in originals} <= open_then
    wait_until_freed()
    assert deleted_and_open(tmp_path) == set()


def test_or_when_a_checkpoint_needs_it(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removals, "LARGE_BYTES", 1)
    partition, write = logs_in(tmp_path), checkpoint.write

    def full_till_then(*arguments: Any) -> None:
        if deleted_and_open(tmp_path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), arguments[0])
        write(*arguments)

    monkeypatch.setattr(checkpoint, "write", full_till_then)
    report = local.run(round_of(plan_of(partition, GROUPS, 12)))
    assert only(report) == (LogStatus.CLEANED, None)


def deleted_and_open(directory: Path) -> set[str]:
    """Files from there that this process has open, as Linux names them. Elsewhere a test before
    may have left some that the next collection of garbage closes."""
    return {path for path in open_below(directory) if path.endswith(" (deleted)")}


def test_merged_segments_leave_nothing_but_the_new_one(local: LocalRound, tmp_path: Path) -> None:
    """C-15.2: the snapshot of the merged base goes, the others stay."""
    partition = logs_in(tmp_path)
    (partition / file_name(4, TXN_INDEX)).write_bytes(b"")
    local.run(round_of(plan_of(partition, GROUPS, 12)))
    kinds = (LOG, INDEX, TIME_INDEX, SNAPSHOT)
    assert set(files_of(partition)) == {file_name(b, kind) for b in (0, 8, 12) for kind in kinds}
    assert [[r.offset for r in decode(raw).records] for raw in batches_of(partition, 0)] == [
        [4, 6],
    ]
    assert log_of(partition, 0).stat().st_mtime_ns == MTIME_NS + 4 * 7_000_000


# unchanged segments


def unchanged_log(root: Path) -> Path:
    return make_partition(root / "logs", {0: [keyed(0, "ab"), keyed(2, "c")], 3: []})


def test_a_segment_that_loses_nothing_is_left_where_it_is(
    local: LocalRound, tmp_path: Path
) -> None:
    partition = unchanged_log(tmp_path)
    inode = log_of(partition, 0).stat().st_ino
    report = local.run(round_of(plan_of(partition, [[0]], 3)))
    assert only(report) == (LogStatus.CLEANED, None)
    assert log_of(partition, 0).stat().st_ino == inode
    counts = report.logs[0].counts
    assert (counts.records_kept, counts.batches_kept, counts.batches_rebuilt) == (3, 2, 0)


@pytest.mark.parametrize("base_offset", [0, 1])
def test_what_a_failed_cleaner_left_goes_before_the_swap(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base_offset: int
) -> None:
    """E-70, E-71, C-17.3. A dry run leaves it."""
    partition = make_partition(tmp_path / "logs", {0: [keyed(0, "aab")], 3: [keyed(3, "z")]})
    left = partition / file_name(base_offset, LOG + ".cleaned")
    left.write_bytes(b"half a segment")
    plan = round_of(plan_of(partition, [[0]], 3))
    assert only(local.run(plan, dry_run=True)) == (LogStatus.WOULD_CLEAN, None)
    assert left.read_bytes() == b"half a segment"

    def swap(*arguments: Any) -> None:
        assert not left.exists()
        swap_group(*arguments)

    monkeypatch.setattr(swapper, "swap_group", swap)
    assert only(local.run(plan)) == (LogStatus.CLEANED, None)
    assert not any(name.endswith(".cleaned") for name in files_of(partition))


@pytest.mark.parametrize(
    ("kind", "content"), [(INDEX, b"\0" * 8), (TIME_INDEX, b""), (TXN_INDEX, b""), (INDEX, None)]
)
def test_it_is_rewritten_where_an_index_is_another(
    local: LocalRound, tmp_path: Path, kind: str, content: bytes | None
) -> None:
    """C-6.6: Kafka makes the indexes anew."""
    partition = unchanged_log(tmp_path)
    expected = files_of(partition)
    path = partition / file_name(0, kind)
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    inode = log_of(partition, 0).stat().st_ino
    assert only(local.run(round_of(plan_of(partition, [[0]], 3)))) == (LogStatus.CLEANED, None)
    assert files_of(partition) == expected
    assert log_of(partition, 0).stat().st_ino != inode


@pytest.mark.parametrize(
    "batches",
    [
        [keyed(0, "aab")],
        [keyed(0, "a.b")],
        [keyed(0, "aBc")],  # a horizon is to be given
        [keyed(0, "ab"), ReferenceBatch(2, 2, 0, 0, -1, -1)],  # an empty batch goes, or may
        [batch(record(0, b"a", None), record(2, b"b"), attributes=HORIZON, base_timestamp=5)],
    ],
)
def test_it_is_rewritten_where_anything_changes(
    local: LocalRound, tmp_path: Path, batches: Sequence[ReferenceBatch]
) -> None:
    partition = make_partition(tmp_path / "logs", {0: batches, 3: []})
    inode = log_of(partition, 0).stat().st_ino
    local.run(round_of(plan_of(partition, [[0]], 3)))
    assert log_of(partition, 0).stat().st_ino != inode


def test_it_is_rewritten_where_a_later_segment_supersedes_a_record(
    local: LocalRound, tmp_path: Path
) -> None:
    partition = make_partition(tmp_path / "logs", {0: [keyed(0, "ab")], 2: [keyed(2, "b")], 3: []})
    local.run(round_of(plan_of(partition, [[0], [2]], 3)))
    assert [r.key for raw in batches_of(partition, 0) for r in decode(raw).records] == [b"a"]


def test_a_group_that_loses_nothing_is_merged(local: LocalRound, tmp_path: Path) -> None:
    partition = make_partition(tmp_path / "logs", {0: [keyed(0, "ab")], 2: [keyed(2, "c")], 3: []})
    local.run(round_of(plan_of(partition, [[0, 2]], 3)))
    assert batches_of(partition, 0) == [encode(keyed(0, "ab")), encode(keyed(2, "c"))]
    assert not log_of(partition, 2).exists()


def test_verdicts_fit_their_records_over_the_edges_of_windows(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_windows, "WINDOW_BYTES", 1)
    partition = logs_in(tmp_path)
    assert local.run(round_of(plan_of(partition, GROUPS, 12))).logs[0].counts == COUNTS
    kept = [[r.offset for r in decode(raw).records] for raw in batches_of(partition, 8)]
    assert kept == [[8, 10, 11]]


def test_everything_superseded_leaves_empty_files(local: LocalRound, tmp_path: Path) -> None:
    """C-14.4, E-68."""
    partition = make_partition(
        tmp_path / "logs", {0: [keyed(0, "ab")], 2: [], 5: [keyed(5, "ab")], 7: []}
    )
    assert only(local.run(round_of(plan_of(partition, [[0, 2], [5]], 7)))) == (
        LogStatus.CLEANED,
        None,
    )
    for kind in (LOG, INDEX, TIME_INDEX):
        assert (partition / file_name(0, kind)).read_bytes() == b""
        assert (partition / file_name(0, kind)).stat().st_mtime_ns == MTIME_NS + 2 * 7_000_000


# keys


def test_a_hot_key_leaves_one_record_however_the_work_is_cut(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "HASH_PARTITION_KEYS", 1)
    local.cores = 2
    bases = range(0, 400, 100)
    segments = {base: [keyed(base, "h" * 100)] for base in bases}
    partition = make_partition(tmp_path / "logs", {**segments, 400: []})
    report = local.run(round_of(plan_of(partition, [[base] for base in bases], 400)))
    assert report.logs[0].counts.records_kept == 1
    assert [log_of(partition, base).stat().st_size > 0 for base in bases] == [False] * 3 + [True]


def test_the_clean_section_is_looked_up_and_not_put_in_the_map(
    local: LocalRound, tmp_path: Path
) -> None:
    """E-13, E-62: the checkpoint lies inside the second batch, between two records."""
    partition = make_partition(
        tmp_path / "logs", {0: [keyed(0, "aab"), keyed(3, "bcdc")], 7: [keyed(7, "a")]}
    )
    local.run(round_of(plan_of(partition, [[0]], 7, first_dirty_offset=4)))
    kept = [r.offset for raw in batches_of(partition, 0) for r in decode(raw).records]
    assert kept == [0, 1, 2, 3, 5, 6]  # c 4 by c 6; a and b twice, since no dirty record has them


def test_a_map_of_many_partitions_is_resolved_by_several_tasks(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "HASH_PARTITION_KEYS", 1)
    local.cores = 3
    partition = logs_in(tmp_path)
    assert local.run(round_of(plan_of(partition, GROUPS, 12))).logs[0].counts == COUNTS
    assert [stage for stage, _ in local.stages] == ["scan", "resolve", "rewrite"]
    assert dict(local.stages)["resolve"] > 1


def test_repairs_and_gone_partitions_in_the_checkpoint(local: LocalRound, tmp_path: Path) -> None:
    """C-4.2, C-17.1: repairs are written though nothing is cleaned; what is gone is dropped."""
    partition = logs_in(tmp_path)
    log_dir = str(partition.parent)
    path = os.path.join(log_dir, checkpoint.CLEANER_OFFSET)
    checkpoint.write(path, {("orders", 0): 99, ("gone", 0): 5})
    repairs = {log_dir: {("orders", 0): 3}}
    empty = RoundPlan(NOW_MS, (), (), (), repairs, ())
    local.run(empty, dry_run=True)
    assert checkpoint.read(path) == {("orders", 0): 99, ("gone", 0): 5}
    local.run(empty)
    assert checkpoint.read(path) == {("orders", 0): 3}
    assert local.stages == []


def test_passed_over_logs_are_in_the_report_behind_the_others(
    local: LocalRound, tmp_path: Path
) -> None:
    other = LogReport("/d", "t", 0, LogStatus.PASSED_OVER, "why")
    partition = logs_in(tmp_path)
    plan = replace(round_of(plan_of(partition, GROUPS, 12)), not_cleaned=(other,))
    report = local.run(plan)
    assert [log.status for log in report.logs] == [LogStatus.CLEANED, LogStatus.PASSED_OVER]
    assert [phase.name for phase in report.phases] == [
        "scan",
        "resolve",
        "rewrite",
        "swap",
        "other",
    ]
    assert encode(keyed(12, "a")) == log_of(partition, 12).read_bytes()
