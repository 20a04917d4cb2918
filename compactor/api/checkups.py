"""`doctor`: whether this machine, and log directories on it, are fit for a run. Reads only."""

import os
from collections.abc import Iterable, Sequence

from compactor.api import forecast, path_arguments
from compactor.api.arguments import Paths, path_texts
from compactor.api.broker_starts import start_problems
from compactor.api.plans import plan
from compactor.diagnosis.checks import Check, CheckedLogDir, Checkup, fail, with_command
from compactor.diagnosis.log_dir_checks import (
    Foreseen,
    log_dir_checks,
    missing_log_checks,
    obstacle_checks,
)
from compactor.diagnosis.machine_checks import machine_checks
from compactor.diagnosis.spark_checks import spark_checks
from compactor.host.clock import now_ms
from compactor.host.shell_commands import compactor
from compactor.log_dirs.directory_state import require_may_change
from compactor.log_dirs.preconditions import RunEnding
from compactor.outcome.exit_codes import error_line
from compactor.outcome.start_problems import StartProblem
from compactor.settings.rules import KAFKAS_DEFAULTS, option_names
from storage.errors import LogCompactionError


def doctor(log_dirs: Paths = (), start_spark: bool = False) -> Checkup:
    """Check everything that a run needs. A problem is a check of its own, and never raised.

    A run is one on all these log directories, without options. start_spark: also start Spark, and
    let it do one small job.
    """
    machine = (*machine_checks(os.environ), *spark_checks(os.environ, start_spark))
    given = path_texts(log_dirs)
    if not given:
        return Checkup(machine, ())
    ending = _foreseen(given)
    foreseen = Foreseen(ending.obstacles, ending.not_cleaned)
    every, starts = _start_on_all(given)
    foreseen = foreseen._replace(log_dirs=every)
    of_log_dirs = tuple(CheckedLogDir(path, _of_log_dir(path, foreseen, starts)) for path in given)
    checks = (*machine, *(check for _, checks in of_log_dirs for check in checks))
    said = {(check.found, check.advice) for check in checks}
    beside = [
        check
        for check in obstacle_checks(ending.obstacles)
        if (check.found, check.advice) not in said
    ]
    return Checkup(machine, of_log_dirs, tuple(beside), ending)


def _foreseen(log_dirs: Sequence[str]) -> RunEnding:
    try:
        return plan(log_dirs).run
    except (LogCompactionError, OSError) as error:
        return forecast.ending_of_failed_plan(log_dirs, KAFKAS_DEFAULTS, error)


def _of_log_dir(
    path: str, run: Foreseen, starts: Sequence[StartProblem] | None
) -> tuple[Check, ...]:
    """Check one log directory. starts: of a start on all of them; None: unknown."""
    missing: list[Check] = []
    try:
        (local,) = path_arguments.log_dirs([path], to_write=False)
        missing = missing_log_checks(local, run.log_dirs)
        require_may_change(local)
        start = _start_checks(local, start_problems([local]) if starts is None else starts)
        return (*start, *missing, *log_dir_checks(local, now_ms(), run))
    except (LogCompactionError, OSError) as error:
        return (*missing, fail("log directory", error_line(error, option_names())))


def _start_on_all(log_dirs: Sequence[str]) -> tuple[list[str], Sequence[StartProblem] | None]:
    """Return the log directories, and the problems of a start on all of them (None: unknown)."""
    try:
        every = [str(path_arguments.log_dirs([each], to_write=False)[0]) for each in log_dirs]
        return every, start_problems(every)
    except (LogCompactionError, OSError):  # each is then looked at by itself, and says so
        return [], None


def _start_checks(path: str, problems: Iterable[StartProblem]) -> tuple[Check, ...]:
    """Return a check where a broker's start would not go well."""
    found = [
        problem
        for problem in problems
        if problem.forbids_start and problem.path.startswith(os.path.join(path, ""))
    ]
    if not found:
        return ()
    advice = f"Start no broker here before it is mended. {found[0].repair}"
    if found[0].command:
        advice = with_command(advice, found[0].command)
    if len(found) > 1:
        others = f"{advice}\nThis names {len(found) - 1:,} more:"
        advice = with_command(others, compactor("verify", path))
    return (fail("a broker's start", str(found[0]), advice),)
