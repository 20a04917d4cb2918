"""What a broker comes to that starts on log directories as they are."""

from collections.abc import Sequence

from compactor import account
from compactor.api.arguments import Paths, path_texts
from compactor.broker_start.reading import Depth, Look, problems_at_start
from compactor.broker_start.values import StartProblem
from compactor.brokers import brokers_of
from compactor.exit_codes import UsageError
from storage.errors import CorruptFileError
from storage.files.files import Files
from storage.files.local import LOCAL


def start_problems(log_dirs: Paths) -> tuple[StartProblem, ...]:
    """Say what a start would not do well with, for each broker by itself; none: all is well.

    Looks at names, small files and, after a clean shutdown, at the end of each log. What cannot be
    read there is a warning. Raise UsageError for what is no directory.
    """
    paths = path_texts(log_dirs)
    if not paths:
        raise UsageError("log_dirs: none was given")
    for path in paths:
        if not LOCAL.is_directory(path):
            raise UsageError(f"log_dirs {path}: there is no such directory")
    return problems_by_broker(paths, LOCAL, Depth.ENDS)


def problems_by_broker(
    log_dirs: Sequence[str], files: Files, depth: Depth
) -> tuple[StartProblem, ...]:
    """Do the same by the files that are given."""
    look = Look(files, depth, account.current().started_at_ms)
    found: list[StartProblem] = []
    for own in brokers_of(log_dirs, files):
        try:
            others = [path for path in log_dirs if path not in own]
            found += problems_at_start(own, look, others)
        except (CorruptFileError, OSError) as error:
            unread = (
                f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
            )
            account.current().notices.append(
                f"{unread}: not checked what a broker comes to that starts here"
            )
    return tuple(found)
