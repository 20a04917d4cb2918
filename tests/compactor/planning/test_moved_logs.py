"""A log that is being moved between log directories is left alone, as Kafka leaves it (C-3.3)."""

from pathlib import Path

import pytest

from compactor.cleaning.retention_round import apply_retention
from compactor.outcome.json_values import to_json
from compactor.outcome.round_report import LogStatus
from compactor.planning.round_plan import ALL_LOG_DIRS, notices_of
from storage.formats import checkpoint
from tests.compactor.plan_logs import (
    COMPACT,
    NOW_MS,
    Shape,
    build,
    clean_up_to,
    explained,
    plan_log_dirs,
    with_settings,
)
from tests.support.file_states import state_of

FUTURE = "t-0.0123456789abcdef0123456789abcdef-future"
REASON = (
    "is being moved to {}: a record that is removed here could come back with the copy there "
    "(-future); it waits until a broker has finished or cancelled the move"
)
RETAINED = with_settings({"cleanup.policy": "compact,delete", "retention.ms": "1"})


@pytest.fixture
def log_dirs(tmp_path: Path) -> list[str]:
    """Two, with t-0, t-1 in the first one and u-0 in the second."""
    one = build(tmp_path / "1", Shape("t", 0), Shape("t", 1))
    return [one, build(tmp_path / "2", Shape("u", 0))]


@pytest.mark.parametrize("target", [0, 1])
def test_it_is_not_cleaned_and_the_others_are(log_dirs: list[str], target: int) -> None:
    (Path(log_dirs[target]) / FUTURE).mkdir()
    found = plan_log_dirs(log_dirs, COMPACT, NOW_MS)
    assert [log.name for log in found.logs] == ["t-1", "u-0"]
    (report,) = found.not_cleaned
    assert (report.topic, report.partition, report.log_dir) == ("t", 0, log_dirs[0])
    assert report.status is LogStatus.PASSED_OVER
    assert report.reason == REASON.format(log_dirs[target])


def test_a_directory_behind_a_link_counts_and_a_file_does_not(
    log_dirs: list[str], tmp_path: Path
) -> None:
    """A broker follows links."""
    place = Path(log_dirs[1]) / FUTURE
    place.write_bytes(b"")
    assert len(plan_log_dirs(log_dirs, COMPACT, NOW_MS).logs) == 3
    place.unlink()
    (tmp_path / "elsewhere").mkdir()
    place.symlink_to(tmp_path / "elsewhere")
    assert len(plan_log_dirs(log_dirs, COMPACT, NOW_MS).logs) == 2


def test_a_move_to_a_directory_that_was_not_given_is_not_seen(log_dirs: list[str]) -> None:
    """So every plan says that all of them have to be."""
    (Path(log_dirs[1]) / FUTURE).mkdir()
    found = plan_log_dirs(log_dirs[:1], COMPACT, NOW_MS)
    assert [log.name for log in found.logs] == ["t-0", "t-1"]
    assert notices_of(found) == (ALL_LOG_DIRS,)
    assert "Give all directories of the broker's log.dirs" in ALL_LOG_DIRS


def test_retention_deletes_nothing_of_it(log_dirs: list[str], tmp_path: Path) -> None:
    """Its records are of 3000 ms and earlier, the clock says 1,000,000."""
    before = state_of(tmp_path)
    unmoved = plan_log_dirs(log_dirs, RETAINED, NOW_MS)
    assert {(log.topic, log.partition) for log in unmoved.retention} > {("t", 0)}
    (Path(log_dirs[1]) / FUTURE).mkdir()
    found = plan_log_dirs(log_dirs, RETAINED, NOW_MS)
    assert {(log.topic, log.partition) for log in found.retention} == {("t", 1), ("u", 0)}
    apply_retention(found.retention, found.not_cleaned)
    assert state_of(tmp_path) == before


def test_its_checkpoint_entry_stays_as_it_is(log_dirs: list[str]) -> None:
    """Impossible, or in another directory than the log: a broker carries it over with the log."""
    clean_up_to(Path(log_dirs[0]), ("t", 0, 99))
    clean_up_to(Path(log_dirs[1]), ("t", 0, 2))
    unmoved = plan_log_dirs(log_dirs, COMPACT, NOW_MS)
    assert unmoved.checkpoint_repairs and unmoved.stray_entries
    (Path(log_dirs[1]) / FUTURE).mkdir()
    found = plan_log_dirs(log_dirs, COMPACT, NOW_MS)
    assert not found.checkpoint_repairs
    assert not found.stray_entries
    assert checkpoint.read(f"{log_dirs[0]}/{checkpoint.CLEANER_OFFSET}") == {("t", 0): 99}


def test_explain_gives_the_reason(log_dirs: list[str]) -> None:
    (Path(log_dirs[1]) / FUTURE).mkdir()
    found = explained(log_dirs, "t-0", COMPACT)
    assert (found.outcome, found.log_dir) == ("passed-over", log_dirs[0])
    assert found.reason == REASON.format(log_dirs[1])
    assert to_json(found)["notices"] == [ALL_LOG_DIRS]
    assert explained(log_dirs, "u-0", COMPACT).outcome == "to-clean"
