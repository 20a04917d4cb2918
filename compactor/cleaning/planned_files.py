"""Check before each swap that the files of a log are those that its round was planned for.

Nobody else should be at work on a log. Another writer changes its end, or what is about to be
swapped: those files are looked at by name before every group. The whole directory is listed before
the first group and before the last, so that no checkpoint moves over a change that came before it,
and in between as often as the looks at names that it saves, and the number of groups, pay for. To
list it for every group would take the square of the number of segments.
"""

import os
from bisect import bisect_right
from collections.abc import Collection, Iterable
from functools import cached_property

from cleaner_jobs.messages import LogPlan
from cleaner_jobs.source_identity import check_same
from storage.file_names import LOG, SEGMENT_SUFFIXES, SNAPSHOT, file_name, offset_of
from storage.files.files import Entry, Files
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.partition_metadata import PARTITION_METADATA
from storage.gc_pause import collector_paused
from storage.log.log_dir import list_files

LISTED_A_GROUP = 64  # files of the whole directory, on average; a group's own come on top
LISTED_A_LOOK = 3  # files in the time that a look at one by its name takes


class PlannedFiles:
    """The files of one log, as they were when the round was planned."""

    def __init__(self, plan: LogPlan, access: Files) -> None:
        self._path, self._access, self._plan = plan.path, access, plan
        self._files = {entry.name: entry for entry in plan.files}
        self._first_offsets = [group.base_offset for group in plan.groups]
        self._paid_for = 0  # files of the next listing

    @property
    def names(self) -> Collection[str]:
        """The names of all files; of a group that was checked, exactly those in the directory."""
        return self._files.keys()

    @collector_paused()  # what is listed stays, and has no cycles
    def check(self, group: int) -> None:
        """Raise LogChangedError where a file is another, has gone or has come; OSError.

        To be asked for each group of the round, in their order, before it is swapped in. What
        stands below the group is what the round has made of it, and left out.
        """
        if group in (0, len(self._first_offsets) - 1) or self._pays_for_listing(group):
            self._paid_for = 0
            self._check_all(self._first_offsets[group] if group else 0)
        else:
            self._check_names(self._names_of(group))

    def _pays_for_listing(self, group: int) -> bool:
        self._paid_for += max(LISTED_A_GROUP, LISTED_A_LOOK * len(self._names_of(group)))
        return self._paid_for >= len(self._files)

    def _names_of(self, group: int) -> set[str]:
        return self._of_group[group] | self._of_end

    @cached_property
    def _of_group(self) -> list[set[str]]:
        return _names_of_groups(self._plan)

    @cached_property
    def _of_end(self) -> set[str]:
        return _names_of_end(self._files)

    def _check_all(self, first_offset: int) -> None:
        planned = self._files
        found = {entry.name: entry for entry in list_files(self._path, self._access)}
        others = [name for name, entry in found.items() if planned.get(name) != entry]
        for name in sorted((*others, *(planned.keys() - found.keys()))):
            offset = offset_of(name)
            if offset is None or offset >= first_offset:
                self._compare(name, found.get(name))

    def _check_names(self, names: Iterable[str]) -> None:
        for name in names:
            found = self._access.look_up(os.path.join(self._path, name))
            is_file = found is not None and not found.is_dir and not found.special
            self._compare(name, found if is_file else None)

    def _compare(self, name: str, now: Entry | None) -> None:
        check_same(os.path.join(self._path, name), self._files.get(name), now)


def _names_of_groups(plan: LogPlan) -> list[set[str]]:
    """Return the names to look at for each group.

    These are the files from its base offset to that of the next group, and the names of files that
    its segments do not have.
    """
    names = [
        {name for s in group.segments for name in _names_at(s.base_offset)} for group in plan.groups
    ]
    first_offsets = [group.base_offset for group in plan.groups]
    for entry in plan.files:
        offset = offset_of(entry.name)
        if offset is not None and offset < plan.first_uncleanable_offset:
            names[max(0, bisect_right(first_offsets, offset) - 1)].add(entry.name)
    return names


def _names_of_end(files: Iterable[str]) -> set[str]:
    """Where a broker is at work: from the active segment on, and what has no offset in its name."""
    offsets = {name: offset_of(name) for name in files}
    active = max((offset or 0 for name, offset in offsets.items() if name.endswith(LOG)), default=0)
    names = {name for name, offset in offsets.items() if offset is None or offset >= active}
    return {*names, *_names_at(active), LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA}


def _names_at(base_offset: int) -> list[str]:
    return [file_name(base_offset, kind) for kind in (*SEGMENT_SUFFIXES, SNAPSHOT)]
