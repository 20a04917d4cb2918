"""What the metadata log of a KRaft cluster says: topics, configuration, brokers and their disks.

Every KRaft broker keeps the log as `__cluster_metadata-0` in its metadata log directory: segments
as in any log, and snapshots (`OFFSET-EPOCH.checkpoint`) that stand for all below their offset. What
counts is the newest snapshot and the records from its offset on. A broker may be writing meanwhile:
a batch that is not all there yet ends the reading, as it does where a broker was killed. So does
other damage to the last batch, but that is no broker's doing: `is_torn` tells the two apart.

What a broker's disk holds may be older than its cluster, and may end with records that the
cluster never agreed on: which those are is not on disk.
Source: Kafka, MetadataDelta, MetadataLoader, KafkaRaftLog, Snapshots, ZkMigrationState.
"""

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple
from uuid import UUID

from crc32c import crc32c

from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.file_names import LOG, OFFSET_DIGITS, file_name, is_offset
from storage.file_names import SNAPSHOT as PRODUCERS
from storage.files.files import Files, size_of
from storage.files.local import LOCAL
from storage.formats import metadata_records as records
from storage.formats.batch_header import (
    CHECKED_AT,
    CRC_AT,
    LENGTH_AT,
    LOG_OVERHEAD_BYTES,
    MAGIC_AT,
)
from storage.formats.control_record import ControlType, decode_snapshot_time, decode_type
from storage.formats.metadata_records import MetadataRecord
from storage.formats.record import MalformedRecordError, Record
from storage.formats.record_batch import BatchHeader, decode_records
from storage.formats.varint import Bytes
from storage.log.segment_reader import first_sound_batch, read_batches

METADATA_DIR = "__cluster_metadata-0"
TOPIC, BROKER = 2, 4  # resource types of configuration
METADATA_VERSION = "metadata.version"  # of the features of a broker
CLUSTER_DEFAULT = ""  # the name of the resource that stands for all brokers

SNAPSHOT = ".checkpoint"

_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint", re.ASCII)
_READINGS = 5  # of a directory whose files a broker replaces meanwhile


class TopicImage(NamedTuple):
    """A topic of the cluster."""

    topic_id: UUID
    replicas: Mapping[int, tuple[int, ...]]  # broker ids, by partition
    directories: Mapping[int, tuple[UUID, ...]]  # of these replicas; empty: not told

    def directory_on(self, node_id: int, partition: int) -> UUID | None:
        """Return the id of the log directory of a node's replica; None where it is not known."""
        replicas = self.replicas.get(partition, ())
        directories = self.directories.get(partition, ())
        return dict(zip(replicas, directories, strict=False)).get(node_id)


class ClusterMetadata(NamedTuple):
    """The state of a cluster as of an offset of its metadata log."""

    path: str  # of the directory
    end_offset: int  # of the first record that was not read
    topics: Mapping[str, TopicImage]
    topic_configs: Mapping[str, Mapping[str, str]]  # values as they were set, by topic
    broker_configs: Mapping[str, Mapping[str, str]]  # by broker id as text; CLUSTER_DEFAULT
    broker_log_dirs: Mapping[int, tuple[UUID, ...]]  # registered directories; empty: not told
    # by broker: the highest metadata.version that its software supports, where it says so
    broker_versions: Mapping[int, int]
    unread: str | None  # why the log was not read to its end
    is_torn: bool = False  # what is unread is the beginning of a batch, as of one being written
    time_ms: int = -1  # of the last batch, or of what a snapshot that stands alone holds
    is_snapshot_alone: bool = False  # the log does not reach the end of the newest snapshot
    is_migrating: bool = False  # from ZooKeeper, which is written, too, and may be gone back to
    is_migrated: bool = False  # from ZooKeeper, for good


class SnapshotUse(Enum):
    """What is done with the newest snapshot."""

    WHOLE = "it has to be whole"
    AS_A_BROKER = "where it ends inside of a batch, it is believed as far as it goes"
    LEFT_OUT = "it is left out, as if it were removed"


def read_cluster_metadata(
    path: str, files: Files = LOCAL, newest: SnapshotUse = SnapshotUse.WHOLE
) -> ClusterMetadata:
    """Read the directory of a metadata log; FileNotFoundError if it is not there.

    One without a file has nothing to say. Raise CorruptFileError where a record is damaged or of an
    unknown version, or where the log does not go on where the newest snapshot ends.
    """
    for _ in range(_READINGS - 1):
        try:
            return _read(path, files, newest)
        except FileNotFoundError:  # a snapshot took the place of segments
            files.list_directory(path)
    return _read(path, files, newest)


def newest_snapshot(path: str, files: Files = LOCAL) -> str | None:
    """Return the path of the snapshot that a broker starts from; None where there is none."""
    names = [entry.name for entry in files.list_directory(path) if not entry.is_dir]
    found = _snapshots(names)
    return os.path.join(path, found[-1][0]) if found else None


def nothing_read(path: str) -> ClusterMetadata:
    """Give the state that is known where a metadata log cannot be read."""
    return _Image().frozen(path, 0)


def _snapshots(names: Iterable[str]) -> list[re.Match[str]]:
    """The snapshots among names of files, the newest last."""
    found = [match for match in map(_SNAPSHOT.fullmatch, names) if match]
    return sorted(found, key=lambda match: (int(match[1]), int(match[2])))


def _read(path: str, files: Files, use: SnapshotUse) -> ClusterMetadata:
    names = sorted(entry.name for entry in files.list_directory(path) if not entry.is_dir)
    snapshots = _snapshots(names)
    if use is SnapshotUse.LEFT_OUT:
        snapshots = snapshots[:-1]
    bases = [int(n[:OFFSET_DIGITS]) for n in names if is_offset(n[:-4]) and n.endswith(LOG)]
    image = _Image()
    end = 0
    if snapshots:
        newest = snapshots[-1]
        end = int(newest[1])
        try:
            _apply_snapshot(image, os.path.join(path, newest[0]), files)
        except CorruptFileError as error:
            if use is not SnapshotUse.AS_A_BROKER or not _ends_inside(error, files):
                raise
    snapshot_end = end
    unread, is_torn = None, False
    for base, following in zip(bases, [*bases[1:], None], strict=False):
        if following is not None and following <= end:
            continue
        if base > end:
            problem = f"begins at offset {base}, and nothing tells of {end} to {base - 1}"
            raise CorruptFileError(os.path.join(path, file_name(base, LOG)), 0, problem)
        log_path = os.path.join(path, file_name(base, LOG))
        end, damage = _apply_segment(image, log_path, end, following is None, files)
        if damage is not None:
            unread, is_torn = str(damage), _is_torn(log_path, damage.position, end, files)
    is_snapshot_alone = image.log_end < snapshot_end
    if unread is None and image.log_end and not is_snapshot_alone:
        unread = _why_cut_short(path, names, end)
    return image.frozen(path, end)._replace(
        unread=unread, is_torn=is_torn, is_snapshot_alone=is_snapshot_alone
    )


def _why_cut_short(path: str, names: list[str], end: int) -> str | None:
    """Say that whole batches are gone from the end of the log; None if nothing shows that.

    A snapshot of producers is named by the offset at which a segment began, or the broker stopped.
    """
    snapshots = (name for name in names if name.endswith(PRODUCERS))
    last = max((s for s in snapshots if is_offset(s.removesuffix(PRODUCERS))), default=None)
    if last is None or int(last.removesuffix(PRODUCERS)) <= end:
        return None
    return f"{os.path.join(path, last)} shows that it went further"


def _apply_snapshot(image: "_Image", path: str, files: Files) -> None:
    """Apply all of a snapshot. A broker gives it its name when it is whole."""
    ends = False
    for position, header, batch in read_batches(path, files=files):
        if header.is_control:
            ends = _of_snapshot(image, batch, header, path, position)
        else:
            _apply_batch(image, batch, header, path, position)
    if not ends:
        raise CorruptFileError(path, size_of(files, path), "a snapshot without its end")


def _ends_inside(error: CorruptFileError, files: Files) -> bool:
    """Say whether a snapshot ends after its first batch, and not with its last one."""
    with files.open(error.path) as snapshot:
        rest = snapshot.read(error.position, snapshot.entry.size_bytes - error.position)
    if error.position == 0 or len(rest) < LOG_OVERHEAD_BYTES:
        return error.position > 0
    length = int.from_bytes(rest[LENGTH_AT:LOG_OVERHEAD_BYTES], "big", signed=True)
    return length + LOG_OVERHEAD_BYTES > len(rest)


def _of_snapshot(
    image: "_Image", batch: Bytes, header: BatchHeader, path: str, position: int
) -> bool:
    """Take a control batch in, of which one has a time; say whether it is the end."""
    last = decode_records(batch, header, path, position)[-1]
    try:
        of_type = decode_type(last.key)
    except MalformedRecordError as error:
        raise CorruptFileError(path, position, str(error)) from error
    if of_type is ControlType.SNAPSHOT_HEADER:
        with suppress(MalformedRecordError):
            image.time_ms = decode_snapshot_time(last.value)
    return of_type is ControlType.SNAPSHOT_FOOTER


def _apply_segment(
    image: "_Image", path: str, start: int, is_last: bool, files: Files
) -> tuple[int, CorruptFileError | UnsupportedFormatError | None]:
    """Apply the records from an offset on. Return the offset after them, and why no more are read.

    Where a broker that starts would cut the last segment off, the reading ends; but not where
    sound batches follow the damage, for these would be left out in silence.
    """
    end, batches = start, read_batches(path, files=files)
    while True:
        try:
            found = next(batches, None)
        except (CorruptFileError, UnsupportedFormatError) as error:
            base = int(os.path.basename(path)[:OFFSET_DIGITS])
            if not is_last or first_sound_batch(path, error.position + 1, base, files) is not None:
                raise
            return end, error
        if found is None:
            return end, None
        position, header, batch = found
        if header.next_offset > end and not header.is_control:  # those are of the quorum's own
            _apply_batch(image, batch, header, path, position, start)
        image.log_end = header.next_offset
        image.time_ms = max(image.time_ms, header.max_timestamp)
        end = max(end, header.next_offset)


def _is_torn(path: str, position: int, offset: int, files: Files) -> bool:
    """Say whether a file ends inside of a batch with this base offset that begins at a position.

    It does not if its checksum fits what is there: then the damage is in the length of the batch.
    """
    with files.open(path) as log:
        rest = log.read(position, log.entry.size_bytes - position)
    head = offset.to_bytes(LENGTH_AT, "big")
    if rest[:LENGTH_AT] != head[: len(rest)]:
        return False
    if len(rest) < LOG_OVERHEAD_BYTES:
        return True
    length = int.from_bytes(rest[LENGTH_AT:LOG_OVERHEAD_BYTES], "big", signed=True)
    is_whole = len(rest) > MAGIC_AT and rest[CRC_AT:CHECKED_AT] == crc32c(
        memoryview(rest)[CHECKED_AT:]
    ).to_bytes(4, "big")
    return length + LOG_OVERHEAD_BYTES > len(rest) and not is_whole


def _apply_batch(
    image: "_Image", batch: Bytes, header: BatchHeader, path: str, position: int, start: int = 0
) -> None:
    for record in decode_records(batch, header, path, position):
        if record.offset >= start:
            image.apply(_decoded(record, path, position))


def _decoded(record: Record, path: str, position: int) -> MetadataRecord | None:
    try:
        return records.decode(record.value)
    except MalformedRecordError as error:
        problem = f"offset {record.offset}: {error}"
        is_newer = isinstance(error, records.UnknownVersionError)
        kind = UnsupportedFormatError if is_newer else CorruptFileError
        raise kind(path, position, problem) from error


@dataclass(slots=True)
class _Image:
    """The state that records change one after the other."""

    names: dict[UUID, str] = field(default_factory=dict)
    ids: dict[str, UUID] = field(default_factory=dict)
    replicas: dict[UUID, dict[int, tuple[int, ...]]] = field(default_factory=dict)
    directories: dict[UUID, dict[int, tuple[UUID, ...]]] = field(default_factory=dict)
    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    brokers: dict[int, tuple[UUID, ...]] = field(default_factory=dict)
    versions: dict[int, int] = field(default_factory=dict)
    transaction: list[MetadataRecord] | None = None  # records that wait for its end
    migration: int = records.NO_MIGRATION
    time_ms: int = -1
    log_end: int = 0  # the offset after the last record in a segment; 0: there is none

    def apply(self, record: MetadataRecord | None) -> None:
        """Take a record in; those of a transaction all at once, when it ends, or never."""
        if isinstance(record, records.BeginTransactionRecord):
            self.transaction = []
        elif isinstance(record, records.AbortTransactionRecord):
            self.transaction = None
        elif isinstance(record, records.EndTransactionRecord):
            waiting, self.transaction = self.transaction or [], None
            for each in waiting:
                self._apply(each)
        elif record is not None and self.transaction is not None:
            self.transaction.append(record)
        elif record is not None:
            self._apply(record)

    def _apply(self, record: MetadataRecord) -> None:
        match record:
            case records.ConfigRecord():
                self._configure(record)
            case records.TopicRecord(name, topic_id):
                self.names[topic_id], self.ids[name] = name, topic_id
                self.replicas[topic_id], self.directories[topic_id] = {}, {}
            case records.RemoveTopicRecord(topic_id):
                self._remove(topic_id)
            case records.PartitionRecord(partition, topic_id, replicas, directories):
                self.replicas.setdefault(topic_id, {})[partition] = replicas
                self.directories.setdefault(topic_id, {})[partition] = directories
            case records.PartitionChangeRecord(partition, topic_id, replicas, directories):
                if replicas is not None:
                    self.replicas.setdefault(topic_id, {})[partition] = replicas
                if directories is not None:
                    self.directories.setdefault(topic_id, {})[partition] = directories
            case records.RegisterBrokerRecord():
                self._register(record)
            case records.BrokerRegistrationChangeRecord(broker_id, log_dirs):
                if log_dirs:
                    self.brokers[broker_id] = log_dirs
            case records.UnregisterBrokerRecord(broker_id):
                self.brokers.pop(broker_id, None)
                self.versions.pop(broker_id, None)
            case records.ZkMigrationStateRecord(state):
                self.migration = state

    def _register(self, record: records.RegisterBrokerRecord) -> None:
        self.brokers[record.broker_id] = record.log_dirs
        self.versions.pop(record.broker_id, None)
        for name, highest in record.features:
            if name == METADATA_VERSION:
                self.versions[record.broker_id] = highest

    def _configure(self, record: records.ConfigRecord) -> None:
        resource = self.configs.setdefault((record.resource_type, record.resource_name), {})
        if record.value is None:
            resource.pop(record.name, None)
        else:
            resource[record.name] = record.value

    def _remove(self, topic_id: UUID) -> None:
        name = self.names.pop(topic_id, None)
        self.replicas.pop(topic_id, None)
        self.directories.pop(topic_id, None)
        if name is not None:
            self.ids.pop(name, None)
            self.configs.pop((TOPIC, name), None)

    def frozen(self, path: str, end_offset: int) -> ClusterMetadata:
        topics = {
            name: TopicImage(
                topic_id, self.replicas.get(topic_id, {}), self.directories.get(topic_id, {})
            )
            for topic_id, name in self.names.items()
        }
        return ClusterMetadata(
            path=path,
            end_offset=end_offset,
            topics=topics,
            topic_configs=self._of_type(TOPIC),
            broker_configs=self._of_type(BROKER),
            broker_log_dirs=self.brokers,
            broker_versions=self.versions,
            unread=None,
            time_ms=self.time_ms,
            is_migrating=self.migration not in (records.NO_MIGRATION, records.POST_MIGRATION),
            is_migrated=self.migration == records.POST_MIGRATION,
        )

    def _of_type(self, resource_type: int) -> dict[str, Mapping[str, str]]:
        return {
            name: values
            for (of_type, name), values in self.configs.items()
            if of_type == resource_type and values
        }
