"""Records of the metadata log of a KRaft cluster (`__cluster_metadata-0`): those that are used.

value of a record: frame version uvarint = 1 | api key uvarint | version uvarint | message

The fields of a message are read by its schema (`message_schemas`); tags that are not known are
skipped. Records of kinds that are not listed here are skipped, whatever their version. A version of
a listed kind that is not known is an error: it might say something else. The versions are those of
Kafka 3.3 to 4.3. Source: Kafka, MetadataRecordSerde, common/metadata/*.json.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from storage.formats.coordinator_records import (
    FRAME_VERSION,
    METADATA_TOPIC,
    Fields,
    MessageFields,
    read_message,
    schemas,
)
from storage.formats.partition_metadata import decode_uuid
from storage.formats.record import MalformedRecordError
from storage.formats.varint import MalformedVarintError

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
    message = MessageFields(value)
    try:
        frame = message.uvarint()
        if frame != FRAME_VERSION:
            raise UnknownVersionError(f"metadata frame of version {frame}, expected 1")
        api_key, version = message.uvarint(), message.uvarint()
        if api_key not in _RECORDS:
            return None
        schema = schemas(METADATA_TOPIC)["value"][api_key]
        if version > schema.newest:
            problem = (
                f"{schema.name} of version {version}: versions up to {schema.newest} are known"
            )
            raise UnknownVersionError(problem)
        return _RECORDS[api_key](read_message(message, schema, version))
    except UnknownVersionError:
        raise
    except (MalformedRecordError, MalformedVarintError) as error:
        raise MalformedRecordError(f"a metadata record: {error}") from error


def _register_broker(fields: Fields) -> RegisterBrokerRecord:
    features = tuple((each["name"], each["maxSupportedVersion"]) for each in fields["features"])
    log_dirs = _ids(fields.get("logDirs"))
    return RegisterBrokerRecord(fields["brokerId"], fields["brokerEpoch"], log_dirs, features)


def _partition(fields: Fields) -> PartitionRecord:
    replicas, directories = tuple(fields["replicas"]), _ids(fields.get("directories"))
    return PartitionRecord(fields["partitionId"], _id(fields["topicId"]), replicas, directories)


def _config(fields: Fields) -> ConfigRecord:
    names = fields["resourceType"], fields["resourceName"], fields["name"]
    return ConfigRecord(*names, fields["value"])


def _partition_change(fields: Fields) -> PartitionChangeRecord:
    replicas, directories = fields.get("replicas"), fields.get("directories")
    return PartitionChangeRecord(
        fields["partitionId"],
        _id(fields["topicId"]),
        None if replicas is None else tuple(replicas),
        None if directories is None else _ids(directories),
    )


def _ids(texts: Sequence[str] | None) -> tuple[UUID, ...]:
    return tuple(map(_id, texts or ()))


def _id(text: str) -> UUID:
    found = decode_uuid(text)
    assert found is not None, "written by encode_uuid"
    return found


_RECORDS: Mapping[int, Callable[[Fields], MetadataRecord]] = {  # by api key
    0: _register_broker,
    1: lambda fields: UnregisterBrokerRecord(fields["brokerId"]),
    2: lambda fields: TopicRecord(fields["name"], _id(fields["topicId"])),
    3: _partition,
    4: _config,
    5: _partition_change,
    9: lambda fields: RemoveTopicRecord(_id(fields["topicId"])),
    17: lambda fields: BrokerRegistrationChangeRecord(
        fields["brokerId"], _ids(fields.get("logDirs"))
    ),
    21: lambda fields: ZkMigrationStateRecord(fields["zkMigrationState"]),
    23: lambda _: BeginTransactionRecord(),
    24: lambda _: EndTransactionRecord(),
    25: lambda _: AbortTransactionRecord(),
}
