"""Whether a segment is still the file that the round was planned for."""

import os

from cleaner_jobs.task_values import Source
from storage.errors import LogCompactionError
from storage.files.filesystem import Entry


class LogChangedError(LogCompactionError):
    """A segment is not the file that was planned for: another writer is at work."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path, self.problem = path, problem

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


def check_same(path: str, before: Entry | None, now: Entry | None) -> None:
    """Raise LogChangedError where a file is another, has gone or has come. None: not there."""
    if before != now:
        what = "new" if before is None else "gone" if now is None else "changed"
        raise LogChangedError(path, f"{what} since the round was planned: the log is in use")


def check_unchanged(source: Source, found: os.stat_result) -> None:
    """Raise LogChangedError where size, modification time or inode are others."""
    for what, before, now in (
        ("size", source.log_bytes, found.st_size),
        ("modification time", source.log_mtime_ns, found.st_mtime_ns),
        ("inode", source.log_inode, found.st_ino),
    ):
        if before != now:
            raise LogChangedError(source.path, f"{what} was {before}, is {now}: it is in use")
