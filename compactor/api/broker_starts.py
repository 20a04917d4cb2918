"""Problems of a broker's start on log directories as they are."""

from collections.abc import Sequence

from compactor.api.arguments import Paths, path_texts
from compactor.broker_start.reading import Depth, Look, problems_at_start
from compactor.command_context import current_context
from compactor.errors import UsageError
from compactor.log_dirs.brokers import brokers_of
from compactor.outcome.start_problems import StartOutcome, StartProblem
from compactor.reason_codes import ReasonCode
from storage.errors import CorruptFileError
from storage.files.files import Files
from storage.files.local import LOCAL


def start_problems(log_dirs: Paths) -> tuple[StartProblem, ...]:
    """Return the problems of a start, for each broker by itself; none: all is well.

    Looks at names, small files and, after a clean shutdown, at the end of each log. A file that
    cannot be read makes the outcome unknown, which forbids a start. Raise UsageError for a path
    that is no directory.
    """
    paths = path_texts(log_dirs)
    if not paths:
        raise UsageError("none was given", "log_dirs")
    for path in paths:
        if not LOCAL.is_directory(path):
            raise UsageError("there is no such directory", "log_dirs", path)
    return problems_by_broker(paths, LOCAL, Depth.ENDS)


def problems_by_broker(
    log_dirs: Sequence[str], files: Files, depth: Depth
) -> tuple[StartProblem, ...]:
    """Return the problems of a start, read through `files` to a depth."""
    look = Look(files, depth, current_context().started_at_ms)
    found: list[StartProblem] = []
    for own in brokers_of(log_dirs, files):
        try:
            others = [path for path in log_dirs if path not in own]
            found += problems_at_start(own, look, others)
        except (CorruptFileError, OSError) as error:
            found.append(_unknown(error, own[0]))
    return tuple(found)


def _unknown(error: CorruptFileError | OSError, log_dir: str) -> StartProblem:
    """Return the problem of a file that cannot be read: the outcome of a start is unknown."""
    if isinstance(error, OSError):
        path, problem = str(error.filename or log_dir), f"cannot be read: {error.strerror}"
    else:
        path, problem = error.path, f"byte {error.position}: {error.problem}"
    repair = "Let this user read it, or put a file in its place, and ask again"
    return StartProblem(
        outcome=StartOutcome.UNKNOWN,
        path=path,
        problem=problem,
        repair=repair,
        reason_code=ReasonCode.UNREADABLE,
    )
