"""Read what a broker's own files say of its topics: the metadata log, and its static properties.

The metadata log is that of one of the command's log directories, unless another is named. A cluster
that was run with ZooKeeper has none: then only the static properties are known.
Source: Kafka, KafkaConfig, DynamicBrokerConfig (precedence), LogManager.isStrayReplica.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from compactor.errors import ConfigError, RefusedError
from compactor.host.printable import counted, first_few
from compactor.reason_codes import Reason, ReasonCode
from compactor.settings import own_writes
from compactor.settings.broker_settings import Layer, known_values, layers_of
from compactor.settings.sources import (
    LOG_LAG_MS,
    Facts,
    SourceFinding,
    State,
    contradiction_of,
    findings_of,
    kafka_of,
    torn_identity,
)
from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.files.files import Files
from storage.formats import clean_shutdown, java_text, meta_properties
from storage.formats.checkpoint import TopicPartition
from storage.formats.kafka_settings import (
    DELETE,
    KNOWN_ELSEWHERE,
    SETTINGS,
    Effect,
    KafkaSetting,
    check_value,
    int_setting,
)
from storage.formats.meta_properties import MetaProperties
from storage.formats.partition_metadata import PARTITION_METADATA, decode_uuid, encode_uuid
from storage.formats.partition_metadata import read as read_partition_metadata
from storage.formats.producer_snapshot import EXPIRATION_MS
from storage.kafka_versions import NOBODY_SAYS, KafkaChoice
from storage.log.cluster_metadata import (
    CLUSTER_DEFAULT,
    METADATA_DIR,
    ClusterMetadata,
    nothing_read,
    read_cluster_metadata,
)
from storage.log.log_dir import PartitionListing, list_log_dir

PRODUCER_ID_EXPIRATION = "producer.id.expiration.ms"
BROKER_SETTINGS: Mapping[str, KafkaSetting] = {
    PRODUCER_ID_EXPIRATION: int_setting(Effect.CLEANING, EXPIRATION_MS, 1),
}
KAFKAS_DEFAULT, TOPICS_OWN = "Kafka's default", "the topic itself"
_RESERVED_IDS = 100  # of directories: no directory has such a small number


class MetadataSource(NamedTuple):
    """Where to look for what a broker knows of its topics."""

    metadata: str | None = None  # a metadata log, or a directory with one; None: as given
    is_ignored: bool = False  # of any metadata log
    server_properties: str | None = None  # file


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """What is known of the topics of one broker."""

    metadata: ClusterMetadata | None  # None: of a broker with ZooKeeper, or ignored
    node_id: int | None  # of the broker whose log directories these are
    layers: tuple[Layer, ...]  # of all topics; the later counts
    findings: tuple[SourceFinding, ...] = ()  # what is wrong with the metadata log
    producer_id_expiration_ms: int = EXPIRATION_MS
    kafka: KafkaChoice = NOBODY_SAYS  # by the software of the broker

    @property
    def doubt(self) -> Reason | None:
        """Why the metadata log does not prove what the policy of a topic is; None: it does."""
        return next((each.doubt for each in self.findings if each.doubt is not None), None)

    @property
    def is_contradicted(self) -> bool:
        """Say whether the metadata log is of another time or broker."""
        return self.doubt is not None and self.doubt.code is ReasonCode.METADATA_CONTRADICTED

    @property
    def notices(self) -> tuple[str, ...]:
        """What is wrong with the metadata log, and which checks were not made, for people."""
        return tuple(finding.notice for finding in self.findings)

    @property
    def metadata_problems(self) -> tuple[str, ...]:
        """What is wrong with the metadata log or its snapshot, without what follows from it."""
        return tuple(each.text for each in self.findings if each.state.value.section in (2, 3))

    def topic_layer(self, topic: str) -> Layer:
        """What was set for a topic by itself."""
        raw = self.metadata.topic_configs.get(topic, {}) if self.metadata else {}
        return Layer(TOPICS_OWN, known_values(raw, f"topic {topic}"))

    def without_effect(self, topic: str) -> dict[str, str]:
        """Give what was set for a topic by itself and has no effect, as written."""
        raw = self.metadata.topic_configs.get(topic, {}) if self.metadata else {}
        return {name: value for name, value in raw.items() if name not in SETTINGS}

    def unknown_settings(self, is_wanted: Callable[[str], bool]) -> Iterator[str]:
        """Yield each setting of these topics that no Kafka that is known has, for people."""
        found: dict[str, list[str]] = {}
        for topic, raw in (self.metadata.topic_configs if self.metadata else {}).items():
            for name in raw.keys() - SETTINGS.keys() - KNOWN_ELSEWHERE:
                if is_wanted(topic):
                    found.setdefault(name, []).append(topic)
        for name, topics in sorted(found.items()):
            yield f"{name} of {first_few(sorted(topics), 1)}"

    def why_deleted(self, topic: str) -> Reason | None:
        """Say that the cluster has no such topic; None if it has, or nobody knows."""
        if not self.is_deleted(topic):
            return None
        text = "its topic was deleted: the cluster's metadata log does not have it"
        return State.TOPIC_DELETED.reason(text)

    def is_deleted(self, topic: str) -> bool:
        """Say whether the metadata log has no such topic, and proves that the cluster has none."""
        if self.metadata is None or self.metadata.is_snapshot_alone:
            return False
        if _topics_doubt(self.findings) is not None:
            return False
        return topic not in self.metadata.topics

    def may_be_in(self, topic: str, partition: int, directory_id: UUID | None) -> bool:
        """Say whether this broker's replica may be in this log directory, by the metadata log.

        It may where the metadata log names this directory, or none.
        """
        image = self.metadata.topics.get(topic) if self.metadata else None
        if image is None or self.node_id not in image.replicas.get(partition, ()):
            return False
        told = image.directory_on(self.node_id, partition)
        return told == directory_id or told is None or not _is_real(told)

    def placed_in(self, directory_id: UUID) -> frozenset[TopicPartition]:
        """Give the logs of this broker that the metadata log has in this log directory."""
        return frozenset(
            (topic, partition)
            for topic, image in (self.metadata.topics if self.metadata else {}).items()
            for partition in image.directories
            if self.node_id is not None
            and image.directory_on(self.node_id, partition) == directory_id
        )

    def directory_text(self, directory_id: UUID) -> str:
        """Return the id of a log directory, and the logs that the metadata log places in it."""
        logs = sorted(self.placed_in(directory_id))
        names = first_few([f"{topic}-{partition}" for topic, partition in logs])
        has = f" with {counted(len(logs), 'log')}: {names}" if logs else " without any log"
        return f"directory.id {encode_uuid(directory_id)}{has}"

    def why_of_another_topic(self, partition: PartitionListing) -> Reason | None:
        """Say why a log is not that of the topic that has its name today; None if it is.

        Raise CorruptFileError where the log's own note of its topic is damaged.
        """
        if self.metadata is None or partition.topic not in self.metadata.topics:
            return None
        today = self.metadata.topics[partition.topic].topic_id
        try:
            path = os.path.join(partition.path, PARTITION_METADATA)
            found = read_partition_metadata(path, partition.access).topic_id
        except FileNotFoundError:
            return State.TOPIC_ID_MISSING.reason(
                f"it has no {PARTITION_METADATA}: a broker would set it aside as a stray log"
            )
        if found == today:
            return None
        unproven = _topics_doubt(self.findings)
        if unproven is not None:
            return unproven
        ids = f"{encode_uuid(found)}, and that of today's {encode_uuid(today)}"
        return State.TOPIC_RECREATED.reason(
            f"its topic was deleted, and one of the same name was created since: its id is {ids}"
        )


def read_cluster_settings(
    log_dirs: Sequence[str], source: MetadataSource, files: Files, now_ms: int = 0
) -> ClusterSettings | None:
    """Read the settings of brokers and topics; None without a metadata log and properties.

    now_ms: the time now, to tell whether the metadata log is older than the logs; 0: do not
    compare. Raise ConfigError where several metadata logs are found, where the one that
    `source.metadata` names does not exist, and for a setting that Kafka would not take;
    CorruptFileError where another file is damaged. A metadata log that cannot be read is one of
    the `findings`.
    """
    path = None if source.is_ignored else _metadata_dir(log_dirs, source.metadata, files)
    facts = None if path is None else _facts_of(path, log_dirs, files, now_ms)
    metadata = None if facts is None else facts.metadata or nothing_read(facts.path)
    findings = () if facts is None else findings_of(facts)
    if metadata is not None and _topics_doubt(findings) is None:
        beside = _contradictions_beside(metadata, log_dirs, files, now_ms)
        is_doubted = any(finding.doubt for finding in findings)
        findings = (*findings, *beside) if is_doubted else (*beside, *findings)
    identity = _identity(log_dirs, files)
    node_id = identity.node_id if identity else None
    sources: list[tuple[str, Mapping[str, str]]] = []
    if source.server_properties is not None:
        sources.append((source.server_properties, _properties(source.server_properties, files)))
    if metadata is not None:
        configs = metadata.broker_configs
        sources.append(("the cluster's brokers", configs.get(CLUSTER_DEFAULT, {})))
        if node_id is not None:
            sources.append((f"broker {node_id}", configs.get(str(node_id), {})))
    if not sources:
        return None
    kafkas = () if metadata is None else (Layer(KAFKAS_DEFAULT, {"cleanup.policy": (DELETE,)}),)
    return ClusterSettings(
        metadata=metadata,
        node_id=node_id,
        layers=(*kafkas, *layers_of(sources)),
        findings=findings,
        producer_id_expiration_ms=_producer_id_expiration_ms(sources),
        kafka=kafka_of(metadata, node_id, findings),
    )


def registered_log_dirs(cluster: ClusterSettings | None) -> tuple[UUID, ...]:
    """Give the ids of the broker's log directories; none where that is not known."""
    if cluster is None or cluster.metadata is None or cluster.node_id is None:
        return ()
    if cluster.is_contradicted:
        return ()  # those of another time or broker
    return cluster.metadata.broker_log_dirs.get(cluster.node_id, ())


def require_all_log_dirs(cluster: ClusterSettings, log_dirs: Sequence[str], files: Files) -> None:
    """Raise RefusedError where the broker has log directories that are not among these.

    A partition may be on its way into one of them: a broker's copy of its old records would then
    follow what a cleaning left.
    """
    registered = registered_log_dirs(cluster)
    given = {directory_id_of(log_dir, files) for log_dir in log_dirs}
    absent = [id_ for id_ in registered if id_ not in given and _is_real(id_)]
    if absent:
        verb = "was" if len(absent) == 1 else "were"
        raise RefusedError(
            f"broker {cluster.node_id} has {len(registered)} log directories, of which "
            f"{len(absent)} {verb} not given ({'; '.join(map(cluster.directory_text, absent))}): a "
            "partition may be on its way into one of them",
            ReasonCode.LOG_DIRS_MISSING,
            remedy="Give them all, or --all-log-dirs-given if the metadata log is wrong about "
            "that. Nothing was changed",
        )


def only_one(paths: Sequence[str]) -> str | None:
    """Give the one metadata log of these; None without one, ConfigError for several."""
    if len(paths) > 1:
        raise ConfigError(
            "a broker has one metadata log; say with {} which",
            value=" and ".join(paths),
            others=["metadata"],
        )
    return paths[0] if paths else None


def directory_id_of(log_dir: str, files: Files) -> UUID | None:
    """Give the id of a log directory; None where it has none."""
    found = identity_in(log_dir, files)
    return decode_uuid(found.directory_id) if found and found.directory_id else None


def identity_in(log_dir: str, files: Files) -> MetaProperties | None:
    """Say whose a log directory is; None, too, where it is damaged: `_identity_problem` says so."""
    try:
        return meta_properties.read(log_dir, files)
    except (FileNotFoundError, CorruptFileError):
        return None


def identity_findings(log_dirs: Sequence[str], files: Files) -> tuple[SourceFinding, ...]:
    """Say what is wrong with a meta.properties where no metadata log is read that says it, too."""
    problem = _identity_problem(log_dirs, files)
    return () if problem is None else (torn_identity(problem, log_dirs[0]),)


def _facts_of(path: str, log_dirs: Sequence[str], files: Files, now_ms: int) -> Facts:
    metadata = problem = None
    try:
        metadata = read_cluster_metadata(path, files)
    except (CorruptFileError, UnsupportedFormatError, OSError) as error:
        problem = error
    home = os.path.dirname(os.path.abspath(path))
    ids = (directory_id_of(log_dir, files) for log_dir in log_dirs)
    epochs = (clean_shutdown.read(log_dir, files) for log_dir in log_dirs)
    return Facts(
        path=path,
        metadata=metadata,
        problem=problem,
        home=_identity([home], files),
        logs=_identity(log_dirs, files),
        identity_problem=_identity_problem(log_dirs, files),
        directory_ids=tuple(id_ for id_ in ids if id_ is not None),
        is_clean=_stopped_cleanly(path, log_dirs, files),
        broker_epoch=max((epoch for epoch in epochs if epoch is not None), default=None),
        now_ms=now_ms,
    )


def _topics_doubt(findings: Sequence[SourceFinding]) -> Reason | None:
    """Say why the metadata log does not prove which topics exist; None: it does.

    Whose settings they have is another question.
    """
    doubts = (each.doubt for each in findings if each.state is not State.IDENTITY_NEEDED)
    return next((doubt for doubt in doubts if doubt is not None), None)


def _contradictions_beside(
    metadata: ClusterMetadata, log_dirs: Sequence[str], files: Files, now_ms: int
) -> tuple[SourceFinding, ...]:
    """Find the first log that shows that the metadata log is an old copy.

    Then nothing is known of the other logs either: their settings may have changed since. What
    cannot be listed or read shows nothing; the judgement of that log says so.
    """
    is_young = now_ms <= metadata.time_ms + LOG_LAG_MS  # then no log can be of a later time
    if not now_ms or (is_young and not metadata.is_snapshot_alone):
        return ()
    for log_dir in log_dirs:
        try:
            listed = list_log_dir(log_dir, files, with_files=False)
        except OSError:  # the command finds that
            continue
        writes = own_writes.read(log_dir, files)
        for log in listed.partitions:
            if log.name == METADATA_DIR:
                continue
            topic_id = _topic_id(log) if metadata.is_snapshot_alone else None
            found = contradiction_of(
                metadata, log, topic_id, writes.get((log.topic, log.partition))
            )
            if found is not None:
                return (found,)
    return ()


def _stopped_cleanly(path: str, log_dirs: Sequence[str], files: Files) -> bool:
    """Say whether the node that wrote a metadata log stopped cleanly.

    The marks are in its log directories; a metadata.log.dir of its own has none.
    """
    home = os.path.dirname(os.path.abspath(path))
    of_home, of_logs = _identity([home], files), _identity(log_dirs, files)
    is_same_node = (
        of_home is not None and of_logs is not None and of_home.node_id == of_logs.node_id
    )
    places = (home, *log_dirs) if is_same_node else (home,)
    return any(clean_shutdown.exists(place, files) for place in places)


def _topic_id(partition: PartitionListing) -> UUID | None:
    """None, too, where the note cannot be read: who judges the log finds that."""
    try:
        path = os.path.join(partition.path, PARTITION_METADATA)
        return read_partition_metadata(path, partition.access).topic_id
    except (CorruptFileError, OSError):
        return None


def _is_real(directory_id: UUID) -> bool:
    return directory_id.int >= _RESERVED_IDS


def _metadata_dir(log_dirs: Sequence[str], named: str | None, files: Files) -> str | None:
    if named is not None:
        inside = os.path.join(named, METADATA_DIR)
        found = inside if files.is_directory(inside) else named
        if not files.is_directory(found):
            raise ConfigError("there is no such directory", "metadata", named)
        return found
    found_in = [os.path.join(log_dir, METADATA_DIR) for log_dir in log_dirs]
    # whatever it is: what has its name and is no directory cannot be read, and is said to be there
    return only_one([path for path in found_in if files.exists(path)])


def _identity(log_dirs: Sequence[str], files: Files) -> MetaProperties | None:
    known = (identity_in(log_dir, files) for log_dir in log_dirs)
    return next((found for found in known if found is not None), None)


def _identity_problem(log_dirs: Sequence[str], files: Files) -> str | None:
    """Say which meta.properties is damaged; None if none is."""
    for log_dir in log_dirs:
        try:
            meta_properties.read(log_dir, files)
        except FileNotFoundError:
            continue
        except CorruptFileError as error:
            return str(error)
    return None


def _properties(path: str, files: Files) -> dict[str, str]:
    try:
        return java_text.decode_properties(files.read_bytes(path), path)
    except (OSError, CorruptFileError) as error:
        problem = error.strerror if isinstance(error, OSError) else error.problem
        raise ConfigError(problem or "", "server_properties", path) from error


def _producer_id_expiration_ms(sources: Sequence[tuple[str, Mapping[str, str]]]) -> int:
    setting = BROKER_SETTINGS[PRODUCER_ID_EXPIRATION]
    found = EXPIRATION_MS
    for place, values in sources:
        if PRODUCER_ID_EXPIRATION in values:
            value = check_value(
                PRODUCER_ID_EXPIRATION, setting, values[PRODUCER_ID_EXPIRATION], place
            )
            assert isinstance(value, int)
            found = value
    return found
