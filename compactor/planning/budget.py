"""Choose the logs of a plan that a run takes on where it may not take all. Pure.

A limit is a number of logs, or of bytes. Whole logs only, in the order that was asked for; one that
does not fit is left to a later run, and smaller ones after it may still be taken.
"""

from collections.abc import Callable, Collection
from dataclasses import replace

from cleaner_jobs.messages import LogPlan
from compactor.host.printable import size_text
from compactor.outcome.round_report import LogStatus
from compactor.planning.inventory import LogSize, sort_key_of
from compactor.planning.outcomes import Standing
from compactor.planning.round_plan import RoundPlan
from compactor.planning.skipped_logs import untouched_report
from compactor.reason_codes import ReasonCode
from compactor.settings.rules import Order, Rules


def over_budget(plan: RoundPlan, budget: Rules, log_bytes: int | None = None) -> dict[str, str]:
    """Return the logs that a budget leaves out, by partition directory, each with the reason.

    log_bytes: how many bytes of logs fit into the time; None: no limit of time.
    """
    left_out = {}
    taken = taken_bytes = 0
    for log in _in_order(plan, budget.order):
        if budget.max_logs is not None and taken >= budget.max_logs:
            left_out[log.path] = f"left out: --max-logs {budget.max_logs}"
        elif budget.max_bytes is not None and taken_bytes + log.log_bytes > budget.max_bytes:
            left_out[log.path] = f"left out: --max-bytes {size_text(budget.max_bytes)}"
        elif log_bytes is not None and taken_bytes + log.log_bytes > log_bytes:
            left_out[log.path] = f"left out: no time for it in --max-minutes {budget.max_minutes:g}"
        else:
            taken += 1
            taken_bytes += log.log_bytes
    return left_out


def leave_out(plan: RoundPlan, left_out: dict[str, str]) -> RoundPlan:
    """The plan without these logs, which are passed over for these reasons."""
    if not left_out:
        return plan
    pairs = list(zip(plan.logs, plan.facts, strict=False))
    kept = [(log, facts) for log, facts in pairs if log.path not in left_out]
    left = [(log, facts) for log, facts in pairs if log.path in left_out]
    over, code = LogStatus.PASSED_OVER, ReasonCode.OVER_BUDGET
    reports = [untouched_report(log, over, left_out[log.path], code) for log, _ in left]
    facts = [
        *(facts for _, facts in kept),
        *plan.facts[len(plan.logs) :],
        *(
            facts._replace(status=LogStatus.PASSED_OVER, reason=left_out[log.path])
            for log, facts in left
        ),
    ]
    names = {log.key for log, _ in left}
    return replace(
        plan,
        logs=tuple(log for log, _ in kept),
        not_cleaned=(*plan.not_cleaned, *reports),
        facts=tuple(facts),
        inventory=tuple(
            replace(size, standing=Standing.OVER_BUDGET) if size.key in names else size
            for size in plan.inventory
        ),
    )


def without_logs(plan: RoundPlan, done: Collection[str]) -> RoundPlan:
    """The plan of a later turn: without the logs of earlier ones, which have reports."""
    if not done:
        return plan
    logs = tuple(log for log in plan.logs if log.path not in done)
    paths = {log.path for log in logs}
    retention = tuple(log for log in plan.retention if log.path in paths)
    return replace(plan, logs=logs, retention=retention)


def _in_order(plan: RoundPlan, order: Order) -> list[LogPlan]:
    sizes = {size.key: size for size in plan.inventory}
    key: Callable[[LogSize], tuple[float, ...]] = sort_key_of(order)
    return sorted(plan.logs, key=lambda log: (*key(sizes[log.key]), log.topic, log.partition))
