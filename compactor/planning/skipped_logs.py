"""Report on logs of a plan that end a round without being cleaned, and why."""

from collections.abc import Iterable
from dataclasses import replace

from cleaner_jobs.messages import LogPlan, TaskProblem
from compactor.errors import CorruptLogError
from compactor.host.printable import counted
from compactor.outcome.round_report import LogReport, LogStatus
from compactor.reason_codes import ReasonCode, listed

# What the log's own data says sets it aside; anything else is a failure to be looked into.
_SET_ASIDE = (
    ReasonCode.DAMAGED,
    ReasonCode.UNSUPPORTED_FORMAT,
    ReasonCode.NULL_KEYS,
    ReasonCode.RECORD_TOO_LARGE,
)
# nothing but another log would end otherwise; so it is with a proof
_OF_DATA = (ReasonCode.DAMAGED, ReasonCode.UNSUPPORTED_FORMAT)


def problem_report(plan: LogPlan, problem: TaskProblem, swapped_groups: int = 0) -> LogReport:
    where = f"{problem.path}, byte {problem.position}" if problem.position >= 0 else problem.path
    groups = counted(swapped_groups, "segment group")
    status = LogStatus.SET_ASIDE if problem.code in _SET_ASIDE else LogStatus.FAILED
    note = f"{groups} swapped in by then; the checkpoint was not moved"
    return replace(
        untouched_report(
            plan,
            status,
            f"{where}: {problem.problem}" if where else problem.problem,
            listed(problem.code),
        ),
        notes=(note,) if swapped_groups else (),
        is_data_problem=problem.is_proof or problem.code in _OF_DATA,
    )


def stop_if_corrupt(reports: Iterable[LogReport]) -> None:
    """Raise CorruptLogError for the first log whose data is wrong."""
    for report in reports:
        if report.is_data_problem:
            name = f"{report.topic}-{report.partition}"
            raise CorruptLogError(f"{name}: {report.reason} (--on-corrupt fail)")


def untouched_report(
    plan: LogPlan,
    status: LogStatus,
    reason: str | None = None,
    reason_code: ReasonCode | None = None,
) -> LogReport:
    """The report on a log of the plan that is as it was."""
    return LogReport(
        log_dir=plan.log_dir,
        topic=plan.topic,
        partition=plan.partition,
        status=status,
        reason=reason,
        reason_code=reason_code,
        first_dirty_offset=plan.first_dirty_offset,
        first_uncleanable_offset=plan.first_uncleanable_offset,
        segments_before=plan.segment_count,
        segments_after=plan.segment_count,
        bytes_before=plan.log_bytes,
        bytes_after=plan.log_bytes,
        delete_retention_ms=plan.delete_retention_ms,
    )
