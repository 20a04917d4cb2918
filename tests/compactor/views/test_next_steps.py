"""The lines that end a run's report say what is to be done."""

from dataclasses import replace

from compactor.round_report import LogStatus
from compactor.views.next_steps import next_steps
from tests.compactor.rounds import log, report

CLEANED = replace(log(0), status=LogStatus.CLEANED, log_dir="/data/a b", topic="t")


def test_after_a_run_the_broker_is_started_and_the_files_may_be_checked() -> None:
    assert next_steps(report(CLEANED, replace(CLEANED, partition=1))) == [
        "Next: start the broker. This checks every file first, if you like:",
        "  compactor verify '/data/a b'",
    ]


def test_after_a_dry_run_the_same_command_does_it() -> None:
    dry = replace(report(replace(CLEANED, status=LogStatus.WOULD_CLEAN)), dry_run=True)
    assert next_steps(dry) == [
        "Next: the same command without --dry-run does it. Stop the broker first."
    ]


def test_where_nothing_was_done_there_is_nothing_to_do() -> None:
    assert next_steps(report(replace(CLEANED, status=LogStatus.PASSED_OVER))) == []


def test_logs_that_failed_and_damaged_ones_come_first() -> None:
    damaged = replace(CLEANED, status=LogStatus.SET_ASIDE, is_data_problem=True)
    failed = replace(CLEANED, status=LogStatus.FAILED, partition=1)
    assert next_steps(report(damaged, failed, failed)) == [
        "2 logs failed for a reason that is not in its data: see above; once that is set right, "
        "another run takes them.",
        "1 log set aside for damage. This says what is wrong:",
        "  compactor verify '/data/a b' t-0",
    ]
