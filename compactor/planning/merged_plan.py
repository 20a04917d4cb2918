"""The plans of several brokers as one: each was made by itself, and they are carried out together.

A log is known by its log directory in all that follows a plan, so that the same partition of two
brokers is two logs. Pure.
"""

from collections.abc import Sequence
from dataclasses import replace

from compactor.planning.round_plan import RoundPlan, order_of, order_of_report


def merged(plans: Sequence[RoundPlan]) -> RoundPlan:
    """One plan with the logs of all, dirtiest first. Not none; all as of the same time."""
    if len(plans) == 1:
        return plans[0]
    taken = [pair for plan in plans for pair in zip(plan.logs, plan.facts, strict=False)]
    taken.sort(key=lambda pair: order_of(pair[1].judgement))
    others = [facts for plan in plans for facts in plan.facts[len(plan.logs) :]]
    not_cleaned = [report for plan in plans for report in plan.not_cleaned]
    not_cleaned.sort(key=order_of_report)
    return RoundPlan(
        as_of_ms=plans[0].as_of_ms,
        logs=tuple(replace(log, log_id=number) for number, (log, _) in enumerate(taken)),
        not_cleaned=tuple(not_cleaned),
        facts=(*(facts for _, facts in taken), *others),
        checkpoint_repairs=dict(
            repairs for plan in plans for repairs in plan.checkpoint_repairs.items()
        ),
        log_dirs=tuple(log_dir for plan in plans for log_dir in plan.log_dirs),
        stray_entries=tuple(entry for plan in plans for entry in plan.stray_entries),
        retention=tuple(log for plan in plans for log in plan.retention),
        are_all_log_dirs_known=all(plan.are_all_log_dirs_known for plan in plans),
        inventory=tuple(size for plan in plans for size in plan.inventory),
        brokers=tuple(name for plan in plans for name in plan.brokers),
        unknown_settings=tuple(dict.fromkeys(s for p in plans for s in p.unknown_settings)),
        kafka=tuple(use for plan in plans for use in plan.kafka),
        absent=tuple(notice for plan in plans for notice in plan.absent),
    )
