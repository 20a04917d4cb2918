"""`run`: under the locks recover, plan and run one round."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from cleaner_jobs.messages import SCAN
from cleaner_jobs.niceness import be_nice
from cleaner_jobs.spark.callers_session import given_local_dirs
from cleaner_jobs.spark.java_cache import cache_dir
from cleaner_jobs.staging import STAGED_MARKER
from cleaner_jobs.task_values import SCAN
from cleaner_jobs.tasks.tasks_here import TasksHere
from compactor.api import path_arguments, saved_plans
from compactor.api.arguments import Paths, path_texts
from compactor.api.broker_starts import problems_by_broker
from compactor.api.budgeted_rounds import Turns, in_turns, leaves_out, turns_of
from compactor.api.copies import (
    Copies,
    copied,
    copies_of,
    finished,
    obstacles_to_copies,
)
from compactor.api.forecast import Foreseen, obstacles_before
from compactor.api.path_arguments import (
    output_dirs,
    require_blocks_elsewhere,
    require_linkable,
    require_temporary_elsewhere,
)
from compactor.api.progress import OnProgress, watched
from compactor.api.repairs import recover_log_dirs
from compactor.api.round_context import Premises, plan_of, premises_of_round, without_lasting
from compactor.api.rules import KAFKAS_DEFAULTS, ONE_ROUND, Rules, RunOptions
from compactor.broker_start.reading import Depth
from compactor.broker_start.values import StartProblem
from compactor.cleaning import cleaner_manager
from compactor.cleaning.cleaner_manager import RunSettings
from compactor.cleaning.overflow import Splitting, split_overflowing
from compactor.cleaning.runners import require_own_spark
from compactor.command_context import current_context
from compactor.errors import RefusedError
from compactor.finalizer import may_have_staged
from compactor.host import descriptor_limit
from compactor.host.clock import now_ms
from compactor.host.compiling import UNSET_IT, why_not_compiled
from compactor.host.progress import START_STAGE, ChangeWatch
from compactor.host.run_history import PastRun, remember
from compactor.log_dirs.log_dir_lock import Patience, lock_log_dirs
from compactor.log_dirs.preconditions import obstacles_to
from compactor.log_dirs.remembered_logs import RememberedLogs
from compactor.originals.kept_run import discard_expired
from compactor.originals.originals_keeper import OriginalsKeeper, open_keeper
from compactor.outcome.exit_codes import UsageError
from compactor.outcome.round_report import CleaningReport
from compactor.planning.expected import how_true
from compactor.planning.inventory import with_sections
from compactor.planning.outcomes import Problems
from compactor.planning.reviewed import only_reviewed, require_as_reviewed
from compactor.planning.room import require_room, space_of, with_room
from compactor.planning.round_plan import RoundPlan
from compactor.planning.saved_plan import SavedPlan
from compactor.planning.space import SpacePlan, leaving_out
from compactor.planning.uncleaned import stop_if_corrupt
from compactor.reason_codes import ReasonCode
from compactor.recovery.log_dir_recovery import LogDirRecovery
from compactor.recovery.recovery_account import problems_of, with_recovery_noted
from storage.files.io_limit import limited
from storage.formats import clean_shutdown


class _Places(NamedTuple):
    """Directories of a run, checked."""

    log_dirs: tuple[str, ...]
    work_dir: str | None
    originals_dir: str | None
    copies: tuple[str, ...] = ()  # in which the work is done, where there are any


class _Asked(NamedTuple):
    """What a run is to do, read and checked."""

    options: RunOptions
    directories: _Places
    premises: Premises
    saved: SavedPlan | None  # to be carried out
    turns: Turns


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
    require_own_spark(options.session, options.in_process)
    saved, given = None, path_texts(log_dirs)
    if options.plan is not None:
        saved = saved_plans.read(options.plan, given, rules)
        given, rules = saved.log_dirs, saved_plans.rules_of(saved, options.plan)
    own = _own_places(given, options)
    if options.nice is not None:
        be_nice(options.nice)  # Spark, too, where it is not running yet
    # watched first: a lock that cannot be given back is an error of a run that has done its work
    # Then the locks: what is planned under them is still true when it is done.
    with (
        watched(on_progress) as progress,
        _locks(own, options, progress),
        limited(options.io_limit),  # of copies; a round shares one with its tasks
    ):
        slow = why_not_compiled(os.environ)
        if slow is not None:
            progress.message(f"{slow}. {UNSET_IT}")
        if options.wait_seconds:  # the clock of horizons is not that of when it began to wait
            current_context().started_at_ms = now_ms()
        # before anything is changed
        premises = premises_of_round(rules, own.log_dirs, to_write=not options.dry_run)
        if saved is not None:
            premises = saved_plans.as_reviewed(premises, saved)
        asked = _Asked(options, own, premises, saved, turns_of(rules, premises))
        return _round_on_copies(asked, progress) if own.copies else _round(asked, progress)


def _horizons_from(asked: _Asked) -> int | None:
    """Of a saved plan the present, as a cleaner's: what goes is reviewed, not when it may go."""
    premises = asked.premises
    if asked.saved is None or premises.is_as_of_given:
        return None
    return max(premises.as_of_ms, premises.started_at_ms)


def _locks(
    own: _Places, options: RunOptions, progress: ChangeWatch
) -> AbstractContextManager[None]:
    """None for a run that only reads what it was given."""
    if options.dry_run or own.copies:
        return nullcontext()
    return lock_log_dirs(
        own.log_dirs,
        options.allowed_file_systems,
        after_unclean_shutdown=options.recover_first,
        patience=Patience(options.wait_seconds, progress.message),
    )


def _round_on_copies(asked: _Asked, progress: ChangeWatch) -> CleaningReport:
    options, own, premises, _, turns = asked
    copies = copies_of(own.log_dirs, own.copies, options, premises)
    if options.dry_run:
        return replace(_round(asked, progress, copies), copies=copies.reports())
    with copied(copies, options.allowed_file_systems, progress):
        is_clean = all(clean_shutdown.exists(path, premises.files) for path in own.copies)
        if options.link and not is_clean:
            raise RefusedError(
                f"--link: a broker was started in {' or '.join(own.log_dirs)} during the copy. "
                "Stop it and run again",
                ReasonCode.CHANGED_MEANWHILE,
            )
        there = _Asked(
            replace(options, recover_first=options.recover_first or not is_clean),
            own._replace(log_dirs=own.copies),
            premises.in_copies(dict(zip(own.log_dirs, own.copies, strict=True))),
            None,
            turns,
        )
        return finished(copies, _round(there, progress), progress)


def _own_places(log_dirs: Sequence[str], options: RunOptions) -> _Places:
    is_in_place = not (options.dry_run or options.output)
    paths = path_arguments.log_dirs(log_dirs, to_write=is_in_place)
    copies = output_dirs(options.output, paths)
    require_temporary_elsewhere((*paths, *copies))
    require_blocks_elsewhere(given_local_dirs(os.environ, options.session), (*paths, *copies))
    descriptor_limit.require_enough()
    work_dir = path_arguments.work_dir(options.work_dir, (*paths, *copies))
    originals_dir = path_arguments.keep_originals(options.keep_originals, paths)
    if options.keep_for_ms is not None and originals_dir is None:
        raise UsageError("--keep-for: needs --keep-originals, which is not given")
    if options.output and options.plan is not None:
        raise UsageError(
            "--plan: not with --output; it knows the files of the log directory itself"
        )
    if options.output and originals_dir is not None:
        raise UsageError("--keep-originals: not with --output, which changes no original")
    if options.compacted_only and not options.output:
        raise UsageError("--compacted-only: goes with --output")
    if options.wait_seconds and options.output:
        raise UsageError("--wait: not with --output, which takes no lock of the original")
    if options.link:
        require_linkable(paths, copies, options.recover_first)
    return _Places(paths, work_dir, originals_dir, copies)


def _round(asked: _Asked, progress: ChangeWatch, copies: Copies | None = None) -> CleaningReport:
    options, own, premises, saved, _ = asked
    # nothing of a log that is set aside is settled
    known = RememberedLogs(own.log_dirs, options.retry, premises.files).problems
    foreseen = Foreseen(premises, known)
    recovered = [] if options.dry_run else _recovered(asked, foreseen, progress)
    remembered = RememberedLogs(own.log_dirs, options.retry, premises.files)
    problems: Problems = {
        **remembered.problems,
        **problems_of(recovered),
        **foreseen.refusals,
    }
    if not options.dry_run:
        _discard_expired(asked, progress)
    plan_anew = partial(_plan_with_room, asked, problems)
    whole = _whole_plan(asked, problems)
    if saved is not None:  # held against all that there is, whatever this turn has room for
        require_as_reviewed(saved, whole, str(options.plan))
    plan = _with_room(asked, whole)
    if options.fail_on_corrupt:
        stop_if_corrupt((*remembered.still_corrupt(plan.not_cleaned), *plan.not_cleaned))
    report = with_recovery_noted(_clean(asked, plan, plan_anew, progress), recovered)
    report = with_sections(report, plan.inventory)
    if not options.dry_run:
        _remember_speed(report)
        if not progress.copies:  # what is in a copy is no change of what was given
            current_context().is_changed |= progress.has_changed or _has_changed(report, plan)
    else:
        report = replace(report, notices=(*report.notices, *_refusals(asked, plan, copies)))
    if saved is not None:
        report = replace(report, notices=(*report.notices, how_true(saved.expected, report)))
    start_problems = () if own.copies else _at_start(asked)
    return replace(_remembering(report, asked, remembered), start_problems=start_problems)


def _recovered(asked: _Asked, foreseen: Foreseen, progress: ChangeWatch) -> list[LogDirRecovery]:
    options, own, premises = asked[:3]
    return recover_log_dirs(
        own.log_dirs,
        premises,
        progress,
        as_broker=options.recover_first,
        why_set_aside=foreseen.why_set_aside,
    )


def _remembering(
    report: CleaningReport, asked: _Asked, remembered: RememberedLogs
) -> CleaningReport:
    """Say what is new, what lasts and what has passed since earlier runs, and write it down."""
    premises = asked.premises
    conditions = list(premises.conditions.values())
    lasting = remembered.lasting(premises.conditions)
    passed = tuple(remembered.well_again(report.logs, conditions))
    if not asked.options.dry_run:
        remembered.update(report.logs, premises.started_at_ms, conditions)
    return replace(
        report,
        notices=(*report.notices, *lasting.values(), *passed),
        warnings=(*without_lasting(premises, lasting), *remembered.warnings),
    )


def _at_start(asked: _Asked) -> tuple[StartProblem, ...]:
    """Say what a start where the work was done would not do well with; not of copies."""
    return problems_by_broker(asked.directories.log_dirs, asked.premises.files, Depth.ENDS)


def _remember_speed(report: CleaningReport) -> None:
    """For the estimates of later plans. A round without a Spark of its own says nothing of them."""
    log_bytes = sum(phase.log_bytes for phase in report.phases if phase.name == SCAN)
    if report.start_seconds > 0:
        past = PastRun(now_ms(), report.start_seconds, report.work_seconds, log_bytes)
        remember(cache_dir(os.environ), past)


def _has_changed(report: CleaningReport, plan: RoundPlan) -> bool:
    """Whether a round that came to its end has deleted segments, or set a checkpoint right."""
    deleted = any(log.retention.deleted.segments for log in report.logs)
    return deleted or bool(plan.checkpoint_repairs or plan.stray_entries)


def _clean(
    asked: _Asked, plan: RoundPlan, plan_anew: Callable[[], RoundPlan], progress: ChangeWatch
) -> CleaningReport:
    options, run_id = asked.options, current_context().take_run_id()
    with _keeper(asked, run_id, plan) as originals:
        splitting = Splitting(options.dry_run, originals, progress.split, asked.premises.files)
        progress.kept_in = originals.path if originals else None
        settings = RunSettings(
            dry_run=options.dry_run,
            started_at_ms=asked.premises.started_at_ms,
            horizons_from_ms=_horizons_from(asked),
            work_dir=asked.directories.work_dir,
            master=options.master,
            executor_paths=options.executor_paths,
            map_capacity=options.map_capacity,
            run_id=run_id,
            originals=originals,
            exact_bytes=options.exact_bytes,
            drop_null_keys=options.drop_null_keys,
            fail_on_corrupt=options.fail_on_corrupt,
            session=options.session,
            runner=InProcessTasks() if options.in_process else None,
            files=asked.premises.files,
            io_limit=options.io_limit,
            nice=options.nice,
        )

        def turn(plan: RoundPlan) -> CleaningReport:
            progress.turn()
            plan = split_overflowing(plan, plan_anew, splitting)
            progress.leaves_out = leaves_out(plan)
            if plan.logs:
                progress.stage(START_STAGE, 0)
            try:
                return cleaner_manager.run_round(plan, settings, progress)
            except BaseException:  # the sweep, too, may have failed
                if not options.dry_run:
                    directories = [log.path for log in plan.logs]
                    left = may_have_staged(settings.files, directories, STAGED_MARKER)
                    progress.staged_is_left = left
                raise

        may_refuse = options.fail_on_corrupt or options.exact_bytes  # which may end before any swap
        one_turn = options.dry_run or may_refuse
        report = turn(plan) if one_turn else in_turns(asked.turns, plan, plan_anew, turn)
        return replace(report, originals=originals.report() if originals else None)


def _refusals(asked: _Asked, plan: RoundPlan, copies: Copies | None) -> list[str]:
    """Why a real run would be refused, or would leave out logs that the dry run has shown."""
    options, own, premises = asked[:3]
    replicated = premises.config.assume_fully_replicated
    known = options.allowed_file_systems, options.recover_first, replicated
    if copies is not None:
        refused = obstacles_to_copies(copies, options.allowed_file_systems)
    else:
        refused = obstacles_before(own.log_dirs, *known)
    for_none, left = [], []
    if copies is None and plan.logs:  # what a copy leaves free is known when it is made
        space = _space(asked, plan)
        for_none = obstacles_to(partial(require_room, plan, space))
        left = [] if for_none else leaving_out(space)
    met = (*refused, *for_none)
    return left + [f"A run would be refused: {obstacle.text}" for obstacle in met]


def _discard_expired(asked: _Asked, progress: ChangeWatch) -> None:
    """Before the plan: the room that it frees counts."""
    directory, keep_for_ms = asked.directories.originals_dir, asked.options.keep_for_ms
    if directory is not None and keep_for_ms is not None:
        started_before_ms = asked.premises.started_at_ms - keep_for_ms
        discard_expired(directory, started_before_ms, progress.discard, asked.premises.files)


@contextmanager
def _keeper(asked: _Asked, run_id: str, plan: RoundPlan) -> Iterator[OriginalsKeeper | None]:
    directory, began_ms = asked.directories.originals_dir, asked.premises.started_at_ms
    if asked.options.dry_run or directory is None:
        yield None
        return
    with closing(open_keeper(directory, run_id, began_ms, plan, asked.premises.files)) as keeper:
        yield keeper


def _plan_with_room(asked: _Asked, problems: Problems) -> RoundPlan:
    """What a turn of a run takes on."""
    return _with_room(asked, _whole_plan(asked, problems))


def _whole_plan(asked: _Asked, problems: Problems) -> RoundPlan:
    """What a run would take on if it had all the room and time."""
    options, _, premises, saved, _ = asked
    found = plan_of(premises, problems)
    if saved is not None:
        found = only_reviewed(saved, found)
    return found if options.retention else replace(found, retention=())


def _with_room(asked: _Asked, plan: RoundPlan) -> RoundPlan:
    """What of it a turn takes on."""
    plan = asked.turns.within(plan)
    if asked.options.dry_run or not plan.logs:
        return plan
    return with_room(plan, _space(asked, plan))


def _space(asked: _Asked, plan: RoundPlan) -> SpacePlan:
    options, own = asked[:2]
    all_staged = options.fail_on_corrupt or options.exact_bytes  # until all is known
    return space_of(plan.logs, own.work_dir, own.originals_dir, options.master, all_staged)
