"""Errors as data: on the way from a task to the driver an exception loses its type."""

from cleaner_jobs.task_values import TaskProblem
from cleaner_jobs.unchanged import LogChangedError
from storage.errors import CorruptFileError, UnsupportedFormatError

FAULT = "the memory or the processor of this machine may be at fault"


class WorkFileError(CorruptFileError):
    """A file of the run's own is not what was written: a fault of the machine, not of a log."""

    reason_code = "faulty-machine"


class MiswrittenError(WorkFileError):
    """What was read, or made of it, is not what stands in the log: a fault of the machine."""


class RecordTooLargeError(CorruptFileError):
    """A record is larger than its topic allows, so that Kafka's cleaner stops (V-4)."""

    reason_code = "record-too-large"


_KINDS = {
    RecordTooLargeError: "record-too-large",
    UnsupportedFormatError: "unsupported",
    WorkFileError: "work",
    MiswrittenError: "work",
}


def problem_of(log_id: int, error: Exception) -> TaskProblem:
    """What an error says of one log; one of those that concern no more than a log."""
    if isinstance(error, CorruptFileError):
        kind = _KINDS.get(type(error), "corrupt")
        return TaskProblem(log_id, kind, error.path, error.position, error.problem)
    if isinstance(error, LogChangedError):
        return TaskProblem(log_id, "changed", error.path, -1, error.problem)
    assert isinstance(error, OSError)
    return TaskProblem(log_id, "io", str(error.filename or ""), -1, error.strerror or str(error))
