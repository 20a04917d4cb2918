"""`run`: under the locks recover, plan and run one round."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from cleaner_jobs.messages import SCAN
from cleaner_jobs.niceness import be_nice
from cleaner_jobs.spark.callers_session import local_dirs_in_use
from cleaner_jobs.staging import STAGED_MARKER
from cleaner_jobs.user_cache import cache_dir
from compactor.api import path_arguments, saved_plans
from compactor.api.arguments import Paths, path_texts
from compactor.api.broker_starts import problems_by_broker
from compactor.api.budgeted_rounds import (
    BudgetedRounds,
    budgeted_rounds_of,
    is_any_left,
    run_until_spent,
)
from compactor.api.copies import (
    Copies,
    copies_of,
    finish_copies,
    make_copies,
    obstacles_to_copies,
)
from compactor.api.forecast import SetAsideLogs, obstacles_before_plan
from compactor.api.path_arguments import (
    output_dirs,
    require_blocks_elsewhere,
    require_linkable,
    require_temporary_elsewhere,
)
from compactor.api.progress import OnProgress, watch_changes
from compactor.api.repairs import recover_log_dirs
from compactor.api.round_context import (
    RoundContext,
    plan_of,
    require_round_context,
    without_lasting,
)
from compactor.broker_start.reading import Depth
from compactor.cleaning import cleaner_manager
from compactor.cleaning.cleaner_manager import RunSettings
from compactor.cleaning.overflow import Splitting, split_overflowing
from compactor.command_context import current_context
from compactor.errors import RefusedError, UsageError
from compactor.finalizer import may_have_staged
from compactor.host import machine
from compactor.host.clock import now_ms
from compactor.host.machine import UNSET_IT, why_not_compiled
from compactor.host.progress import START_STAGE, ChangeWatch
from compactor.host.run_history import PastRun, remember
from compactor.jobs.engine_choice import bytes_to_read, choose_engine, require_possible_engine
from compactor.log_dirs.locked_log_dirs import Patience, lock_log_dirs
from compactor.log_dirs.preconditions import obstacles_to
from compactor.log_dirs.set_aside_memory import RememberedLogs
from compactor.originals.kept_run import discard_expired
from compactor.originals.originals_keeper import OriginalsKeeper, open_keeper
from compactor.outcome.round_report import CleaningReport
from compactor.outcome.start_problems import StartProblem
from compactor.planning.expected import compare_with_run
from compactor.planning.inventory import with_sections
from compactor.planning.outcomes import Problems
from compactor.planning.round_plan import RoundPlan
from compactor.planning.saved_plan import (
    SavedPlan,
    drop_unreviewed_retention,
    require_unchanged_since_review,
)
from compactor.planning.skipped_logs import stop_if_corrupt
from compactor.planning.space import SpacePlan, leaving_out, require_room, space_of, with_room
from compactor.reason_codes import ReasonCode
from compactor.recovery.log_dir_recovery import LogDirRecovery, problems_of, with_recovery_noted
from compactor.settings.rules import KAFKAS_DEFAULTS, ONE_ROUND, Rules, RunOptions
from storage.files.io_limit import limited
from storage.formats import clean_shutdown


class _RunRequest(NamedTuple):
    """What a run is to do, read and checked."""

    options: RunOptions  # its directories are local paths; with `output` the work is done there
    log_dirs: tuple[str, ...]  # in which the work is done
    context: RoundContext
    saved: SavedPlan | None  # to be carried out
    rounds: BudgetedRounds


def run(
    log_dirs: Paths,
    rules: Rules = KAFKAS_DEFAULTS,
    options: RunOptions = ONE_ROUND,
    on_progress: OnProgress | None = None,
) -> CleaningReport:
    """Run one round, dry or real; the report says what became of each log.

    Raise ConfigError and RefusedError before anything is changed. Raise CorruptLogError,
    CleaningFailedError, LockLostError and OSError if the round as a whole fails; then
    `what_was_changed` says what had been changed.
    """
    require_possible_engine(options)
    saved, given = None, path_texts(log_dirs)
    if options.plan is not None:
        saved = saved_plans.read(options.plan, given, rules)
        given, rules = saved.log_dirs, saved_plans.rules_of(saved, options.plan)
    paths, options = _checked_directories(given, options)
    if options.nice is not None:
        be_nice(options.nice)  # Spark, too, where it is not running yet
    # watched first: a lock that cannot be given back is an error of a run that has done its work
    # Then the locks: what is planned under them is still true when it is done.
    with (
        watch_changes(on_progress) as progress,
        _locks(paths, options, progress),
        limited(options.io_limit),  # of copies; a round shares one with its tasks
    ):
        slow = why_not_compiled(os.environ)
        if slow is not None:
            progress.message(f"{slow}. {UNSET_IT}")
        if options.wait_seconds:  # the clock of horizons is not that of when it began to wait
            current_context().started_at_ms = now_ms()
        # before anything is changed
        context = require_round_context(rules, paths, to_write=not options.dry_run)
        if saved is not None:
            context = saved_plans.as_reviewed(context, saved)
        request = _RunRequest(options, paths, context, saved, budgeted_rounds_of(rules, context))
        return _round_on_copies(request, progress) if options.output else _round(request, progress)


def _horizons_from(request: _RunRequest) -> int | None:
    """Return when delete horizons start: with a saved plan now, not when the plan was saved."""
    context = request.context
    if request.saved is None or context.is_as_of_given:
        return None
    return max(context.as_of_ms, context.started_at_ms)


def _locks(
    log_dirs: Sequence[str], options: RunOptions, progress: ChangeWatch
) -> AbstractContextManager[None]:
    """Lock the log directories; not those that are only read."""
    if options.dry_run or options.output:
        return nullcontext()
    return lock_log_dirs(
        log_dirs,
        options.allowed_file_systems,
        after_unclean_shutdown=options.recover_first,
        patience=Patience(options.wait_seconds, progress.message),
    )


def _round_on_copies(request: _RunRequest, progress: ChangeWatch) -> CleaningReport:
    options, log_dirs, context, _, rounds = request
    copies = copies_of(log_dirs, options, context)
    if options.dry_run:
        return replace(_round(request, progress, copies), copies=copies.reports())
    with make_copies(copies, options.allowed_file_systems, progress):
        is_clean = all(clean_shutdown.exists(path, context.files) for path in options.output)
        if options.link and not is_clean:
            raise RefusedError(
                f"--link: a broker was started in {' or '.join(log_dirs)} during the "
                "copy. Stop it and run again",
                ReasonCode.CHANGED_MEANWHILE,
            )
        there = _RunRequest(
            replace(options, recover_first=options.recover_first or not is_clean),
            options.output,
            context.in_copies(dict(zip(log_dirs, options.output, strict=True))),
            None,
            rounds,
        )
        return finish_copies(copies, _round(there, progress), progress)


def _checked_directories(
    log_dirs: Sequence[str], options: RunOptions
) -> tuple[tuple[str, ...], RunOptions]:
    """Return the local paths of the log directories, and the options with those of their own."""
    is_in_place = not (options.dry_run or options.output)
    paths = path_arguments.log_dirs(log_dirs, to_write=is_in_place)
    copies = output_dirs(options.output, paths)
    require_temporary_elsewhere((*paths, *copies))
    require_blocks_elsewhere(local_dirs_in_use(os.environ, options.session), (*paths, *copies))
    machine.require_open_files()
    work_dir = path_arguments.work_dir(options.work_dir, (*paths, *copies))
    originals_dir = path_arguments.keep_originals(options.keep_originals, paths)
    if options.keep_for_ms is not None and originals_dir is None:
        raise UsageError("needs {}, which is not given", "keep_for_ms", None, ["keep_originals"])
    if options.output and options.plan is not None:
        raise UsageError(
            "not with {}; it knows the files of the log directory itself", "plan", None, ["output"]
        )
    if options.output and originals_dir is not None:
        raise UsageError(
            "not with {}, which changes no original", "keep_originals", None, ["output"]
        )
    if options.compacted_only and not options.output:
        raise UsageError("goes with {}", "compacted_only", None, ["output"])
    if options.wait_seconds and options.output:
        raise UsageError(
            "not with {}, which takes no lock of the original", "wait_seconds", None, ["output"]
        )
    if options.link:
        require_linkable(paths, copies, options.recover_first)
    own = replace(options, work_dir=work_dir, keep_originals=originals_dir, output=copies)
    return paths, own


def _round(
    request: _RunRequest, progress: ChangeWatch, copies: Copies | None = None
) -> CleaningReport:
    options, log_dirs, context, saved, _ = request
    # nothing of a log that is set aside is settled
    known = RememberedLogs(log_dirs, options.retry, context.files).problems
    set_aside = SetAsideLogs(context, known)
    recovered = [] if options.dry_run else _recovered(request, set_aside, progress)
    remembered = RememberedLogs(log_dirs, options.retry, context.files)
    problems: Problems = {
        **remembered.problems,
        **problems_of(recovered),
        **set_aside.refusals,
    }
    if not options.dry_run:
        _discard_expired(request, progress)
    plan_again = partial(_plan_within_space, request, problems)
    whole = _whole_plan(request, problems)
    if saved is not None:  # held against all that there is, whatever this turn has room for
        require_unchanged_since_review(saved, whole, str(options.plan))
    plan = _within_space(request, whole)
    if options.fail_on_corrupt:
        stop_if_corrupt((*remembered.still_corrupt(plan.not_cleaned), *plan.not_cleaned))
    report = with_recovery_noted(_clean(request, plan, plan_again, progress), recovered)
    report = with_sections(report, plan.inventory)
    if not options.dry_run:
        _remember_speed(report)
        if not progress.copies:  # what is in a copy is no change of what was given
            current_context().is_changed |= progress.has_changed or _has_changed(report, plan)
    else:
        report = replace(report, notices=(*report.notices, *_refusals(request, plan, copies)))
    if saved is not None:
        report = replace(
            report, notices=(*report.notices, compare_with_run(saved.expected, report))
        )
    start_problems = () if options.output else _at_start(request)
    return replace(_remembering(report, request, remembered), start_problems=start_problems)


def _recovered(
    request: _RunRequest, set_aside: SetAsideLogs, progress: ChangeWatch
) -> list[LogDirRecovery]:
    options, log_dirs, context = request[:3]
    return recover_log_dirs(
        log_dirs,
        context,
        progress,
        as_broker=options.recover_first,
        why_set_aside=set_aside.why_set_aside,
    )


def _remembering(
    report: CleaningReport, request: _RunRequest, remembered: RememberedLogs
) -> CleaningReport:
    """Say what is new, what lasts and what has passed since earlier runs, and write it down."""
    context = request.context
    conditions = list(context.conditions.values())
    lasting = remembered.lasting(context.conditions)
    passed = tuple(remembered.well_again(report.logs, conditions))
    if not request.options.dry_run:
        remembered.update(report.logs, context.started_at_ms, conditions)
    return replace(
        report,
        notices=(*report.notices, *lasting.values(), *passed),
        warnings=(*without_lasting(context, lasting), *remembered.warnings),
    )


def _at_start(request: _RunRequest) -> tuple[StartProblem, ...]:
    """Return the problems of a broker's start on the log directories."""
    return problems_by_broker(request.log_dirs, request.context.files, Depth.ENDS)


def _remember_speed(report: CleaningReport) -> None:
    """Remember the speed for the estimates of later plans, of a round that started Spark."""
    log_bytes = sum(phase.log_bytes for phase in report.phases if phase.name == SCAN)
    if report.start_seconds > 0:
        past = PastRun(now_ms(), report.start_seconds, report.work_seconds, log_bytes)
        remember(cache_dir(os.environ), past)


def _has_changed(report: CleaningReport, plan: RoundPlan) -> bool:
    """Return whether a complete round has deleted segments, or repaired a checkpoint."""
    deleted = any(log.retention.deleted.segments for log in report.logs)
    return deleted or bool(plan.checkpoint_repairs or plan.stray_entries)


def _clean(
    request: _RunRequest,
    plan: RoundPlan,
    plan_again: Callable[[], RoundPlan],
    progress: ChangeWatch,
) -> CleaningReport:
    options, run_id = request.options, current_context().take_run_id()
    with _keeper(request, run_id, plan) as originals:
        splitting = Splitting(options.dry_run, originals, progress.split, request.context.disk)
        progress.kept_in = originals.path if originals else None
        settings = RunSettings(
            options=options,
            started_at_ms=request.context.started_at_ms,
            horizons_from_ms=_horizons_from(request),
            run_id=run_id,
            originals=originals,
            disk=request.context.disk,
            chosen=choose_engine(options, bytes_to_read(plan.logs)) if plan.logs else None,
        )

        def turn(plan: RoundPlan) -> CleaningReport:
            progress.turn()
            plan = split_overflowing(plan, plan_again, splitting)
            progress.leaves_out = is_any_left(plan)
            if plan.logs:
                progress.stage(START_STAGE, 0)
            try:
                return cleaner_manager.run_round(plan, settings, progress)
            except BaseException:  # the sweep, too, may have failed
                if not options.dry_run:
                    paths = [log.path for log in plan.logs]
                    left = may_have_staged(settings.disk, paths, STAGED_MARKER)
                    progress.staged_is_left = left
                raise

        may_refuse = options.fail_on_corrupt or options.exact_bytes  # which may end before any swap
        one_turn = options.dry_run or may_refuse
        report = turn(plan) if one_turn else run_until_spent(request.rounds, plan, plan_again, turn)
        return replace(report, originals=originals.report() if originals else None)


def _refusals(request: _RunRequest, plan: RoundPlan, copies: Copies | None) -> list[str]:
    """Return why a real run would be refused, or would leave out logs of the dry run."""
    options, log_dirs, context = request[:3]
    replicated = context.config.assume_fully_replicated
    known = options.allowed_file_systems, options.recover_first, replicated
    if copies is not None:
        refused = obstacles_to_copies(copies, options.allowed_file_systems)
    else:
        refused = obstacles_before_plan(log_dirs, *known)
    for_none, left = [], []
    if copies is None and plan.logs:  # what a copy leaves free is known when it is made
        space = _space(request, plan)
        for_none = obstacles_to(partial(require_room, plan, space))
        left = [] if for_none else leaving_out(space)
    met = (*refused, *for_none)
    return left + [f"A run would be refused: {obstacle.text}" for obstacle in met]


def _discard_expired(request: _RunRequest, progress: ChangeWatch) -> None:
    """Discard expired originals before the plan, since the space that this frees counts."""
    directory, keep_for_ms = request.options.keep_originals, request.options.keep_for_ms
    if directory is not None and keep_for_ms is not None:
        started_before_ms = request.context.started_at_ms - keep_for_ms
        discard_expired(directory, started_before_ms, progress.discard, request.context.disk)


@contextmanager
def _keeper(request: _RunRequest, run_id: str, plan: RoundPlan) -> Iterator[OriginalsKeeper | None]:
    directory, began_ms = request.options.keep_originals, request.context.started_at_ms
    if request.options.dry_run or directory is None:
        yield None
        return
    with closing(open_keeper(directory, run_id, began_ms, plan, request.context.disk)) as keeper:
        yield keeper


def _plan_within_space(request: _RunRequest, problems: Problems) -> RoundPlan:
    """Plan what one round of a run takes on."""
    return _within_space(request, _whole_plan(request, problems))


def _whole_plan(request: _RunRequest, problems: Problems) -> RoundPlan:
    """Plan what a run would take on with unlimited space and time."""
    options, _, context, saved, _ = request
    found = plan_of(context, problems)
    if saved is not None:
        found = drop_unreviewed_retention(saved, found)
    return found if options.retention else replace(found, retention=())


def _within_space(request: _RunRequest, plan: RoundPlan) -> RoundPlan:
    """Return what of a plan one round takes on."""
    plan = request.rounds.within(plan)
    if request.options.dry_run or not plan.logs:
        return plan
    return with_room(plan, _space(request, plan))


def _space(request: _RunRequest, plan: RoundPlan) -> SpacePlan:
    options = request.options
    all_staged = options.fail_on_corrupt or options.exact_bytes  # until all is known
    return space_of(
        plan.logs,
        options.work_dir,
        options.keep_originals,
        options.master,
        all_staged,
        request.context.disk,
    )
