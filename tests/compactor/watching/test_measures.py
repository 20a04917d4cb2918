"""The numbers of a small log directory, counted by hand."""

import os
from dataclasses import replace
from pathlib import Path

from compactor.outcome.round_report import CleaningReport, Counts, LogReport, LogStatus
from compactor.watching.measures import measures_of_plan, measures_of_run, names_of_totals
from storage.file_names import LOG, file_name
from tests.compactor.plan_logs import (
    BATCH_BYTES,
    COMPACT,
    NOW_MS,
    Shape,
    build,
    clean_up_to,
    plan_log_dirs,
    with_settings,
)


def _written(partition: Path, base_offset: int, seconds: float) -> None:
    os.utime(partition / file_name(base_offset, LOG), (seconds, seconds))


def test_of_a_log_of_which_the_first_segment_is_clean(tmp_path: Path) -> None:
    log_dir = build(tmp_path, Shape(segments=4))
    clean_up_to(tmp_path, ("t", 0, 2))
    for base_offset, seconds in ((0, 100.0), (2, 300.0), (4, 200.0), (6, 50.0)):
        _written(tmp_path / "t-0", base_offset, seconds)
    found = measures_of_plan(plan_log_dirs([log_dir], COMPACT, NOW_MS))
    (log,) = found.logs
    assert log.name == "t-0" and log.counted_as == "eligible"
    assert log.values == {
        "dirty_ratio": 2 / 3,  # two dirty segments of three closed ones
        "dirty_bytes": 2 * BATCH_BYTES,
        "blocked_bytes": 0,
        "log_bytes": 4 * BATCH_BYTES,
        "segments": 4,
        "seconds_since_clean": 800.0,  # since the one that was written at 200 s, of now 1000 s
        "seconds_overdue": 0,
    }


def test_what_a_bound_keeps_back_is_dirty_and_blocked(tmp_path: Path) -> None:
    log_dir = build(tmp_path, Shape(segments=4))
    lag = with_settings({"min.compaction.lag.ms": str(NOW_MS - 1500)})  # only segment 0 is older
    (log,) = measures_of_plan(plan_log_dirs([log_dir], lag, NOW_MS)).logs
    assert log.values["dirty_bytes"] == 3 * BATCH_BYTES
    assert log.values["blocked_bytes"] == 2 * BATCH_BYTES


def test_of_several_logs(tmp_path: Path) -> None:
    log_dir = build(
        tmp_path, Shape("a", segments=3), Shape("b", segments=5), Shape("c", segments=1)
    )
    (tmp_path / "b-0" / "00000000000000000000.swap").touch()
    (tmp_path / "b-0" / "x.log").touch()  # which no broker loads
    found = measures_of_plan(plan_log_dirs([log_dir], COMPACT, NOW_MS))
    totals = found.totals
    assert {log.name: log.counted_as for log in found.logs} == {
        "a-0": "eligible",
        "b-0": "set_aside",
        "c-0": "passed_over",
    }
    assert (totals["logs"], totals["eligible"], totals["passed_over"]) == (3, 1, 1)
    assert (totals["set_aside"], totals["failed"]) == (1, 0)
    assert totals["sum_log_bytes"] == 4 * BATCH_BYTES  # nothing is known of what is set aside
    assert totals["max_log_bytes"] == 3 * BATCH_BYTES
    assert totals["max_dirty_ratio"] == 1.0


def test_of_a_run() -> None:
    cleaned = LogReport(
        "/data",
        "t",
        0,
        LogStatus.CLEANED,
        bytes_before=1000,
        bytes_after=250,
        counts=Counts(records_read=10, records_kept=3),
    )
    failed = LogReport("/data", "t", 1, LogStatus.FAILED, reason="disk full", bytes_before=7)
    dry = replace(cleaned, partition=2, status=LogStatus.WOULD_CLEAN, bytes_after=1000)
    report = CleaningReport("1", "run", False, 0, 0, 1.0, (cleaned, failed, dry), ())
    found = measures_of_run(report)
    assert [log.values for log in found.logs] == [
        {
            "bytes_before": 1000,
            "bytes_after": 250,
            "bytes_freed": 750,
            "freed_ratio": 0.75,
            "records_removed": 7,
        },
        {},
        {
            "bytes_before": 1000,
            "bytes_after": 1000,
            "bytes_freed": 0,
            "freed_ratio": 0.0,
            "records_removed": 7,
        },
    ]
    assert (found.totals["eligible"], found.totals["failed"]) == (2, 1)
    assert found.totals["sum_bytes_freed"] == 750
    assert set(found.totals) == set(names_of_totals(found.names))
