"""What a problem makes of a log: set aside for what its data says, failed for anything else."""

import errno
import importlib
import json
import os
import pkgutil

import pytest

import cleaner_jobs
import storage
from cleaner_jobs.messages import LogPlan, SegmentGroup, TaskProblem
from cleaner_jobs.problems import OversizedRecordError, problem_of
from cleaner_jobs.source_identity import LogChangedError
from compactor.errors import CorruptLogError
from compactor.outcome.exit_codes import ending_of_error
from compactor.outcome.round_report import LogStatus
from compactor.planning.skipped_logs import problem_report, stop_if_corrupt, untouched_report
from storage.errors import CorruptFileError
from storage.file_names import Segment
from storage.files.held_directories import DirectoryExchangedError

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


def problem(code: str, path: str = "/logs/t-7/x.log", position: int = 12) -> TaskProblem:
    return TaskProblem(log_id=3, code=code, path=path, position=position, problem="is wrong")


@pytest.mark.parametrize(
    ("code", "status", "is_data_problem"),
    [
        ("damaged", LogStatus.SET_ASIDE, True),
        ("unsupported-format", LogStatus.SET_ASIDE, True),
        ("null-keys", LogStatus.SET_ASIDE, False),  # other options would clean it
        ("record-too-large", LogStatus.SET_ASIDE, False),
        ("changed-meanwhile", LogStatus.FAILED, False),
        ("input-output", LogStatus.FAILED, False),
        ("no-permission", LogStatus.FAILED, False),
        ("faulty-machine", LogStatus.FAILED, False),
    ],
)
def test_what_a_problem_makes_of_a_log(code: str, status: LogStatus, is_data_problem: bool) -> None:
    report = problem_report(PLAN, problem(code))
    assert (report.status, report.is_data_problem) == (status, is_data_problem)
    assert report.reason_code == code


def test_a_proof_that_fails_concerns_the_data_and_sets_nothing_aside() -> None:
    report = problem_report(PLAN, problem("faulty-machine")._replace(is_proof=True))
    assert (report.status, report.is_data_problem) == (LogStatus.FAILED, True)


def as_a_task_sends(error: Exception) -> TaskProblem:
    return TaskProblem(*json.loads(json.dumps(problem_of(3, error))))


@pytest.mark.parametrize("number", [*errno.errorcode, None])
def test_a_task_and_the_driver_give_an_error_of_the_system_the_same_code(
    number: int | None,
) -> None:
    error = OSError("odd") if number is None else OSError(number, os.strerror(number), "/a")
    found = as_a_task_sends(error)
    assert problem_report(PLAN, found).reason_code is ending_of_error(error).reason_code
    assert found.errno == number


def met_in_tasks() -> list[type[Exception]]:
    """Every class of errors that a task catches, with those below them."""
    for package in (cleaner_jobs, storage):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    found: list[type[Exception]] = []
    new: list[type[Exception]] = [CorruptFileError, LogChangedError, OSError]
    while new:
        found += new
        new = [below for above in new for below in above.__subclasses__()]
    of_us = ("builtins", "storage", "cleaner_jobs")
    return [each for each in found if each.__module__.partition(".")[0] in of_us]


def test_a_task_and_the_driver_give_every_class_of_errors_the_same_code() -> None:
    classes = met_in_tasks()
    assert {OversizedRecordError, DirectoryExchangedError, PermissionError} < {*classes}
    for of_class in classes:
        error: Exception
        if issubclass(of_class, OSError):
            error = of_class(errno.ESTALE, "bad")
        else:
            error = of_class(*("/a", 5, "bad")[:: 2 if of_class is LogChangedError else 1])
        report = problem_report(PLAN, as_a_task_sends(error))
        assert report.reason_code is ending_of_error(error).reason_code, of_class


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (problem("input-output"), "/logs/t-7/x.log, byte 12: is wrong"),
        (problem("input-output", position=-1), "/logs/t-7/x.log: is wrong"),
        (problem("input-output", path="", position=-1), "is wrong"),
    ],
)
def test_the_reason_says_where(found: TaskProblem, reason: str) -> None:
    assert problem_report(PLAN, found).reason == reason


def test_what_was_swapped_in_before_is_said() -> None:
    assert problem_report(PLAN, problem("input-output")).notes == ()
    assert problem_report(PLAN, problem("input-output"), 1).notes == (
        "1 segment group swapped in by then; the checkpoint was not moved",
    )
    assert problem_report(PLAN, problem("input-output"), 2).notes[0].startswith("2 segment groups ")


def test_a_log_that_is_as_it_was_has_the_same_numbers_before_and_after() -> None:
    report = untouched_report(PLAN, LogStatus.FAILED)
    assert (report.log_dir, report.topic, report.partition) == ("/logs", "t", 7)
    assert (report.segments_before, report.segments_after) == (3, 3)
    assert (report.bytes_before, report.bytes_after) == (123, 123)
    assert (report.first_dirty_offset, report.first_uncleanable_offset) == (5, 30)
    assert (report.end_offset, report.delete_retention_ms) == (None, 60)


def test_a_round_may_stop_at_the_first_log_whose_data_is_wrong() -> None:
    fine = [problem_report(PLAN, problem(code)) for code in ("input-output", "null-keys")]
    stop_if_corrupt(fine)
    with pytest.raises(CorruptLogError, match=r"^t-7: .* is wrong \(--on-corrupt fail\)$"):
        stop_if_corrupt([*fine, problem_report(PLAN, problem("damaged"))])
