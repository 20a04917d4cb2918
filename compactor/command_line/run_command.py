"""What `run` does: under the locks recover, plan and run one round; then show what became of it.

The engine and whatever shows something are imported when they are needed.
"""

import secrets
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from compactor.command_line import arguments
from compactor.command_line.console import show
from compactor.command_line.own_places import require_temporary_elsewhere
from compactor.command_line.requests import Format, OnCorrupt, Result, RoundArguments
from compactor.command_line.round_setup import (
    Premises,
    plan_of,
    premises_of_round,
    recover_log_dirs,
    told,
    watched,
)
from compactor.exit_codes import UsageError
from compactor.host import descriptor_limit
from compactor.host.progress import START_STAGE, ChangeWatch, open_progress
from compactor.log_dir_lock import lock_log_dirs
from compactor.round_report import CleaningReport
from compactor.views.report_json import report_document, report_verdict

if TYPE_CHECKING:
    from compactor.originals.originals_keeper import OriginalsKeeper
    from compactor.planning.round_plan import RoundPlan


@dataclass(frozen=True, slots=True)
class _Places:
    """Directories of a run, checked."""

    log_dirs: tuple[str, ...]
    work_dir: str | None
    originals_dir: str | None
    keep_for_ms: int | None
    master: str | None


class _Asked(NamedTuple):
    """What a run is to do, read and checked."""

    wanted: RoundArguments
    places: _Places
    premises: Premises


def run(wanted: RoundArguments) -> Result:
    """One round, dry or real."""
    places = _places(wanted)
    # The locks come first: what is planned under them is still true when it is done.
    locks = lock_log_dirs(
        places.log_dirs, wanted.allowed_file_systems, after_unclean_shutdown=wanted.recover_first
    )
    with (
        nullcontext() if wanted.dry_run else locks,
        watched(open_progress(sys.stderr)) as progress,
    ):
        report = _round(wanted, places, progress)
    if wanted.format is Format.TABLE:
        show_report(report)
    return Result(report_document(report), report_verdict(report))


def show_report(report: CleaningReport) -> None:
    """The tables of a round on standard output."""
    from compactor.views.report_table import report_view

    show(lambda width: report_view(report, width))


def _places(wanted: RoundArguments) -> _Places:
    log_dirs = arguments.log_dirs(wanted.log_dirs, to_write=not wanted.dry_run)
    descriptor_limit.require_enough()
    require_temporary_elsewhere(log_dirs)
    work_dir = arguments.work_dir(wanted.work_dir, log_dirs)
    originals_dir = arguments.keep_originals(wanted.keep_originals, log_dirs)
    keep_for_ms = arguments.duration_ms("--keep-for", wanted.keep_for)
    if keep_for_ms is not None and originals_dir is None:
        raise UsageError("--keep-for: needs --keep-originals, which is not given")
    master = arguments.master(wanted.master)
    return _Places(log_dirs, work_dir, originals_dir, keep_for_ms, master)


def _round(wanted: RoundArguments, places: _Places, progress: ChangeWatch) -> CleaningReport:
    from compactor.remembered_logs import RememberedLogs
    from compactor.views.recovery_report import problems_of, with_recovery_noted

    # before anything is changed
    premises = premises_of_round(wanted, places.log_dirs, to_write=not wanted.dry_run)
    first = premises if wanted.recover_first else None
    recovered = [] if wanted.dry_run else recover_log_dirs(places.log_dirs, first, progress)
    remembered = RememberedLogs(places.log_dirs, wanted.retry)
    problems = remembered.problems | problems_of(recovered)
    if not wanted.dry_run:
        _discard_expired(places, premises, progress)
    asked = _Asked(wanted, places, premises)
    plan_anew = partial(_plan_with_room, asked, problems)
    plan = plan_anew()
    if wanted.on_corrupt is OnCorrupt.FAIL:
        from compactor.planning.uncleaned import stop_if_corrupt

        stop_if_corrupt((*remembered.still_corrupt(plan.passed_over), *plan.passed_over))
    report = with_recovery_noted(_clean(asked, plan, plan_anew, progress), recovered)
    if not wanted.dry_run:
        remembered.update(report.logs, premises.started_at_ms)
    else:
        report = replace(report, notices=(*report.notices, *_refusals(asked)))
    warnings = [*premises.warnings, *remembered.warnings]
    return replace(report, warnings=tuple(told(warnings, wanted.format is Format.TABLE)))


def _clean(
    asked: _Asked,
    plan: "RoundPlan",
    plan_anew: Callable[[], "RoundPlan"],
    progress: ChangeWatch,
) -> CleaningReport:
    from compactor.cleaning.cleaner_manager import RunSettings, run_round
    from compactor.cleaning.overflow import split_overflowing

    wanted, places, premises = asked
    run_id = secrets.token_hex(4)
    with _keeper(asked, run_id, plan) as originals:
        progress.kept_in = originals.path if originals else None
        plan = split_overflowing(
            plan,
            plan_anew,
            wanted.dry_run,
            originals,
            progress.split,
        )
        settings = RunSettings(
            dry_run=wanted.dry_run,
            started_at_ms=premises.started_at_ms,
            work_dir=places.work_dir,
            master=places.master,
            debug=wanted.debug,
            map_capacity=wanted.map_capacity,
            run_id=run_id,
            originals=originals,
            drop_null_keys=wanted.drop_null_keys,
            fail_on_corrupt=wanted.on_corrupt is OnCorrupt.FAIL,
        )
        if plan.logs:
            progress.stage(START_STAGE, 0)
        report = run_round(plan, settings, progress)
        return replace(report, originals=originals.report() if originals else None)


def _refusals(asked: _Asked) -> list[str]:
    """Why what a dry run has shown would not be done."""
    wanted, places, premises = asked
    from compactor.refusals import refusals

    replicated = premises.config.assume_fully_replicated
    known = wanted.allowed_file_systems, wanted.recover_first, replicated
    return [f"A run would be refused: {why}" for why in refusals(places.log_dirs, *known)]


def _discard_expired(places: _Places, premises: Premises, progress: ChangeWatch) -> None:
    """Before the plan: the room that it frees counts."""
    if places.originals_dir is not None and places.keep_for_ms is not None:
        from compactor.originals.kept_run import discard_expired

        started_before_ms = premises.started_at_ms - places.keep_for_ms
        discard_expired(places.originals_dir, started_before_ms, progress.discard)


@contextmanager
def _keeper(asked: _Asked, run_id: str, plan: "RoundPlan") -> "Iterator[OriginalsKeeper | None]":
    directory, began_ms = asked.places.originals_dir, asked.premises.started_at_ms
    if asked.wanted.dry_run or directory is None:
        yield None
        return
    from compactor.originals.originals_keeper import open_keeper

    with closing(open_keeper(directory, run_id, began_ms, plan)) as keeper:
        yield keeper


def _plan_with_room(asked: _Asked, problems: Mapping[str, str]) -> "RoundPlan":
    """What a run takes on."""
    wanted, places, premises = asked
    from compactor.planning.room import space_of, with_room

    found = plan_of(premises, places.log_dirs, problems)
    if wanted.dry_run or not found.logs:
        return found
    all_staged = wanted.on_corrupt is OnCorrupt.FAIL  # until every one is known to be sound
    own = places.work_dir, places.originals_dir, places.master
    space = space_of(found.logs, *own, all_staged)
    return with_room(found, space)
