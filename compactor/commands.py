"""What each command does, from checked arguments to a result; how it ends is `cli`'s affair.

The survey, the engine and whatever shows something are imported when a command needs them, so
that none waits for what it does not use.
"""

import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from compactor import arguments
from compactor.config import Config, load_config, with_filters
from compactor.exit_codes import ExitCode, UsageError, exit_code_of_statuses
from compactor.log_dir_lock import lock_log_dirs
from compactor.output import discard_output, print_error, print_line
from compactor.printable import printable, size_text
from compactor.progress import RECOVERY_STAGE, START_STAGE, ChangeWatch, ProgressSink, open_progress
from compactor.report import CleaningReport
from compactor.report_json import JsonObject, report_document, report_verdict, verdict
from storage import clean_shutdown
from storage.filesystem import require_in_place

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from compactor.plan_table import SpaceFacts
    from compactor.recovery import LogDirRecovery
    from compactor.round_plan import RoundPlan
    from compactor.verify import Verification
    from compactor.verify_against import Comparison

PIPE_WIDTH = 120  # columns where standard output is no terminal: a log file or a mail


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"


class DumpFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class OnCorrupt(StrEnum):
    SET_ASIDE = "set-aside"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundArguments:
    """The words of `plan`, `run` and `recover`, as they were given."""

    log_dirs: tuple[str, ...]
    dry_run: bool = False
    topic_configs: str | None = None
    config: str | None = None
    settings: tuple[str, ...] = ()
    include: str | None = None
    exclude: str | None = None
    as_of: str | None = None
    assume_fully_replicated: bool = False
    work_dir: str | None = None
    master: str | None = None
    map_capacity: int | None = None
    on_corrupt: OnCorrupt = OnCorrupt.SET_ASIDE
    retry: bool = False
    allowed_file_systems: tuple[str, ...] = ()
    keep_originals: str | None = None
    keep_for: str | None = None
    recover_first: bool = False
    format: Format = Format.TABLE
    debug: bool = False


class DumpArguments(NamedTuple):
    path: str
    format: DumpFormat


class VerifyArguments(NamedTuple):
    log_dir: str
    topic_partition: str | None
    against: str | None
    as_of: str | None
    format: Format


class Result(NamedTuple):
    """What a command leaves behind: everything it knows, and the verdict alone."""

    document: JsonObject  # begins with the fields of the verdict
    verdict: JsonObject | None = None  # None: the document is short enough to be one


class StoppedError(Exception):
    """An error that came when log directories may have been changed already."""

    def __init__(self, cause: BaseException, changed: str) -> None:
        super().__init__(str(cause))
        self.cause, self.changed = cause, changed


def plan(wanted: RoundArguments) -> Result:
    """Survey and select, and show what a round would take on."""
    from compactor.plan_table import plan_document, plan_view
    from compactor.remembered_logs import RememberedLogs

    log_dirs = arguments.log_dirs(wanted.log_dirs, to_write=False)
    remembered = RememberedLogs(log_dirs)
    round_plan = _plan(wanted, log_dirs, remembered.problems)
    space = _space(round_plan) if round_plan.logs else None
    document = plan_document(round_plan, space) | {"warnings": _told(remembered.warnings)}
    code = exit_code_of_statuses(log.status for log in round_plan.passed_over)
    begin = verdict("plan", code) | {"totals": document["totals"]}
    if wanted.format is Format.TABLE:
        _show(lambda width: plan_view(round_plan, width, space))
    return Result(begin | document, begin)


def run(wanted: RoundArguments) -> Result:
    """One round, dry or real."""
    log_dirs = arguments.log_dirs(wanted.log_dirs, to_write=not wanted.dry_run)
    work_dir = arguments.work_dir(wanted.work_dir, log_dirs)
    originals_dir = arguments.keep_originals(wanted.keep_originals, log_dirs)
    keep_for_ms = arguments.duration_ms("--keep-for", wanted.keep_for)
    if keep_for_ms is not None and originals_dir is None:
        raise UsageError("--keep-for: of what is kept by --keep-originals, which is not given")
    master = arguments.master(wanted.master)

    from compactor.recovery_report import problems_of, with_recovery_noted
    from compactor.remembered_logs import RememberedLogs

    # The locks come first: what is planned under them is still true when it is done.
    locks = lock_log_dirs(
        log_dirs, wanted.allowed_file_systems, after_unclean_shutdown=wanted.recover_first
    )
    with (
        nullcontext() if wanted.dry_run else locks,
        _watched(open_progress(sys.stderr)) as progress,
    ):
        recovered = [] if wanted.dry_run else _recover(wanted, log_dirs, progress)
        remembered = RememberedLogs(log_dirs, wanted.retry)
        problems = remembered.problems | problems_of(recovered)
        if originals_dir is not None and keep_for_ms is not None and not wanted.dry_run:
            from compactor.kept_run import discard_expired

            discard_expired(originals_dir, time.time_ns() // 1_000_000 - keep_for_ms)
        places = work_dir, originals_dir
        round_plan = _plan_with_room(wanted, log_dirs, problems, places)

        if wanted.on_corrupt is OnCorrupt.FAIL:
            from compactor.log_report import stop_if_corrupt

            stop_if_corrupt(remembered.still_corrupt(round_plan.passed_over))

        from compactor.cleaner_manager import RunSettings, run_round
        from compactor.overflow import split_overflowing

        run_id, originals = secrets.token_hex(4), None
        if originals_dir is not None and not wanted.dry_run:
            from compactor.originals_keeper import open_keeper

            originals = open_keeper(originals_dir, run_id, round_plan)
        round_plan = split_overflowing(
            round_plan,
            lambda: _plan_with_room(wanted, log_dirs, problems, places),
            wanted.dry_run,
            originals,
        )

        settings = RunSettings(
            dry_run=wanted.dry_run,
            work_dir=work_dir,
            master=master,
            debug=wanted.debug,
            map_capacity=wanted.map_capacity,
            run_id=run_id,
            originals=originals,
            fail_on_corrupt=wanted.on_corrupt is OnCorrupt.FAIL,
        )
        if round_plan.logs:
            progress.stage(START_STAGE, 0)
        report = with_recovery_noted(run_round(round_plan, settings, progress), recovered)
        if not wanted.dry_run:
            remembered.update(report.logs, time.time_ns() // 1_000_000)
        report = replace(report, warnings=tuple(_told(remembered.warnings)))
    if wanted.format is Format.TABLE:
        show_report(report)
    return Result(report_document(report), report_verdict(report))


def recover(wanted: RoundArguments) -> Result:
    """Finish or undo what was cut short, of a broker too; show what was done."""
    log_dirs = arguments.log_dirs(wanted.log_dirs, to_write=True)

    from compactor.recovery_report import problems_of, recovery_document

    locks = lock_log_dirs(log_dirs, wanted.allowed_file_systems, after_unclean_shutdown=True)
    with locks, _watched(open_progress(sys.stderr)) as progress:
        recovered = _recover(wanted, log_dirs, progress)
    document = recovery_document(recovered)
    if wanted.format is Format.TABLE:
        from compactor.recovery_table import recovery_view

        _show(lambda _: recovery_view(recovered))
    code = ExitCode.PARTIAL if problems_of(recovered) else ExitCode.OK
    begin = verdict("recover", code) | {"totals": document["totals"]}
    return Result(begin | document, begin)


def explain(wanted: RoundArguments, topic_partition: str) -> Result:
    """Show every bound of one log, and why it is cleaned or not."""
    from compactor import explain as explainer
    from compactor.remembered_logs import RememberedLogs

    (log_dir,) = arguments.log_dirs(wanted.log_dirs, to_write=False)
    as_of_ms = arguments.as_of_ms(wanted.as_of, time.time_ns() // 1_000_000)
    remembered = RememberedLogs([log_dir])
    found = explainer.explain(
        log_dir, topic_partition, _config(wanted), as_of_ms, remembered.problems
    )
    begin = verdict("explain", ExitCode.PARTIAL if found.outcome == "set-aside" else ExitCode.OK)
    if wanted.format is Format.TABLE:
        _show(lambda _: explainer.explanation_view(found))
    document = explainer.explanation_document(found) | {"warnings": _told(remembered.warnings)}
    return Result(begin | document, begin)


def dump(wanted: DumpArguments, emit: Callable[[str], None]) -> None:
    """Every line of the dump to emit."""
    path = require_in_place(wanted.path)
    if not os.path.exists(path):
        raise UsageError(f"PATH {wanted.path}: No such file or directory")

    from compactor.dump import dump as lines_of

    for line in lines_of(path, wanted.format.value):
        emit(line if wanted.format is DumpFormat.JSON else printable(line))


def verify(wanted: VerifyArguments) -> Result:
    """Check everything, and hold it against a copy from before; show what was found."""
    (log_dir,) = arguments.log_dirs([wanted.log_dir], to_write=False)
    if wanted.against is None and wanted.as_of is not None:
        raise UsageError(f"--as-of {wanted.as_of}: goes with --against, whose horizons it is for")

    from compactor import verify as verifier

    with open_progress(sys.stderr) as progress:
        compared = _compare(log_dir, wanted, progress) if wanted.against is not None else None
        found = verifier.verify(log_dir, wanted.topic_partition, progress)
    findings = found.findings + (compared.findings if compared else [])
    code = ExitCode.PARTIAL if findings else ExitCode.OK
    begin = verdict("verify", code) | verifier.verification_document(found)
    document: JsonObject = {}
    if compared is not None:
        from compactor.verify_against import comparison_document, partition_documents

        begin |= {"against": comparison_document(compared)}
        document = {"partitions": partition_documents(compared)}
    if wanted.format is Format.TABLE:
        _show_verification(found)
        if compared is not None:
            _show_comparison(compared)
    told = [verifier.finding_document(finding) for finding in findings]
    return Result(begin | {"findings": told} | document, begin)


def _compare(log_dir: str, wanted: VerifyArguments, progress: ProgressSink) -> "Comparison":
    (before,) = arguments.log_dirs([wanted.against or ""], to_write=False)
    if os.path.realpath(before) == os.path.realpath(log_dir):
        raise UsageError(f"--against {wanted.against}: is LOG_DIR itself")
    as_of_ms = arguments.as_of_ms(wanted.as_of, time.time_ns() // 1_000_000)

    from compactor.verify_against import verify_against

    return verify_against(log_dir, before, wanted.topic_partition, as_of_ms, progress)


def show_report(report: CleaningReport) -> None:
    """The tables of a round on standard output."""
    from compactor.report_table import report_view

    _show(lambda width: report_view(report, width))


def _space(plan: "RoundPlan") -> "SpaceFacts":
    from compactor.room import cores_of, places_of
    from compactor.space import plan_space

    places = places_of(plan.logs)
    return places.rooms, plan_space(plan.logs, places, cores_of(None))


def _plan_with_room(
    wanted: RoundArguments,
    log_dirs: tuple[str, ...],
    problems: Mapping[str, str],
    places: tuple[str | None, str | None],
) -> "RoundPlan":
    """What a run takes on. places: where it works, and where it keeps originals."""
    from compactor.room import space_of, with_room

    found = _plan(wanted, log_dirs, problems)
    if wanted.dry_run or not found.logs:
        return found
    return with_room(found, space_of(found.logs, *places, wanted.master))


def _recover(
    wanted: RoundArguments, log_dirs: tuple[str, ...], progress: ChangeWatch
) -> "list[LogDirRecovery]":
    """What a run does first; with recover_first all that a broker does."""
    from compactor.recovery import LoadRules, recover_log_dir

    rules = None
    if wanted.recover_first:
        now_ms = arguments.as_of_ms(wanted.as_of, time.time_ns() // 1_000_000)
        rules = LoadRules(_config(wanted), now_ms)
    recovered = []
    for log_dir in log_dirs:
        takes_long = wanted.recover_first and not clean_shutdown.exists(log_dir)
        if takes_long:
            progress.stage(RECOVERY_STAGE, 0)
        advance = progress.advance if takes_long else None
        recovered.append(recover_log_dir(log_dir, rules, advance))
        progress.recovered |= bool(recovered[-1].logs)
    return recovered


def _plan(
    wanted: RoundArguments, log_dirs: tuple[str, ...], problems: Mapping[str, str] | None = None
) -> "RoundPlan":
    config = _config(wanted)
    as_of_ms = arguments.as_of_ms(wanted.as_of, time.time_ns() // 1_000_000)

    from compactor.round_plan import plan_round

    return plan_round(log_dirs, config, as_of_ms, problems=problems)


def _told(warnings: list[str]) -> list[str]:
    for warning in warnings:
        print_error(f"compactor: warning: {printable(warning)}")
    return warnings


def _config(wanted: RoundArguments) -> Config:
    settings = dict(arguments.setting(text) for text in wanted.settings)
    config = load_config(wanted.config, wanted.topic_configs, settings)
    config = with_filters(config, wanted.include, wanted.exclude)
    if wanted.assume_fully_replicated:
        config = replace(config, assume_fully_replicated=True)
    return config


@contextmanager
def _watched(progress: AbstractContextManager[ProgressSink]) -> Iterator[ChangeWatch]:
    """A sink under which an error becomes a StoppedError that knows what was changed."""
    with progress as sink:
        watch = ChangeWatch(sink)
        try:
            yield watch
        except (Exception, KeyboardInterrupt) as error:
            raise StoppedError(error, watch.what_was_changed()) from error


def _show(view: "Callable[[int], RenderableType]") -> None:
    console = _console()
    try:
        console.print(view(console.width))
    except BrokenPipeError:
        discard_output()


def _console() -> "Console":
    from rich.console import Console

    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(file=sys.stdout, width=width, highlight=False, markup=False)


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
    from compactor.against_table import comparison_view

    _show(lambda _: comparison_view(compared))
