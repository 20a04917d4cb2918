"""Hold what is read for a judgement of a start, and what comes of it. Pure."""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from compactor.outcome.json_values import json_property
from compactor.reason_codes import ReasonCode
from storage.errors import CorruptFileError
from storage.file_names import DELETE_DIR, FUTURE_DIR, STRAY_DIR, is_special_dir
from storage.formats import meta_properties
from storage.formats.checkpoint import TopicPartition
from storage.formats.copy_marks import CopyMarkedError
from storage.formats.meta_properties import META_PROPERTIES, MetaProperties
from storage.log.cluster_metadata import METADATA_DIR, TopicImage

_LONGEST_ID, _ID_BYTES = 24, 16
_MAX_INT = 2**31 - 1
_PARTITION = re.compile(r"[+-]?\d+")  # of any script, as Java reads them


class StartOutcome(StrEnum):
    """What a start comes to, the worst first."""

    COPY_CHANGED = "copy-changed"  # which nobody is to change; nothing keeps a broker away
    BROKER_ENDS = "broker-ends"
    DIRECTORY_OFFLINE = "directory-offline"
    LOGS_NOT_SERVED = "logs-not-served"  # those of the directory, though the broker runs
    LOGS_STRAY = "logs-stray"  # renamed to -stray: all that the cluster does not know any more
    LOG_EMPTIED = "log-emptied"  # renamed to -stray, and an empty one made in its place
    LOADED_WITH_LOSS = "loaded-with-loss"
    CLEANER_ENDS = "cleaner-ends"
    UNKNOWN = "unknown"  # a file that a start reads cannot be read here
    LOG_SET_ASIDE = "log-set-aside"  # renamed to -stray, and not missed


CONSEQUENCES: Mapping[StartOutcome, str] = {
    StartOutcome.COPY_CHANGED: "a broker that starts here works on it all the same, and may change "
    "the original through hard links, or make logs anew that are not in it",
    StartOutcome.BROKER_ENDS: "a broker does not start with it",
    StartOutcome.DIRECTORY_OFFLINE: "a broker that starts takes the whole log directory offline",
    StartOutcome.LOGS_NOT_SERVED: "a broker that starts serves no log of this directory",
    StartOutcome.LOGS_STRAY: "a broker that starts without another controller to ask goes on with "
    "what is left, and renames every log that this does not name to -stray",
    StartOutcome.LOG_EMPTIED: "a broker that starts renames this log to -stray, and makes an empty "
    "one in its place",
    StartOutcome.LOADED_WITH_LOSS: "a broker that starts loads it with loss",
    StartOutcome.CLEANER_ENDS: "a broker starts with it, and its cleaner ends",
    StartOutcome.UNKNOWN: "so nobody knows what a broker comes to that starts here",
    StartOutcome.LOG_SET_ASIDE: "a broker that starts renames this log to -stray",
}


class StartProblem(NamedTuple):
    """A thing that a start does not do well with."""

    outcome: StartOutcome
    path: str
    problem: str  # without a full stop
    repair: str  # the smallest one: whole sentences
    command: str | None = None  # which does it; for a shell as it stands
    reason_code: ReasonCode = ReasonCode.DAMAGED

    @property
    @json_property
    def consequence(self) -> str:
        """What a start comes to: for people, without a full stop."""
        return CONSEQUENCES[self.outcome]

    @property
    @json_property
    def forbids_start(self) -> bool:
        """Whether a start fails or loses something, or nobody knows that it does not."""
        return self.outcome is not StartOutcome.LOG_SET_ASIDE

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}; {self.consequence}"


class PartitionFiles(NamedTuple):
    """The directory of a log: names, and small files (None: no such file)."""

    dir_name: str
    names: Sequence[str]  # of its files
    epochs: bytes | None
    metadata: bytes | None
    dir_names: Sequence[str] = ()  # of the directories in it


class DirectoryFiles(NamedTuple):
    """The same of a log directory."""

    path: str
    dir_names: Sequence[str]
    identity: bytes | None
    checkpoints: Mapping[str, bytes | None]
    logs: Sequence[PartitionFiles]
    metadata_log: PartitionFiles | None = None  # of the cluster
    quorum_state: bytes | None = None  # beside it
    marked: CopyMarkedError | None = None  # what says that it is a copy that nobody is to change

    @property
    def is_of_kraft(self) -> bool:
        """Whether it was in use by a KRaft broker, as every broker since 4.0 is."""
        if METADATA_DIR in self.dir_names:
            return True
        known = identity_of(self)
        return isinstance(known, MetaProperties) and known.version == 1


class ClusterFacts(NamedTuple):
    """What the metadata log says, if it was read to its end."""

    node_id: int | None
    topics: Mapping[str, TopicImage]
    log_dir_ids: Sequence[UUID] = ()  # of this node
    node_ids: frozenset[int] = frozenset()  # of all brokers

    def placed_in(self, partition: TopicPartition) -> UUID | None:
        """Give the id of the log directory of this node that a log is in; None: not known."""
        image = self.topics.get(partition[0])
        if image is None or self.node_id is None:
            return None
        return image.directory_on(self.node_id, partition[1])


def forbid_start(problems: Iterable[StartProblem]) -> bool:
    """Say whether nobody should start a broker."""
    return any(problem.forbids_start for problem in problems)


def identity_of(directory: DirectoryFiles) -> MetaProperties | str | None:
    """Give what it says, or what is wrong with it; None where no such file exists."""
    if directory.identity is None:
        return None
    try:
        found = meta_properties.decode(directory.identity, META_PROPERTIES)
    except CorruptFileError as error:
        return error.problem
    if found.directory_id is not None and decoded_id(found.directory_id) is None:
        return f"directory.id {found.directory_id[:40]!r} is none"
    return found


def decoded_id(text: str) -> UUID | None:
    """Give the id that Kafka reads in a text; None where it finds none."""
    if len(text) > _LONGEST_ID or not text.isascii():
        return None
    padded = text if text.endswith("=") else text + "=" * (-len(text) % 4)
    try:
        data = base64.b64decode(padded, altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        return None
    return UUID(bytes=data) if len(data) == _ID_BYTES else None


def partition_in(name: str) -> TopicPartition | None:
    """Give the partition that a broker takes a directory for; None where it finds none."""
    if name.endswith((DELETE_DIR, FUTURE_DIR, STRAY_DIR)):
        if not is_special_dir(name):
            return None
        name = name.rpartition(".")[0]
    topic, _, digits = name.rpartition("-")
    if not topic or not _PARTITION.fullmatch(digits):
        return None
    number = int(digits)
    return (topic, number) if -_MAX_INT - 1 <= number <= _MAX_INT else None
