"""Decide which source may say what becomes of a log, by the state that the source is in.

`State` is the table of docs/spec/sources.md, row by row, and everything that reads a source of
settings asks it. Before anything is removed from a log its `cleanup.policy` must be known, from a
source that nothing contradicts. A test reads the table from the page and walks all of it.
"""

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple
from uuid import UUID

from compactor.host.printable import iso_time, span_text
from compactor.reason_codes import Reason, ReasonCode
from compactor.settings.broker_settings import layers_of
from compactor.settings.own_writes import OwnWrite, last_write, others_ms
from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.formats.meta_properties import META_PROPERTIES, MetaProperties
from storage.kafka_versions import KafkaChoice, nobody_knows, of_broker
from storage.log.cluster_metadata import SNAPSHOT, ClusterMetadata
from storage.log.log_dir import PartitionListing

# A broker makes a snapshot each hour, and a record of its metadata log each half second, if nobody
# has set that otherwise.
SNAPSHOT_LAG_MS, LOG_LAG_MS = 2 * 3_600_000, 24 * 3_600_000
# by which a log is set aside for what a source says, or does not say
OF_SOURCES = (
    ReasonCode.METADATA_DAMAGED,
    ReasonCode.METADATA_CONTRADICTED,
    ReasonCode.SETTINGS_DISAGREE,
    ReasonCode.NO_TOPIC_ID,
)
_FIRST_MS = 1_577_836_800_000  # 2020: no metadata log has an earlier time, so it is none
_UNCHECKED = "Not checked: whether the topic of a log was deleted or created anew"
_WHICH_UNCHECKED = "not checked whether all of its log directories were given"
_NOR_DIRECTORIES = ", and whether all log directories were given"
_SET_ASIDE = "Logs whose cleanup.policy only it has are set aside"


class SourceVerdict(Enum):
    """What becomes of a log, and how `run` ends if nothing else is wrong."""

    CLEANED = "cleaned", 0
    WARNED = "cleaned, with a warning", 0
    PASSED_OVER = "passed over", 0
    SET_ASIDE = "set aside", 4
    WRONG = "the command fails", 2
    REFUSED = "the run is refused", 3


class SourceOutcome(NamedTuple):
    """A verdict, and the reason code with it."""

    verdict: SourceVerdict
    code: ReasonCode | None = None

    def __str__(self) -> str:
        words = self.verdict.value[0]
        return words if self.code is None else f"{words}: `{self.code}`"


class Rule(NamedTuple):
    """A row of the table: a source in a state, and what follows."""

    section: int  # of the page
    number: int
    alone: SourceOutcome  # where no other source has the topic's cleanup.policy
    named: SourceOutcome  # where --topic-configs, --set or [[topics]] has it

    @property
    def rule(self) -> str:
        return f"S-{self.section}.{self.number}"


_CLEANED, _WARNED = SourceOutcome(SourceVerdict.CLEANED), SourceOutcome(SourceVerdict.WARNED)
_DAMAGED = SourceOutcome(SourceVerdict.SET_ASIDE, ReasonCode.METADATA_DAMAGED)
_CONTRADICTED = SourceOutcome(SourceVerdict.SET_ASIDE, ReasonCode.METADATA_CONTRADICTED)
_DELETED = SourceOutcome(SourceVerdict.PASSED_OVER, ReasonCode.TOPIC_DELETED)
_OTHER_TOPIC = SourceOutcome(SourceVerdict.PASSED_OVER, ReasonCode.TOPIC_ID_MISMATCH)
_UNKNOWN = SourceOutcome(SourceVerdict.PASSED_OVER, ReasonCode.UNKNOWN_POLICY)
_NO_ID = SourceOutcome(SourceVerdict.SET_ASIDE, ReasonCode.NO_TOPIC_ID)
_BROKEN = SourceOutcome(SourceVerdict.SET_ASIDE, ReasonCode.DAMAGED)
_DISAGREE = SourceOutcome(SourceVerdict.SET_ASIDE, ReasonCode.SETTINGS_DISAGREE)
_WRONG = SourceOutcome(SourceVerdict.WRONG, ReasonCode.WRONG_CONFIGURATION)
_MISSING_DIRS = SourceOutcome(SourceVerdict.REFUSED, ReasonCode.LOG_DIRS_MISSING)
_NOT_COMPACTED = SourceOutcome(SourceVerdict.PASSED_OVER, ReasonCode.NOT_COMPACTED)


class State(Enum):
    """A source in a state, and what follows: the page has the words of each row."""

    # the metadata log
    WHOLE = Rule(2, 1, _CLEANED, _CLEANED)
    TORN = Rule(2, 2, _WARNED, _WARNED)
    TORN_AFTER_STOP = Rule(2, 3, _DAMAGED, _WARNED)
    DAMAGED_END = Rule(2, 4, _DAMAGED, _WARNED)
    DAMAGED = Rule(2, 5, _DAMAGED, _WARNED)
    EMPTY = Rule(2, 6, _DAMAGED, _WARNED)
    NEVER_USED = Rule(2, 7, _DAMAGED, _WARNED)
    UNREADABLE = Rule(2, 8, _DAMAGED, _WARNED)
    OF_LATER_KAFKA = Rule(2, 19, _DAMAGED, _WARNED)
    BEFORE_LAST_START = Rule(2, 9, _CONTRADICTED, _WARNED)
    OLDER = Rule(2, 10, _CONTRADICTED, _WARNED)
    OTHER_CLUSTER = Rule(2, 11, _CONTRADICTED, _WARNED)
    OTHER_NODE = Rule(2, 12, _WARNED, _WARNED)
    FORMATTED_AGAIN = Rule(2, 13, _CONTRADICTED, _WARNED)
    MIGRATING = Rule(2, 14, _CONTRADICTED, _WARNED)
    BEFORE_MIGRATION = Rule(2, 15, _CONTRADICTED, _WARNED)
    ABSENT = Rule(2, 16, _UNKNOWN, _CLEANED)
    TWO = Rule(2, 17, _WRONG, _WRONG)
    TOPIC_DELETED = Rule(2, 18, _DELETED, _DELETED)
    # its snapshot
    SNAPSHOT = Rule(3, 1, _WARNED, _WARNED)
    SNAPSHOT_TORN = Rule(3, 2, _DAMAGED, _WARNED)
    SNAPSHOT_WITHOUT_TOPIC = Rule(3, 3, _CONTRADICTED, _WARNED)
    SNAPSHOT_WITHOUT_PARTITION = Rule(3, 4, _CONTRADICTED, _WARNED)
    SNAPSHOT_OF_ANOTHER_TOPIC = Rule(3, 5, _CONTRADICTED, _CONTRADICTED)
    SNAPSHOT_OLDER = Rule(3, 6, _CONTRADICTED, _WARNED)
    # meta.properties
    IDENTITY_WHOLE = Rule(4, 1, _CLEANED, _CLEANED)
    IDENTITY_UNKNOWN = Rule(4, 2, _WARNED, _WARNED)
    IDENTITY_NEEDED = Rule(4, 3, _DAMAGED, _WARNED)
    IDENTITY_TORN = Rule(4, 4, _WARNED, _WARNED)
    DIRECTORIES_MISSING = Rule(4, 5, _MISSING_DIRS, _MISSING_DIRS)
    # partition.metadata
    TOPIC_ID_WHOLE = Rule(5, 1, _CLEANED, _CLEANED)
    TOPIC_RECREATED = Rule(5, 2, _OTHER_TOPIC, _OTHER_TOPIC)
    TOPIC_ID_MISSING = Rule(5, 3, _NO_ID, _NO_ID)
    TOPIC_ID_BROKEN = Rule(5, 4, _BROKEN, _BROKEN)
    # --topic-configs
    FILE_WHOLE = Rule(6, 1, _CLEANED, _CLEANED)
    FILE_CONTRADICTED = Rule(6, 2, _DISAGREE, _DISAGREE)
    FILE_BROKEN = Rule(6, 3, _WRONG, _WRONG)
    FILE_WITHOUT_TOPIC = Rule(6, 4, _UNKNOWN, _UNKNOWN)
    # --set and [[topics]]
    TYPED = Rule(7, 1, _CLEANED, _CLEANED)
    TYPED_AGAINST_DELETE = Rule(7, 2, _NOT_COMPACTED, _DISAGREE)

    def reason(self, text: str) -> Reason | None:
        """Give what sets a log aside, or passes it over, in this state; None if nothing does."""
        code = self.value.alone.code
        return None if code is None else Reason(code, text)


class SourceFinding(NamedTuple):
    """The state of a source, in words. The state and the path stay while the words change."""

    state: State
    path: str
    text: str
    unchecked: str = ""  # which checks were not made, or what else follows

    @property
    def notice(self) -> str:
        return f"{self.text}. {self.unchecked}" if self.unchecked else self.text

    @property
    def doubt(self) -> Reason | None:
        """Why the metadata log does not prove what the policy of a topic is; None: it does."""
        is_cut = self.state in (State.TORN_AFTER_STOP, State.DAMAGED_END)
        lost = "its settings may have changed in what cannot be read: " if is_cut else ""
        return self.state.reason(f"{lost}{self.text}")


class Facts(NamedTuple):
    """What is known of a metadata log, and of the log directories that it is to speak for."""

    path: str
    metadata: ClusterMetadata | None  # None: it cannot be read
    problem: CorruptFileError | UnsupportedFormatError | OSError | None  # why
    home: MetaProperties | None  # of the directory in which it is
    logs: MetaProperties | None  # of the log directories
    identity_problem: str | None  # what is wrong with a meta.properties of these
    directory_ids: tuple[UUID, ...]  # of these
    is_clean: bool  # the node that wrote it stopped cleanly
    broker_epoch: int | None  # of that stop: the offset of the broker's registration
    now_ms: int


def findings_of(facts: Facts) -> tuple[SourceFinding, ...]:
    """Say what is wrong with a metadata log; what sets logs aside comes first."""
    unread = _unread(facts)
    if unread is not None and unread.doubt is not None:
        return (unread,)
    torn = () if unread is None else (unread,)  # it may still be another's, or of another time
    doubted = _contradicted(facts) or _identity_needed(facts)
    return (*torn, *_warnings(facts)) if doubted is None else (doubted, *torn)


def kafka_of(
    metadata: ClusterMetadata | None, node_id: int | None, findings: Sequence[SourceFinding]
) -> KafkaChoice:
    """Choose a version by the last registration of the broker, if its metadata log is believed."""
    if metadata is None:
        return nobody_knows("there is no metadata log")
    doubt = next((each.text for each in findings if each.doubt is not None), None)
    if doubt is not None:
        return nobody_knows(doubt)
    if node_id is None:
        return nobody_knows("no meta.properties says which broker this is")
    version = metadata.broker_versions.get(node_id)
    if version is None:
        return nobody_knows(
            f"no registration of broker {node_id} in {metadata.path} says its version"
        )
    return of_broker(version, f"broker {node_id}, by its last registration in {metadata.path},")


def _unread(facts: Facts) -> SourceFinding | None:
    """Where it proves nothing, or not all of it can be read."""
    metadata, problem = facts.metadata, facts.problem
    unchecked = f"{_UNCHECKED}{_NOR_DIRECTORIES}. {_SET_ASIDE}"
    if metadata is None:
        if isinstance(problem, OSError):
            why = f"{problem.filename or facts.path}: {problem.strerror}"
            text = f"the metadata log cannot be read: {why}"
            return SourceFinding(State.UNREADABLE, facts.path, text, unchecked)
        assert problem is not None
        state = State.SNAPSHOT_TORN if problem.path.endswith(SNAPSHOT) else State.DAMAGED
        if isinstance(problem, UnsupportedFormatError):
            state = State.OF_LATER_KAFKA
        text = f"the metadata log cannot be read: {problem}"
        return SourceFinding(state, facts.path, text, unchecked)
    if metadata.unread is not None:
        return _unread_end(facts, metadata)
    if metadata.topics or metadata.broker_log_dirs:
        return None
    text = f"the metadata log, {facts.path}, has no topic and no broker: it proves nothing"
    return SourceFinding(
        State.NEVER_USED if metadata.end_offset else State.EMPTY, facts.path, text, unchecked
    )


def _unread_end(facts: Facts, metadata: ClusterMetadata) -> SourceFinding:
    """Return what is wrong with a metadata log that is not read to its end.

    A running or a killed broker leaves a file that ends inside of its last batch. After a clean
    shutdown no file ends so, and no broker causes any other damage.
    """
    read = f"the metadata log is read up to offset {metadata.end_offset}: {metadata.unread}"
    if metadata.is_torn and not facts.is_clean:
        left = "A running or killed broker leaves such an end"
        return SourceFinding(State.TORN, facts.path, read, left)
    after = ", after a clean shutdown" if metadata.is_torn else ""
    state = State.TORN_AFTER_STOP if metadata.is_torn else State.DAMAGED_END
    return SourceFinding(state, facts.path, f"{read}{after}", f"{_UNCHECKED}. {_SET_ASIDE}")


def _contradicted(facts: Facts) -> SourceFinding | None:
    """Where the log directories show that it is not, or not any more, their broker's."""
    metadata = facts.metadata
    assert metadata is not None
    home, logs = facts.home, facts.logs
    node = _node(facts)
    registered = () if node is None else metadata.broker_log_dirs.get(node, ())
    name = f"the metadata log, {facts.path},"
    clusters = [each.cluster_id for each in (home, logs) if each and each.cluster_id]
    if len(set(clusters)) > 1:
        state = State.OTHER_CLUSTER
        text = f"{name} is of cluster {clusters[0]}, and the log directories of {clusters[1]}"
    elif metadata.is_migrating:
        state = State.MIGRATING
        text = f"{name} is of a migration from ZooKeeper that did not end, or was rolled back"
    elif logs is not None and _is_of_zookeeper(logs) and not metadata.is_migrated:
        state = State.BEFORE_MIGRATION
        text = f"{name} is not of the broker that was here last: by {META_PROPERTIES} that one "
        text += "used ZooKeeper"
    elif facts.broker_epoch is not None and facts.broker_epoch >= metadata.end_offset:
        state = State.BEFORE_LAST_START
        text = (
            f"{name} ends at offset {metadata.end_offset}, and the broker that stopped here "
            f"registered at offset {facts.broker_epoch}: it is an old copy, or another's"
        )
    elif registered and facts.directory_ids and not set(registered) & set(facts.directory_ids):
        state = State.FORMATTED_AGAIN
        text = (
            f"{name} has other log directories of broker {node} than these: it is from "
            "before they were formatted again, or another's"
        )
    else:
        return None
    return SourceFinding(state, facts.path, text, f"{_UNCHECKED}{_NOR_DIRECTORIES}. {_SET_ASIDE}")


def _identity_needed(facts: Facts) -> SourceFinding | None:
    """Where single brokers have settings for topics, and which broker this is is not known."""
    metadata = facts.metadata
    assert metadata is not None
    if _node(facts) is not None:
        return None
    own = ((name, values) for name, values in metadata.broker_configs.items() if name)
    if not any(layer.values for layer in layers_of(list(own))):
        return None
    text = (
        f"the metadata log, {facts.path}, has settings of single brokers, and no "
        f"{META_PROPERTIES} says which broker this is"
    )
    unchecked = f"Not checked: whether all log directories were given. {_SET_ASIDE}"
    return SourceFinding(State.IDENTITY_NEEDED, facts.path, text, unchecked)


def _warnings(facts: Facts) -> Iterator[SourceFinding]:
    """What people should know of a metadata log that is believed."""
    metadata, node = facts.metadata, _node(facts)
    assert metadata is not None
    if metadata.is_snapshot_alone:
        age = ""
        if metadata.time_ms >= _FIRST_MS:
            span = span_text(max(facts.now_ms - metadata.time_ms, 0))
            age = f"It is of {iso_time(metadata.time_ms)}, {span} ago. "
        yield SourceFinding(
            State.SNAPSHOT,
            facts.path,
            f"the metadata log, {facts.path}, has a snapshot up to offset "
            f"{metadata.end_offset}, and not the log behind it",
            f"{age}What was changed since is not known",
        )
    if facts.identity_problem is not None:
        yield torn_identity(facts.identity_problem, facts.path)
    elif metadata.broker_log_dirs and node is None:
        unknown = f"no {META_PROPERTIES} says which broker this is"
        yield SourceFinding(State.IDENTITY_UNKNOWN, facts.path, f"{unknown}: {_WHICH_UNCHECKED}")
    elif metadata.broker_log_dirs and node not in metadata.broker_log_dirs:
        unknown = f"the metadata log, {facts.path}, does not have broker {node}"
        yield SourceFinding(State.OTHER_NODE, facts.path, f"{unknown}: {_WHICH_UNCHECKED}")


def torn_identity(problem: str, path: str) -> SourceFinding:
    """A meta.properties that cannot be read. path: of what the check of it is for."""
    return SourceFinding(State.IDENTITY_TORN, path, f"{problem}: {_WHICH_UNCHECKED}")


def _is_of_zookeeper(logs: MetaProperties) -> bool:
    """An empty file has this version, too, and says nothing."""
    return logs.version == 0 and logs.node_id is not None


def _node(facts: Facts) -> int | None:
    return facts.logs.node_id if facts.logs else None


def contradiction_of(
    metadata: ClusterMetadata,
    partition: PartitionListing,
    topic_id: UUID | None,
    own_write: OwnWrite | None = None,
) -> SourceFinding | None:
    """Say by what a log contradicts a metadata log that is believed otherwise.

    topic_id: of the log's own note; None: it has none. own_write: how a command of ours left it.
    """
    alone, image = metadata.is_snapshot_alone, metadata.topics.get(partition.topic)
    state, what = State.OLDER, ""
    if alone and image is None:
        state, what = State.SNAPSHOT_WITHOUT_TOPIC, "does not have its topic"
    elif alone and image is not None and topic_id not in (None, image.topic_id):
        state, what = State.SNAPSHOT_OF_ANOTHER_TOPIC, "has another topic of its name"
    elif alone and image is not None and partition.partition not in image.replicas:
        state, what = State.SNAPSHOT_WITHOUT_PARTITION, "does not have its partition"
    if what:
        text = f"the snapshot in {metadata.path}, up to offset {metadata.end_offset}, {what}"
        text = f"{text} ({partition.name}), and the log behind it is missing"
        return SourceFinding(state, metadata.path, text, _SET_ASIDE)
    if metadata.time_ms < _FIRST_MS:
        return None
    after_ms = metadata.time_ms + (SNAPSHOT_LAG_MS if alone else LOG_LAG_MS)
    try:
        written_ms = others_ms(last_write(partition, after_ms), own_write)
    except (CorruptFileError, UnsupportedFormatError, OSError):  # who cleans the log finds that
        return None
    if written_ms <= after_ms:
        return None
    text = (
        f"the metadata log, {metadata.path}, is an old copy: it ends at "
        f"{iso_time(metadata.time_ms)}, and {partition.name} has records of {iso_time(written_ms)}"
        f", {span_text(written_ms - metadata.time_ms)} later"
    )
    state = State.SNAPSHOT_OLDER if alone else State.OLDER
    return SourceFinding(state, metadata.path, text, f"{_UNCHECKED}. {_SET_ASIDE}")
