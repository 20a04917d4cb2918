"""A log named in the cleaner checkpoints of two log directories (C-4.3)."""

from pathlib import Path

from compactor.outcome.round_report import LogStatus
from storage.formats import checkpoint
from tests.compactor.plan_logs import (
    COMPACT,
    NOW_MS,
    Shape,
    build,
    clean_up_to,
    plan_log_dirs,
    with_settings,
)
from tests.support.local_round import LocalRound


def two_dirs(root: Path) -> list[str]:
    """t-0 in the first, with offsets 0-5, its active segment from 4 on; u-0 in the second."""
    return [build(root / "1", Shape("t")), build(root / "2", Shape("u", segments=1))]


def entries(log_dir: str) -> dict[tuple[str, int], int]:
    return checkpoint.read(f"{log_dir}/{checkpoint.CLEANER_OFFSET}")


def test_named_in_two_directories_it_is_cleaned_and_the_stale_entry_goes(
    tmp_path: Path, local: LocalRound
) -> None:
    """C-4.3: the entry of the directory that holds it counts; Kafka's cleaner thread ends here."""
    one, other = two_dirs(tmp_path)
    clean_up_to(tmp_path / "1", ("t", 0, 2))
    clean_up_to(tmp_path / "2", ("t", 0, 4), ("u", 0, 0))
    plan = plan_log_dirs([one, other], with_settings({"min.cleanable.dirty.ratio": "0.4"}), NOW_MS)
    assert plan.logs[0].first_dirty_offset == 2
    dry = local.run(plan, dry_run=True)
    assert entries(other) == {("t", 0): 4, ("u", 0): 0}
    report = local.run(plan)
    note = f"cleaner-offset-checkpoint of {other} names it too, which stops Kafka's cleaner thread"
    assert report.logs[0].status is LogStatus.CLEANED
    assert dry.logs[0].notes == report.logs[0].notes == (f"{note}: removed there",)
    assert (entries(one), entries(other)) == ({("t", 0): 4}, {("u", 0): 0})


def test_also_where_there_is_nothing_to_clean(tmp_path: Path, local: LocalRound) -> None:
    one, other = two_dirs(tmp_path)
    clean_up_to(tmp_path / "1", ("t", 0, 4))
    clean_up_to(tmp_path / "2", ("t", 0, 2))
    report = local.run(plan_log_dirs([one, other], COMPACT, NOW_MS))
    assert report.logs[0].status is LogStatus.PASSED_OVER
    assert report.logs[0].notes != ()
    assert (entries(one), entries(other)) == ({("t", 0): 4}, {})


def test_an_entry_in_another_directory_only_is_taken_and_moved(
    tmp_path: Path, local: LocalRound
) -> None:
    """As Kafka, which puts all files together; but it would leave the one it read."""
    one, other = two_dirs(tmp_path)
    clean_up_to(tmp_path / "2", ("t", 0, 4))
    plan = plan_log_dirs([one, other], COMPACT, NOW_MS)
    assert plan.logs == ()  # clean up to 4
    local.run(plan)
    assert (entries(one), entries(other)) == ({("t", 0): 4}, {})


def test_a_log_that_is_set_aside_keeps_its_entries(tmp_path: Path, local: LocalRound) -> None:
    one, other = two_dirs(tmp_path)
    clean_up_to(tmp_path / "2", ("t", 0, 2))
    (tmp_path / "1" / "t-0" / "00000000000000000000.log.swap").write_bytes(b"")
    local.run(plan_log_dirs([one, other], COMPACT, NOW_MS))
    assert (entries(one), entries(other)) == ({}, {("t", 0): 2})
