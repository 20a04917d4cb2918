"""Records of the metadata log of a KRaft cluster (`__cluster_metadata-0`): those that are used.

value of a record: frame version uvarint = 1 | api key uvarint | version uvarint | message

A message is its fields one after the other, then the tagged fields: count uvarint | each: tag
uvarint, size uvarint, bytes. Strings and arrays begin with their length plus one as uvarint, 0 is
null; a UUID is 16 bytes; integers are big endian. Tags that are not known are skipped.

Records of kinds that are not listed here are skipped, whatever their version. A version of a listed
kind that is not known is an error: it might say something else. The versions are those of Kafka
3.3 to 4.3. Source: Kafka, MetadataRecordSerde, common/metadata/*.json.
"""

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from storage.formats.message_fields import INT8, INT16, INT32, INT64, UINT16, MessageFields
from storage.formats.record import MalformedRecordError
from storage.formats.varint import MalformedVarintError

FRAME_VERSION = 1
# of ZkMigrationStateRecord; 1 and 2 changed places in Kafka 3.5: before the migration, and in it
NO_MIGRATION, POST_MIGRATION = 0, 3


class UnknownVersionError(MalformedRecordError):
    """A record of a version that a later Kafka wrote, which may say what it says nowhere else."""


class RegisterBrokerRecord(NamedTuple):
    broker_id: int
    broker_epoch: int
    log_dirs: tuple[UUID, ...]  # empty: unknown (before Kafka 3.7)
    features: tuple[tuple[str, int], ...] = ()  # name, and the highest level that is supported


class UnregisterBrokerRecord(NamedTuple):
    broker_id: int


class TopicRecord(NamedTuple):
    name: str
    topic_id: UUID


class PartitionRecord(NamedTuple):
    partition: int
    topic_id: UUID
    replicas: tuple[int, ...]  # broker ids
    directories: tuple[UUID, ...]  # one for each replica; empty: unknown (before Kafka 3.7)


class ConfigRecord(NamedTuple):
    resource_type: int
    resource_name: str
    name: str
    value: str | None  # None: no longer set


class PartitionChangeRecord(NamedTuple):
    partition: int
    topic_id: UUID
    replicas: tuple[int, ...] | None  # None: as before
    directories: tuple[UUID, ...] | None


class RemoveTopicRecord(NamedTuple):
    topic_id: UUID


class BrokerRegistrationChangeRecord(NamedTuple):
    broker_id: int
    log_dirs: tuple[UUID, ...]  # empty: as before


class ZkMigrationStateRecord(NamedTuple):
    state: int


class BeginTransactionRecord(NamedTuple):
    pass


class EndTransactionRecord(NamedTuple):
    pass


class AbortTransactionRecord(NamedTuple):
    pass


MetadataRecord = (
    RegisterBrokerRecord
    | UnregisterBrokerRecord
    | TopicRecord
    | PartitionRecord
    | ConfigRecord
    | PartitionChangeRecord
    | RemoveTopicRecord
    | BrokerRegistrationChangeRecord
    | ZkMigrationStateRecord
    | BeginTransactionRecord
    | EndTransactionRecord
    | AbortTransactionRecord
)


def decode(value: bytes | None) -> MetadataRecord | None:
    """Return what the value of a data record of the metadata log says; None for another kind.

    Raise MalformedRecordError where it breaks its format or its version is not known.
    """
    if value is None:
        raise MalformedRecordError("a metadata record without a value")
    fields = MessageFields(value, "a metadata record")
    try:
        frame = fields.uvarint()
        if frame != FRAME_VERSION:
            raise UnknownVersionError(f"metadata frame of version {frame}, expected 1")
        api_key, version = fields.uvarint(), fields.uvarint()
        if api_key not in _KINDS:
            return None
        kind = _KINDS[api_key]
        if version > kind.newest:
            problem = f"{kind.name} of version {version}: versions up to {kind.newest} are known"
            raise UnknownVersionError(problem)
        record = kind.read(fields, version)
    except MalformedVarintError as error:
        raise MalformedRecordError(f"a metadata record: {error}") from error
    fields.require_end()
    return record


def _register_broker(fields: MessageFields, version: int) -> RegisterBrokerRecord:
    broker_id = fields.number(INT32)
    if version >= 2:
        fields.number(INT8)  # migrating from ZooKeeper
    fields.uuid()  # incarnation
    epoch = fields.number(INT64)
    fields.array(lambda: _end_point(fields))
    features = fields.array(lambda: _feature(fields)) or ()
    fields.text_or_null()  # rack
    fields.number(INT8)  # fenced
    if version >= 1:
        fields.number(INT8)  # in controlled shutdown
    log_dirs = _uuids(fields.tagged().get(0))  # from version 3 on
    return RegisterBrokerRecord(broker_id, epoch, log_dirs or (), features)


def _end_point(fields: MessageFields) -> None:
    fields.text()  # name
    fields.text()  # host
    fields.number(UINT16)
    fields.number(INT16)  # security protocol
    fields.tagged()


def _feature(fields: MessageFields) -> tuple[str, int]:
    name, _, highest = fields.text(), fields.number(INT16), fields.number(INT16)
    fields.tagged()
    return name, highest


def _unregister_broker(fields: MessageFields, _: int) -> UnregisterBrokerRecord:
    broker_id = fields.number(INT32)
    fields.number(INT64)  # epoch
    fields.tagged()
    return UnregisterBrokerRecord(broker_id)


def _topic(fields: MessageFields, _: int) -> TopicRecord:
    record = TopicRecord(fields.text(), fields.uuid())
    fields.tagged()
    return record


def _partition(fields: MessageFields, version: int) -> PartitionRecord:
    partition, topic_id, replicas = fields.number(INT32), fields.uuid(), fields.numbers()
    for _ in range(3):  # in sync, being removed, being added
        fields.numbers()
    for _ in range(3):  # leader, its epoch, the partition's
        fields.number(INT32)
    directories = fields.array(fields.uuid) or () if version >= 1 else ()
    fields.tagged()
    return PartitionRecord(partition, topic_id, replicas, directories)


def _config(fields: MessageFields, _: int) -> ConfigRecord:
    record = ConfigRecord(fields.number(INT8), fields.text(), fields.text(), fields.text_or_null())
    fields.tagged()
    return record


def _partition_change(fields: MessageFields, version: int) -> PartitionChangeRecord:
    partition, topic_id = fields.number(INT32), fields.uuid()
    tagged = fields.tagged()
    replicas = tagged.get(2)
    numbers = None if replicas is None else replicas.array(lambda: replicas.number(INT32))
    directories = _uuids(tagged.get(8)) if version >= 1 else None
    return PartitionChangeRecord(partition, topic_id, numbers, directories)


def _remove_topic(fields: MessageFields, _: int) -> RemoveTopicRecord:
    record = RemoveTopicRecord(fields.uuid())
    fields.tagged()
    return record


def _registration_change(fields: MessageFields, version: int) -> BrokerRegistrationChangeRecord:
    broker_id = fields.number(INT32)
    fields.number(INT64)  # epoch
    tagged = fields.tagged()
    log_dirs = _uuids(tagged.get(2)) if version >= 2 else None
    return BrokerRegistrationChangeRecord(broker_id, log_dirs or ())


def _uuids(fields: MessageFields | None) -> tuple[UUID, ...] | None:
    return None if fields is None else fields.array(fields.uuid)


def _zk_migration(fields: MessageFields, _: int) -> ZkMigrationStateRecord:
    record = ZkMigrationStateRecord(fields.number(INT8))
    fields.tagged()
    return record


def _begin(fields: MessageFields, _: int) -> BeginTransactionRecord:
    fields.tagged()
    return BeginTransactionRecord()


def _end(fields: MessageFields, _: int) -> EndTransactionRecord:
    fields.tagged()
    return EndTransactionRecord()


def _abort(fields: MessageFields, _: int) -> AbortTransactionRecord:
    fields.tagged()
    return AbortTransactionRecord()


class _Kind(NamedTuple):
    name: str
    newest: int  # version that is known
    read: Callable[[MessageFields, int], MetadataRecord]


_KINDS = {  # by api key
    0: _Kind("RegisterBrokerRecord", 4, _register_broker),
    1: _Kind("UnregisterBrokerRecord", 0, _unregister_broker),
    2: _Kind("TopicRecord", 0, _topic),
    3: _Kind("PartitionRecord", 2, _partition),
    4: _Kind("ConfigRecord", 0, _config),
    5: _Kind("PartitionChangeRecord", 2, _partition_change),
    9: _Kind("RemoveTopicRecord", 0, _remove_topic),
    17: _Kind("BrokerRegistrationChangeRecord", 3, _registration_change),
    21: _Kind("ZkMigrationStateRecord", 0, _zk_migration),
    23: _Kind("BeginTransactionRecord", 0, _begin),
    24: _Kind("EndTransactionRecord", 0, _end),
    25: _Kind("AbortTransactionRecord", 0, _abort),
}
