"""`inspect`: the contents of logs, counted."""

import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from compactor.api import path_arguments
from compactor.api.arguments import Paths
from compactor.api.progress import OnProgress, watch_changes
from compactor.api.round_context import RoundContext, plan_of, read_round_context
from compactor.errors import UsageError
from compactor.host.suggestions import did_you_mean
from compactor.inspection.inspect_logs import EVERY_BYTE, InspectSettings, inspect_logs
from compactor.inspection.inspected_log import InspectedLog
from compactor.inspection.inspection import Inspection
from compactor.jobs.engine_choice import require_possible_engine
from compactor.log_dirs.set_aside_memory import RememberedLogs
from compactor.log_dirs.survey import LogDirSurvey, offsets_of, survey_log_dir
from compactor.planning.candidate import Judgement
from compactor.planning.planner import CLUSTER_METADATA
from compactor.planning.round_plan import RoundPlan
from compactor.settings.config import Config
from compactor.settings.rules import (
    KAFKAS_DEFAULTS,
    InspectOptions,
    Rules,
)
from storage.file_names import parse_partition_dir
from storage.log.log_dir import PartitionListing

if TYPE_CHECKING:
    pass


EVERYTHING = InspectOptions()


def inspect(
    log_dirs: Paths,
    partitions: Sequence[str] = (),
    rules: Rules = KAFKAS_DEFAULTS,
    options: InspectOptions = EVERYTHING,
    on_progress: OnProgress | None = None,
) -> Inspection:
    """Count the contents of the logs of log directories, or of the named partitions.

    Takes no lock and changes nothing. A log that cannot be read has a problem instead of counts.
    Raise UsageError for an unknown partition, ConfigError for a setting that is not valid.
    """
    require_possible_engine(options)
    began = time.monotonic()
    paths = path_arguments.log_dirs(log_dirs, to_write=False)
    work_dir = path_arguments.work_dir(options.work_dir, paths)
    context = read_round_context(rules, paths)
    remembered = RememberedLogs(paths, files=context.files)
    surveys = [survey_log_dir(path, context.files) for path in paths]
    wanted = _wanted(surveys, partitions, context)
    plan = plan_of(context, remembered.problems)
    settings = InspectSettings(
        now_ms=context.as_of_ms,
        engine=options,
        work_dir=work_dir,
        sample_bytes=EVERY_BYTE if options.sample_bytes is None else options.sample_bytes,
        heavy_keys=options.top,
        state_logs=tuple(_state_logs(surveys, context)),
        disk=context.disk,
    )
    verdicts = _verdicts(plan)
    judgements = {facts.judgement.partition.path: facts.judgement for facts in plan.facts}
    logs = [_log(listing, survey, context, judgements, verdicts) for survey, listing in wanted]
    with watch_changes(on_progress) as progress:
        found = inspect_logs(logs, settings, progress)
    return Inspection(
        logs=tuple(found),
        as_of_ms=context.as_of_ms,
        seconds=time.monotonic() - began,
        warnings=(*context.warnings, *remembered.warnings),
    )


def _wanted(
    surveys: Sequence[LogDirSurvey], names: Sequence[str], context: RoundContext
) -> list[tuple[LogDirSurvey, PartitionListing]]:
    """Return the named logs, or all that the configuration includes, if they have a segment."""
    listed = [(survey, each) for survey in surveys for each in survey.listing.partitions]
    if names:
        keys = {_key(name): name for name in names}
        for key, name in keys.items():
            if not any((each.topic, each.partition) == key for _, each in listed):
                where = " and ".join(survey.path for survey in surveys)
                hint = did_you_mean(name, [each.name for _, each in listed])
                raise UsageError(f"there is no such partition in {where}{hint}", value=name)
        listed = [pair for pair in listed if (pair[1].topic, pair[1].partition) in keys]
    else:
        listed = [pair for pair in listed if _is_included(pair[1].topic, context.config)]
    listed.sort(key=lambda pair: (pair[1].topic, pair[1].partition, pair[0].path))
    return [pair for pair in listed if pair[1].segments]


def _is_included(topic: str, config: Config) -> bool:
    """Return whether a topic is wanted by its name, and is not the cluster's metadata."""
    return topic != CLUSTER_METADATA and config.is_wanted(topic)


def _key(name: str) -> tuple[str, int]:
    key = parse_partition_dir(name)
    if key is None:
        raise UsageError(f"expected TOPIC-PARTITION, like {name or 'orders'}-0", value=name)
    return key


def _state_logs(surveys: Sequence[LogDirSurvey], context: RoundContext) -> list[PartitionListing]:
    """Return the logs that may say whose a producer id is; none of several clusters."""
    if len({each.broker.cluster_id for each in context.of_brokers}) > 1:
        return []
    return [each for survey in surveys for each in survey.listing.partitions]


def _verdicts(plan: RoundPlan) -> dict[str, str]:
    """Return what a round would do with each log, by its path, and why."""
    verdicts = {
        os.path.join(left.log_dir, left.name): f"{left.status.value}: {left.reason}"
        for left in plan.not_cleaned
    }
    return verdicts | {log.path: "to-clean" for log in plan.logs}


def _log(
    listing: PartitionListing,
    survey: LogDirSurvey,
    context: RoundContext,
    judgements: Mapping[str, Judgement],
    verdicts: Mapping[str, str],
) -> InspectedLog:
    config = context.config_of(survey.path)
    judgement = judgements.get(listing.path)
    offsets = offsets_of(listing, survey, config.assume_fully_replicated)
    first_dirty = first_uncleanable = 0  # nothing of it may be cleaned
    if judgement is not None:
        first_dirty = judgement.first_dirty.offset
        first_uncleanable = judgement.cleanable.first_uncleanable_offset
    return InspectedLog(
        listing=listing,
        log_dir=survey.path,
        config=config.topic(listing.topic),
        log_start_offset=offsets.log_start,
        first_dirty_offset=first_dirty,
        first_uncleanable_offset=first_uncleanable,
        has_clean_shutdown=survey.listing.has_clean_shutdown,
        plan=verdicts.get(listing.path, "not planned for"),
    )
