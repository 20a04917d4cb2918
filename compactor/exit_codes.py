"""How a command ends: the exit code, its word, and the one line of text for an error.

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
from collections.abc import Iterable
from enum import IntEnum

from compactor.errors import ConfigError, RefusedError
from compactor.host import descriptor_limit
from compactor.host.printable import one_line
from compactor.reason_codes import ReasonCode, reason_code_of
from compactor.round_report import CleaningReport, LogStatus
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
    def word(self) -> str:
        """The status in the summary; whatever signal interrupts a run, it is an interrupted one."""
        return "interrupted" if self > ExitCode.CONDITION else self.name.lower()


class UsageError(ConfigError):
    """An argument is impossible; the message names it. Nothing was changed."""

    reason_code = ReasonCode.WRONG_USAGE


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived: what Ctrl-C does, with a code of its own."""


class HungUp(KeyboardInterrupt):
    """SIGHUP arrived, as when a terminal or a connection goes away: likewise."""


def exit_code_of_report(report: CleaningReport) -> ExitCode:
    """The code of a round that came to its end."""
    return exit_code_of_statuses(log.status for log in report.logs)


def exit_code_of_statuses(statuses: Iterable[LogStatus]) -> ExitCode:
    """The code for what became of the logs, or of those that a plan does not take on."""
    found = set(statuses)
    if found.isdisjoint({LogStatus.FAILED, LogStatus.SET_ASIDE}):
        return ExitCode.OK
    done = found & {LogStatus.CLEANED, LogStatus.WOULD_CLEAN}
    return ExitCode.FAILED if LogStatus.FAILED in found and not done else ExitCode.PARTIAL


def exit_code_of_conditions(code: ExitCode, any_is_met: bool) -> ExitCode:
    """The code of a plan or a round, where conditions were asked for; a failure comes before."""
    return ExitCode.CONDITION if any_is_met and code is not ExitCode.FAILED else code


def exit_code_of_error(error: BaseException) -> ExitCode:
    match error:
        case Terminated():
            return ExitCode.TERMINATED
        case HungUp():
            return ExitCode.HUNG_UP
        case KeyboardInterrupt():
            return ExitCode.INTERRUPTED
        case ConfigError():
            return ExitCode.USAGE
        case RefusedError() | UnsupportedBackendError():
            return ExitCode.REFUSED
    return ExitCode.FAILED


def reason_code_of_error(error: BaseException) -> ReasonCode:
    """Why, in one word for a program."""
    match error:
        case KeyboardInterrupt():
            return ReasonCode.INTERRUPTED
        case LogCompactionError() | OSError():
            return reason_code_of(error)
    return ReasonCode.INTERNAL_ERROR


def reason_code_of_conditions(reason_code: ReasonCode, code: ExitCode) -> ReasonCode:
    """That of a plan or a round, where a condition may have set its exit code."""
    return ReasonCode.CONDITION if code is ExitCode.CONDITION else reason_code


def reason_code_of_report(report: CleaningReport) -> ReasonCode:
    """That of a round that came to its end."""
    deletes = any(log.retention.deleted.segments for log in report.logs)
    return reason_code_of_round((log.status for log in report.logs), deletes)


def reason_code_of_round(statuses: Iterable[LogStatus], deletes: bool) -> ReasonCode:
    """That of a round, done or planned. deletes: whether retention does, which is done, too."""
    code = reason_code_of_statuses(statuses)
    return ReasonCode.DONE if deletes and code is ReasonCode.NOTHING_TO_DO else code


def reason_code_of_statuses(statuses: Iterable[LogStatus]) -> ReasonCode:
    """The one for what became of the logs; those that failed count for more than set aside ones."""
    found = set(statuses)
    if LogStatus.FAILED in found:
        return ReasonCode.LOGS_FAILED
    if LogStatus.SET_ASIDE in found:
        return ReasonCode.LOGS_SET_ASIDE
    is_done = found & {LogStatus.CLEANED, LogStatus.WOULD_CLEAN}
    return ReasonCode.DONE if is_done else ReasonCode.NOTHING_TO_DO


def error_line(error: BaseException) -> str:
    """What went wrong in one line; without a full stop, so that what was changed can follow it."""
    match error:
        case Terminated():
            text = "terminated"
        case HungUp():
            text = "hung up: the terminal or connection is gone"
        case KeyboardInterrupt():
            text = "interrupted"
        case ConfigError() if error.as_options is not None:
            text = error.as_options
        case LogCompactionError():
            text = str(error)
        case OSError() if error.strerror:
            names = [str(n) for n in (error.filename, error.filename2) if n is not None]
            text = f"{' -> '.join(names)}: {error.strerror}" if names else error.strerror
            if error.errno == errno.EMFILE:
                text += f": no more than {descriptor_limit.limit()} may be at once (ulimit -n)"
        case _:
            first = next(iter(str(error).splitlines()), "")  # what follows is often Java's stack
            text = f"internal error: {type(error).__name__}: {first}"
    return one_line(text).rstrip(".")
