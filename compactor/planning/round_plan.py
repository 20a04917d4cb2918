"""Plan a round: which logs of the log directories are cleaned, how far, and in what order.

Reads metadata only, and changes nothing. Every log that is not taken gets a reason; whatever is
wrong with one log or one directory sets it aside, and the others go on.

Each of several brokers has its own plan, and `merge_plans` makes one of them, since they are
carried out together. All that follows a plan knows a log by its log directory, so that the same
partition of two brokers is two logs. `notices_of` are the sentences that a plan or a run says once,
whichever logs it has.

Source: spec C-3 to C-5.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any, ClassVar, NamedTuple

from cleaner_jobs.messages import LogPlan
from compactor.log_dirs.missing_directories import Gone, entries_of, gone_from
from compactor.log_dirs.survey import LogDirSurvey, foreign_files, foreign_notice
from compactor.outcome.round_report import LogKey, LogReport, LogStatus
from compactor.planning.candidate import Judgement, Prepared
from compactor.planning.evaluation import EvaluationRequest, evaluate
from compactor.planning.inventory import LogSize, size_of, unlisted_size
from compactor.planning.log_retention import LogRetention
from compactor.planning.outcomes import PartitionOutcome, Refusal, StrayEntries
from compactor.planning.planner import CLUSTER_METADATA
from compactor.planning.segment_groups import SegmentLimits, group_segments
from compactor.planning.selection import dirtiest_first, legacy_horizon_ms
from compactor.reason_codes import ReasonCode, is_log_missing
from compactor.settings.cluster_settings import registered_log_dirs
from storage.file_names import parse_partition_dir
from storage.formats.checkpoint import REPLICATION, TopicPartition
from storage.gc_pause import collector_paused
from storage.kafka_versions import KafkaUse, last_kept_offset, record_limit
from storage.log.log_dir import is_topic_name

ALL_LOG_DIRS = (
    "Give all directories of the broker's log.dirs: if a partition is being moved to one that is "
    "not given, this is not noticed, and a deleted record could come back"
)


class IgnoredDirectory(NamedTuple):
    """A directory that holds no log to work on."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class LogDirFacts:
    """What a log directory holds."""

    JSON_NAMES: ClassVar = (
        *("path", "partitions", "has_clean_shutdown", "has_high_watermarks", "ignored", "foreign"),
        "problem",
    )

    path: str
    partitions: int
    has_clean_shutdown: bool
    ignored: tuple[IgnoredDirectory, ...]
    problem: str | None  # why none of its logs can be judged
    has_high_watermarks: bool  # or none that can be read
    foreign: tuple[
        str, ...
    ] = ()  # files in partition directories that are neither Kafka's nor ours


class LogFacts(NamedTuple):
    """How a compacted log was judged, taken or not."""

    status: LogStatus | None  # None: taken
    reason: str | None
    judgement: Judgement
    notes: tuple[str, ...] = ()

    @property
    def key(self) -> LogKey:
        partition = self.judgement.partition
        return self.judgement.log_dir, partition.topic, partition.partition


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """What a round is to do."""

    as_of_ms: int
    logs: tuple[LogPlan, ...]  # dirtiest first
    not_cleaned: tuple[LogReport, ...]  # passed over or set aside, each with its reason
    facts: tuple[LogFacts, ...]  # those of `logs` first and in their order, then the other ones
    # log directory -> impossible entries of its cleaner checkpoint, set right (C-4.2)
    checkpoint_repairs: Mapping[str, Mapping[TopicPartition, int]]
    log_dirs: tuple[LogDirFacts, ...]
    stray_entries: tuple[StrayEntries, ...] = ()  # of logs that are not set aside
    retention: tuple[LogRetention, ...] = ()  # of the logs that it may take segments from
    are_all_log_dirs_known: bool = False  # by the cluster's metadata log
    inventory: tuple[LogSize, ...] = ()  # of every log that there is
    brokers: tuple[str, ...] = ()  # with their log directories, where there are several
    kafka: tuple[KafkaUse, ...] = ()  # whose answer is given, of each broker
    unknown_settings: tuple[str, ...] = ()  # that were set for topics, for people
    lasting: tuple[str, ...] = ()  # notes of what earlier runs have warned of
    absent: tuple[str, ...] = ()  # of logs that checkpoints name, for people to judge


def plan_round(asked: EvaluationRequest) -> RoundPlan:
    """Survey log directories, and choose the logs to clean.

    Raises:
        RefusedError: A directory cannot be read.
        ConfigError: Settings of a topic clash.
    """
    with collector_paused():
        surveys, outcomes = evaluate(asked)
        gone = list(_gone(asked, surveys))
        missing = [log for each in gone for log in _missing(each)]
        plan = _plan_of_outcomes(asked.clock.now_ms, surveys, outcomes, missing)
        are_known = bool(registered_log_dirs(asked.config.cluster))
        cluster, is_wanted = asked.config.cluster, asked.config.is_wanted
        unknown = () if cluster is None else tuple(cluster.unknown_settings(is_wanted))
        return replace(
            plan,
            are_all_log_dirs_known=are_known,
            unknown_settings=unknown,
            absent=tuple(notice for each in gone for notice in _notices_of(each)),
        )


def merge_plans(plans: Sequence[RoundPlan]) -> RoundPlan:
    """One plan with the logs of all, dirtiest first. Not none; all as of the same time."""
    if len(plans) == 1:
        return plans[0]
    taken = [pair for plan in plans for pair in zip(plan.logs, plan.facts, strict=False)]
    taken.sort(key=lambda pair: order_of(pair[1].judgement))
    others = [facts for plan in plans for facts in plan.facts[len(plan.logs) :]]
    joined: dict[str, Any] = {
        field.name: tuple(chain.from_iterable(getattr(plan, field.name) for plan in plans))
        for field in fields(RoundPlan)
        if isinstance(getattr(plans[0], field.name), tuple)
    }
    joined |= {
        "logs": tuple(replace(log, log_id=number) for number, (log, _) in enumerate(taken)),
        "not_cleaned": tuple(sorted(joined["not_cleaned"], key=order_of_report)),
        "facts": (*(facts for _, facts in taken), *others),
        "checkpoint_repairs": dict(
            repairs for plan in plans for repairs in plan.checkpoint_repairs.items()
        ),
        "are_all_log_dirs_known": all(plan.are_all_log_dirs_known for plan in plans),
        "unknown_settings": tuple(dict.fromkeys(joined["unknown_settings"])),
    }
    return replace(plans[0], **joined)


def notices_of(plan: RoundPlan) -> tuple[str, ...]:
    """One sentence each, without a full stop."""
    ends = (
        f"{log_dir.path} has no {REPLICATION}: the end of each log is taken for its high watermark"
        for log_dir in plan.log_dirs
        if log_dir.partitions and not log_dir.has_high_watermarks
    )
    foreign = tuple(
        foreign_notice(log_dir.path, log_dir.foreign)
        for log_dir in plan.log_dirs
        if log_dir.foreign
    )
    each = f"Each broker's logs are judged by themselves: {'; '.join(plan.brokers)}"
    brokers = (each,) if plan.brokers else ()
    unknown = () if plan.are_all_log_dirs_known else (ALL_LOG_DIRS,)
    settings: tuple[str, ...] = ()
    if plan.unknown_settings:
        settings = (f"Settings that are not known here: {', '.join(plan.unknown_settings)}",)
    found = (*brokers, *unknown, *ends, *settings, *foreign, *plan.absent, *plan.lasting)
    return found if plan.log_dirs else ()


def log_plan_of(log_id: int, prepared: Prepared) -> LogPlan:
    """What a round does with a log that it cleans. log_id: its place in the order."""
    judgement = prepared.judgement
    partition, config = judgement.partition, judgement.config
    end = judgement.cleanable.first_uncleanable_offset
    assert judgement.high_watermark is not None, "of a log that was prepared"
    limits = SegmentLimits(config.segment_bytes, config.segment_index_bytes)
    return LogPlan(
        log_id=log_id,
        log_dir=judgement.log_dir,
        topic=partition.topic,
        partition=partition.partition,
        path=partition.path,
        first_dirty_offset=judgement.first_dirty.offset,
        first_uncleanable_offset=end,
        groups=group_segments(prepared.to_rewrite, limits, end),
        delete_retention_ms=config.delete_retention_ms,
        index_interval_bytes=config.index_interval_bytes,
        segment_index_bytes=config.segment_index_bytes,
        active_producers=prepared.producers,
        segment_bytes=config.segment_bytes,
        log_start_offset=judgement.offsets.log_start,
        txn_index_base_offsets=tuple(
            segment.base_offset
            for segment in partition.segments
            if segment.txn_index_bytes and segment.index_bytes is not None
        ),
        rebuilt_txn_indexes=tuple(
            rebuilt for rebuilt in prepared.rebuilt_txn_indexes if rebuilt[1]
        ),
        files=partition.files,
        notes=prepared.notes,
        legacy_horizon_ms=legacy_horizon_ms(
            partition.segments, judgement.first_dirty.offset, config.delete_retention_ms
        ),
        kafka=judgement.kafka,
        max_record_bytes=record_limit(judgement.kafka, config.max_decompressed_message_bytes),
        kept_end_offset=last_kept_offset(judgement.kafka, end, judgement.high_watermark),
    )


def order_of(judgement: Judgement) -> tuple[float, str, int]:
    """What logs are taken in the order of: the dirtiest first."""
    partition = judgement.partition
    return dirtiest_first(judgement.cleanable, partition.topic, partition.partition)


def order_of_report(report: LogReport) -> tuple[bool, str, int, str]:
    """By name; but those come first whose records are gone."""
    return not is_log_missing(report), report.topic, report.partition, report.log_dir


def _gone(asked: EvaluationRequest, surveys: Sequence[LogDirSurvey]) -> Iterator[Gone]:
    """What each log directory lacks, and filters do not leave out."""
    config, is_ignored = asked.config, asked.is_metadata_ignored
    paths = [survey.path for survey in surveys]
    for survey in surveys:
        own = entries_of(survey.listing, survey.recorded_ends, asked.files)
        others = [path for path in paths if path != survey.path]
        gone = gone_from(own, others, asked.files, config.cluster, is_ignored)
        yield gone.of_topics(config.is_wanted)


def _missing(gone: Gone) -> Iterator[LogReport]:
    """Logs whose directory is gone."""
    for log in gone.logs:
        yield LogReport(
            log_dir=log.log_dir,
            topic=log.topic,
            partition=log.partition,
            status=LogStatus.SET_ASIDE,
            reason=log.problem,
            reason_code=ReasonCode.LOG_MISSING,
        )


def _notices_of(gone: Gone) -> Iterator[str]:
    yield from (f"{gone.log_dir}: {notice}" for notice in gone.notices)
    if gone.unsaid is not None:
        yield gone.unsaid


def _plan_of_outcomes(
    as_of_ms: int,
    surveys: Sequence[LogDirSurvey],
    outcomes: Sequence[PartitionOutcome],
    missing: Sequence[LogReport],
) -> RoundPlan:
    """missing: logs whose directory is gone."""
    taken = [outcome.prepared for outcome in outcomes if outcome.prepared is not None]
    taken.sort(key=lambda prepared: order_of(prepared.judgement))
    left = [outcome for outcome in outcomes if outcome.refusal is not None]
    reports = [_report(outcome) for outcome in left]
    gone = {report.key for report in missing}
    unlisted = [
        *missing,
        *(report for survey in surveys for report in _unlisted(survey) if report.key not in gone),
    ]
    reports += unlisted
    notes = {o.partition.path: o.notes for o in outcomes}
    facts = [_facts(prepared.judgement, None, notes) for prepared in taken]
    facts += [_facts(o.judgement, o.refusal, notes) for o in left if o.judgement is not None]
    return RoundPlan(
        as_of_ms=as_of_ms,
        logs=tuple(log_plan_of(log_id, prepared) for log_id, prepared in enumerate(taken)),
        not_cleaned=tuple(sorted(reports, key=order_of_report)),
        facts=tuple(facts),
        checkpoint_repairs=_repairs(outcomes),
        log_dirs=tuple(_log_dir_facts(survey) for survey in surveys),
        stray_entries=tuple(outcome.stray for outcome in outcomes if outcome.stray is not None),
        retention=tuple(outcome.retention for outcome in outcomes if outcome.retention is not None),
        inventory=(*map(size_of, outcomes), *map(unlisted_size, unlisted)),
    )


def _report(outcome: PartitionOutcome) -> LogReport:
    assert outcome.refusal is not None
    found = outcome.judgement.cleanable if outcome.judgement else None
    return LogReport(
        log_dir=outcome.log_dir,
        topic=outcome.partition.topic,
        partition=outcome.partition.partition,
        status=outcome.refusal.status,
        reason=outcome.refusal.reason.text,
        reason_code=outcome.refusal.reason.code,
        first_dirty_offset=found.first_dirty_offset if found else None,
        first_uncleanable_offset=found.first_uncleanable_offset if found else None,
        is_data_problem=outcome.refusal.is_data_problem,
    )


def _unlisted(survey: LogDirSurvey) -> Iterable[LogReport]:
    """Logs whose directory could not be listed, or that are not for the log cleaner."""
    for name, reason in survey.listing.ignored:
        key: TopicPartition | None = parse_partition_dir(name)
        if key is not None:
            status, kind = LogStatus.SET_ASIDE, ReasonCode.UNREADABLE
            if key[0] == CLUSTER_METADATA:
                status, kind = LogStatus.PASSED_OVER, ReasonCode.METADATA_LOG
            elif not is_topic_name(key[0]):
                kind = ReasonCode.FOREIGN_FILE
            topic, partition = key
            yield LogReport(
                log_dir=survey.path,
                topic=topic,
                partition=partition,
                status=status,
                reason=reason,
                reason_code=kind,
            )


def _facts(
    judgement: Judgement, refusal: Refusal | None, notes: Mapping[str, tuple[str, ...]]
) -> LogFacts:
    own = notes.get(judgement.partition.path, ())
    if refusal is None:
        return LogFacts(None, None, judgement, own)
    return LogFacts(refusal.status, refusal.reason.text, judgement, own)


def _repairs(outcomes: Iterable[PartitionOutcome]) -> dict[str, dict[TopicPartition, int]]:
    """Entries to be set right: of every log that was judged and is not to be left as it is."""
    repairs: dict[str, dict[TopicPartition, int]] = {}
    for outcome in outcomes:
        judgement = outcome.judgement
        set_aside = outcome.refusal is not None and outcome.refusal.status is LogStatus.SET_ASIDE
        if judgement is None or set_aside or not judgement.first_dirty.rewrites_checkpoint:
            continue
        key = outcome.partition.topic, outcome.partition.partition
        repairs.setdefault(outcome.log_dir, {})[key] = judgement.first_dirty.offset
    return repairs


def _log_dir_facts(survey: LogDirSurvey) -> LogDirFacts:
    return LogDirFacts(
        path=survey.path,
        partitions=len(survey.listing.partitions),
        has_clean_shutdown=survey.listing.has_clean_shutdown,
        ignored=tuple(IgnoredDirectory(*each) for each in survey.listing.ignored),
        problem=survey.problem,
        has_high_watermarks=survey.high_watermarks is not None or survey.problem is not None,
        foreign=foreign_files(survey.listing.partitions),
    )
