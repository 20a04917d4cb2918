"""What a problem makes of a log: set aside for what its data says, failed for anything else."""

import pytest

from cleaner_jobs.plan import LogPlan, SegmentGroup
from cleaner_jobs.task_values import TaskProblem
from compactor.errors import CorruptLogError
from compactor.planning.uncleaned import problem_report, stop_if_corrupt, untouched_report
from compactor.round_report import LogStatus
from storage.formats.segment import Segment

PLAN = LogPlan(
    log_id=3,
    log_dir="/logs",
    topic="t",
    partition=7,
    path="/logs/t-7",
    first_dirty_offset=5,
    first_uncleanable_offset=30,
    groups=(
        SegmentGroup((Segment(0, 100, 0, 0, None, 0, 0), Segment(10, 20, 0, 0, None, 0, 0))),
        SegmentGroup((Segment(20, 3, 0, 0, None, 0, 0),)),
    ),
    delete_retention_ms=60,
    index_interval_bytes=4096,
    segment_index_bytes=1000,
    active_producers=(),
)


def problem(kind: str, path: str = "/logs/t-7/x.log", position: int = 12) -> TaskProblem:
    return TaskProblem(log_id=3, kind=kind, path=path, position=position, problem="is wrong")


@pytest.mark.parametrize(
    ("kind", "status", "is_data_problem"),
    [
        ("corrupt", LogStatus.SET_ASIDE, True),
        ("unsupported", LogStatus.SET_ASIDE, True),
        ("null-keys", LogStatus.SET_ASIDE, False),  # other options would clean it
        ("proof", LogStatus.FAILED, True),
        ("changed", LogStatus.FAILED, False),
        ("io", LogStatus.FAILED, False),
        ("anything else", LogStatus.FAILED, False),
    ],
)
def test_kinds_of_problems(kind: str, status: LogStatus, is_data_problem: bool) -> None:
    report = problem_report(PLAN, problem(kind))
    assert (report.status, report.is_data_problem) == (status, is_data_problem)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (problem("io"), "/logs/t-7/x.log, byte 12: is wrong"),
        (problem("io", position=-1), "/logs/t-7/x.log: is wrong"),
        (problem("io", path="", position=-1), "is wrong"),
    ],
)
def test_the_reason_says_where(found: TaskProblem, reason: str) -> None:
    assert problem_report(PLAN, found).reason == reason


def test_what_was_swapped_in_before_is_said() -> None:
    assert problem_report(PLAN, problem("io")).notes == ()
    assert problem_report(PLAN, problem("io"), 1).notes == (
        "1 segment group swapped in by then; the checkpoint was not moved",
    )
    assert problem_report(PLAN, problem("io"), 2).notes[0].startswith("2 segment groups ")


def test_a_log_that_is_as_it_was_has_the_same_numbers_before_and_after() -> None:
    report = untouched_report(PLAN, LogStatus.FAILED)
    assert (report.log_dir, report.topic, report.partition) == ("/logs", "t", 7)
    assert (report.segments_before, report.segments_after) == (3, 3)
    assert (report.bytes_before, report.bytes_after) == (123, 123)
    assert (report.first_dirty_offset, report.first_uncleanable_offset) == (5, 30)
    assert (report.end_offset, report.delete_retention_ms) == (None, 60)


def test_a_round_may_stop_at_the_first_log_whose_data_is_wrong() -> None:
    fine = [problem_report(PLAN, problem(kind)) for kind in ("io", "null-keys")]
    stop_if_corrupt(fine)
    with pytest.raises(CorruptLogError, match=r"^t-7: .* is wrong \(--on-corrupt fail\)$"):
        stop_if_corrupt([*fine, problem_report(PLAN, problem("corrupt"))])
