"""Judge one partition after the other: take it on, or say why not.

Of the few logs that a round would take on, `why_not_changeable` asks whether this user may read
what the cleaning reads, and replace what it replaces. A round would notice that only when nearly
all is done, and so would the next one. The user who plans may be another one than the user who
runs: the answer holds for a run by this user.

Source: spec C-3 to C-5.
"""

import errno
import os
from collections.abc import Iterable, Sequence

from compactor.host.machine import user_name
from compactor.log_dirs import survey as log_dir_survey
from compactor.log_dirs.survey import LogDirSurvey, offsets_of
from compactor.outcome.round_report import LogStatus
from compactor.planning.candidate import (
    Judgement,
    Prepared,
    RoundClock,
    judge,
    name_defect,
    prepare,
    why_clock_is_behind,
    with_bound,
)
from compactor.planning.log_retention import (
    LogRetention,
    check_leader_epochs,
    deletion_of,
    limits_of,
)
from compactor.planning.outcomes import PartitionOutcome, Problems, Refusal, StrayEntries
from compactor.planning.reasons import why_not_compacted, why_not_eligible
from compactor.planning.selection import Bound, BoundName
from compactor.reason_codes import Reason, ReasonCode, error_text
from compactor.settings.config import Config
from compactor.settings.topic_config import TopicConfig
from storage.errors import CorruptFileError
from storage.file_names import SEGMENT_SUFFIXES, SWAP, Segment, file_name
from storage.files.files import Disk
from storage.formats.checkpoint import CLEANER_OFFSET, TopicPartition
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.log.log_dir import PartitionListing

CLUSTER_METADATA = "__cluster_metadata"


class Planner:
    """What is the same for all logs of a round."""

    def __init__(
        self,
        config: Config,
        clock: RoundClock,
        surveys: Sequence[LogDirSurvey],
        problems: Problems,
        disk: Disk,
    ) -> None:
        """disk: on which it is looked at what this user may do."""
        self._config, self._clock, self._problems = config, clock, problems
        self._disk = disk
        self._cluster = config.cluster
        self._conflicts = log_dir_survey.conflicts(surveys, self._is_stray)
        self._moves = log_dir_survey.moves(surveys)
        self._stray_entries = log_dir_survey.stray_entries(surveys)
        self._topics: dict[str, TopicConfig] = {}

    def outcome(self, partition: PartitionListing, survey: LogDirSurvey) -> PartitionOutcome:
        """Take a log or say why not. Only what concerns more than this log is raised."""
        try:
            refusal = self._not_wanted(partition, survey) or self._unfit(partition, survey)
            if refusal is not None:
                return PartitionOutcome(partition=partition, log_dir=survey.path, refusal=refusal)
            outcome = self._judged(partition, survey)
            retention, stray = self._retention(outcome), self._stray(outcome, survey)
            if outcome.prepared is not None or retention is not None:
                to_rewrite = outcome.prepared.to_rewrite if outcome.prepared else ()
                reason = why_not_changeable(
                    partition, to_rewrite, retention is not None, self._disk
                )
                if reason is not None:
                    return outcome._replace(refusal=Refusal(reason), prepared=None)
            if retention is None and stray is None:  # so it is of nearly every log
                return outcome
            return outcome._replace(retention=retention, stray=stray)
        except CorruptFileError as error:
            refusal = Refusal(Reason(ReasonCode.DAMAGED, str(error)), is_data_problem=True)
        except OSError as error:  # gone since it was listed, or not to be read
            refusal = Refusal(Reason(ReasonCode.UNREADABLE, error_text(error)))
        return PartitionOutcome(partition=partition, log_dir=survey.path, refusal=refusal)

    def _is_stray(self, partition: PartitionListing) -> bool:
        if self._cluster is None:
            return False
        try:
            another = self._cluster.why_of_another_topic(partition)
        except (CorruptFileError, OSError):
            return False  # nobody knows; the log itself is set aside for it
        return another is not None and another.code is ReasonCode.TOPIC_ID_MISMATCH

    def _topic(self, name: str) -> TopicConfig:
        if name not in self._topics:
            self._topics[name] = self._config.topic(name)
        return self._topics[name]

    def _not_wanted(self, partition: PartitionListing, survey: LogDirSurvey) -> Refusal | None:
        topic = partition.topic
        include, exclude = self._config.include, self._config.exclude
        if topic == CLUSTER_METADATA:
            text = "the metadata log of KRaft, which no cleaner works on"
            return Refusal(Reason(ReasonCode.METADATA_LOG, text))
        if include is not None and not include.fullmatch(topic):
            text = f"left out: not among the topics to include, {include.pattern!r}"
            return Refusal(Reason(ReasonCode.LEFT_OUT, text))
        if exclude is not None and exclude.fullmatch(topic):
            text = f"left out: among the topics to exclude, {exclude.pattern!r}"
            return Refusal(Reason(ReasonCode.LEFT_OUT, text))
        deleted = None if self._cluster is None else self._cluster.why_deleted(topic)
        unproven = deleted or self._config.why_policy_is_unproven(topic)
        if unproven is not None:
            return Refusal(unproven)
        doubt = self._doubt(partition, survey)
        if doubt is not None:
            return Refusal(doubt)
        config = self._topic(topic)
        return None if config.is_compacted else Refusal(why_not_compacted(config))

    def _doubt(self, partition: PartitionListing, survey: LogDirSurvey) -> Reason | None:
        """Say what sets a log aside whatever its policy is; of another topic's log, only that."""
        missing = survey.recorded_ends.why_missing(partition)
        disagreement = self._config.policy_disagreement(partition.topic)
        if missing is None and disagreement is None:
            return None
        another = self._cluster.why_of_another_topic(partition) if self._cluster else None
        if another is not None and another.code is ReasonCode.TOPIC_ID_MISMATCH:
            return another
        if missing is not None:
            return missing
        assert disagreement is not None
        return another or Reason(ReasonCode.SETTINGS_DISAGREE, disagreement)

    def _unfit(self, partition: PartitionListing, survey: LogDirSurvey) -> Refusal | None:
        key = _key(partition)
        for kind, text in (
            (ReasonCode.LOG_DIR_DAMAGED, survey.problem),
            (ReasonCode.IN_TWO_LOG_DIRS, self._conflicts.get(key)),
        ):
            if text:
                return Refusal(Reason(kind, text))
        known = self._problems.get(partition.path)
        if known is not None:
            set_aside = ReasonCode.SET_ASIDE
            return Refusal(Reason(set_aside, known)) if isinstance(known, str) else known
        found = name_defect(partition)
        if found is not None:
            return Refusal(found)
        if not partition.segments:
            return Refusal(Reason(ReasonCode.EMPTY, "it has no segment, so no records"))
        if key in self._moves:
            return Refusal(Reason(ReasonCode.MOVING, self._moves[key]))
        if not self._clock.is_checked:
            return None
        behind = why_clock_is_behind(partition, self._clock.now_ms, self._clock.machine_ms)
        return None if behind is None else Refusal(Reason(ReasonCode.CLOCK_BEHIND, behind))

    def _judged(self, partition: PartitionListing, survey: LogDirSurvey) -> PartitionOutcome:
        another = self._cluster.why_of_another_topic(partition) if self._cluster else None
        if another is not None:
            stray = Refusal(another)
            return PartitionOutcome(partition=partition, log_dir=survey.path, refusal=stray)
        config = self._topic(partition.topic)
        offsets = offsets_of(partition, survey, self._config.assume_fully_replicated)
        if offsets.cleaner is None:  # Kafka takes it from wherever it stands
            elsewhere = self._stray_entries.get(_key(partition), {})
            offsets = offsets._replace(cleaner=min(elsewhere.values(), default=None))
        judgement = judge(partition, survey.path, config, offsets, self._clock.now_ms)
        judgement = judgement._replace(
            is_due=_key(partition) in self._config.rules.due,
            is_known_whole=self._config.rules.known_whole,
            kafka=self._config.kafka.version,
        )
        if judgement.is_eligible and self._config.ceilings is not None:
            ceiling = self._config.ceilings.get((survey.path, *_key(partition)))
            if ceiling is None:
                text = "it is not among the logs of the plan"
                new = Refusal(Reason(ReasonCode.NOT_REVIEWED, text))
                return PartitionOutcome(
                    partition=partition, log_dir=survey.path, refusal=new, judgement=judgement
                )
            judgement = with_bound(judgement, Bound(BoundName.SAVED_PLAN, ceiling, "as reviewed"))
        prepared = None
        if judgement.is_eligible:
            prepared = prepare(judgement, self._clock, survey.listing.has_clean_shutdown)
            prepared = self._with_high_watermark(prepared)
            judgement = prepared.judgement
        refusal: Refusal | None = None
        cut_short = _why_cut_short(judgement, survey)
        if cut_short is not None:
            refusal = Refusal(Reason(ReasonCode.DAMAGED, cut_short))
        elif prepared is not None and prepared.refusal is not None:
            refusal = Refusal(prepared.refusal)
        elif not judgement.is_eligible:
            refusal = Refusal(why_not_eligible(judgement))
        return PartitionOutcome(
            partition=partition,
            log_dir=survey.path,
            refusal=refusal,
            judgement=judgement,
            prepared=None if refusal else prepared,
        )

    def _with_high_watermark(self, prepared: Prepared) -> Prepared:
        judgement = prepared.judgement
        known = self._config.rules.high_watermarks.get(_key(judgement.partition))
        if known is None:
            return prepared
        return prepared._replace(judgement=judgement._replace(high_watermark=known))

    def _stray(self, outcome: PartitionOutcome, survey: LogDirSurvey) -> StrayEntries | None:
        judgement, refusal = outcome.judgement, outcome.refusal
        key = _key(outcome.partition)
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

    def _retention(self, outcome: PartitionOutcome) -> LogRetention | None:
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


def why_not_changeable(
    partition: PartitionListing, to_rewrite: Iterable[Segment], is_cut: bool, disk: Disk
) -> Reason | None:
    """Say what forbids to clean a log; None if nothing does.

    is_cut: whether retention deletes from its beginning. Files that are not on this machine, or
    gone, are not looked at.
    """
    if os.geteuid() == 0:  # who may do anything, and is told otherwise when it is tried
        return None
    log_dir = os.path.dirname(partition.path)
    if not disk.is_permitted(log_dir, os.W_OK | os.X_OK):  # no run comes so far
        return None
    if not disk.is_permitted(partition.path, os.W_OK | os.X_OK) and partition.access.exists(
        partition.path
    ):
        return _reason(ReasonCode.NO_PERMISSION, partition.path, errno.EACCES)
    for segment in to_rewrite:
        for suffix in SEGMENT_SUFFIXES:
            name = file_name(segment.base_offset, suffix)
            for known_as in (name, name + SWAP):  # of which a run makes it first
                found = _why_not_replaceable(partition, known_as, disk)
                if found is not None:
                    return found
    return _why_epochs_stay(partition, disk) if is_cut else None


def _why_cut_short(judgement: Judgement, survey: LogDirSurvey) -> str | None:
    """Say that records are gone from the beginning or the end of a log, where that is known.

    Nothing more is read of its records for that. A log that is known to be whole may end before its
    checkpoints: its manager has cut it off inside of a batch, and goes on after that.
    """
    if judgement.is_known_whole:
        return None
    gone = survey.why_start_gone(judgement.partition)
    if gone is not None:
        return gone
    end, active = judgement.log_end_offset, judgement.partition.segments[-1]
    if end is None and active.log_bytes == 0:
        end = active.base_offset
    return None if end is None else survey.why_cut_short(judgement.partition, end)


def _why_not_replaceable(partition: PartitionListing, name: str, disk: Disk) -> Reason | None:
    path = os.path.join(partition.path, name)
    try:
        found = disk.status(path, follow=False)
    except OSError:
        return None
    if not disk.is_permitted(path, os.R_OK):
        return _reason(ReasonCode.UNREADABLE, path, errno.EACCES)
    if disk.may_give(found.st_uid, found.st_gid):
        return None
    owner = user_name(found.st_uid)
    text = f"{path}: belongs to {owner}, and this user cannot give {owner} what takes its place"
    return Reason(ReasonCode.NO_PERMISSION, text)


def _why_epochs_stay(partition: PartitionListing, disk: Disk) -> Reason | None:
    path = os.path.join(partition.path, LEADER_EPOCH_CHECKPOINT)
    try:
        disk.require_replaceable(path)
    except FileNotFoundError:  # its directory
        return None
    except OSError as error:
        return _reason(ReasonCode.NO_PERMISSION, path, error.errno or errno.EACCES)
    return None


def _reason(code: ReasonCode, path: str, number: int) -> Reason:
    return Reason(code, f"{path}: {os.strerror(number)}")


def _key(partition: PartitionListing) -> TopicPartition:
    return partition.topic, partition.partition
