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
from struct import Struct
from typing import NamedTuple, TypeVar
from uuid import UUID

from storage.formats.record import MalformedRecordError
from storage.formats.varint import CutVarintError, MalformedVarintError

FRAME_VERSION = 1
_VARINT_BITS = 32
_T = TypeVar("_T")


class RegisterBrokerRecord(NamedTuple):
    broker_id: int
    broker_epoch: int
    log_dirs: tuple[UUID, ...]  # empty: not told (before Kafka 3.7)


class UnregisterBrokerRecord(NamedTuple):
    broker_id: int


class TopicRecord(NamedTuple):
    name: str
    topic_id: UUID


class PartitionRecord(NamedTuple):
    partition: int
    topic_id: UUID
    replicas: tuple[int, ...]  # broker ids
    directories: tuple[UUID, ...]  # one for each replica; empty: not told (before Kafka 3.7)


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
    fields = _Fields(value)
    try:
        frame = fields.uvarint()
        if frame != FRAME_VERSION:
            raise MalformedRecordError(f"metadata frame of version {frame}, expected 1")
        api_key, version = fields.uvarint(), fields.uvarint()
        if api_key not in _KINDS:
            return None
        kind = _KINDS[api_key]
        if version > kind.newest:
            problem = f"{kind.name} of version {version}: versions up to {kind.newest} are known"
            raise MalformedRecordError(problem)
        record = kind.read(fields, version)
    except MalformedVarintError as error:
        raise MalformedRecordError(f"a metadata record: {error}") from error
    fields.require_end()
    return record


class _Fields:
    """The fields of one message, taken from the front."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def uvarint(self) -> int:
        at = self._at
        if at < len(self._data) and self._data[at] < 0x80:  # nearly every one
            self._at = at + 1
            return self._data[at]
        number = 0
        for shift in range(0, _VARINT_BITS, 7):
            byte = self._bytes(1)[0]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number & 0xFFFF_FFFF
        raise MalformedVarintError("an unsigned varint goes on after 5 bytes")

    def number(self, layout: Struct) -> int:
        found: int = layout.unpack(self._bytes(layout.size))[0]
        return found

    def uuid(self) -> UUID:
        return UUID(bytes=self._bytes(16))

    def text(self) -> str:
        found = self.text_or_null()
        if found is None:
            raise MalformedRecordError("a metadata record: null where a string is needed")
        return found

    def text_or_null(self) -> str | None:
        length = self.uvarint()
        if not length:
            return None
        try:
            return self._bytes(length - 1).decode()
        except UnicodeDecodeError as error:
            raise MalformedRecordError("a metadata record: a string is not UTF-8") from error

    def array(self, item: Callable[[], _T]) -> tuple[_T, ...] | None:
        length = self.uvarint()
        if not length:
            return None
        if length - 1 > len(self._data) - self._at:  # no item has less than a byte
            raise MalformedRecordError(f"a metadata record: an array of {length - 1} is cut short")
        return tuple(item() for _ in range(length - 1))

    def numbers(self) -> tuple[int, ...]:
        return self.array(lambda: self.number(_INT32)) or ()

    def tagged(self) -> dict[int, "_Fields"]:
        """All tagged fields, each to be read on its own."""
        return {self.uvarint(): _Fields(self._bytes(self.uvarint())) for _ in range(self.uvarint())}

    def require_end(self) -> None:
        if self._at != len(self._data):
            left = len(self._data) - self._at
            raise MalformedRecordError(f"a metadata record: {left} bytes are left")

    def _bytes(self, count: int) -> bytes:
        found = self._data[self._at : self._at + count]
        if len(found) < count:
            raise CutVarintError(f"{count} bytes expected, {len(found)} left")
        self._at += count
        return found


_INT8, _INT16, _UINT16 = Struct(">b"), Struct(">h"), Struct(">H")
_INT32, _INT64 = Struct(">i"), Struct(">q")


def _register_broker(fields: _Fields, version: int) -> RegisterBrokerRecord:
    broker_id = fields.number(_INT32)
    if version >= 2:
        fields.number(_INT8)  # migrating from ZooKeeper
    fields.uuid()  # incarnation
    epoch = fields.number(_INT64)
    fields.array(lambda: _end_point(fields))
    fields.array(lambda: _feature(fields))
    fields.text_or_null()  # rack
    fields.number(_INT8)  # fenced
    if version >= 1:
        fields.number(_INT8)  # in controlled shutdown
    log_dirs = _uuids(fields.tagged().get(0))  # from version 3 on
    return RegisterBrokerRecord(broker_id, epoch, log_dirs or ())


def _end_point(fields: _Fields) -> None:
    fields.text()  # name
    fields.text()  # host
    fields.number(_UINT16)
    fields.number(_INT16)  # security protocol
    fields.tagged()


def _feature(fields: _Fields) -> None:
    fields.text()
    fields.number(_INT16)
    fields.number(_INT16)
    fields.tagged()


def _unregister_broker(fields: _Fields, _: int) -> UnregisterBrokerRecord:
    broker_id = fields.number(_INT32)
    fields.number(_INT64)  # epoch
    fields.tagged()
    return UnregisterBrokerRecord(broker_id)


def _topic(fields: _Fields, _: int) -> TopicRecord:
    record = TopicRecord(fields.text(), fields.uuid())
    fields.tagged()
    return record


def _partition(fields: _Fields, version: int) -> PartitionRecord:
    partition, topic_id, replicas = fields.number(_INT32), fields.uuid(), fields.numbers()
    for _ in range(3):  # in sync, being removed, being added
        fields.numbers()
    for _ in range(3):  # leader, its epoch, the partition's
        fields.number(_INT32)
    directories = fields.array(fields.uuid) or () if version >= 1 else ()
    fields.tagged()
    return PartitionRecord(partition, topic_id, replicas, directories)


def _config(fields: _Fields, _: int) -> ConfigRecord:
    record = ConfigRecord(fields.number(_INT8), fields.text(), fields.text(), fields.text_or_null())
    fields.tagged()
    return record


def _partition_change(fields: _Fields, version: int) -> PartitionChangeRecord:
    partition, topic_id = fields.number(_INT32), fields.uuid()
    tagged = fields.tagged()
    replicas = tagged.get(2)
    numbers = None if replicas is None else replicas.array(lambda: replicas.number(_INT32))
    directories = _uuids(tagged.get(8)) if version >= 1 else None
    return PartitionChangeRecord(partition, topic_id, numbers, directories)


def _remove_topic(fields: _Fields, _: int) -> RemoveTopicRecord:
    record = RemoveTopicRecord(fields.uuid())
    fields.tagged()
    return record


def _registration_change(fields: _Fields, version: int) -> BrokerRegistrationChangeRecord:
    broker_id = fields.number(_INT32)
    fields.number(_INT64)  # epoch
    tagged = fields.tagged()
    log_dirs = _uuids(tagged.get(2)) if version >= 2 else None
    return BrokerRegistrationChangeRecord(broker_id, log_dirs or ())


def _uuids(fields: _Fields | None) -> tuple[UUID, ...] | None:
    return None if fields is None else fields.array(fields.uuid)


def _begin(fields: _Fields, _: int) -> BeginTransactionRecord:
    fields.tagged()
    return BeginTransactionRecord()


def _end(fields: _Fields, _: int) -> EndTransactionRecord:
    fields.tagged()
    return EndTransactionRecord()


def _abort(fields: _Fields, _: int) -> AbortTransactionRecord:
    fields.tagged()
    return AbortTransactionRecord()


class _Kind(NamedTuple):
    name: str
    newest: int  # version that is known
    read: Callable[[_Fields, int], MetadataRecord]


_KINDS = {  # by api key
    0: _Kind("RegisterBrokerRecord", 4, _register_broker),
    1: _Kind("UnregisterBrokerRecord", 0, _unregister_broker),
    2: _Kind("TopicRecord", 0, _topic),
    3: _Kind("PartitionRecord", 2, _partition),
    4: _Kind("ConfigRecord", 0, _config),
    5: _Kind("PartitionChangeRecord", 2, _partition_change),
    9: _Kind("RemoveTopicRecord", 0, _remove_topic),
    17: _Kind("BrokerRegistrationChangeRecord", 3, _registration_change),
    23: _Kind("BeginTransactionRecord", 0, _begin),
    24: _Kind("EndTransactionRecord", 0, _end),
    25: _Kind("AbortTransactionRecord", 0, _abort),
}
