"""Conditions on a plan or on a run's report, for whoever watches: read, then held against it."""

from collections.abc import Iterable, Sequence

from compactor.outcome.round_report import CleaningReport
from compactor.planning.round_plan import RoundPlan
from compactor.watching.conditions import Condition, Met
from compactor.watching.measures import (
    LOG_MEASURES_OF_PLAN,
    LOG_MEASURES_OF_RUN,
    Measures,
    measures_of_plan,
    measures_of_run,
)


def conditions_of_plan(texts: Iterable[str]) -> tuple[Condition, ...]:
    """Read conditions on a plan. Raise UsageError where one cannot be read."""
    return tuple(Condition(text, LOG_MEASURES_OF_PLAN) for text in texts)


def conditions_of_run(texts: Iterable[str]) -> tuple[Condition, ...]:
    """Read conditions on what a run does, or would do. Raise UsageError likewise."""
    return tuple(Condition(text, LOG_MEASURES_OF_RUN) for text in texts)


def met_by_plan(conditions: Sequence[Condition], plan: RoundPlan) -> list[Met]:
    """Those that hold of a plan, with ages counted from its clock."""
    return _met(conditions, measures_of_plan(plan)) if conditions else []


def met_by_run(conditions: Sequence[Condition], report: CleaningReport) -> list[Met]:
    """Those that hold of a report."""
    return _met(conditions, measures_of_run(report)) if conditions else []


def _met(conditions: Sequence[Condition], measures: Measures) -> list[Met]:
    return [
        Met(condition.text, tuple(condition.concerned(measures)))
        for condition in conditions
        if condition.holds(measures)
    ]
