"""Checks that a segment is still the file that the round was planned for."""

from cleaner_jobs.messages import Source
from storage.errors import LogCompactionError
from storage.files.files import Entry, Files, entry_of
from storage.files.local import LOCAL


class LogChangedError(LogCompactionError):
    """A segment is not the file that was planned for: another writer is at work."""

    reason_code = "changed-meanwhile"

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


def check_in_place(source: Source, files: Files = LOCAL) -> None:
    """Raise LogChangedError where a source is not the file that was planned for, or OSError.

    For the driver: a device has another number on another host.
    """
    found = _look_up(source, files)
    _check_same(source, found)
    if found.device != source.log_device:
        raise _changed(source, "device", source.log_device, found.device)


def check_opened(source: Source, opened: Entry) -> None:
    """Raise LogChangedError where the file that a task has just opened is not the planned one.

    opened: a look at the open file.
    """
    _check_same(source, opened)


def check_open(source: Source, opened: Entry) -> None:
    """Raise LogChangedError where the planned file, or the file of its name, is another by now.

    opened: a look at the open file after the last read.
    """
    found = _look_up(source, LOCAL)
    _check_same(source, opened)
    _check_same(source, found)
    if found.device != opened.device:
        raise _changed(source, "device", opened.device, found.device)


def with_second_name(source: Source, files: Files = LOCAL) -> Source:
    """Return the source as it is after we have linked it, which is a change of its ctime alone."""
    linked = source._replace(log_ctime_ns=_look_up(source, files).ctime_ns)
    check_in_place(linked, files)
    return linked


def _look_up(source: Source, files: Files) -> Entry:
    """Return what is under its name now, in the directory that is held."""
    return entry_of(files, source.path)


def _check_same(source: Source, entry: Entry) -> None:
    """Compare by what every host sees alike: only a change of the file changes its ctime."""
    planned = source.log_bytes, source.log_mtime_ns, source.log_inode, source.log_ctime_ns
    if planned == (entry.size_bytes, entry.mtime_ns, entry.inode, entry.ctime_ns):
        return
    for what, before, now in (
        ("size", source.log_bytes, entry.size_bytes),
        ("modification time", source.log_mtime_ns, entry.mtime_ns),
        ("inode", source.log_inode, entry.inode),
        ("time of change", source.log_ctime_ns, entry.ctime_ns),
    ):
        if before != now:
            raise _changed(source, what, before, now)


def _changed(source: Source, what: str, before: int, now: int) -> LogChangedError:
    return LogChangedError(source.path, f"{what} was {before}, is {now}: it is in use")
