"""The plan of a round: which logs of the log directories are cleaned, how far, and in what order.

Reads metadata only, and changes nothing. Every log that is not taken gets a reason; whatever is
wrong with one log or one directory sets it aside, and the others go on. Source: spec C-3 to C-5.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from cleaner_jobs.plan import LogPlan
from compactor import survey as log_dir_survey
from compactor.cluster_settings import registered_log_dirs
from compactor.config import Config
from compactor.planning.candidate import Judgement, Prepared, RoundClock, defect, judge, prepare
from compactor.planning.clock_check import why_clock_is_behind
from compactor.planning.log_plan import log_plan_of
from compactor.planning.reasons import why_not_compacted, why_not_eligible
from compactor.planning.selection import dirtiest_first
from compactor.retention.log_deletion import check_leader_epochs
from compactor.retention.log_retention import LogRetention, deletion_of, limits_of
from compactor.round_report import LogReport, LogStatus
from compactor.survey import LogDirSurvey, offsets_of, survey_log_dirs
from compactor.topic_config import TopicConfig
from storage.collector import collector_paused
from storage.errors import CorruptFileError
from storage.file_names import parse_partition_dir
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats.checkpoint import CLEANER_OFFSET, TopicPartition
from storage.log.log_dir import PartitionListing

CLUSTER_METADATA = "__cluster_metadata"


class LogDirFacts(NamedTuple):
    """What a log directory holds."""

    path: str
    partitions: int
    has_clean_shutdown: bool
    ignored: tuple[tuple[str, str], ...]  # directories that hold no log to work on: name, reason
    problem: str | None  # why none of its logs can be judged
    has_high_watermarks: bool  # or none that can be read


@dataclass(frozen=True, slots=True)
class LogFacts:
    """How a compacted log was judged, taken or not."""

    status: LogStatus | None  # None: taken
    reason: str | None
    judgement: Judgement
    notes: tuple[str, ...] = ()


class StrayEntries(NamedTuple):
    """Entries for a log in cleaner checkpoints of other log directories than its own (C-4.3)."""

    topic: str
    partition: int
    log_dir: str  # where the log stands
    offset: int  # for its entry there
    found_in: tuple[str, ...]
    note: str


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """What a round is to do."""

    as_of_ms: int
    logs: tuple[LogPlan, ...]  # dirtiest first
    not_cleaned: tuple[LogReport, ...]  # passed over or set aside, each with its reason; by name
    facts: tuple[LogFacts, ...]  # those of `logs` first and in their order, then the other ones
    # log directory -> impossible entries of its cleaner checkpoint, set right (C-4.2)
    checkpoint_repairs: Mapping[str, Mapping[TopicPartition, int]]
    log_dirs: tuple[LogDirFacts, ...]
    stray_entries: tuple[StrayEntries, ...] = ()  # of logs that are not set aside
    retention: tuple[LogRetention, ...] = ()  # of the logs that it may take segments from
    are_all_log_dirs_known: bool = False  # by the cluster's metadata log


class _Refusal(NamedTuple):
    status: LogStatus
    reason: str
    is_data_problem: bool = False


class _Outcome(NamedTuple):
    """What became of one partition: taken (prepared) or not (refusal), judged or not even that."""

    partition: PartitionListing
    log_dir: str
    refusal: _Refusal | None
    judgement: Judgement | None = None
    prepared: Prepared | None = None
    retention: LogRetention | None = None
    stray: StrayEntries | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be known of the log beside its outcome."""
        own = self.prepared.notes if self.prepared else ()
        return own if self.stray is None else (self.stray.note, *own)


def plan_round(
    log_dirs: Iterable[str],
    config: Config,
    as_of_ms: int,
    problems: Mapping[str, str] | None = None,
    machine_ms: int | None = None,
) -> RoundPlan:
    """Survey log directories of this machine, and choose the logs to clean as of a time.

    problems: by path of the partition directory, why a log is known to be unfit.
    machine_ms: what the machine's clock says by now, where as_of_ms is what it said before.
    Raise RefusedError if a directory cannot be read, ConfigError if settings of a topic clash.
    """
    clock = RoundClock.of(config, as_of_ms, machine_ms)
    return plan_by(LOCAL, log_dirs, config, clock, problems)


def plan_by(
    files: Files,
    log_dirs: Iterable[str],
    config: Config,
    clock: RoundClock,
    problems: Mapping[str, str] | None = None,
) -> RoundPlan:
    """Likewise, by the files that are given, wherever they are."""
    with collector_paused():
        surveys = survey_log_dirs(log_dirs, files)
        planner = _Planner(config, clock, surveys, problems or {})
        outcomes = [
            planner.outcome(partition, survey)
            for survey in surveys
            for partition in survey.listing.partitions
        ]
        plan = _round_plan(clock.now_ms, surveys, outcomes)
        return replace(plan, are_all_log_dirs_known=bool(registered_log_dirs(config.cluster)))


def _round_plan(
    as_of_ms: int, surveys: Sequence[LogDirSurvey], outcomes: Sequence[_Outcome]
) -> RoundPlan:
    taken = [outcome.prepared for outcome in outcomes if outcome.prepared is not None]
    taken.sort(key=lambda prepared: _order(prepared.judgement))
    left = [outcome for outcome in outcomes if outcome.refusal is not None]
    reports = [_report(outcome) for outcome in left]
    reports += [report for survey in surveys for report in _unlisted(survey)]
    notes = {o.partition.path: o.notes for o in outcomes}
    facts = [_facts(prepared.judgement, None, notes) for prepared in taken]
    facts += [_facts(o.judgement, o.refusal, notes) for o in left if o.judgement is not None]
    return RoundPlan(
        as_of_ms=as_of_ms,
        logs=tuple(log_plan_of(log_id, prepared) for log_id, prepared in enumerate(taken)),
        not_cleaned=tuple(sorted(reports, key=lambda r: (r.topic, r.partition, r.log_dir))),
        facts=tuple(facts),
        checkpoint_repairs=_repairs(outcomes),
        log_dirs=tuple(_log_dir_facts(survey) for survey in surveys),
        stray_entries=tuple(outcome.stray for outcome in outcomes if outcome.stray is not None),
        retention=tuple(outcome.retention for outcome in outcomes if outcome.retention is not None),
    )


class _Planner:
    """What is the same for all logs of a round."""

    def __init__(
        self,
        config: Config,
        clock: RoundClock,
        surveys: Sequence[LogDirSurvey],
        problems: Mapping[str, str],
    ) -> None:
        self._config, self._clock, self._problems = config, clock, problems
        self._conflicts = log_dir_survey.conflicts(surveys)
        self._moves = log_dir_survey.moves(surveys)
        self._stray_entries = log_dir_survey.stray_entries(surveys)
        self._topics: dict[str, TopicConfig] = {}
        self._cluster = config.cluster

    def outcome(self, partition: PartitionListing, survey: LogDirSurvey) -> _Outcome:
        """Take a log or say why not. Only what concerns more than this log is raised."""
        refusal = self._not_wanted(partition.topic) or self._unfit(partition, survey)
        if refusal is not None:
            return _Outcome(partition=partition, log_dir=survey.path, refusal=refusal)
        try:
            outcome = self._judged(partition, survey)
            return outcome._replace(
                retention=self._retention(outcome), stray=self._stray(outcome, survey)
            )
        except CorruptFileError as error:
            refusal = _Refusal(LogStatus.SET_ASIDE, str(error), is_data_problem=True)
        except OSError as error:  # gone since it was listed, or not to be read
            reason = f"{error.filename}: {error.strerror}"
            refusal = _Refusal(LogStatus.SET_ASIDE, reason)
        return _Outcome(partition=partition, log_dir=survey.path, refusal=refusal)

    def _topic(self, name: str) -> TopicConfig:
        if name not in self._topics:
            self._topics[name] = self._config.topic(name)
        return self._topics[name]

    def _not_wanted(self, topic: str) -> _Refusal | None:
        include, exclude = self._config.include, self._config.exclude
        if topic == CLUSTER_METADATA:
            reason = "the metadata log of KRaft, which no cleaner works on"
        elif include is not None and not include.fullmatch(topic):
            reason = f"left out: not among the topics to include, {include.pattern!r}"
        elif exclude is not None and exclude.fullmatch(topic):
            reason = f"left out: among the topics to exclude, {exclude.pattern!r}"
        elif self._cluster is not None and self._cluster.is_deleted(topic):
            reason = "its topic was deleted: the cluster's metadata log does not have it"
        elif not self._topic(topic).is_compacted:
            reason = why_not_compacted(self._topic(topic))
        else:
            return None
        return _Refusal(LogStatus.PASSED_OVER, reason)

    def _unfit(self, partition: PartitionListing, survey: LogDirSurvey) -> _Refusal | None:
        key = partition.topic, partition.partition
        conflict = self._conflicts.get(key)
        known = self._problems.get(partition.path)
        reason = survey.problem or conflict or known or defect(partition)
        if reason is not None:
            return _Refusal(LogStatus.SET_ASIDE, reason)
        if not partition.segments:
            return _Refusal(LogStatus.PASSED_OVER, "it has no segment, so no records")
        if key in self._moves:
            return _Refusal(LogStatus.PASSED_OVER, self._moves[key])
        if not self._clock.is_checked:
            return None
        behind = why_clock_is_behind(partition, self._clock.now_ms, self._clock.machine_ms)
        return None if behind is None else _Refusal(LogStatus.PASSED_OVER, behind)

    def _judged(self, partition: PartitionListing, survey: LogDirSurvey) -> _Outcome:
        another = self._cluster.why_of_another_topic(partition) if self._cluster else None
        if another is not None:
            refusal = _Refusal(LogStatus.PASSED_OVER, another)
            return _Outcome(partition=partition, log_dir=survey.path, refusal=refusal)
        config = self._topic(partition.topic)
        offsets = offsets_of(partition, survey, self._config.assume_fully_replicated)
        if offsets.cleaner is None:  # Kafka takes it from wherever it stands
            elsewhere = self._stray_entries.get((partition.topic, partition.partition), {})
            offsets = offsets._replace(cleaner=min(elsewhere.values(), default=None))
        judgement = judge(partition, survey.path, config, offsets, self._clock.now_ms)
        if not judgement.is_eligible:
            refusal = _Refusal(LogStatus.PASSED_OVER, why_not_eligible(judgement))
            return _Outcome(
                partition=partition, log_dir=survey.path, refusal=refusal, judgement=judgement
            )
        prepared = prepare(judgement, self._clock, survey.listing.has_clean_shutdown)
        judgement = prepared.judgement
        if prepared.refusal is not None:
            refusal = _Refusal(LogStatus.SET_ASIDE, prepared.refusal)
            return _Outcome(
                partition=partition, log_dir=survey.path, refusal=refusal, judgement=judgement
            )
        if not judgement.is_eligible:
            refusal = _Refusal(LogStatus.PASSED_OVER, why_not_eligible(judgement))
            return _Outcome(
                partition=partition, log_dir=survey.path, refusal=refusal, judgement=judgement
            )
        return _Outcome(
            partition=partition,
            log_dir=survey.path,
            refusal=None,
            judgement=judgement,
            prepared=prepared,
        )

    def _stray(self, outcome: _Outcome, survey: LogDirSurvey) -> StrayEntries | None:
        judgement, refusal = outcome.judgement, outcome.refusal
        key = outcome.partition.topic, outcome.partition.partition
        elsewhere = tuple(self._stray_entries.get(key, ()))
        is_set_aside = refusal is not None and refusal.status is LogStatus.SET_ASIDE
        if judgement is None or is_set_aside or not elsewhere:
            return None
        files = f"{CLEANER_OFFSET} of {' and '.join(elsewhere)}"
        if key in survey.cleaner_offsets:
            note = f"{files} names it too, which stops Kafka's cleaner thread: removed there"
        else:
            note = f"its entry stood in {files}: moved to its own log directory"
        return StrayEntries(
            topic=outcome.partition.topic,
            partition=outcome.partition.partition,
            log_dir=survey.path,
            offset=judgement.first_dirty.offset,
            found_in=elsewhere,
            note=note,
        )

    def _retention(self, outcome: _Outcome) -> LogRetention | None:
        judgement, refusal = outcome.judgement, outcome.refusal
        if judgement is None or (refusal and refusal.status is LogStatus.SET_ASIDE):
            return None
        partition = judgement.partition
        limits = limits_of(judgement.config, judgement.offsets, self._clock.now_ms)
        estimate = deletion_of(partition, limits)
        # by the log start alone, cleaning leaves no more to delete than there is now
        if not estimate.by_rule and limits.retention_ms is None and limits.retention_bytes is None:
            return None
        check_leader_epochs(partition)  # which deletion would cut: damage is to be known before
        return LogRetention(
            log_dir=outcome.log_dir,
            topic=partition.topic,
            partition=partition.partition,
            path=partition.path,
            limits=limits,
            producer_id_expiration_ms=self._clock.producer_id_expiration_ms,
            estimate=estimate,
        )


def _order(judgement: Judgement) -> tuple[float, str, int]:
    partition = judgement.partition
    return dirtiest_first(judgement.cleanable, partition.topic, partition.partition)


def _report(outcome: _Outcome) -> LogReport:
    assert outcome.refusal is not None
    found = outcome.judgement.cleanable if outcome.judgement else None
    return LogReport(
        log_dir=outcome.log_dir,
        topic=outcome.partition.topic,
        partition=outcome.partition.partition,
        status=outcome.refusal.status,
        reason=outcome.refusal.reason,
        first_dirty_offset=found.first_dirty_offset if found else None,
        first_uncleanable_offset=found.first_uncleanable_offset if found else None,
        is_data_problem=outcome.refusal.is_data_problem,
    )


def _unlisted(survey: LogDirSurvey) -> Iterable[LogReport]:
    """Logs whose directory could not be listed, or that are not for the log cleaner."""
    for name, reason in survey.listing.ignored:
        key: TopicPartition | None = parse_partition_dir(name)
        if key is not None:
            is_metadata = key[0] == CLUSTER_METADATA
            status = LogStatus.PASSED_OVER if is_metadata else LogStatus.SET_ASIDE
            topic, partition = key
            yield LogReport(
                log_dir=survey.path,
                topic=topic,
                partition=partition,
                status=status,
                reason=reason,
            )


def _facts(
    judgement: Judgement, refusal: _Refusal | None, notes: Mapping[str, tuple[str, ...]]
) -> LogFacts:
    own = notes.get(judgement.partition.path, ())
    if refusal is None:
        return LogFacts(None, None, judgement, own)
    return LogFacts(refusal.status, refusal.reason, judgement, own)


def _repairs(outcomes: Iterable[_Outcome]) -> dict[str, dict[TopicPartition, int]]:
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
        ignored=survey.listing.ignored,
        problem=survey.problem,
        has_high_watermarks=survey.high_watermarks is not None or survey.problem is not None,
    )
