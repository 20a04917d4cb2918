"""How fast runs were: kept for a while, and no trouble where it cannot be."""

from pathlib import Path

from compactor.host.run_history import (
    KEPT_MS,
    KEPT_RUNS,
    Pace,
    PastRun,
    machine_pace,
    past_runs,
    remember,
)

NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000


def test_the_pace_is_that_of_the_usual_one_of_the_last_runs(tmp_path: Path) -> None:
    assert machine_pace(tmp_path, NOW_MS) == Pace()
    for seconds in (1.0, 2.0, 100.0):
        remember(tmp_path, PastRun(NOW_MS, 3.0, seconds, 100_000_000))
    assert machine_pace(tmp_path, NOW_MS) == Pace(3.0, 50e6, 3)
    assert machine_pace(tmp_path, NOW_MS).seconds(500_000_000) == 13.0
    assert machine_pace(tmp_path, NOW_MS).bytes_within(5.0) == 100_000_000
    assert machine_pace(tmp_path, NOW_MS).bytes_within(1.0) == 0


def test_it_is_kept_for_ninety_days_and_fifty_runs(tmp_path: Path) -> None:
    for number in range(KEPT_RUNS + 5):
        remember(tmp_path, PastRun(NOW_MS + number, 1.0, 1.0, 20_000_000))
    kept = past_runs(tmp_path, NOW_MS + 100)
    assert [run.ended_at_ms - NOW_MS for run in kept] == list(range(5, 55))
    assert KEPT_MS == 90 * DAY_MS
    assert past_runs(tmp_path, NOW_MS + 91 * DAY_MS) == []


def test_small_runs_say_nothing(tmp_path: Path) -> None:
    remember(tmp_path, PastRun(NOW_MS, 1.0, 1.0, 9_999_999))
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_read_or_written_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "runs.json").write_text('[{"of": "another version"}]')
    assert past_runs(tmp_path, NOW_MS) == []
    remember(tmp_path / "runs.json", PastRun(NOW_MS, 1.0, 1.0, 10_000_000))
