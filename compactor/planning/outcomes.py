"""Hold what became of one partition when a round was planned: taken or not, and why."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from compactor.outcome.round_report import LogKey, LogStatus
from compactor.planning.candidate import Judgement, Prepared
from compactor.planning.log_retention import LogRetention
from compactor.reason_codes import Reason, ReasonCode
from storage.log.log_dir import PartitionListing


class Standing(StrEnum):
    """Where a log stands in one word: taken, or what keeps it from being cleaned."""

    TO_CLEAN = "to-clean"
    BELOW_RATIO = "below-dirty-ratio"
    OPEN_TRANSACTION = "open-transaction"
    HIGH_WATERMARK = "high-watermark"
    MIN_COMPACTION_LAG = "min-compaction-lag"
    NOTHING_NEW = "nothing-new"  # all that is dirty is in the active segment, which is not cleaned
    NOT_COMPACTED = "not-compacted"
    UNKNOWN_POLICY = "unknown-policy"  # nobody has said what its topic's policy is
    LEFT_OUT = "left-out"  # by a filter
    ANOTHER_TOPIC = "another-topic"  # deleted, or created anew under the name
    EMPTY = "empty"
    MOVING = "moving"
    CLOCK_BEHIND = "clock-behind"
    NOT_REVIEWED = "not-reviewed"  # a saved plan is carried out, which does not have it
    OVER_BUDGET = "over-budget"  # left to a later run by --max-logs and its like
    METADATA_LOG = "metadata-log"
    SET_ASIDE = "set-aside"


# The other kinds of reasons have the word of their standing.
_STANDINGS = {
    ReasonCode.ACTIVE_SEGMENT: Standing.NOTHING_NEW,
    ReasonCode.TOPIC_DELETED: Standing.ANOTHER_TOPIC,
    ReasonCode.TOPIC_ID_MISMATCH: Standing.ANOTHER_TOPIC,
    ReasonCode.NO_TOPIC_ID: Standing.SET_ASIDE,
    ReasonCode.IN_TWO_LOG_DIRS: Standing.SET_ASIDE,
    ReasonCode.CUT_SHORT: Standing.SET_ASIDE,
    ReasonCode.FOREIGN_FILE: Standing.SET_ASIDE,
    ReasonCode.LOG_DIR_DAMAGED: Standing.SET_ASIDE,
    ReasonCode.DAMAGED: Standing.SET_ASIDE,
    ReasonCode.METADATA_DAMAGED: Standing.SET_ASIDE,
    ReasonCode.METADATA_CONTRADICTED: Standing.SET_ASIDE,
    ReasonCode.UNREADABLE: Standing.SET_ASIDE,
    ReasonCode.NO_PERMISSION: Standing.SET_ASIDE,
    ReasonCode.SEGMENT_TOO_LARGE: Standing.SET_ASIDE,
    ReasonCode.LOG_MISSING: Standing.SET_ASIDE,
    ReasonCode.SETTINGS_DISAGREE: Standing.SET_ASIDE,
}


class StrayEntries(NamedTuple):
    """Entries for a log in cleaner checkpoints of other log directories than its own (C-4.3)."""

    topic: str
    partition: int
    log_dir: str  # where the log stands
    offset: int  # for its entry there
    found_in: tuple[str, ...]
    note: str

    @property
    def key(self) -> LogKey:
        return self.log_dir, self.topic, self.partition


class Refusal(NamedTuple):
    """Why a log is not cleaned."""

    reason: Reason
    is_data_problem: bool = False

    @property
    def standing(self) -> Standing:
        code = self.reason.code
        return _STANDINGS.get(code) or Standing(code.value)

    @property
    def status(self) -> LogStatus:
        is_set_aside = self.standing is Standing.SET_ASIDE
        return LogStatus.SET_ASIDE if is_set_aside else LogStatus.PASSED_OVER


# by path of the partition directory: why a log is unfit, in words, or as a plan has refused it
Problems = Mapping[str, str | Refusal]


class PartitionOutcome(NamedTuple):
    """What became of one partition: taken (prepared) or not (refusal), judged or not even that."""

    partition: PartitionListing
    log_dir: str
    refusal: Refusal | None
    judgement: Judgement | None = None
    prepared: Prepared | None = None
    retention: LogRetention | None = None
    stray: StrayEntries | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be known of the log beside its outcome."""
        found = self.prepared
        own = (*found.notes, *found.codec_notes) if found else ()
        return own if self.stray is None else (self.stray.note, *own)
