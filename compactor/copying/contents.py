"""The contents of a log directory that go into its copy, by names, sizes and times.

A copy has everything that a broker needs: every log and the files beside the logs, the metadata
log, logs on their way into this directory, and those that a broker has kept aside. It has neither
the lock, nor what a run has staged or remembers, nor what is about to be deleted, nor a cache that
a broker rebuilds. What a cleaning left half-done is copied, as one half of a log may be in it; it
is settled in the copy.
"""

import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

from cleaner_jobs.staging import STAGED_MARKER
from compactor.log_dirs.directory_state import MANIFEST, NO_BROKER
from compactor.log_dirs.set_aside_memory import SET_ASIDE
from storage.file_names import (
    DELETE_DIR,
    DELETED,
    INDEX,
    LOG,
    SWAP,
    TIME_INDEX,
    UNFINISHED_SUFFIXES,
    is_offset,
    is_special_dir,
)
from storage.files.files import Entry, Files
from storage.files.local import LOCAL
from storage.log.cluster_metadata import METADATA_DIR
from storage.log.log_dir import is_of_file, partition_of
from storage.log.log_dir_lock import LOCK_FILE

CACHE_DIR = "remote-log-index-cache"
NOT_A_LOG = "a broker that starts there would fail: the name is not that of a partition"
_TEMPORARY = ".tmp"
_NOT_COPIED = (LOCK_FILE, SET_ASIDE, MANIFEST)
_MAY_HAVE_HOLES = (INDEX, TIME_INDEX)
_LARGE_BYTES = 64 << 10  # of an index: smaller ones are not looked at for holes


class LogFiles(NamedTuple):
    """One directory in a log directory: its files by name, and why it cannot be copied."""

    name: str
    files: tuple[Entry, ...]
    problem: str | None = None

    @property
    def linkable(self) -> frozenset[str]:
        """Large files that are only replaced, never changed: `.log` of each closed segment.

        None of a log with a cleaning that was cut short: which of its segments count is unknown.
        """
        if self.problem is not None or partition_of(self.name) is None:
            return frozenset()
        names = [entry.name for entry in self.files]
        if any(name.endswith(UNFINISHED_SUFFIXES) for name in names):
            return frozenset()
        logs = [name for name in names if name.endswith(LOG) and is_offset(name[: -len(LOG)])]
        return frozenset(sorted(logs)[:-1])


class Contents(NamedTuple):
    """What of a log directory goes along, as it is at one moment."""

    path: str
    files: tuple[Entry, ...]  # of the log directory itself, by name
    logs: tuple[LogFiles, ...]  # by name
    left_out: tuple[tuple[str, str], ...]  # names that nobody expects there, and why they stay
    not_wanted: tuple[str, ...]  # logs that were not asked for

    @property
    def file_count(self) -> int:
        return len(self.files) + sum(len(log.files) for log in self.logs)

    @property
    def size_bytes(self) -> int:
        return sum(entry.size_bytes for entry in self._all())

    @property
    def linkable_bytes(self) -> int:
        """Bytes of the files that may be linked."""
        return sum(
            entry.size_bytes
            for log in self.logs
            for linkable in [log.linkable]
            for entry in log.files
            if entry.name in linkable
        )

    @property
    def needed_bytes(self) -> int:
        """Bytes of a copy that shares none with its original; holes stay holes."""
        needed = 0
        for log in self.logs:
            for entry in log.files:
                size = entry.size_bytes
                if size > _LARGE_BYTES and entry.name.endswith(_MAY_HAVE_HOLES):
                    size = min(
                        size, LOCAL.allocated_bytes(os.path.join(self.path, log.name, entry.name))
                    )
                needed += size
        return needed + sum(entry.size_bytes for entry in self.files)

    def _all(self) -> Iterable[Entry]:
        yield from self.files
        for log in self.logs:
            yield from log.files


def contents_of(path: str, is_wanted: Callable[[str], bool], files: Files) -> Contents:
    """Look at a log directory. is_wanted: whether the logs of a topic are to be copied.

    OSError if the directory cannot be listed; of a log that cannot, its `problem` says why.
    """
    own, logs, left_out, not_wanted = [], [], [], []
    for entry in sorted(files.list_directory(path)):
        name = entry.name
        if not entry.is_dir:
            if entry.special and partition_of(name) is not None:
                logs.append(LogFiles(name, (), f"is {entry.special}, which is not followed"))
            elif not entry.special and name not in _NOT_COPIED and not name.endswith(_TEMPORARY):
                own.append(entry)
            continue
        if name in (CACHE_DIR, NO_BROKER) or (name.endswith(DELETE_DIR) and is_special_dir(name)):
            continue
        if name != METADATA_DIR and not is_special_dir(name) and partition_of(name) is None:
            left_out.append((name, NOT_A_LOG))
        elif name == METADATA_DIR or is_wanted(_topic_of(name)):
            logs.append(_log_files(path, name, files))
        else:
            not_wanted.append(name)
    return Contents(path, tuple(own), tuple(logs), tuple(left_out), tuple(not_wanted))


def what_changed(before: LogFiles, now: LogFiles | None, may_be_linked: bool) -> str | None:
    """Say how a log has changed between two looks at it; None: not at all.

    may_be_linked: to link a file changes its ctime alone.
    """
    if now is None:
        return "it is gone"
    if now.problem is not None:
        return now.problem
    was, found = (_by_name(log, may_be_linked) for log in (before, now))
    for name in sorted(was.keys() | found.keys()):
        if was.get(name) != found.get(name):
            how = "is new" if name not in was else "is gone" if name not in found else "has changed"
            return f"{name} {how}"
    return None


def _by_name(log: LogFiles, may_be_linked: bool) -> dict[str, Entry]:
    linkable = log.linkable if may_be_linked else frozenset()
    return {
        entry.name: entry._replace(ctime_ns=0) if entry.name in linkable else entry
        for entry in log.files
    }


def _topic_of(name: str) -> str:
    known = partition_of(name) or partition_of(name.rpartition(".")[0])
    return known[0] if known else ""


def _log_files(path: str, name: str, files: Files) -> LogFiles:
    found = []
    try:
        entries = files.list_directory(os.path.join(path, name))
    except FileNotFoundError:
        return LogFiles(name, (), "it is gone")
    except OSError as error:
        return LogFiles(name, (), f"cannot be listed: {error.strerror}")
    # beside a swap that was cut short they say how far it had come, which settles it in the copy
    gone = () if any(entry.name.endswith(SWAP) for entry in entries) else (DELETED,)
    for entry in sorted(entries):
        if entry.is_dir or entry.special:
            if is_of_file(entry.name):
                what = entry.special or "a directory"
                return LogFiles(name, (), f"{entry.name}: is {what}, not a file")
        elif not entry.name.endswith((*gone, _TEMPORARY)) and STAGED_MARKER not in entry.name:
            found.append(entry)
    return LogFiles(name, tuple(found))
