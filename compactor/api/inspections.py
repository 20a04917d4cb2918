"""`inspect`: what stands in logs."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cleaner_jobs.tasks.tasks_here import TasksHere
from compactor.api import places
from compactor.api.arguments import PathArg
from compactor.api.changes import OnProgress, watched
from compactor.api.premises import Premises, plan_of, premises_of
from compactor.api.rules import KAFKAS_DEFAULTS, Rules
from compactor.cleaning.runners import RunnerChoice, require_own_spark
from compactor.exit_codes import UsageError
from compactor.host.suggestions import did_you_mean
from compactor.inspect.inspect_logs import EVERY_BYTE, InspectSettings, inspect_logs
from compactor.inspect.inspected_log import InspectedLog
from compactor.inspect.inspection import Inspection
from compactor.planning.candidate import Judgement
from compactor.planning.planner import CLUSTER_METADATA
from compactor.planning.round_plan import RoundPlan
from compactor.remembered_logs import RememberedLogs
from compactor.survey import LogDirSurvey, offsets_of, survey_log_dir
from storage.file_names import parse_partition_dir
from storage.log.log_dir import PartitionListing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectOptions:
    """The options of `inspect` alone, as on the command line."""

    sample_bytes: int | None = None  # read at most about so much of each log; None: all
    top: int = 10  # how many of the keys with most versions, and with most bytes
    work_dir: str | None = None  # None: in the system's temporary directory
    master: str | None = None  # of Spark; None: that of spark-submit, or all cores of this host
    executor_paths: tuple[tuple[str, str], ...] = ()  # a directory, and its name on executors
    session: "SparkSession | None" = None  # to use, and to leave open; else it makes its own
    in_process: bool = False  # tasks in this process, one after another, and no Spark: small logs


EVERYTHING = InspectOptions()


def inspect(
    log_dir: PathArg,
    partitions: Sequence[str] = (),
    rules: Rules = KAFKAS_DEFAULTS,
    options: InspectOptions = EVERYTHING,
    on_progress: OnProgress | None = None,
) -> Inspection:
    """Say what stands in the logs of a log directory, or in those that are named TOPIC-PARTITION.

    Takes no lock and changes nothing. A log that cannot be read has a problem instead of counts.
    Raise UsageError where there is no such partition, ConfigError for a setting that is not valid.
    """
    require_own_spark(options.session, options.in_process)
    began = time.monotonic()
    (path,) = places.log_dirs([log_dir], to_write=False)
    work_dir = places.work_dir(options.work_dir, [path])
    premises = premises_of(rules, [path])
    remembered = RememberedLogs([path], files=premises.files)
    survey = survey_log_dir(path, premises.files)
    listings = _wanted(survey, partitions, path, premises)
    plan = plan_of(premises, remembered.problems)
    runner = TasksHere() if options.in_process else None
    settings = InspectSettings(
        as_of_ms=premises.as_of_ms,
        choice=RunnerChoice(options.master, options.session, runner, options.executor_paths),
        work_dir=work_dir,
        sample_bytes=EVERY_BYTE if options.sample_bytes is None else options.sample_bytes,
        heavy_keys=options.top,
        state_logs=survey.listing.partitions,
    )
    verdicts = _verdicts(plan)
    judgements = {facts.judgement.partition[:2]: facts.judgement for facts in plan.facts}
    logs = [_log(listing, survey, premises, judgements, verdicts) for listing in listings]
    with watched(on_progress) as progress:
        found = inspect_logs(logs, settings, progress)
    return Inspection(
        logs=tuple(found),
        as_of_ms=premises.as_of_ms,
        seconds=time.monotonic() - began,
        warnings=(*premises.warnings, *remembered.warnings),
    )


def _wanted(
    survey: LogDirSurvey, names: Sequence[str], log_dir: str, premises: Premises
) -> list[PartitionListing]:
    """The logs that are named, or all that the configuration includes, if they have a segment."""
    listed = {(p.topic, p.partition): p for p in survey.listing.partitions}
    if names:
        keys = dict.fromkeys(_key(name) for name in names)
        for key, name in zip(keys, names, strict=False):
            if key not in listed:
                hint = did_you_mean(name, [partition.name for partition in listed.values()])
                raise UsageError(f"{name}: there is no such partition in {log_dir}{hint}")
        return [listed[key] for key in sorted(keys) if listed[key].segments]
    include, exclude = premises.config.include, premises.config.exclude
    return [
        partition
        for partition in survey.listing.partitions
        if partition.segments
        and partition.topic != CLUSTER_METADATA
        and (include is None or include.fullmatch(partition.topic))
        and not (exclude is not None and exclude.fullmatch(partition.topic))
    ]


def _key(name: str) -> tuple[str, int]:
    key = parse_partition_dir(name)
    if key is None:
        raise UsageError(f"{name}: expected TOPIC-PARTITION")
    return key


def _verdicts(plan: RoundPlan) -> dict[tuple[str, int], str]:
    """What a round would do with each log, and why."""
    reports = {(r.topic, r.partition): f"{r.status.value}: {r.reason}" for r in plan.not_cleaned}
    return reports | {(log.topic, log.partition): "to-clean" for log in plan.logs}


def _log(
    listing: PartitionListing,
    survey: LogDirSurvey,
    premises: Premises,
    judgements: Mapping[tuple[str, int], Judgement],
    verdicts: Mapping[tuple[str, int], str],
) -> InspectedLog:
    key = listing.topic, listing.partition
    judgement = judgements.get(key)
    offsets = offsets_of(listing, survey, premises.config.assume_fully_replicated)
    first_dirty = first_uncleanable = 0  # nothing of it may be cleaned
    if judgement is not None:
        first_dirty = judgement.first_dirty.offset
        first_uncleanable = judgement.cleanable.first_uncleanable_offset
    return InspectedLog(
        listing=listing,
        log_dir=survey.path,
        config=premises.config.topic(listing.topic),
        log_start_offset=offsets.log_start,
        first_dirty_offset=first_dirty,
        first_uncleanable_offset=first_uncleanable,
        has_clean_shutdown=survey.listing.has_clean_shutdown,
        plan=verdicts.get(key, "not planned for"),
    )
