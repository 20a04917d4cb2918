"""A log that was written after the clock of the round is left; times of records are only told."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from compactor.cleaning.overflow import Splitting, split_overflowing
from compactor.inspection.explain import explain
from compactor.outcome.round_report import LogStatus
from compactor.planning.clock_check import YOUNGER_RECORDS
from compactor.planning.round_plan import plan_round
from storage.file_names import LOG, TIME_INDEX, file_name
from tests.compactor.plan_logs import COMPACT, Shape, build, clean_up_to, with_settings

CHECKED = replace(COMPACT, checks_clock=True)
CLOCK_MS = 1_700_000_000_000
FIVE_MINUTES_MS = 300_000
NAME = file_name(2, LOG)  # of the second of three segments


def written_at(log_dir: str, time_ms: int, segment: str = NAME, partition: str = "t-0") -> None:
    """All at the clock's time but for one segment."""
    for path in Path(log_dir).glob(f"*/*{LOG}"):
        ms = time_ms if (path.parent.name, path.name) == (partition, segment) else CLOCK_MS
        os.utime(path, ns=(ms * 10**6, ms * 10**6))


@pytest.mark.parametrize("segment", [file_name(base, LOG) for base in (0, 2, 4)])
@pytest.mark.parametrize(("ahead_ms", "is_taken"), [(FIVE_MINUTES_MS, True), (300_001, False)])
def test_a_log_written_after_the_clock_is_passed_over(
    tmp_path: Path, segment: str, ahead_ms: int, is_taken: bool
) -> None:
    """By more than five minutes; whichever of its segments it is, the active one too."""
    log_dir = build(tmp_path / "d", Shape("t"), Shape("u"))
    written_at(log_dir, CLOCK_MS + ahead_ms, segment)
    found = plan_round([log_dir], CHECKED, CLOCK_MS)
    assert [log.name for log in found.logs] == (["t-0"] if is_taken else []) + ["u-0"]
    if not is_taken:
        (report,) = found.not_cleaned
        assert (report.status, report.topic) == (LogStatus.PASSED_OVER, "t")
        assert report.reason == (
            f"{segment} was written 300 s after the clock of the round, 2023-11-14T22:13:20.000Z: "
            "tombstones would be dated too early, and go too soon. Correct the clock or "
            "--as-of; --any-clock accepts it"
        )
        assert explain(found, "t-0", CHECKED).reason == report.reason


@pytest.mark.parametrize(
    ("machine_ms", "is_taken"),
    [
        (CLOCK_MS + 3_600_000, True),
        (CLOCK_MS + 3_599_999, False),
        (CLOCK_MS - 3_600_000, False),  # it has gone back
    ],
)
def test_what_is_written_while_a_run_goes_on_is_held_against_the_machines_clock(
    tmp_path: Path, machine_ms: int, is_taken: bool
) -> None:
    """An hour later, as a run writes that recovers first; the round's own clock stays."""
    log_dir = build(tmp_path / "d")
    written_at(log_dir, CLOCK_MS + 3_600_000 + FIVE_MINUTES_MS, partition="t-0")
    found = plan_round([log_dir], CHECKED, CLOCK_MS, machine_ms=machine_ms)
    assert (len(found.logs), found.as_of_ms) == (int(is_taken), CLOCK_MS)
    if not is_taken:
        assert f"{NAME} was written 65 min after the clock" in (found.not_cleaned[0].reason or "")


def test_nothing_else_is_done_to_it(tmp_path: Path) -> None:
    """No retention, and its impossible checkpoint entry stays."""
    log_dir = build(tmp_path / "d")
    clean_up_to(tmp_path / "d", ("t", 0, 99))
    written_at(log_dir, CLOCK_MS + FIVE_MINUTES_MS + 1)
    settings = with_settings({"cleanup.policy": "compact,delete", "retention.ms": "1"})
    found = plan_round([log_dir], replace(settings, checks_clock=True), CLOCK_MS)
    assert not found.retention
    assert not found.checkpoint_repairs
    unchecked = plan_round([log_dir], settings, CLOCK_MS)
    assert len(unchecked.retention) == len(unchecked.logs) == 1
    assert unchecked.checkpoint_repairs


@pytest.mark.parametrize(("ahead_ms", "is_told"), [(FIVE_MINUTES_MS, False), (300_001, True)])
def test_records_of_a_later_time_are_noted_and_cleaned(
    tmp_path: Path, ahead_ms: int, is_told: bool
) -> None:
    """A time index has twelve bytes an entry: the time, then an offset."""
    log_dir = build(tmp_path / "d")
    written_at(log_dir, CLOCK_MS)
    path = tmp_path / "d" / "t-0" / file_name(2, TIME_INDEX)
    path.write_bytes((CLOCK_MS + ahead_ms).to_bytes(8, "big") + (1).to_bytes(4, "big"))
    found = plan_round([log_dir], CHECKED, CLOCK_MS)
    (log,) = found.logs
    notes = (YOUNGER_RECORDS,) if is_told else ()
    assert (log.notes, found.facts[0].notes) == (notes, notes)
    assert split_overflowing(found, lambda: found, Splitting()).logs[0].notes == notes
    assert plan_round([log_dir], COMPACT, CLOCK_MS).logs[0].notes == ()


def test_a_segment_without_time_index_tells_nothing(tmp_path: Path) -> None:
    log_dir = build(tmp_path / "d")
    written_at(log_dir, CLOCK_MS)
    (tmp_path / "d" / "t-0" / file_name(0, TIME_INDEX)).unlink()
    (tmp_path / "d" / "t-0" / file_name(2, TIME_INDEX)).write_bytes(b"cut")
    assert plan_round([log_dir], CHECKED, CLOCK_MS).logs[0].notes == ()
