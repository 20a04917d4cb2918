"""`plan`: what a round would take on, and what a run would be refused for. Reads metadata only."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from cleaner_jobs.messages import TaskProblem, value_of
from cleaner_jobs.user_cache import cache_dir
from compactor.api import forecast, path_arguments, saved_plans
from compactor.api.arguments import Paths, path_texts
from compactor.api.broker_starts import problems_by_broker
from compactor.api.budgeted_rounds import budgeted_rounds_of
from compactor.api.progress import Listener, OnProgress
from compactor.api.round_context import plan_of, require_round_context, without_lasting
from compactor.broker_start.reading import Depth
from compactor.command_context import current_context
from compactor.errors import UsageError
from compactor.host.printable import counted
from compactor.host.progress import SAMPLE_STAGE
from compactor.host.run_history import machine_pace
from compactor.log_dirs.preconditions import RunEnding
from compactor.log_dirs.set_aside_memory import RememberedLogs
from compactor.outcome.row_tables import arrow_table, html_table, pandas_frame, row_of
from compactor.outcome.start_problems import StartProblem
from compactor.planning.expected import (
    Estimate,
    Estimates,
    Expected,
    SampledLog,
    expected_of,
    no_estimate,
)
from compactor.planning.round_plan import RoundPlan
from compactor.planning.space import SpaceFacts, memory_notices
from compactor.settings.options import Positive
from compactor.settings.rules import ANY_ENGINE, KAFKAS_DEFAULTS, Rules, TaskOptions
from storage.errors import LogCompactionError
from storage.files.files import Disk

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

SAMPLE_LOG = "compactor.cleaning.sampling:sample_log"  # whose module loads kernels


class Plan(NamedTuple):
    """What a round would take on."""

    round_plan: RoundPlan
    space: SpaceFacts | None  # free, and needed; None: nothing is to be cleaned
    run: RunEnding  # how a run with the same arguments would end now
    warnings: tuple[str, ...]
    expected: Expected  # time, and with a sample what would go
    estimates: Estimates | None = None  # by partition directory; None: nothing was sampled
    start_problems: tuple[StartProblem, ...] = ()  # what a broker's start does not do well with

    @property
    def refusals(self) -> tuple[str, ...]:
        """Messages with which a run would be refused."""
        return tuple(obstacle.text for obstacle in self.run.obstacles)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each log: its sizes, its standing, and why it is not taken on."""
        left = {report.key: report for report in self.round_plan.not_cleaned}
        found = []
        for size in self.round_plan.inventory:
            report = left.get(size.key)
            why = (report.reason, report.reason_code) if report else (None, None)
            more = {"gain_bytes": size.gain_bytes, "held_bytes": size.held_bytes}
            found.append(row_of(size) | more | {"reason": why[0], "reason_code": why[1]})
        return found

    def to_arrow(self) -> "pa.Table":
        """Return an Arrow table with a row for each log."""
        return arrow_table(self.rows())

    def to_pandas(self) -> "pd.DataFrame":
        """Return a pandas frame with a row for each log. ImportError without pandas."""
        return pandas_frame(self.rows())

    def _repr_html_(self) -> str:
        taken = counted(len(self.round_plan.logs), "log")
        return html_table(f"Plan: {taken} to clean", self.rows())


def plan(
    log_dirs: Paths,
    rules: Rules = KAFKAS_DEFAULTS,
    save: str | None = None,
    sample_bytes: Positive | None = None,
    options: TaskOptions = ANY_ENGINE,
    on_progress: OnProgress | None = None,
) -> Plan:
    """Survey the log directories and select logs. Takes no lock and changes nothing.

    sample_bytes: of how much of each log it is estimated what would go; None: no record is read.
    save: a file for the plan, to be carried out by `run` with `RunOptions.plan`.
    options: what takes the samples; on_progress: is told how far they are. Both need sample_bytes.
    Raise ConfigError, OSError, and RefusedError if a directory cannot be read;
    CleaningFailedError where what takes the samples fails.
    """
    given = path_texts(log_dirs)
    if sample_bytes is None and options != ANY_ENGINE:
        raise UsageError("without {}, a plan has no tasks", "options", None, ["sample_bytes"])
    try:
        return _planned(given, rules, save, Sampling(sample_bytes, options, on_progress))
    except (LogCompactionError, OSError) as error:
        if save is None:  # else the error may be that of the file
            current_context().run_ending = forecast.ending_of_failed_plan(given, rules, error)
        raise


class Sampling(NamedTuple):
    """How samples of logs are taken."""

    sample_bytes: int | None  # of each log; None: none is taken
    options: TaskOptions
    on_progress: OnProgress | None


def _planned(log_dirs: Sequence[str], rules: Rules, save: str | None, sampling: Sampling) -> Plan:
    paths = path_arguments.log_dirs(log_dirs, to_write=False)
    work_dir = path_arguments.work_dir(sampling.options.work_dir, paths)
    if sampling.sample_bytes is not None:
        from compactor.jobs.engine_choice import require_possible_engine

        require_possible_engine(sampling.options)
    if save is not None:
        saved_plans.require_savable(save, rules, paths)
    context = require_round_context(rules, paths, to_write=False)
    remembered = RememberedLogs(paths, files=context.files)
    planned = plan_of(context, remembered.problems, with_files=False)
    found = budgeted_rounds_of(rules, context).within(planned)
    space = forecast.space_facts(found, context.disk)
    ending = forecast.ending_of_plan(
        log_dirs, rules, context, forecast.PlannedRound(found, remembered.problems, space)
    )
    estimates = _estimates(found, sampling, work_dir, context.disk)
    pace = machine_pace(cache_dir(os.environ), context.started_at_ms)
    expected = expected_of(found.logs, pace, estimates)
    if save is not None:
        saved_plans.save(save, found, rules, context, expected)
    lasting = remembered.lasting(context.conditions)
    warnings = (*without_lasting(context, lasting), *remembered.warnings)
    return Plan(
        round_plan=replace(found, lasting=(*lasting.values(), *memory_notices(bool(found.logs)))),
        space=space,
        run=ending,
        warnings=warnings,
        expected=expected,
        estimates=estimates,
        start_problems=problems_by_broker(paths, context.files, Depth.NAMES),
    )


def _estimates(
    plan: RoundPlan, sampling: Sampling, work_dir: str | None, disk: Disk
) -> Estimates | None:
    if sampling.sample_bytes is None:
        return None
    from compactor.jobs.mapping import MappedLog, MapSettings, map_logs  # no other plan needs it

    wanted = []
    for log in plan.logs:
        value = SampledLog(log, plan.as_of_ms, sampling.sample_bytes)
        read_bytes = min(log.log_bytes, sampling.sample_bytes)
        wanted.append(MappedLog(value, (log,), read_bytes, read_bytes))
    settings = MapSettings(
        engine=sampling.options,
        work_dir=work_dir,
        stage=SAMPLE_STAGE,
        now_ms=plan.as_of_ms,
        disk=disk,
    )
    found = map_logs(SAMPLE_LOG, wanted, settings, Listener(sampling.on_progress))
    return {log.path: _estimate(each) for log, each in zip(plan.logs, found, strict=True)}


def _estimate(found: object) -> Estimate:
    if isinstance(found, TaskProblem):
        return no_estimate(0, found.problem)
    return value_of(Estimate, found)
