"""Swaps a cleaned segment group in: the one place that changes what stands in a log directory.

For each group, with what a starting broker makes of a crash after the step (compaction C-15.5 to
C-15.8); Kafka's own cleaner makes the same renames in the same order (C-15.1):

1. staged files -> .cleaned            .cleaned is deleted: the old log
2. .cleaned -> .swap, .log first       mixed with .cleaned: all deleted, the old log;
                                       complete: the sources in its range go, the new log
3. sources -> .deleted, ascending      .deleted and the rest of the sources go: the new log
4. .swap -> live, .log first           renamed: the new log
5. sync the directory
6. remove snapshots of merged bases    stale ones are removed, or stay without harm
7. remove the .deleted files           likewise

One group at a time: while two stand in .swap, recovery deletes what lies between them.
"""

import os
from collections.abc import Callable
from typing import NamedTuple

from cleaner_jobs.task_values import Source
from cleaner_jobs.unchanged import check_unchanged
from storage import filesystem
from storage.file_names import (
    CLEANED,
    DELETED,
    INDEX,
    LOG,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    file_name,
)

SEGMENT_FILES = (LOG, INDEX, TIME_INDEX, TXN_INDEX)  # Kafka's order of renames


class StagedGroup(NamedTuple):
    """A finished segment beside the ones that it replaces."""

    path: str  # the partition directory
    sources: tuple[Source, ...]
    log_file: str
    index_file: str
    time_index_file: str

    @property
    def base_offset(self) -> int:
        return self.sources[0].base_offset


def swap_group(group: StagedGroup, remove: Callable[[str], object] | None = None) -> None:
    """Replace the sources by the staged segment, in the steps above.

    remove: takes over the removal of the files of the last step; by default it is done at once.
    Raise LogChangedError, before the first of them, where a source is not what was planned for.
    """
    for source in group.sources:
        check_unchanged(source, os.stat(source.path))
    staged = {
        LOG: group.log_file,
        INDEX: group.index_file,
        TIME_INDEX: group.time_index_file,
    }
    live = {kind: os.path.join(group.path, file_name(group.base_offset, kind)) for kind in staged}
    try:
        for kind in reversed(staged):
            filesystem.rename(staged[kind], live[kind] + CLEANED)
        filesystem.sync_directory(group.path)
    except OSError:  # the old log is whole: leave nothing that would have to be settled first
        for path in live.values():
            _remove(path + CLEANED)
        raise
    for kind in staged:
        filesystem.rename(live[kind] + CLEANED, live[kind] + SWAP)
    deleted = _delete_sources(group)
    for kind in staged:
        filesystem.rename(live[kind] + SWAP, live[kind])
    filesystem.sync_directory(group.path)
    for source in group.sources[1:]:
        _remove(os.path.join(group.path, file_name(source.base_offset, SNAPSHOT)))
    for path in deleted:
        (remove or filesystem.remove)(path)


def _delete_sources(group: StagedGroup) -> list[str]:
    deleted = []
    for source in group.sources:
        for kind in SEGMENT_FILES:
            path = os.path.join(group.path, file_name(source.base_offset, kind))
            if os.path.lexists(path):
                filesystem.rename(path, path + DELETED)
                deleted.append(path + DELETED)
    return deleted


def _remove(path: str) -> None:
    if os.path.lexists(path):
        filesystem.remove(path)


def sweep_staged(path: str, marker: str) -> None:
    """Remove files of a partition directory that runs staged and never finished.

    marker: what their names contain. Only for who holds the log directory's lock.
    """
    for entry in filesystem.list_directory(path):
        if marker in entry.name and not entry.is_dir:
            filesystem.remove(os.path.join(path, entry.name))
