"""Asks the file systems what is free, and takes those logs of a plan that there is room for."""

import os
import re
from collections.abc import Sequence
from dataclasses import replace

from cleaner_jobs.messages import LogPlan
from cleaner_jobs.spark.local_size import local_size, memory
from compactor.errors import RefusedError
from compactor.host.machine import temporary_directory
from compactor.host.printable import counted, size_text
from compactor.outcome.round_report import LogStatus
from compactor.planning.round_plan import RoundPlan
from compactor.planning.space import Places, Room, SpacePlan, plan_space
from compactor.planning.uncleaned import untouched_report
from compactor.reason_codes import ReasonCode
from storage.files.disk_hints import wait_until_freed

_LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:,\d+)?\])?", re.ASCII)


def space_of(
    logs: Sequence[LogPlan],
    work_dir: str | None = None,
    originals_dir: str | None = None,
    master: str | None = None,
    all_staged: bool = False,
) -> SpacePlan:
    """What a round over these logs needs, where there is something to be cleaned."""
    places = places_of(logs, work_dir, originals_dir)
    return plan_space(logs, places, cores_of(master), all_staged)


def places_of(
    logs: Sequence[LogPlan], work_dir: str | None = None, originals_dir: str | None = None
) -> Places:
    rooms: dict[int, Room] = {}

    def device_of(path: str, name: str) -> int:
        try:
            device = os.stat(path).st_dev
            if device not in rooms:
                rooms[device] = _room(path, name)
        except FileNotFoundError:  # not made yet; or gone, which is reported of its log later
            return device_of(os.path.dirname(path), name)
        return device

    of_logs = {log.path: device_of(log.path, log.log_dir) for log in logs}
    work = os.path.abspath(work_dir or temporary_directory())
    originals = None if originals_dir is None else device_of(originals_dir, originals_dir)
    return Places(rooms, of_logs, device_of(work, work), originals)


def with_room(plan: RoundPlan, space: SpacePlan) -> RoundPlan:
    """The plan without the logs that there is no room for: they have failed, the others go on.

    Raise RefusedError where there is room for none.
    """
    if not space.left_out:
        return plan
    require_room(plan, space)
    logs = tuple(log for log in plan.logs if log.path not in space.left_out)
    reports = [
        replace(
            untouched_report(log, LogStatus.FAILED),
            reason=space.left_out[log.path],
            reason_code=ReasonCode.NO_ROOM,
        )
        for log in plan.logs
        if log.path in space.left_out
    ]
    return replace(plan, logs=logs, not_cleaned=(*plan.not_cleaned, *reports))


def require_room(plan: RoundPlan, space: SpacePlan) -> None:
    """Raise RefusedError where there is room for none of its logs."""
    if space.left_out and all(log.path in space.left_out for log in plan.logs):
        raise RefusedError(next(iter(space.left_out.values())), ReasonCode.NO_ROOM)


def cores_of(master: str | None) -> int | None:
    """How many tasks work at once; None where a cluster decides."""
    if master is None:
        return local_size().tasks
    found = _LOCAL.fullmatch(master)
    if found is None:
        return None
    return os.cpu_count() if found[1] == "*" else int(found[1] or 1)


def memory_notices(is_needed: bool) -> list[str]:
    """What a run here needs of memory and what there is, where a control group limits it."""
    there = memory()
    if there.limit is None or not is_needed:
        return []
    size = local_size(there)
    return [
        f"Memory: a run here needs up to {size_text(size.needed_bytes)} with "
        f"{counted(size.tasks, 'task')} at once; {size_text(there.free_bytes)} free of the "
        f"{size_text(there.limit.value)} that {there.limit.group} allows"
    ]


def _room(path: str, name: str) -> Room:
    wait_until_freed()  # what an earlier round has removed
    found = os.statvfs(path)
    # no such limit on btrfs, for one
    free_files = found.f_favail if found.f_files else None
    return Room(name, found.f_bavail * found.f_frsize, free_files)
