"""Compute what room a round needs on each file system at its peak, and which logs have room.

A rewritten group stands beside its sources until it is swapped in. Groups are swapped in while
others are being rewritten, so at most what the tasks at work have in hand is on disk twice, and the
largest group, which counts when its last piece has come. The work directory holds the offset map
and the pieces of groups that several tasks share. Sizes are of the logs as they are: nothing gets
larger by cleaning but what is compressed again by a codec's default level, and small legacy
messages, for which an eighth is added. It is an estimate; what does not fit all the same fails its
log and leaves it as it was.

`plan_space` is pure; `space_of` asks the file systems what is free, and `with_room` takes those
logs of a plan that have room.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from cleaner_jobs.machine_size import memory
from cleaner_jobs.messages import LogPlan
from cleaner_jobs.spark.local_size import local_size
from compactor.errors import RefusedError
from compactor.host.machine import temporary_directory
from compactor.host.printable import counted, size_text
from compactor.outcome.round_report import LogStatus
from compactor.planning import layout
from compactor.planning.round_plan import RoundPlan
from compactor.planning.skipped_logs import untouched_report
from compactor.reason_codes import ReasonCode
from storage.files.disk_hints import wait_until_freed
from storage.files.files import Disk
from storage.files.local import LOCAL

FILES_OF_GROUP = 4
STEP_FILES = 2  # of a group whose originals are kept: a directory and a manifest
BLOCK_BYTES = 4096  # of which a small file takes one
MAP_BYTES_PER_KEY = 30  # entry, state and verdict
WORK_BYTES = 16 << 20  # whatever else a run puts into its work directory
_LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:,\d+)?\])?", re.ASCII)


class Room(NamedTuple):
    """What is free on a file system, for a user without privileges and without a quota."""

    path: str  # a directory on it, to name it by
    free_bytes: int
    free_files: int | None  # None: the file system has no such limit


class Places(NamedTuple):
    """Which file system each thing is on, by device number."""

    rooms: Mapping[int, Room]
    logs: Mapping[str, int]  # by partition directory
    work_dir: int
    originals: int | None = None  # None: they are not kept


class Need(NamedTuple):
    """What is needed of one file system at the peak."""

    bytes: int = 0
    files: int = 0


class SpacePlan(NamedTuple):
    """What the logs need that have room, and why the others have none."""

    needs: Mapping[int, Need]  # by device number
    left_out: Mapping[str, str]  # partition directory -> reason


SpaceFacts = tuple[Mapping[int, Room], SpacePlan]  # what there is, and what is needed


@dataclass(frozen=True, slots=True)
class _Load:
    """What the logs of one file system come to."""

    staged_bytes: int = 0
    largest_bytes: int = 0  # group
    groups: int = 0
    copied_bytes: int = 0  # originals that are kept elsewhere
    copied_files: int = 0


class _Work(NamedTuple):
    """What is put into the work directory."""

    map_bytes: int = 0
    piece_bytes: int = 0  # of groups that several tasks share
    groups: int = 0  # such groups


def space_of(
    logs: Sequence[LogPlan],
    work_dir: str | None = None,
    originals_dir: str | None = None,
    master: str | None = None,
    all_staged: bool = False,
    disk: Disk = LOCAL,
) -> SpacePlan:
    """Return what a round over these logs needs."""
    places = places_of(logs, work_dir, originals_dir, disk)
    return plan_space(logs, places, cores_of(master), all_staged)


def with_room(plan: RoundPlan, space: SpacePlan) -> RoundPlan:
    """Return the plan without the logs that have no room: they have failed, the others go on.

    Raise RefusedError where none has room.
    """
    if not space.left_out:
        return plan
    require_room(plan, space)
    logs = tuple(log for log in plan.logs if log.path not in space.left_out)
    reports = [
        untouched_report(log, LogStatus.FAILED, space.left_out[log.path], ReasonCode.NO_ROOM)
        for log in plan.logs
        if log.path in space.left_out
    ]
    return replace(plan, logs=logs, not_cleaned=(*plan.not_cleaned, *reports))


def require_room(plan: RoundPlan, space: SpacePlan) -> None:
    """Raise RefusedError where none of its logs has room."""
    if space.left_out and all(log.path in space.left_out for log in plan.logs):
        raise RefusedError(next(iter(space.left_out.values())), ReasonCode.NO_ROOM)


def places_of(
    logs: Sequence[LogPlan],
    work_dir: str | None = None,
    originals_dir: str | None = None,
    disk: Disk = LOCAL,
) -> Places:
    rooms: dict[int, Room] = {}

    def device_of(path: str, name: str) -> int:
        try:
            device = disk.status(path).st_dev
            if device not in rooms:
                rooms[device] = _room(path, name, disk)
        except FileNotFoundError:  # not made yet; or gone, which is reported of its log later
            return device_of(os.path.dirname(path), name)
        return device

    of_logs = {log.path: device_of(log.path, log.log_dir) for log in logs}
    work = os.path.abspath(work_dir or temporary_directory())
    originals = None if originals_dir is None else device_of(originals_dir, originals_dir)
    return Places(rooms, of_logs, device_of(work, work), originals)


def plan_space(
    logs: Sequence[LogPlan], places: Places, cores: int | None, all_staged: bool = False
) -> SpacePlan:
    """Take the logs in their order, each that fits beside those taken before.

    cores: None where it is not known how many tasks work at once. all_staged: no group is swapped
    in before all are rewritten.
    """
    sizes_of_logs = [[group.log_bytes for group in log.groups] for log in logs]
    total = sum(map(sum, sizes_of_logs))
    in_flight_bytes = total
    if cores is not None and not all_staged:
        in_flight_bytes = layout.in_flight_bytes(total, cores)
    piece_bytes = layout.share_bytes(total, cores or 1)
    loads: dict[int, _Load] = {}
    work = _Work()
    left_out = {}
    no_room: dict[tuple[int, int, tuple[int, ...]], str] = {}  # since a log was last taken
    for log, sizes in zip(logs, sizes_of_logs, strict=True):
        device = places.logs[log.path]
        copied_segments = log.segment_count if places.originals not in (None, device) else 0
        alike = device, copied_segments, tuple(sizes)
        if alike in no_room:  # of ten thousand logs of a size most are like one before
            left_out[log.path] = no_room[alike]
            continue
        with_log = loads | {device: _with(loads.get(device, _Load()), sizes, copied_segments)}
        work_with_log = _with_map(work, sizes, piece_bytes)
        needs = _needs(with_log, work_with_log, places, in_flight_bytes)
        reason = _why_not(needs, places.rooms)
        if reason is None:
            loads, work = with_log, work_with_log
            no_room.clear()
        else:
            left_out[log.path] = no_room[alike] = reason
    return SpacePlan(_needs(loads, work, places, in_flight_bytes), left_out)


def leaving_out(plan: SpacePlan) -> list[str]:
    """A line on the logs that a run would not take on for want of room; none where all have it."""
    if not plan.left_out:
        return []
    logs, reason = counted(len(plan.left_out), "log"), next(iter(plan.left_out.values()))
    return [
        f"There is no room for {logs} beside the others ({reason}): a run takes them in later "
        "turns, as far as the earlier ones free enough"
    ]


def rewritten_bytes(log_bytes: int) -> int:
    """What a group of that size comes to at most, its indexes included."""
    return log_bytes + log_bytes // 8 + FILES_OF_GROUP * BLOCK_BYTES


def staged_peak(staged_bytes: int, largest_bytes: int, in_flight_bytes: int) -> int:
    """What is staged at once of groups that come to staged_bytes."""
    return min(staged_bytes, rewritten_bytes(in_flight_bytes) + largest_bytes)


def cores_of(master: str | None) -> int | None:
    """How many tasks work at once; None where a cluster decides."""
    if master is None:
        return local_size().tasks
    found = _LOCAL.fullmatch(master)
    if found is None:
        return None
    return os.cpu_count() if found[1] == "*" else int(found[1] or 1)


def memory_notices(is_needed: bool) -> list[str]:
    """Say what memory a run needs and what is free, where a control group limits it."""
    there = memory()
    if there.limit is None or not is_needed:
        return []
    size = local_size(there)
    return [
        f"Memory: a run here needs up to {size_text(size.needed_bytes)} with "
        f"{counted(size.tasks, 'task')} at once; {size_text(there.free_bytes)} free of the "
        f"{size_text(there.limit.value)} that {there.limit.group} allows"
    ]


def _with(load: _Load, sizes: Sequence[int], copied_segments: int) -> _Load:
    """Add a log whose groups have these sizes.

    copied_segments: 0 where no originals are copied.
    """
    staged = [rewritten_bytes(size) for size in sizes]
    staged_bytes = sum(staged)
    return _Load(
        load.staged_bytes + staged_bytes,
        max(load.largest_bytes, *staged, 0),
        load.groups + len(staged),
        load.copied_bytes + (staged_bytes if copied_segments else 0),
        load.copied_files + FILES_OF_GROUP * copied_segments,
    )


def _with_map(work: _Work, sizes: Sequence[int], piece_bytes: int) -> _Work:
    cut = [size for size in sizes if 2 * size >= 3 * piece_bytes]
    keys = sum(sizes) // layout.BYTES_PER_KEY
    return _Work(
        work.map_bytes + keys * MAP_BYTES_PER_KEY,
        work.piece_bytes + sum(map(rewritten_bytes, cut)),
        work.groups + len(cut),
    )


def _needs(
    loads: Mapping[int, _Load], work: _Work, places: Places, in_flight_bytes: int
) -> dict[int, Need]:
    needs = dict.fromkeys((*loads, places.work_dir), Need())

    def add(device: int, size_bytes: int, files: int) -> None:
        before = needs.get(device, Need())
        needs[device] = Need(before.bytes + size_bytes, before.files + files)

    for device, load in loads.items():
        staged_bytes, files = load.staged_bytes, FILES_OF_GROUP * load.groups
        if places.originals == device:  # links: nothing is freed by a swap
            files += STEP_FILES * load.groups
        else:
            staged_bytes = staged_peak(staged_bytes, load.largest_bytes, in_flight_bytes)
        add(device, staged_bytes, files)
        if load.copied_files and places.originals is not None:
            add(
                places.originals,
                load.copied_bytes,
                load.copied_files + STEP_FILES * load.groups,
            )
    if loads:
        largest = max(load.largest_bytes for load in loads.values())
        pieces = staged_peak(work.piece_bytes, largest, in_flight_bytes)
        add(places.work_dir, WORK_BYTES + work.map_bytes + pieces, 2 * work.groups)
    return needs


def _why_not(needs: Mapping[int, Need], rooms: Mapping[int, Room]) -> str | None:
    for device, need in needs.items():
        room = rooms[device]
        if need.bytes > room.free_bytes:
            needed, free = size_text(need.bytes), size_text(room.free_bytes)
            return f"no room: up to {needed} are needed at {room.path}, {free} are free"
        if room.free_files is not None and need.files > room.free_files:
            return (
                f"no room: up to {counted(need.files, 'file')} needed at {room.path}, "
                f"room for {room.free_files:,}"
            )
    return None


def _room(path: str, name: str, disk: Disk) -> Room:
    wait_until_freed()  # what an earlier round has removed
    found = disk.file_system_status(path)
    # no such limit on btrfs, for one
    free_files = found.f_favail if found.f_files else None
    return Room(name, found.f_bavail * found.f_frsize, free_files)
