"""Map a function over logs: on an engine, or in this process where there is little to read.

What logs have in common travels with each of them: values are small beside what is read for them.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from cleaner_jobs.messages import (
    MAP,
    PROBLEM,
    LogPlan,
    SegmentGroup,
    plain,
)
from cleaner_jobs.spark.environment import SUBMITTED_VARIABLE
from cleaner_jobs.tasks.mapping import MapContext, map_value
from compactor.host.progress import ProgressSink
from compactor.jobs.engine_choice import EngineOptions
from compactor.jobs.engines import StageRunner, open_engine_to_read
from compactor.settings.rules import EngineChoice
from storage.files.files import Disk
from storage.files.local import LOCAL
from storage.log.log_dir import PartitionListing

# of logs to read; for fewer, to start processes takes longer than they save on two cores: a second,
# in which one process compares 150 MB, or samples 450 MB
ENGINE_FROM_BYTES = 512 << 20
TASK_BYTES = 16 << 20  # of small logs that share a task
LOG_COST_BYTES = 256 << 10  # what opening and closing a log costs, as bytes of reading


class MappedLog(NamedTuple):
    """What a function is called with, and what it reads then."""

    value: Any  # that `plain` makes JSON of
    logs: tuple[LogPlan, ...]  # what it reads: one log, or a log and its copy
    log_bytes: int  # how much of them
    units: int  # of progress


class MapSettings(NamedTuple):
    """How a function is mapped over logs."""

    engine: EngineOptions
    work_dir: str | None = None
    stage: str = MAP  # as progress shows it
    now_ms: int = 0
    disk: Disk = LOCAL  # of the work directory


def map_logs(
    function: str, wanted: Sequence[MappedLog], settings: MapSettings, progress: ProgressSink
) -> list[Any]:
    """Call a function for each log; return what JSON makes of its results, in the same order.

    Instead of a result there is a TaskProblem where the function has raised an error of one log.

    Args:
        function: `module:name`; see `cleaner_jobs.tasks.mapping`.
        wanted: One for each call.
        settings: What runs the calls.
        progress: Sees one stage, with the units of all logs.
    """
    if is_done_here(settings.engine, wanted):
        return _mapped_here(function, wanted, settings, progress)
    log_bytes = sum(each.log_bytes for each in wanted)
    plans = [replace(log, log_id=number) for number, each in enumerate(wanted) for log in each.logs]
    with open_engine_to_read(settings, plans, log_bytes, progress) as (engine, facts):
        tasks = [
            {
                "function": function,
                "logs": [(n, wanted[n].units, plain(wanted[n].value)) for n in numbers],
            }
            for numbers in deal([each.log_bytes for each in wanted])
        ]
        units = sum(each.units for each in wanted)
        runner = StageRunner(engine, facts, progress, settings.disk)
        values, problems = runner.run(MAP, tasks, units, shown_as=settings.stage)
    results = dict(values)
    results |= {problem.log_id: problem for problem in problems}
    return [results[number] for number in range(len(wanted))]


def is_done_here(options: EngineOptions, wanted: Sequence[MappedLog]) -> bool:
    """Return whether nobody has asked for an engine, and to start one takes longer than it saves.

    One log is one call: another process would do it no faster.
    """
    if options.in_process:
        return True
    if options.engine is not EngineChoice.AUTO or SUBMITTED_VARIABLE in os.environ:
        return False
    choices = options.spark_from, options.master, options.session, options.workers
    if any(each is not None for each in choices):
        return False
    sizes = [each.log_bytes for each in wanted if each.log_bytes]
    return len(sizes) < 2 or sum(sizes) < ENGINE_FROM_BYTES


def _mapped_here(
    function: str, wanted: Sequence[MappedLog], settings: MapSettings, progress: ProgressSink
) -> list[Any]:
    progress.stage(settings.stage, sum(each.units for each in wanted))
    context = MapContext(settings.work_dir, settings.disk)
    results, done = [], 0
    for number, each in enumerate(wanted):
        value = json.loads(json.dumps(plain(each.value)))
        kind, found = map_value(function, number, value, context)
        if kind == PROBLEM:
            results.append(found)
        else:
            results.append(json.loads(json.dumps(found[1])))
        done += each.units
        progress.advance(done)
    return results


def as_plan(listing: PartitionListing) -> LogPlan:
    """Return a partition as a log that is read: what executors are asked for before they work."""
    return LogPlan(
        log_id=0,
        log_dir=os.path.dirname(listing.path),
        topic=listing.topic,
        partition=listing.partition,
        path=listing.path,
        first_dirty_offset=0,
        first_uncleanable_offset=0,
        groups=(SegmentGroup(listing.segments),) if listing.segments else (),
        delete_retention_ms=0,
        index_interval_bytes=0,
        segment_index_bytes=0,
        active_producers=(),
    )


def deal(sizes: Sequence[int]) -> list[list[int]]:
    """Deal numbered logs to tasks, the largest first: so that no task is the last one for long.

    Small ones share a task.
    """
    tasks: list[list[int]] = []
    room = 0
    for number in sorted(range(len(sizes)), key=lambda number: -sizes[number]):
        cost = sizes[number] + LOG_COST_BYTES
        if cost > room:
            tasks.append([])
            room = max(cost, TASK_BYTES)
        tasks[-1].append(number)
        room -= cost
    return tasks
