"""List what a run needs before it begins: the one list, which `run`, `plan` and `doctor` ask.

Each check raises what a run ends with. A run stops at the first of them; a command that only looks
takes no lock, writes nothing, and learns of all of them, in the run's order:

1. files may be opened, enough of them at once (`host.machine`)
2. a lock in each log directory would keep a broker out (`locked_log_dirs.require_working_locks`)
3. each log directory is free, was left in good order, and its checkpoints can be replaced
   (`locked_log_dirs.conditions_of`)
4. something says how far the logs are replicated (`survey.require_high_watermarks`)

What `compactor.api.forecast` adds before and after them concerns a run's arguments and its plan.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

from compactor.errors import RefusedError
from compactor.host import machine
from compactor.host.printable import one_line
from compactor.log_dirs.locked_log_dirs import conditions_of, require_working_locks
from compactor.log_dirs.survey import require_high_watermarks
from compactor.outcome.exit_codes import ExitCode, ending_of_error, error_line
from compactor.outcome.json_values import FLAT, HIDDEN
from compactor.outcome.round_report import LogReport
from compactor.reason_codes import ReasonCode
from compactor.settings.rules import option_names
from storage.errors import CorruptFileError, LogCompactionError

_UNCHANGED = ". Nothing was changed"
_AT_WORK = (ReasonCode.LOCK_HELD, ReasonCode.BROKER_RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """What a run would end at, before it changes anything."""

    exit_code: ExitCode = field(metadata=FLAT)
    reason_code: ReasonCode
    text: str = field(
        metadata=HIDDEN
    )  # in the words of the run, in one line and without a full stop
    path: str | None  # of what is in the way
    errno: int | None  # of the system, where it is the system's
    problem: str  # the text without the remedy
    remedy: str | None  # None: the problem says what to do


@dataclass(frozen=True, slots=True)
class RunEnding:
    """How a run with the same arguments would end now."""

    exit_code: ExitCode = field(metadata=FLAT)
    reason_code: ReasonCode
    obstacles: tuple[Obstacle, ...] = ()  # it would stop at the first, and change nothing
    # logs that it would set aside or fail at
    not_cleaned: tuple[LogReport, ...] = field(default=(), metadata=HIDDEN)


def obstacle_of(error: BaseException) -> Obstacle:
    """Turn an error into an obstacle: code, path, problem and remedy."""
    text = error_line(error, option_names()).removesuffix(_UNCHANGED)
    problem, remedy, path, errno = text, None, None, None
    if isinstance(error, RefusedError):
        path, errno = error.path, error.errno
        if error.remedy is not None:
            problem = one_line(error.problem)
            remedy = one_line(error.remedy).removesuffix(_UNCHANGED)
    elif isinstance(error, OSError):
        path, errno = error.filename, error.errno
    elif isinstance(error, CorruptFileError):
        path = error.path
    return Obstacle(
        **ending_of_error(error)._asdict(),
        text=text,
        path=path,
        errno=errno,
        problem=problem,
        remedy=remedy,
    )


def obstacles_to(*checks: Callable[[], object]) -> list[Obstacle]:
    """Run each check; return the errors that would end a run, as obstacles."""
    found = []
    for check in checks:
        try:
            check()
        except (LogCompactionError, OSError) as error:
            found.append(obstacle_of(error))
    return found


def obstacles(
    log_dirs: Sequence[str],
    allowed_file_systems: Collection[str] = (),
    after_unclean_shutdown: bool = False,
    assume_fully_replicated: bool = False,
) -> list[Obstacle]:
    """Everything in the way of a run with the same arguments."""
    of_locks = (partial(require_working_locks, [path], allowed_file_systems) for path in log_dirs)
    found = obstacles_to(machine.require_open_files, *of_locks)
    for log_dir in log_dirs:
        for check in conditions_of(log_dir, after_unclean_shutdown):
            met = obstacles_to(check)
            found += met
            if any(each.reason_code in _AT_WORK for each in met):
                break  # a running broker has taken away the mark of a clean shutdown
    replicated = (
        partial(require_high_watermarks, [path], assume_fully_replicated) for path in log_dirs
    )
    return found + obstacles_to(*replicated)
