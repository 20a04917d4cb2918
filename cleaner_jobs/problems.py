"""Errors of tasks, as exceptions, and as values that keep their kind on the way to the driver."""

from cleaner_jobs.messages import TaskProblem
from cleaner_jobs.source_identity import LogChangedError
from storage.errors import CleaningFailedError, CorruptFileError, reason_code_of

FAULT = "the memory or the processor of this machine may be at fault"


class WorkFileError(CorruptFileError):
    """A file of the run's own is not what was written: a fault of the machine, not of a log."""

    reason_code = "faulty-machine"


class MiswrittenError(WorkFileError):
    """What was read, or made of it, is not what stands in the log: a fault of the machine."""


class OversizedRecordError(CorruptFileError):
    """A record is larger than its topic allows, so that Kafka's cleaner stops (V-4)."""

    reason_code = "record-too-large"


class StageFailedError(CleaningFailedError):
    """A task was lost, or all of them. No log is to blame, and nothing of the stage counts."""


def problem_of(log_id: int, error: Exception) -> TaskProblem:
    """Return an error as a problem of one log. It must be one that concerns no more than a log."""
    if isinstance(error, OSError):
        return TaskProblem(
            log_id=log_id,
            code=reason_code_of(error),
            path=str(error.filename or ""),
            position=-1,
            problem=error.strerror or str(error),
            errno=error.errno,
        )
    assert isinstance(error, (CorruptFileError, LogChangedError))
    return TaskProblem(
        log_id=log_id,
        code=reason_code_of(error),
        path=error.path,
        position=error.position if isinstance(error, CorruptFileError) else -1,
        problem=error.problem,
    )
