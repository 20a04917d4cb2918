"""A forecast of how a run would end, for `plan`, `doctor` and `run --dry-run`.

A run meets obstacles in this order: its arguments, `compactor.log_dirs.preconditions`, its files of
settings, missing log directories, disk space. Without an obstacle its logs decide, as far as the
plan knows them: records are not read before the run.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from cleaner_jobs.spark.callers_session import local_dirs_in_use
from compactor.api import path_arguments
from compactor.api.budgeted_rounds import budgeted_rounds_of
from compactor.api.path_arguments import require_blocks_elsewhere, require_temporary_elsewhere
from compactor.api.round_context import RoundContext, judging_of, plan_of, require_known_log_dirs
from compactor.log_dirs.preconditions import (
    Obstacle,
    RunEnding,
    obstacle_of,
    obstacles,
    obstacles_to,
)
from compactor.outcome.exit_codes import ending_of_logs
from compactor.outcome.round_report import LogStatus
from compactor.planning.evaluation import evaluator_of_one
from compactor.planning.outcomes import Problems, Refusal
from compactor.planning.round_plan import RoundPlan
from compactor.planning.space import (
    SpaceFacts,
    cores_of,
    places_of,
    plan_space,
    require_room,
    with_room,
)
from compactor.reason_codes import Reason, ReasonCode
from compactor.recovery.log_dir_recovery import problems_of, recover_log_dir
from compactor.settings.rules import Rules
from storage.errors import LogCompactionError
from storage.files.files import Disk, Files
from storage.files.overlay import OverlayFiles

_NOT_WELL = (LogStatus.SET_ASIDE, LogStatus.FAILED)


class PlannedRound(NamedTuple):
    """A plan, and what it was made by."""

    round_plan: RoundPlan
    problems: Mapping[str, str]  # by partition directory: why a log is known to be unfit
    space: SpaceFacts | None  # what the round needs; None: nothing is to be cleaned


def ending_of_plan(
    log_dirs: Sequence[str], rules: Rules, context: RoundContext, planned: PlannedRound
) -> RunEnding:
    """Return how a run would end after a plan. log_dirs: as the caller named them."""
    assumed = context.config.assume_fully_replicated
    met = obstacles_before_plan(log_dirs, assume_fully_replicated=assumed)
    met += obstacles_to(partial(require_known_log_dirs, rules, context))
    if not met and _is_any_cut_short(planned.round_plan):
        try:
            planned = _settled(rules, context, planned.problems)
        except (LogCompactionError, OSError) as error:
            return _stopped([obstacle_of(error)])
    plan, _, space = planned
    if space is not None:
        met += obstacles_to(partial(require_room, plan, space[1]))
    if met:
        return _stopped(met)
    if space is not None:
        plan = with_room(plan, space[1])
    statuses = [log.status for log in plan.not_cleaned]
    statuses += [LogStatus.WOULD_CLEAN] * len(plan.logs)
    deletes = any(log.estimate.by_rule for log in plan.retention)
    return RunEnding(
        *ending_of_logs(statuses, deletes),
        not_cleaned=tuple(log for log in plan.not_cleaned if log.status in _NOT_WELL),
    )


def _is_any_cut_short(plan: RoundPlan) -> bool:
    return any(log.reason_code is ReasonCode.CUT_SHORT for log in plan.not_cleaned)


def _settled(rules: Rules, context: RoundContext, problems: Mapping[str, str]) -> PlannedRound:
    """Plan as a run does, which first settles what was cut short; nothing is written.

    Raise the error that the run would end with.
    """
    files = OverlayFiles(context.files)
    try:
        log_dirs = [path for each in context.of_brokers for path in each.broker.log_dirs]
        set_aside = SetAsideLogs(context, problems)
        why = set_aside.why_set_aside
        recovered = [recover_log_dir(path, files=files, why_set_aside=why) for path in log_dirs]
        known: Problems = {**problems, **problems_of(recovered), **set_aside.refusals}
        found = plan_of(context._replace(files=files), known, with_files=False)
        found = budgeted_rounds_of(rules, context).within(found)
        return PlannedRound(found, problems, space_facts(found, context.disk))
    finally:
        files.close()


def space_facts(plan: RoundPlan, disk: Disk) -> SpaceFacts | None:
    """Return free and needed space; None where nothing is to be cleaned."""
    if not plan.logs:
        return None
    rooms = places_of(plan.logs, disk=disk)
    return rooms.rooms, plan_space(plan.logs, rooms, cores_of(None))


def ending_of_failed_plan(log_dirs: Sequence[str], rules: Rules, error: BaseException) -> RunEnding:
    """Return how a run would end where its plan failed: with the same error, if not before."""
    met = obstacles_before_plan(log_dirs, assume_fully_replicated=rules.assume_fully_replicated)
    own = obstacle_of(error)
    return _stopped([*met, *([own] if own not in met else [])])


def obstacles_before_plan(
    log_dirs: Sequence[str],
    allowed_file_systems: Sequence[str] = (),
    after_unclean_shutdown: bool = False,
    assume_fully_replicated: bool = False,
) -> list[Obstacle]:
    """Return the obstacles that a run would meet before it plans."""
    local: list[str] = []

    def of_arguments() -> None:
        local.extend(path_arguments.other_log_dirs(log_dirs, to_write=True))

    wrong = obstacles_to(of_arguments)
    if not local:  # the rest can be asked of those that are log directories
        local = [path for path in map(os.path.abspath, log_dirs) if path_arguments.is_log_dir(path)]
    elsewhere: list[Callable[[], object]] = [
        partial(require_temporary_elsewhere, local),
        partial(require_blocks_elsewhere, local_dirs_in_use(os.environ, None), local),
    ]
    found = obstacles(local, allowed_file_systems, after_unclean_shutdown, assume_fully_replicated)
    return [*wrong, *obstacles_to(*elsewhere), *found]


def _stopped(met: Sequence[Obstacle]) -> RunEnding:
    return RunEnding(met[0].exit_code, met[0].reason_code, tuple(met))


class SetAsideLogs:
    """Finds the logs that a run sets aside before it settles anything: they keep every byte.

    `refusals`: why, by path of the partition directory. The plan that follows takes them among its
    problems, since it cannot decide about a log that is not settled.
    """

    def __init__(self, context: RoundContext, problems: Problems) -> None:
        """problems: see `plan_of`."""
        self.refusals: dict[str, Refusal] = {}
        self._judges = {
            path: evaluator_of_one(replace(judging_of(context, broker, config), problems=problems))
            for broker, config in context.of_brokers
            for path in broker.log_dirs
        }

    def why_set_aside(self, seen: Files, log_dir: str, topic: str, partition: int) -> Reason | None:
        """Return why a log is set aside; None if it is not. OSError where it cannot be listed."""
        outcome = self._judges[log_dir](seen, log_dir, topic, partition)
        refusal = outcome.refusal
        if refusal is None or refusal.status is not LogStatus.SET_ASIDE:
            return None
        self.refusals[outcome.partition.path] = refusal
        return refusal.reason
