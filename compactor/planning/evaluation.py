"""Look at every log of some log directories and judge it, in this process or in two, half each.

Each of the two knows all names, and what the checkpoints say, and looks into the directories of its
own half. What both know has to be the same at the end: if it is not, a log has come or gone
meanwhile, and this process does all of it by itself; it does so, too, where the other one ends
early. So the result does not depend on the way that was taken.

The other process is forked (`compactor.host.second_process`).
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import BinaryIO, NamedTuple
from zlib import crc32

from compactor.errors import ConfigError
from compactor.host.second_process import is_for_two, run_forked, value_in, write_value
from compactor.log_dirs.survey import LogDirSurvey, survey_log_dir, survey_log_dirs
from compactor.planning.candidate import RoundClock
from compactor.planning.outcomes import PartitionOutcome, Problems
from compactor.planning.planner import Planner
from compactor.settings.config import Config
from storage.files.files import Disk, Files
from storage.files.local import LOCAL
from storage.gc_pause import collector_paused
from storage.log.log_dir import list_partition

FIRST_OF_256 = 136  # the first process's share: the second one has to hand its own over, too


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRequest:
    """What is to be judged, and by which rules."""

    log_dirs: Sequence[str]
    config: Config
    clock: RoundClock
    problems: Problems
    files: Files = LOCAL
    disk: Disk = LOCAL  # on which it is looked at what this user may do
    with_files: bool = True  # see `list_partition`
    is_metadata_ignored: bool = False  # of any metadata log, also beside the directories
    only: str | None = None  # TOPIC-PARTITION: of other logs no more than the names is looked at


class Evaluation(NamedTuple):
    """The log directories, and what became of each of their partitions, in their order."""

    surveys: list[LogDirSurvey]
    outcomes: list[PartitionOutcome]


def evaluate(asked: EvaluationRequest) -> Evaluation:
    """Look at every log that is asked for, and take it or say why not.

    Raise RefusedError if a directory cannot be read, ConfigError if settings of a topic clash.
    """
    with collector_paused():
        if asked.only is not None:
            return _evaluate_own(asked, asked.only.__eq__)
        found = _evaluate_in_two(asked) if _is_for_two(asked) else None
        return found or _evaluate_own(asked, lambda _: True)


def evaluator_of_one(
    asked: EvaluationRequest,
) -> Callable[[Files, str, str, int], PartitionOutcome]:
    """Give what judges one log, by its log directory, topic and partition, as other files show it.

    Log directories are looked at when the first one is asked for. Raises as `evaluate`.
    """
    surveys: dict[str, LogDirSurvey] = {}
    planners: list[Planner] = []

    def judge(seen: Files, log_dir: str, topic: str, partition: int) -> PartitionOutcome:
        if not planners:
            found = survey_log_dirs(asked.log_dirs, asked.files, False, lambda _: False)
            surveys.update((survey.path, survey) for survey in found)
            planners.append(Planner(asked.config, asked.clock, found, asked.problems, asked.disk))
        path = os.path.join(log_dir, f"{topic}-{partition}")
        listing = list_partition(path, topic, partition, seen)
        if log_dir not in surveys:  # another name of one
            surveys[log_dir] = survey_log_dir(log_dir, asked.files, False, lambda _: False)
        return planners[0].outcome(listing, surveys[log_dir])

    return judge


def _is_for_two(asked: EvaluationRequest) -> bool:
    if asked.with_files:
        return False
    try:
        names = [asked.files.list_names(path)[0] for path in asked.log_dirs]
    except OSError:
        return False  # which the survey reports
    return is_for_two(sum(map(len, names)), asked.files)


def _evaluate_own(asked: EvaluationRequest, is_own: Callable[[str], bool]) -> Evaluation:
    surveys = survey_log_dirs(asked.log_dirs, asked.files, asked.with_files, is_own)
    planner = Planner(asked.config, asked.clock, surveys, asked.problems, asked.disk)
    outcomes = [
        planner.outcome(partition, survey)
        for survey in surveys
        for partition in survey.listing.partitions
        if is_own(partition.name)
    ]
    return Evaluation(surveys, outcomes)


def _evaluate_in_two(asked: EvaluationRequest) -> Evaluation | None:
    """None where the other process has failed, or has seen other logs."""
    try:
        halves = run_forked(
            lambda: _evaluate_own(asked, _is_first), partial(_write_other_half, asked)
        )
    except ConfigError:
        return None  # of all there are, one process meets the first, as ever
    return None if halves is None else _combine(*halves)


def _is_first(name: str) -> bool:
    """Whether a partition is of this process's half; of any names about one half."""
    return crc32(name.encode()) & 255 < FIRST_OF_256


def _write_other_half(asked: EvaluationRequest, out: BinaryIO) -> None:
    found = _evaluate_own(asked, lambda name: not _is_first(name))
    write_value((_known_by_both(found), found.outcomes), out)


def _combine(evaluation: Evaluation, data: bytes) -> Evaluation | None:
    """data: the other half, or what has come of it."""
    half = value_in(data)
    if half is None:
        return None
    known, theirs = half
    if known != _known_by_both(evaluation):
        return None
    own, others = iter(evaluation.outcomes), iter(theirs)
    outcomes = [
        next(own if _is_first(partition.name) else others)
        for survey in evaluation.surveys
        for partition in survey.listing.partitions
    ]
    return Evaluation(_with_partitions(evaluation.surveys, outcomes), outcomes)


def _known_by_both(evaluation: Evaluation) -> list[object]:
    """The surveys with nothing of a partition but its name."""
    return [
        (
            replace(survey, listing=survey.listing._replace(partitions=())),
            [partition.name for partition in survey.listing.partitions],
        )
        for survey in evaluation.surveys
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
