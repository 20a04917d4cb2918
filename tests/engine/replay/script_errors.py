"""What a script meets that no log tells: a line that does not fit how far the script is."""

from storage.log.errors import LogError


class ClosedError(LogError):
    """An operation that needs an open log, or a running log manager."""


class LogCleaningError(LogError):
    """A log that the cleaner cannot even weigh."""


class NotCleanedError(LogError):
    """A log whose data is wrong: its cleaning has left it as it was."""

    kafka_name, kafka_cause = "CorruptRecordException", None


class OpenError(LogError):
    """An operation that needs a closed log, or a log manager that is not running."""
