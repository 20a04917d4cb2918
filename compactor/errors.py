"""Errors of the driver, each with the exit code that the command line ends with."""

from storage.errors import LogCompactionError


class ConfigError(LogCompactionError):
    """A setting is unknown or impossible; the message names it and where it stands. Exit code 2."""


class RefusedError(LogCompactionError):
    """It is not safe to work here: lock held, unclean shutdown. Exit code 3."""


class LockLostError(LogCompactionError):
    """The lock of a log directory is somebody else's by now; nothing more is changed. Exit code 1.

    Not 3, which says that nothing was: something may have been by then.
    """


class CorruptLogError(LogCompactionError):
    """A log's data is wrong, and the round was to end at the first such log. Exit code 1."""


class CleaningFailedError(LogCompactionError):
    """The round as a whole failed: no Java, Spark did not start, a job was lost. Exit code 1."""
