"""How a run would end, asked by those that only look: `plan`, `doctor`, `run --dry-run`.

A run meets what is in its way in this order: its arguments, `compactor.preconditions`, its files of
settings, directories that were not given, room. Where nothing is, its logs decide, as they are
planned: what stands in records is known when they are read, and not before.
"""

import os
from collections.abc import Callable, Sequence
from functools import partial

from cleaner_jobs.spark.local_dirs import given_local_dirs
from compactor.api import places
from compactor.api.own_places import require_blocks_elsewhere, require_temporary_elsewhere
from compactor.api.premises import Premises, require_known_log_dirs
from compactor.api.rules import Rules
from compactor.exit_codes import (
    exit_code_of_statuses,
    reason_code_of_round,
)
from compactor.planning.room import require_room
from compactor.planning.round_plan import RoundPlan
from compactor.planning.space import SpaceFacts
from compactor.preconditions import Obstacle, RunEnding, obstacle_of, obstacles, obstacles_to
from compactor.round_report import LogStatus


def of_plan(
    log_dirs: Sequence[str],
    rules: Rules,
    premises: Premises,
    plan: RoundPlan,
    space: SpaceFacts | None,
) -> RunEnding:
    """log_dirs: as they were given. space: what the round needs; None: nothing is to be cleaned."""
    assumed = premises.config.assume_fully_replicated
    met = obstacles_before(log_dirs, assume_fully_replicated=assumed)
    met += obstacles_to(partial(require_known_log_dirs, rules, premises))
    if space is not None:
        met += obstacles_to(partial(require_room, plan, space[1]))
    if met:
        return _stopped(met)
    left_out = () if space is None else space[1].left_out
    statuses = [log.status for log in plan.not_cleaned]
    statuses += [LogStatus.FAILED for log in plan.logs if log.path in left_out]
    statuses += [LogStatus.WOULD_CLEAN for log in plan.logs if log.path not in left_out]
    deletes = any(log.estimate.by_rule for log in plan.retention)
    code = exit_code_of_statuses(statuses)
    return RunEnding(code, reason_code_of_round(statuses, deletes))


def of_error(log_dirs: Sequence[str], error: BaseException) -> RunEnding:
    """Where the plan itself came to no end: a run, too, would end so, if not before."""
    met = obstacles_before(log_dirs)
    own = obstacle_of(error)
    return _stopped([*met, *([own] if own not in met else [])])


def obstacles_before(
    log_dirs: Sequence[str],
    allowed_file_systems: Sequence[str] = (),
    after_unclean_shutdown: bool = False,
    assume_fully_replicated: bool = False,
) -> list[Obstacle]:
    """Give what a run would meet before it plans."""
    local: list[str] = []

    def of_arguments() -> None:
        local.extend(places.other_log_dirs(log_dirs, to_write=True))

    wrong = obstacles_to(of_arguments)
    if not local:  # the rest can be asked of those that are log directories
        local = [path for path in map(os.path.abspath, log_dirs) if places.is_log_dir(path)]
    elsewhere: list[Callable[[], object]] = [
        partial(require_temporary_elsewhere, local),
        partial(require_blocks_elsewhere, given_local_dirs(os.environ, None), local),
    ]
    found = obstacles(local, allowed_file_systems, after_unclean_shutdown, assume_fully_replicated)
    return [*wrong, *obstacles_to(*elsewhere), *found]


def _stopped(met: Sequence[Obstacle]) -> RunEnding:
    return RunEnding(met[0].exit_code, met[0].reason_code, tuple(met))
