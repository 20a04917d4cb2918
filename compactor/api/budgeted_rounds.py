"""Rounds within a budget: a run repeats its round until the work, the space or the time is spent.

The first round decides which logs the run is about. A log that did not fit into the free space, or
into the time at the speed known so far, comes in a later round: by then space was freed and the
speed was measured. The run ends when nothing is left, when no other log fits, or when the time is
up.
"""

import os
import time
from collections.abc import Callable
from dataclasses import replace

from cleaner_jobs.user_cache import cache_dir
from compactor.api.round_context import RoundContext
from compactor.errors import RefusedError, UsageError
from compactor.host.run_history import Pace, machine_pace
from compactor.outcome.round_report import CleaningReport, LogKey, LogReport, PhaseReport
from compactor.planning.budget import leave_out, over_budget, without_logs
from compactor.planning.round_plan import RoundPlan
from compactor.reason_codes import ReasonCode
from compactor.settings.rules import Rules

SAFETY = 0.7  # of the time that is left: logs differ, and a turn cannot be cut short


class BudgetedRounds:
    """Chooses what of a plan each round takes on."""

    def __init__(
        self, budget: Rules, pace: Pace, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._budget, self._pace, self._clock = budget, pace, clock
        self._began = clock()
        of_time = {ReasonCode.OVER_BUDGET} if budget.max_minutes is not None else set()
        self._later = {ReasonCode.NO_ROOM, *of_time}  # what may be otherwise in a later turn
        self._of_run: dict[str, str] | None = None  # left out of all turns, by path
        self._left_out: dict[str, str] | None = None  # of this turn, by path
        self._done: set[str] = set()

    def within(self, plan: RoundPlan) -> RoundPlan:
        """Return what of a plan this round takes on; the same until the round is over."""
        plan = without_logs(plan, self._done)
        if self._left_out is None:
            self._left_out = self._choose(plan)
        return leave_out(plan, self._left_out)

    def _choose(self, plan: RoundPlan) -> dict[str, str]:
        budget = self._budget
        if (budget.max_logs, budget.max_bytes, budget.max_minutes) == (None, None, None):
            return {}
        if self._of_run is None:
            self._of_run = over_budget(plan, budget)
        of_run = self._of_run
        left_out = {log.path: of_run[log.path] for log in plan.logs if log.path in of_run}
        if budget.max_minutes is None:
            return left_out
        seconds = (60 * budget.max_minutes - (self._clock() - self._began)) * SAFETY
        of_time = replace(budget, max_logs=None, max_bytes=None)
        rest = leave_out(plan, left_out)
        return left_out | over_budget(rest, of_time, self._pace.bytes_within(seconds))

    def end(self, plan: RoundPlan, report: CleaningReport) -> bool:
        """Note what a round did; return whether another may do more."""
        paths = {log.path for log in plan.logs}
        self._done |= paths
        self._left_out = None
        log_bytes = sum(log.log_bytes for log in plan.logs)
        if log_bytes and report.work_seconds > 0:
            speed = log_bytes / report.work_seconds
            self._pace = Pace(report.start_seconds, speed, self._pace.runs + 1)
        kinds = {log.reason_code for log in report.logs}
        return bool(paths) and bool(kinds & self._later)


def is_any_left(plan: RoundPlan) -> bool:
    """Return whether a round leaves logs to a later round or run."""
    codes = {log.reason_code for log in plan.not_cleaned}
    return not codes.isdisjoint({ReasonCode.NO_ROOM, ReasonCode.OVER_BUDGET})


def budgeted_rounds_of(rules: Rules, context: RoundContext) -> BudgetedRounds:
    """Make the rounds of the rules' budget at the speed of this machine."""
    for name in ("max_logs", "max_bytes", "max_minutes"):
        most = getattr(rules, name)
        if most is not None and most < 0:
            raise UsageError("expected 0 or more", name, most)
        if most is not None and most >= 2**63:
            raise UsageError("expected less than 2^63; without it there is no limit", name, most)
    return BudgetedRounds(rules, machine_pace(cache_dir(os.environ), context.started_at_ms))


def run_until_spent(
    turns: BudgetedRounds,
    plan: RoundPlan,
    plan_again: Callable[[], RoundPlan],
    clean: Callable[[RoundPlan], CleaningReport],
) -> CleaningReport:
    """Run rounds until the budget is spent, the first with `plan`; return the report of all."""
    report = turn = clean(plan)
    while turns.end(plan, turn):
        try:
            plan = plan_again()
        except RefusedError:  # there is still no room for any of the others
            return report
        if not plan.logs:
            return report
        turn = clean(plan)
        report = joined_reports(report, turn, {log.key for log in plan.logs})
    return report


def joined_reports(
    report: CleaningReport, turn: CleaningReport, logs: set[LogKey]
) -> CleaningReport:
    """Join a report with that of a later round, which was about `logs`."""
    first = {log.key: log for log in report.logs}
    later = {
        log.key: log if report.dry_run else _with_retention_of(first[log.key], log)
        for log in turn.logs
        if log.key in logs
    }
    phases: dict[str, PhaseReport] = {}
    for phase in (*report.phases, *turn.phases):
        before = phases.get(phase.name, PhaseReport(phase.name, 0.0, 0))
        seconds, log_bytes = before.seconds + phase.seconds, before.log_bytes + phase.log_bytes
        phases[phase.name] = PhaseReport(phase.name, seconds, log_bytes)
    return replace(
        report,
        seconds=report.seconds + turn.seconds,
        logs=tuple(later.get(log.key, log) for log in report.logs),
        phases=tuple(phases.values()),
    )


def _with_retention_of(first: LogReport, log: LogReport) -> LogReport:
    """Add what an earlier round has deleted of a log that it did not clean."""
    start = log.retention.log_start_offset
    if start is None:
        start = first.retention.log_start_offset
    both = replace(first.retention + log.retention, log_start_offset=start)
    return replace(log, retention=both)
