"""What whoever plans or runs a round is told once, whichever logs there are. Pure."""

from compactor.planning.round_plan import RoundPlan

ALL_LOG_DIRS = (
    "All of the broker's log.dirs have to be given: a partition that is being moved to one that "
    "is not given is not noticed, and a deleted record of it could come back"
)


def notices_of(plan: RoundPlan) -> tuple[str, ...]:
    """One sentence each, without a full stop."""
    return (ALL_LOG_DIRS,) if plan.log_dirs else ()
