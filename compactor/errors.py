"""Errors of the driver, each with the exit code that the command line ends with."""

from compactor.reason_codes import ReasonCode
from storage.errors import CleaningFailedError as CleaningFailedError
from storage.errors import ConfigError as ConfigError
from storage.errors import LogCompactionError
from storage.errors import UsageError as UsageError


class RefusedError(LogCompactionError):
    """It is not safe to work here: lock held, unclean shutdown. Exit code 3."""

    def __init__(
        self,
        problem: str,
        reason_code: ReasonCode = ReasonCode.REFUSED,
        *,
        path: str | None = None,
        remedy: str | None = None,
        errno: int | None = None,
    ) -> None:
        """path: of what is in the way. remedy: whole sentences. errno: of the system, if it is."""
        super().__init__(problem, reason_code)  # both, so that it can be pickled
        self.problem, self.reason_code = problem, reason_code
        self.path, self.remedy, self.errno = path, remedy, errno

    def __str__(self) -> str:
        return self.problem if self.remedy is None else f"{self.problem}. {self.remedy}"


class LockLostError(LogCompactionError):
    """The lock of a log directory is somebody else's by now; nothing more is changed. Exit code 1.

    Not 3, which says that nothing was: something may have been by then.
    """

    reason_code = ReasonCode.LOCK_LOST


class CorruptLogError(LogCompactionError):
    """A log's data is wrong, and the round was to end at the first such log. Exit code 1."""

    reason_code = ReasonCode.DAMAGED
