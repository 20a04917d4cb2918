"""`doctor`: whether this machine, and log directories on it, are fit for a run. Reads only."""

import os
from collections.abc import Sequence

from compactor.api import outlook, places
from compactor.api.arguments import Paths, path_texts
from compactor.api.plans import plan
from compactor.api.rules import KAFKAS_DEFAULTS
from compactor.api.starts import start_problems
from compactor.directory_state import require_may_change
from compactor.doctor.checks import Check, Checkup, fail, warn
from compactor.doctor.log_dirs import Foreseen, log_dir_checks, obstacle_checks
from compactor.doctor.machine import machine_checks
from compactor.doctor.spark_parts import spark_checks
from compactor.exit_codes import error_line
from compactor.host.clock import now_ms
from compactor.host.shell_commands import compactor
from compactor.preconditions import RunEnding
from storage.errors import LogCompactionError


def doctor(log_dirs: Paths = (), start_spark: bool = False) -> Checkup:
    """Look at whatever a run needs. What is wrong is a check of its own, and never raised.

    A run is one on all these log directories, without options. start_spark: also start Spark, and
    let it do one small job.
    """
    machine = (*machine_checks(os.environ), *spark_checks(os.environ, start_spark))
    given = path_texts(log_dirs)
    if not given:
        return Checkup(machine, ())
    ending = _foreseen(given)
    foreseen = Foreseen(ending.obstacles, ending.not_cleaned)
    of_log_dirs = tuple((path, _of_log_dir(path, given, foreseen)) for path in given)
    every = (*machine, *(check for _, checks in of_log_dirs for check in checks))
    said = {(check.found, check.advice) for check in every}
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
        return outlook.of_error(log_dirs, KAFKAS_DEFAULTS, error)


def _of_log_dir(path: str, log_dirs: Sequence[str], run: Foreseen) -> tuple[Check, ...]:
    """log_dirs: all that were given, which a broker's start would look at together."""
    try:
        (local,) = places.log_dirs([path], to_write=False)
        require_may_change(local)
        every = _all_of(local, log_dirs)
        start = _start_checks(local, every)
        return (*start, *log_dir_checks(local, now_ms(), run._replace(log_dirs=every)))
    except (LogCompactionError, OSError) as error:
        return (fail("log directory", error_line(error)),)


def _all_of(path: str, log_dirs: Sequence[str]) -> Sequence[str]:
    try:
        return [str(places.log_dirs([each], to_write=False)[0]) for each in log_dirs]
    except (LogCompactionError, OSError):
        return [path]  # the other one has a check of its own


def _start_checks(path: str, every: Sequence[str]) -> tuple[Check, ...]:
    """A check only where a broker's start would not go well."""
    found = [
        problem
        for problem in start_problems(every)
        if problem.forbids_start and problem.path.startswith(os.path.join(path, ""))
    ]
    if not found:
        return ()
    more = f" and {len(found) - 1:,} more: {compactor('verify', path)}" if len(found) > 1 else ""
    command = f" {found[0].command}" if found[0].command else ""
    advice = f"Start no broker here before it is mended. {found[0].repair}{command}"
    return (warn("a broker's start", f"{found[0]}{more}", advice),)
