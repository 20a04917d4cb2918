"""Every log of some log directories looked at and judged: by this process, or by two, half each.

Each of the two knows all names, and what the checkpoints say, and looks into the directories of its
own half. What both know has to be the same at the end: if it is not, a log has come or gone
meanwhile, and this process does all of it by itself; so it does where the other one ends early. So
nothing depends on which way was taken.
"""

import os
import pickle
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import BinaryIO, NamedTuple
from zlib import crc32

from compactor.errors import ConfigError
from compactor.log_dirs.survey import LogDirSurvey, survey_log_dir, survey_log_dirs
from compactor.planning.candidate import RoundClock
from compactor.planning.outcomes import PartitionOutcome, Problems
from compactor.planning.planner import Planner
from compactor.planning.second_process import side_by_side
from compactor.settings.config import Config
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.gc_pause import collector_paused
from storage.log.log_dir import list_partition

FEWEST_FOR_TWO = 2000  # directories: what the second process costs is then a tenth of what it saves
FIRST_OF_256 = 136  # the first process's share: the second one has to hand its own over, too


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """What is to be judged, and by which rules."""

    log_dirs: Sequence[str]
    config: Config
    clock: RoundClock
    problems: Problems
    files: Files = LOCAL
    with_files: bool = True  # as of `list_partition`
    is_metadata_ignored: bool = False  # of any metadata log, also beside the directories


class Judged(NamedTuple):
    """The log directories, and what became of each of their partitions, in their order."""

    surveys: list[LogDirSurvey]
    outcomes: list[PartitionOutcome]


def judged(asked: Judging) -> Judged:
    """Look at every log, and take it or say why not.

    Raise RefusedError if a directory cannot be read, ConfigError if settings of a topic clash.
    """
    with collector_paused():
        found = _judged_by_two(asked) if _is_for_two(asked) else None
        return found or _share(asked, lambda _: True)


def _share(asked: Judging, is_own: Callable[[str], bool]) -> Judged:
    surveys = survey_log_dirs(asked.log_dirs, asked.files, asked.with_files, is_own)
    planner = Planner(asked.config, asked.clock, surveys, asked.problems)
    outcomes = [
        planner.outcome(partition, survey)
        for survey in surveys
        for partition in survey.listing.partitions
        if is_own(partition.name)
    ]
    return Judged(surveys, outcomes)


def judge_one(asked: Judging) -> Callable[[Files, str, str, int], PartitionOutcome]:
    """Give what judges one log, by its log directory, topic and partition, as other files show it.

    Log directories are looked at when the first one is asked for. Raises as `judged`.
    """
    surveys: dict[str, LogDirSurvey] = {}
    planners: list[Planner] = []

    def judge(seen: Files, log_dir: str, topic: str, partition: int) -> PartitionOutcome:
        if not planners:
            found = survey_log_dirs(asked.log_dirs, asked.files, False, lambda _: False)
            surveys.update((survey.path, survey) for survey in found)
            planners.append(Planner(asked.config, asked.clock, found, asked.problems))
        path = os.path.join(log_dir, f"{topic}-{partition}")
        listing = list_partition(path, topic, partition, seen)
        if log_dir not in surveys:  # another name of one
            surveys[log_dir] = survey_log_dir(log_dir, asked.files, False, lambda _: False)
        return planners[0].outcome(listing, surveys[log_dir])

    return judge


def _is_for_two(asked: Judging) -> bool:
    """Many logs, a core for each, and no thread of ours that a fork would leave behind."""
    if asked.with_files or asked.files is not LOCAL or sys.platform != "linux":
        return False
    if threading.active_count() > 1 or len(os.sched_getaffinity(0)) < 2:
        return False
    try:
        names = [LOCAL.list_names(path)[0] for path in asked.log_dirs]
    except OSError:
        return False  # which the survey reports
    return sum(map(len, names)) >= FEWEST_FOR_TWO


def _is_first(name: str) -> bool:
    """Whether a partition is of this process's half; of whatever names there are about one."""
    return crc32(name.encode()) & 255 < FIRST_OF_256


def _judged_by_two(asked: Judging) -> Judged | None:
    """None where the other process has failed, or has seen other logs."""
    try:
        halves = side_by_side(lambda: _share(asked, _is_first), partial(_write_second, asked))
    except ConfigError:
        return None  # of all there are, one process meets the first, as ever
    return None if halves is None else _put_together(*halves)


def _write_second(asked: Judging, out: BinaryIO) -> None:
    found = _share(asked, lambda name: not _is_first(name))
    pickle.dump((_known_by_both(found), found.outcomes), out, pickle.HIGHEST_PROTOCOL)


def _put_together(found: Judged, data: bytes) -> Judged | None:
    """data: the other half, or what has come of it."""
    try:
        known, theirs = pickle.loads(data)  # noqa: S301  # of our own, by a pipe of our own
    except (EOFError, pickle.UnpicklingError):  # it has ended early
        return None
    if known != _known_by_both(found):
        return None
    own, others = iter(found.outcomes), iter(theirs)
    outcomes = [
        next(own if _is_first(partition.name) else others)
        for survey in found.surveys
        for partition in survey.listing.partitions
    ]
    return Judged(_with_partitions(found.surveys, outcomes), outcomes)


def _known_by_both(found: Judged) -> list[object]:
    """The surveys with nothing of a partition but its name."""
    return [
        (
            replace(survey, listing=survey.listing._replace(partitions=())),
            [partition.name for partition in survey.listing.partitions],
        )
        for survey in found.surveys
    ]


def _with_partitions(
    surveys: Sequence[LogDirSurvey], outcomes: Sequence[PartitionOutcome]
) -> list[LogDirSurvey]:
    whole, done = [], 0
    for survey in surveys:
        own = outcomes[done : done + len(survey.listing.partitions)]
        done += len(own)
        partitions = tuple(outcome.partition for outcome in own)
        whole.append(replace(survey, listing=survey.listing._replace(partitions=partitions)))
    return whole
