"""Carry out one round: scan, resolve, rewrite, prove, swap, checkpoint, retention, report.

The round takes every log of the plan through the same few Spark jobs; the last of them rewrites
segment groups, each of which is proven and swapped in while others are still being rewritten. A
log with a problem is left as it was, and the others go on.
"""

import os
import secrets
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from cleaner_jobs.messages import (
    RESOLVE,
    REWRITE,
    SCAN,
    LogPlan,
    RoundSettings,
    TaskProblem,
    io_limit_file,
)
from cleaner_jobs.problems import problem_of
from cleaner_jobs.signals import deferred_signals
from cleaner_jobs.staging import STAGED_MARKER
from cleaner_jobs.tasks.heartbeat import wait_for_silence
from compactor.cleaning.cleaner_checkpoints import add_stray_notes, write_checkpoints
from compactor.cleaning.log_report import cleaned_groups, log_report, require_exact_bytes
from compactor.cleaning.proof import (
    check_group,
    check_null_keys,
    check_round,
    check_scan,
    check_verdicts,
    require_offsets_in_order,
)
from compactor.cleaning.retention_round import apply_retention, estimate_retention
from compactor.cleaning.stage_values import FinishedGroup, LogResult
from compactor.cleaning.stages import Stages
from compactor.cleaning.swapper import GroupSwapper, Swapped, joined_segments, needs_joining
from compactor.finalizer import sweep_staged
from compactor.host.clock import now_ms
from compactor.host.machine import version
from compactor.host.progress import RETENTION_STAGE, SWAP_STAGE, ProgressSink
from compactor.jobs.engine_choice import ChosenEngine, bytes_to_read, choose_engine
from compactor.jobs.engines import SILENCE_SECONDS, Engine, open_engine
from compactor.jobs.work_dir import open_work_dir
from compactor.outcome.round_report import (
    OTHER,
    CleaningReport,
    EngineReport,
    LogKey,
    LogReport,
    PhaseReport,
)
from compactor.planning.log_retention import MergedSegments
from compactor.planning.round_plan import RoundPlan, notices_of
from compactor.planning.skipped_logs import problem_report, stop_if_corrupt
from compactor.reason_codes import ReasonCode
from compactor.settings.rules import RunOptions
from storage.errors import CorruptFileError
from storage.files.disk_hints import background_closes_deferred
from storage.files.files import Disk
from storage.files.held_directories import DirectoryExchangedError
from storage.files.io_limit import lifted_by_errors, limited
from storage.files.local import LOCAL

if TYPE_CHECKING:
    from compactor.originals.originals_keeper import OriginalsKeeper


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """How a round is run; the plan says what it does."""

    options: RunOptions  # its directories are local paths that were checked
    started_at_ms: int = field(default_factory=now_ms)  # of the command that it is a part of
    run_id: str = field(default_factory=lambda: secrets.token_hex(4))
    originals: "OriginalsKeeper | None" = None  # keeps what is replaced or deleted
    engine: Engine | None = None  # of the tasks; None: what was chosen is opened
    chosen: ChosenEngine | None = None  # None: by the options and the plan
    horizons_from_ms: int | None = None  # of new delete horizons; None: the plan's clock
    disk: Disk = LOCAL  # of log and work directories


class _Stopwatch:
    """Times the phases of a round."""

    def __init__(self) -> None:
        self.phases: list[PhaseReport] = []

    @contextmanager
    def phase(self, name: str, log_bytes: int = 0) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.phases.append(PhaseReport(name, time.monotonic() - began, log_bytes))

    def phases_of(self, seconds: float) -> tuple[PhaseReport, ...]:
        """Those of a round that took so long; they add up to it."""
        other = seconds - sum(phase.seconds for phase in self.phases)
        return (*self.phases, PhaseReport(OTHER, other, 0)) if self.phases else ()


class _Cleaned(NamedTuple):
    """What became of the logs that a round took on."""

    reports: list[LogReport]
    groups: Mapping[LogKey, Sequence[MergedSegments]]  # of those that went through
    engine: EngineReport | None = None  # that ran the tasks


def run_round(plan: RoundPlan, settings: RunSettings, progress: ProgressSink) -> CleaningReport:
    """Clean the logs of a plan; in a dry run do all of it but writing.

    The caller holds the locks of the log directories, unless the run is dry.
    """
    began = time.monotonic()
    options = settings.options
    if options.fail_on_corrupt:
        stop_if_corrupt(plan.not_cleaned)
    with ExitStack() as resources:
        this = _Round(plan, settings, progress, resources)
        cleaned = this.cleaned() if plan.logs else _Cleaned([], {})
        reports = add_stray_notes(plan, [*cleaned.reports, *plan.not_cleaned])
        if options.dry_run:
            logs = estimate_retention(plan.retention, reports, cleaned.groups, settings.disk)
        else:
            logs = this.retained(write_checkpoints(plan, reports, settings.disk))
    seconds = time.monotonic() - began
    return CleaningReport(
        version=version(),
        run_id=settings.run_id,
        dry_run=options.dry_run,
        as_of_ms=plan.as_of_ms,
        horizons_from_ms=settings.horizons_from_ms,
        started_at_ms=settings.started_at_ms,
        seconds=seconds,
        logs=logs,
        phases=this.stopwatch.phases_of(seconds),
        notices=notices_of(plan),
        kafka=plan.kafka,
        engine=cleaned.engine,
    )


@dataclass(frozen=True, slots=True)
class _Round:
    """What every step of a round needs."""

    plan: RoundPlan
    settings: RunSettings
    progress: ProgressSink
    resources: ExitStack  # left when all of the round is written
    stopwatch: _Stopwatch = field(default_factory=_Stopwatch)

    def cleaned(self) -> _Cleaned:
        """Open what the tasks need, and take the logs through all stages."""
        plan, settings, disk = self.plan, self.settings, self.settings.disk
        options = settings.options
        with open_work_dir(options.work_dir, settings.run_id, disk) as work_dir:
            facts = RoundSettings(
                run_id=settings.run_id,
                work_dir=work_dir,
                now_ms=plan.as_of_ms,
                hash_key_low=secrets.randbits(64),
                hash_key_high=secrets.randbits(64),
                dry_run=options.dry_run,
                horizons_from_ms=settings.horizons_from_ms,
                io_limit=options.io_limit,
                nice=options.nice,
            )
            with (
                limited(options.io_limit, io_limit_file(work_dir), disk),
                _staged_files_swept(plan, facts, disk),
                _engine(settings, plan.logs, facts, self.stopwatch, self.progress) as engine,
            ):
                cleaned = self._clean(Stages(engine, facts, plan.logs, self.progress, disk))
                if settings.chosen is None:
                    return cleaned
                choice, why = settings.chosen
                return cleaned._replace(engine=EngineReport(choice, engine.core_count(), why))

    def _clean(self, stages: Stages) -> _Cleaned:
        options = self.settings.options
        with self.stopwatch.phase(SCAN, stages.log_bytes()):
            stages.scan()
            _prove_scans(stages)
            if options.map_capacity is not None:
                stages.limit_maps(options.map_capacity)
                _prove_scans(stages)
        with self.stopwatch.phase(RESOLVE, stages.log_bytes()):
            stages.resolve()
            _prove_scans(stages)
            _prove_verdicts(stages)
        if not options.drop_null_keys:
            _spare_null_keys(stages)
        require_exact_bytes(stages.results(), options.exact_bytes)
        if options.fail_on_corrupt:  # every checksum was looked at
            _stop_if_corrupt(stages)
        if options.dry_run:
            with self.stopwatch.phase(REWRITE, stages.log_bytes()):
                swapped = _rewrite_dry(stages, self.settings.disk)
        else:
            swapped = self._rewrite_and_swap(stages)
        results = stages.results()
        reports = [
            log_report(result, swapped.get(result.plan.log_id, Swapped()), options.dry_run)
            for result in results
        ]
        groups = {
            result.plan.key: cleaned_groups(result) for result in results if result.problem is None
        }
        return _Cleaned(reports, groups)

    def _rewrite_and_swap(self, stages: Stages) -> dict[int, Swapped]:
        """Groups are swapped in while others are still being rewritten. By log id."""
        settings, options = self.settings, self.settings.options
        with (
            GroupSwapper(
                settings.run_id, self.progress, settings.originals, settings.disk
            ) as swapper,
            lifted_by_errors(),
        ):
            held: list[tuple[LogPlan, FinishedGroup]] = []

            def take(plan: LogPlan, group: FinishedGroup) -> None:
                _prove_group(stages, plan, group, dry_run=False)
                if stages.is_stopped(plan.log_id):
                    swapper.stop(plan.log_id)
                elif options.fail_on_corrupt or options.exact_bytes:
                    held.append((plan, group))  # until all are known to be sound, and exact
                else:
                    swapper.give(plan, group)

            with self.stopwatch.phase(REWRITE, stages.log_bytes()):
                stages.rewrite(take, swapper.give_piece)
                _prove_round(stages)
                for plan, _ in stages.problems():
                    swapper.stop(plan.log_id)
            if options.fail_on_corrupt:
                _stop_if_corrupt(stages)
            require_exact_bytes(stages.results(), options.exact_bytes)
            for plan, group in held:
                if not stages.is_stopped(plan.log_id):
                    swapper.give(plan, group)
            self.resources.enter_context(background_closes_deferred())
            with self.stopwatch.phase(SWAP_STAGE, stages.log_bytes()):
                self.progress.stage(SWAP_STAGE, sum(len(plan.groups) for plan in stages.sound()))
                swapped = swapper.finish()
                _prove_swaps(stages, swapped)
                return swapped

    def retained(self, reports: list[LogReport]) -> tuple[LogReport, ...]:
        """Apply retention to the logs that the plan chose for it."""
        if not self.plan.retention:
            return tuple(reports)
        with self.stopwatch.phase(RETENTION_STAGE):
            self.progress.stage(RETENTION_STAGE, 0)
            settings = self.settings
            return apply_retention(self.plan.retention, reports, settings.originals, settings.disk)


def _engine(
    settings: RunSettings,
    logs: Sequence[LogPlan],
    facts: RoundSettings,
    stopwatch: _Stopwatch,
    progress: ProgressSink,
) -> AbstractContextManager[Engine]:
    if settings.engine is not None:
        return nullcontext(settings.engine)
    options = settings.options
    chosen = settings.chosen or choose_engine(options, bytes_to_read(logs))
    return open_engine(chosen, options, logs, facts, progress, stopwatch.phase, settings.disk)


@contextmanager
def _staged_files_swept(plan: RoundPlan, facts: RoundSettings, disk: Disk) -> Iterator[None]:
    """Remove the staged files of this run at its end; a dry run stages none.

    That is done once Spark has ended, and its last task with it: a task that is cut off may still
    be writing. What earlier runs left, `recovery.log_dir_recovery` has removed.
    """
    try:
        yield
    except BaseException:
        with deferred_signals():
            # who has not begun by then finds nothing to do
            disk.discard_directory(os.path.join(facts.work_dir, "tasks"))
            wait_for_silence(facts.work_dir, SILENCE_SECONDS, disk)
            if not facts.dry_run:
                _sweep(disk, plan)
        raise
    if not facts.dry_run:
        _sweep(disk, plan)


def _sweep(disk: Disk, plan: RoundPlan) -> None:
    for log in plan.logs:
        # a directory that is gone, or another, fails its own log, no other
        with suppress(FileNotFoundError, DirectoryExchangedError):
            sweep_staged(disk, log.path, STAGED_MARKER)


def _prove_scans(stages: Stages) -> None:
    """Check the scan proofs of all logs that were scanned since the last call."""
    for result in stages.scanned_since():
        plan, parts = result.plan, result.parts
        problem = check_scan(plan, parts)
        _stop(stages, plan, ReasonCode.DAMAGED, problem)
        if problem is None:
            try:
                require_offsets_in_order(plan, parts)
            except CorruptFileError as error:
                stages.stop(plan.log_id, problem_of(plan.log_id, error))


def _prove_verdicts(stages: Stages) -> None:
    for result in _sound(stages):
        problem = check_verdicts(result.parts, result.verdicts)
        _stop_unproven(stages, result.plan, problem)


def _spare_null_keys(stages: Stages) -> None:
    for result in _sound(stages):
        markers = sum(result.transactions.control_records_dropped.values())
        problem = check_null_keys(result.parts, result.verdicts, markers)
        _stop(stages, result.plan, ReasonCode.NULL_KEYS, problem)


def _stop_if_corrupt(stages: Stages) -> None:
    stop_if_corrupt(problem_report(plan, problem) for plan, problem in stages.problems())


def _rewrite_dry(stages: Stages, disk: Disk) -> dict[int, Swapped]:
    """What would be swapped in."""
    would: dict[int, Swapped] = defaultdict(Swapped)

    def take(plan: LogPlan, group: FinishedGroup) -> None:
        _prove_group(stages, plan, group, dry_run=True)
        if stages.is_stopped(plan.log_id) or not needs_joining(group.rewritten):
            return
        try:
            sources = plan.sources_of(group.group)
            segments = joined_segments(plan, sources, group.rewritten, disk)
        except CorruptFileError as error:
            stages.stop(plan.log_id, problem_of(plan.log_id, error))
        else:
            would[plan.log_id] = would[plan.log_id].with_joined(segments)

    stages.rewrite(take)
    _prove_round(stages)
    return would


def _prove_group(stages: Stages, plan: LogPlan, group: FinishedGroup, dry_run: bool) -> None:
    dropped = group.control_records_dropped
    problem = check_group(group.parts, group.rewritten, dropped, dry_run)
    _stop_unproven(stages, plan, problem)


def _prove_round(stages: Stages) -> None:
    for result in _sound(stages):
        groups = len(result.plan.groups)
        problem = check_round(groups, result.verdicts, result.rewritten)
        _stop_unproven(stages, result.plan, problem)


def _prove_swaps(stages: Stages, swapped: Mapping[int, Swapped]) -> None:
    """A log of which a group was never finished is not cleaned, and its checkpoint stays."""
    for plan in stages.sound():
        of_log, groups = swapped.get(plan.log_id, Swapped()), len(plan.groups)
        if of_log.problem is not None:
            stages.stop(plan.log_id, of_log.problem)
        elif of_log.groups != groups:
            problem = f"{of_log.groups} of {groups} segment groups were swapped in"
            _stop_unproven(stages, plan, problem)


def _stop(stages: Stages, plan: LogPlan, code: ReasonCode, problem: str | None) -> None:
    if problem is not None:
        stages.stop(plan.log_id, _driver_problem(plan, code, problem))


def _stop_unproven(stages: Stages, plan: LogPlan, problem: str | None) -> None:
    if problem is not None:
        found = _driver_problem(plan, ReasonCode.FAULTY_MACHINE, problem)
        stages.stop(plan.log_id, found._replace(is_proof=True))


def _driver_problem(plan: LogPlan, code: ReasonCode, problem: str) -> TaskProblem:
    return TaskProblem(log_id=plan.log_id, code=code, path=plan.path, position=-1, problem=problem)


def _sound(stages: Stages) -> list[LogResult]:
    return [result for result in stages.results() if result.problem is None]
