"""Say how a command ends: the exit code, its word, and the one line of text for an error.

| code | word | when |
|---|---|---|
| 0 | ok | every eligible log was cleaned, or none was eligible |
| 1 | failed | the round, or every log that was tried; or its result could not be written |
| 2 | usage | wrong arguments or configuration; LOG_DIR is missing, unreadable or not one |
| 3 | refused | lock held, or may not exclude a broker; unclean shutdown; no room; no local files |
| 4 | partial | some logs failed or were set aside, or findings; what can be done is done |
| 5 | condition | a condition of --fail-if holds, and nothing failed; takes the place of 0 and 4 |
| 130 | interrupted | Ctrl-C (SIGTERM: 143, SIGHUP: 129) |
"""

import errno
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from compactor.errors import ConfigError, RefusedError
from compactor.host import machine
from compactor.host.printable import one_line
from compactor.outcome.json_values import json_property
from compactor.outcome.round_report import CleaningReport, LogStatus
from compactor.reason_codes import ReasonCode, reason_code_of
from storage.errors import LogCompactionError, UnsupportedBackendError


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    PARTIAL = 4
    CONDITION = 5  # of --fail-if
    HUNG_UP = 129  # 128 + SIGHUP
    INTERRUPTED = 130  # 128 + SIGINT, as shells count
    TERMINATED = 143  # 128 + SIGTERM

    @property
    @json_property
    def status(self) -> str:
        """The status in the summary; whatever signal interrupts a run, it is an interrupted one."""
        return "interrupted" if self > ExitCode.CONDITION else self.name.lower()

    @property
    @json_property
    def exit_code(self) -> int:
        """The number of it."""
        return int(self)


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived: what Ctrl-C does, with a code of its own."""


class HungUp(KeyboardInterrupt):
    """SIGHUP arrived, as when a terminal goes away: what Ctrl-C does, with a code of its own."""


class ExitStatus(NamedTuple):
    """How a command ends."""

    exit_code: ExitCode
    reason_code: ReasonCode


DONE = ExitStatus(ExitCode.OK, ReasonCode.DONE)


def ending_of_report(report: CleaningReport, is_condition_met: bool = False) -> ExitStatus:
    """Return how a round ends that came to its end."""
    deletes = any(log.retention.deleted.segments for log in report.logs)
    return ending_of_logs((log.status for log in report.logs), deletes, is_condition_met)


def ending_of_logs(
    statuses: Iterable[LogStatus], deletes: bool = False, is_condition_met: bool = False
) -> ExitStatus:
    """Return how a round or a plan ends.

    Args:
        statuses: What became of the logs, or would; a failure counts for more than all else.
        deletes: Whether retention does something, so that the round had something to do.
        is_condition_met: Whether a condition of --fail-if holds.
    """
    found = set(statuses)
    is_done = not found.isdisjoint({LogStatus.CLEANED, LogStatus.WOULD_CLEAN})
    if LogStatus.FAILED in found:
        code = ExitCode.PARTIAL if is_done else ExitCode.FAILED
        ending = ExitStatus(code, ReasonCode.LOGS_FAILED)
    elif LogStatus.SET_ASIDE in found:
        ending = ExitStatus(ExitCode.PARTIAL, ReasonCode.LOGS_SET_ASIDE)
    else:
        is_done |= deletes
        ending = ExitStatus(ExitCode.OK, ReasonCode.DONE if is_done else ReasonCode.NOTHING_TO_DO)
    if is_condition_met and ending.exit_code is not ExitCode.FAILED:
        return ExitStatus(ExitCode.CONDITION, ReasonCode.CONDITION)
    return ending


def ending_of_error(error: BaseException) -> ExitStatus:
    """Return how a command ends that did not come to its end."""
    match error:
        case Terminated():
            return ExitStatus(ExitCode.TERMINATED, ReasonCode.INTERRUPTED)
        case HungUp():
            return ExitStatus(ExitCode.HUNG_UP, ReasonCode.INTERRUPTED)
        case KeyboardInterrupt():
            return ExitStatus(ExitCode.INTERRUPTED, ReasonCode.INTERRUPTED)
        case ConfigError():
            return ExitStatus(ExitCode.USAGE, reason_code_of(error))
        case RefusedError() | UnsupportedBackendError():
            return ExitStatus(ExitCode.REFUSED, reason_code_of(error))
        case LogCompactionError() | OSError():
            return ExitStatus(ExitCode.FAILED, reason_code_of(error))
    return ExitStatus(ExitCode.FAILED, ReasonCode.INTERNAL_ERROR)


def error_line(error: BaseException, names: Mapping[str, str] = {}) -> str:
    """Say what went wrong in one line; without a full stop, since what was changed may follow it.

    names: what the command line calls the parameters that an error may name.
    """
    match error:
        case Terminated():
            text = "terminated"
        case HungUp():
            text = "hung up: the terminal or connection is gone"
        case KeyboardInterrupt():
            text = "interrupted"
        case ConfigError():
            text = error.text(names)
        case LogCompactionError():
            text = str(error)
        case OSError() if error.strerror:
            paths = [str(n) for n in (error.filename, error.filename2) if n is not None]
            text = f"{' -> '.join(paths)}: {error.strerror}" if paths else error.strerror
            if error.errno == errno.EMFILE:
                text += f": no more than {machine.open_file_limit()} may be at once (ulimit -n)"
        case _:
            first = next(iter(str(error).splitlines()), "")  # what follows is often Java's stack
            text = f"internal error: {type(error).__name__}: {first}"
    return one_line(text).rstrip(".")
