"""Why a command ended as it did, and why a log was not cleaned: codes that a program can go by.

Each stands beside the prose of an error or a reason. This is the one list of them; the page about
reports shows it. Codes may be added at any time; one that is here keeps its meaning.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple, Protocol, Self, TypeVar

from storage import errors
from storage.errors import LogCompactionError


class ReasonCode(StrEnum):
    """A code, and what it means in one sentence."""

    sentence: str

    def __new__(cls, code: str, sentence: str) -> Self:
        member = str.__new__(cls, code)
        member._value_, member.sentence = code, sentence
        return member

    # how a command ends that came to its end
    DONE = "done", "What was asked for is done; exit code 0."
    NOTHING_TO_DO = (
        "nothing-to-do",
        "No log is eligible, so nothing was to be cleaned; exit code 0.",
    )
    LOGS_FAILED = "logs-failed", "Some logs failed; each has a code of its own."
    LOGS_SET_ASIDE = "logs-set-aside", "Some logs were set aside; each has a code of its own."
    CONDITION = "condition", "A condition of --fail-if holds; exit code 5."
    FINDINGS = "findings", "verify found something; each finding has a code of its own."

    # what was asked for
    WRONG_USAGE = "wrong-usage", "An argument is missing, unknown or impossible."
    WRONG_CONFIGURATION = "wrong-configuration", "A setting or a file of settings is not valid."
    NOT_CONFIRMED = "not-confirmed", "The question whether to go on was not answered with yes."
    OTHER_REPLICAS = "other-replicas", "Replicas would differ, and --only-replica was not given."
    POLICY_FORBIDS = "policy-forbids", "Kafka does not do this to a topic with this cleanup.policy."

    # who else is at work, and what was left behind
    LOCK_HELD = "lock-held", "Another process works in the log directory: wait, and run again."
    BROKER_RUNNING = "broker-running", "A broker has the log directory: stop it first."
    LOCK_LOST = "lock-lost", "The lock became somebody else's while the command was at work."
    CHANGED_MEANWHILE = "changed-meanwhile", "A file is not what it was when it was looked at."
    UNCLEAN_SHUTDOWN = "unclean-shutdown", "The broker did not stop cleanly: --recover-first."
    DIFFERS = "differs", "It is not what it was before, or not what its manifest says."
    UNEXPLAINED = "unexplained", "Something is gone, and nothing that was given shows why."
    MOVING = "moving", "A broker was moving the log to another log directory."
    CUT_SHORT = (
        "cut-short",
        "A cleaning that was cut short is yet to be settled: recover does it.",
    )
    OLDER_VERSION = "older-version", "It was written by an older version, which noted less."

    # what the operator has to vouch for
    FILE_SYSTEM = (
        "file-system",
        "The file system is not local, or its locks may not keep others out.",
    )
    REPLICATION_UNKNOWN = "replication-unknown", "Nothing says how far the logs are replicated."
    LOG_DIRS_MISSING = "log-dirs-missing", "The broker has log directories that were not given."

    OUTPUT_IN_USE = (
        "output-in-use",
        "The directory for a copy holds something, or a log directory is a copy cut short.",
    )
    COPY_TO_KEEP = "copy-to-keep", "It is a copy with hard links, or without some logs: to be left."

    # what the machine lacks
    NO_ROOM = "no-room", "There is not enough room on a file system."
    NO_PERMISSION = "no-permission", "A file or directory may not be read or written by this user."
    NOT_FOUND = "not-found", "A file or directory is not there."
    TOO_FEW_OPEN_FILES = "too-few-open-files", "Not enough files may be open at once (ulimit -n)."
    INPUT_OUTPUT = "input-output", "The operating system could not read or write a file."
    UNFIT_EXECUTOR = "unfit-executor", "A Spark executor lacks Python, this package or a directory."
    UNFIT_PROCESSOR = "unfit-processor", "The processor lacks what the kernels are compiled for."
    SPARK_FAILED = (
        "spark-failed",
        "Java, Spark or a worker did not start, or a task of it was lost.",
    )
    FAULTY_MACHINE = (
        "faulty-machine",
        "What was read or written came out otherwise: memory or disk.",
    )

    OTHER_CODEC = "other-codec", "A codec is of another build than that Kafka's: --exact-bytes."

    # what is in the files
    DAMAGED = "damaged", "A file breaks its format, or contradicts another."
    UNSUPPORTED_FORMAT = "unsupported-format", "A file is of a version, codec or kind not handled."
    FOREIGN_FILE = (
        "foreign-file",
        "The log's directory has a link or a file in it that no log has, or a name that none has.",
    )
    IN_TWO_LOG_DIRS = "in-two-log-dirs", "The same log is in two of the log directories."
    LOG_MISSING = (
        "log-missing",
        "Its .log files or its directory are gone; by checkpoints it had records.",
    )
    SEGMENT_TOO_LARGE = "segment-too-large", "A segment has more bytes than a segment may have."
    RECORD_TOO_LARGE = (
        "record-too-large",
        "A record is larger than max.decompressed.message.bytes of its topic allows.",
    )
    NULL_KEYS = "null-keys", "Most records to be removed have no key: --drop-null-keys."
    SET_ASIDE = "set-aside", "An earlier run or a recovery set it aside, and it has not changed."
    LOG_DIR_DAMAGED = "log-dir-damaged", "A checkpoint of its log directory is damaged."
    METADATA_DAMAGED = (
        "metadata-damaged",
        "The cluster's metadata log is damaged or empty, and nothing else has the topic's policy.",
    )
    METADATA_CONTRADICTED = (
        "metadata-contradicted",
        "The metadata log is old or another broker's, and nothing else has the topic's policy.",
    )
    UNREADABLE = "unreadable", "A file of it cannot be read, or it cannot be listed."
    NOT_FINISHED = "not-finished", "It is cleaned, but its checkpoint or its retention failed."

    # why Kafka's rules do not have a log cleaned now
    UNKNOWN_POLICY = "unknown-policy", "No configuration says what its topic's cleanup.policy is."
    NOT_COMPACTED = "not-compacted", "The cleanup.policy of its topic does not contain compact."
    SETTINGS_DISAGREE = (
        "settings-disagree",
        "--topic-configs and the metadata log name different cleanup policies for its topic.",
    )
    LEFT_OUT = "left-out", "Its topic is not among those that were asked for."
    NOT_REVIEWED = "not-reviewed", "A saved plan is carried out, which does not have it."
    OVER_BUDGET = (
        "over-budget",
        "--max-logs, --max-bytes or --max-minutes left it for the next run.",
    )
    TOPIC_DELETED = "topic-deleted", "The cluster does not have its topic any more."
    TOPIC_ID_MISMATCH = "topic-id-mismatch", "It belongs to an earlier topic of the same name."
    NO_TOPIC_ID = "no-topic-id", "It has no topic id, so nobody knows which topic it belongs to."
    METADATA_LOG = "metadata-log", "It is the metadata log of KRaft, which no cleaner works on."
    EMPTY = "empty", "It has no segment, so no records."
    CLOCK_BEHIND = "clock-behind", "It was written after the time that is taken as now."
    ACTIVE_SEGMENT = "active-segment", "All that could be cleaned is in the active segment."
    NOTHING_NEW = "nothing-new", "It was cleaned up to the active segment, and is clean."
    BELOW_RATIO = "below-dirty-ratio", "It is not dirty enough: min.cleanable.dirty.ratio."
    MIN_COMPACTION_LAG = "min-compaction-lag", "What is dirty is too young: min.compaction.lag.ms."
    OPEN_TRANSACTION = "open-transaction", "What is dirty waits behind an open transaction."
    HIGH_WATERMARK = "high-watermark", "What is dirty is not known to be replicated."

    # how a command ends that did not come to its end
    INTERRUPTED = "interrupted", "Ctrl-C, SIGTERM or SIGHUP ended it."
    REFUSED = "refused", "It is not safe to go on, for the reason that the error says."
    FAILED = "failed", "It failed, for the reason that the error says."
    INTERNAL_ERROR = "internal-error", "A mistake in this program: --debug shows where."
    REPORT_NOT_WRITTEN = "report-not-written", "The command is done; its report was not written."


class Reason(NamedTuple):
    """Why a log is not cleaned, for programs and for people."""

    code: ReasonCode  # `compactor.planning.remedies` has what helps
    text: str  # one line, without a full stop


class HasReason(Protocol):
    """What says of a log why it is as it is."""

    @property
    def reason_code(self) -> ReasonCode | None: ...


Of = TypeVar("Of", bound=HasReason)


def is_log_missing(outcome: HasReason) -> bool:
    """Say whether it is of a log whose records are gone, with which everything begins."""
    return outcome.reason_code is ReasonCode.LOG_MISSING


def missing_first(outcomes: Iterable[Of]) -> list[Of]:
    """Put those first whose records are gone; else they stay in their order."""
    return sorted(outcomes, key=lambda each: not is_log_missing(each))


_BY_CODE = {str(code): code for code in ReasonCode}


def listed(code: str) -> ReasonCode:
    """Return the reason code that is spelled so, as an error or a problem carries it."""
    return _BY_CODE[code]


def reason_code_of(error: LogCompactionError | OSError) -> ReasonCode:
    """Return why an error of this project or of the operating system came about."""
    return listed(errors.reason_code_of(error))


def error_text(error: Exception) -> str:
    """Return what an error says, with the file that it is about."""
    return f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
