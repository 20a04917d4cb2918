"""What each command but `run` and `undo` does, from checked arguments to a result.

The survey, the engine and whatever shows something are imported when a command needs them, so
that none waits for what it does not use.
"""

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from compactor.command_line import arguments
from compactor.command_line.console import show
from compactor.command_line.requests import (
    DumpArguments,
    DumpFormat,
    Format,
    Result,
    RoundArguments,
    VerifyArguments,
)
from compactor.command_line.round_setup import (
    Premises,
    plan_of,
    premises_of,
    premises_of_round,
    recover_log_dirs,
    told,
    watched,
)
from compactor.exit_codes import ExitCode, UsageError, exit_code_of_statuses
from compactor.host.clock import now_ms
from compactor.host.output import print_line
from compactor.host.printable import printable, size_text
from compactor.host.progress import ProgressSink, open_progress
from compactor.log_dir_lock import lock_log_dirs
from compactor.refusals import refusals, told_by
from compactor.views.report_json import JsonObject, verdict
from storage.files import filesystem
from storage.files.filesystem import require_in_place

if TYPE_CHECKING:
    from compactor.planning.round_plan import RoundPlan
    from compactor.verification.cleaning_clock import CleaningClock
    from compactor.verification.verify import Verification
    from compactor.verification.verify_against import Comparison
    from compactor.views.plan_table import SpaceFacts


def plan(wanted: RoundArguments) -> Result:
    """Survey and select, and show what a round would take on."""
    from compactor.remembered_logs import RememberedLogs
    from compactor.views.plan_table import plan_document, plan_view

    log_dirs = arguments.log_dirs(wanted.log_dirs, to_write=False)
    premises = premises_of_round(wanted, log_dirs, to_write=False)
    remembered = RememberedLogs(log_dirs)
    round_plan = plan_of(premises, log_dirs, remembered.problems)
    space = _space(round_plan) if round_plan.logs else None
    refused = _refusals(wanted, premises, round_plan, space)
    warnings = [*premises.warnings, *remembered.warnings]
    document = plan_document(round_plan, space, refused) | {
        "warnings": told(warnings, wanted.format is Format.TABLE)
    }
    code = exit_code_of_statuses(log.status for log in round_plan.passed_over)
    begin = verdict("plan", code) | {"totals": document["totals"]}
    if wanted.format is Format.TABLE:
        show(lambda width: plan_view(round_plan, width, space, refused, warnings))
    return Result(begin | document, begin)


def recover(wanted: RoundArguments) -> Result:
    """Finish or undo what was cut short, of a broker too; show what was done."""
    log_dirs = arguments.log_dirs(wanted.log_dirs, to_write=True)

    from compactor.views.recovery_report import problems_of, recovery_document

    locks = lock_log_dirs(log_dirs, wanted.allowed_file_systems, after_unclean_shutdown=True)
    with locks, watched(open_progress(sys.stderr)) as progress:
        recovered = recover_log_dirs(log_dirs, premises_of(wanted), progress)
    document = recovery_document(recovered)
    if wanted.format is Format.TABLE:
        from compactor.views.recovery_table import recovery_view

        show(lambda _: recovery_view(recovered))
    code = ExitCode.PARTIAL if problems_of(recovered) else ExitCode.OK
    begin = verdict("recover", code) | {"totals": document["totals"]}
    return Result(begin | document, begin)


def explain(wanted: RoundArguments, topic_partition: str) -> Result:
    """Show every bound of one log, and why it is cleaned or not."""
    from compactor.inspect.explain import explain as explained
    from compactor.remembered_logs import RememberedLogs
    from compactor.views.explanation import explanation_document, explanation_view

    log_dirs = arguments.log_dirs(wanted.log_dirs, to_write=False)
    premises = premises_of(wanted)
    remembered = RememberedLogs(log_dirs)
    found = explained(
        log_dirs, topic_partition, premises.config, premises.as_of_ms, remembered.problems
    )
    begin = verdict("explain", ExitCode.PARTIAL if found.outcome == "set-aside" else ExitCode.OK)
    if wanted.format is Format.TABLE:
        show(lambda _: explanation_view(found))
    document = explanation_document(found) | {"warnings": told(remembered.warnings)}
    return Result(begin | document, begin)


def dump(wanted: DumpArguments, emit: Callable[[str], bool]) -> None:
    """Every line of the dump to emit, which says whether it wants more; no more is read then."""
    path = require_in_place(wanted.path)
    if not filesystem.exists(path):
        raise UsageError(f"PATH {wanted.path}: No such file or directory")

    from compactor.inspect.dump import dump as lines_of

    for line in lines_of(path, wanted.format.value):
        if not emit(line if wanted.format is DumpFormat.JSON else printable(line)):
            return


def verify(wanted: VerifyArguments) -> Result:
    """Check everything, and hold it against a copy from before; show what was found."""
    (log_dir,) = arguments.log_dirs([wanted.log_dir], to_write=False)
    if wanted.against is None and wanted.as_of is not None:
        raise UsageError(f"--as-of {wanted.as_of}: only with --against, for its delete horizons")
    if wanted.against is None and wanted.run_report is not None:
        raise UsageError(f"--run-report {wanted.run_report}: goes with --against")
    if wanted.as_of is not None and wanted.run_report is not None:
        raise UsageError("--as-of: not with --run-report, which has the clock of the run")

    from compactor.verification import verify as verifier

    with open_progress(sys.stderr) as progress:
        compared = _compare(log_dir, wanted, progress) if wanted.against is not None else None
        found = verifier.verify(log_dir, wanted.topic_partition, progress)
    findings = found.findings + (compared.findings if compared else [])
    code = ExitCode.PARTIAL if findings else ExitCode.OK
    begin = verdict("verify", code) | verifier.verification_document(found)
    document: JsonObject = {}
    if compared is not None:
        from compactor.verification.verify_against import comparison_document, partition_documents

        begin |= {"against": comparison_document(compared)}
        document = {"partitions": partition_documents(compared)}
    if wanted.format is Format.TABLE:
        _show_verification(found)
        if compared is not None:
            _show_comparison(compared)
    findings_told = [verifier.finding_document(finding) for finding in findings]
    return Result(begin | {"findings": findings_told} | document, begin)


def _compare(log_dir: str, wanted: VerifyArguments, progress: ProgressSink) -> "Comparison":
    (before,) = arguments.log_dirs([wanted.against or ""], to_write=False)
    if os.path.realpath(before) == os.path.realpath(log_dir):
        raise UsageError(f"--against {wanted.against}: is LOG_DIR itself")
    clock = _clock(wanted)

    from compactor.verification.verify_against import verify_against

    return verify_against(log_dir, before, wanted.topic_partition, clock, progress)


def _clock(wanted: VerifyArguments) -> "CleaningClock":
    from compactor.verification.cleaning_clock import CleaningClock, read_run_report

    if wanted.run_report is not None:
        return read_run_report(wanted.run_report)
    as_of_ms = arguments.as_of_ms(wanted.as_of)
    if as_of_ms is not None:
        return CleaningClock(as_of_ms, is_exact=True)
    return CleaningClock(now_ms())


def _space(plan: "RoundPlan") -> "SpaceFacts":
    from compactor.planning.room import cores_of, places_of
    from compactor.planning.space import plan_space

    places = places_of(plan.logs)
    return places.rooms, plan_space(plan.logs, places, cores_of(None))


def _refusals(
    wanted: RoundArguments, premises: Premises, plan: "RoundPlan", space: "SpaceFacts | None"
) -> list[str]:
    """Why a run over this plan would not be done, in its own words."""
    from compactor.planning.room import with_room

    found = told_by(partial(arguments.log_dirs, wanted.log_dirs, to_write=True))
    found += refusals(
        [log_dir.path for log_dir in plan.log_dirs],
        assume_fully_replicated=premises.config.assume_fully_replicated,
    )
    return found + (told_by(partial(with_room, plan, space[1])) if space else [])


def _show_verification(found: "Verification") -> None:
    for finding in found.findings:
        print_line(printable(str(finding)))
    what = (
        f"{found.partitions:,} partitions, {found.segments:,} segments, {found.batches:,} batches, "
        f"{found.records:,} records, {size_text(found.log_bytes)}"
    )
    count = f"{len(found.findings):,} findings" if found.findings else "all sound"
    print_line(f"{what}: {count}")


def _show_comparison(compared: "Comparison") -> None:
    from compactor.views.against_table import comparison_view

    show(lambda _: comparison_view(compared))
