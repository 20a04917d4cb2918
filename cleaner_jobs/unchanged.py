"""Whether a segment is still the file that the round was planned for."""

import os

from cleaner_jobs.plan import LogPlan
from cleaner_jobs.task_values import Source
from storage.errors import LogCompactionError
from storage.file_names import offset_of
from storage.log.log_dir import list_partition


class LogChangedError(LogCompactionError):
    """A segment is not the file that was planned for: another writer is at work."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path, self.problem = path, problem

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


def check_files_unchanged(plan: LogPlan, first_offset: int) -> None:
    """Raise LogChangedError where files of a log are others than when the round was planned.

    Of all files, also of those that only the plan has read, or nobody: whoever changes one is at
    work on the log. Left out is what stands below first_offset, where this round has swapped.
    """
    found = list_partition(plan.path, plan.topic, plan.partition)
    before, now = (
        {entry.name: entry for entry in files if (offset_of(entry.name) or 0) >= first_offset}
        for files in (plan.files, found.files)
    )
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            what = "changed" if name in before and name in now else "gone"
            what = what if name in before else "new"
            path = os.path.join(plan.path, name)
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
