"""Records of `__consumer_offsets`, `__transaction_state` and the metadata log: what they say.

    key    type of the record int16 | fields
    value  version int16 | fields

A record of the metadata log has no key: `metadata_records` says how its value begins. Integers are
big endian, and a UUID is 16 bytes. A flexible version begins strings and arrays with their length
plus one as uvarint, where 0 is null, and ends with tagged fields: count uvarint | each: tag
uvarint, size uvarint, bytes.

An unknown type or version is no error: the result says so, and the bytes stay bytes. Fields have
the names that Kafka's own JSON has for them. Source: Kafka, CoordinatorRecordSerde,
GroupCoordinatorRecordSerde, TransactionLog, ByteBufferAccessor.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from struct import Struct
from typing import Any, NamedTuple
from uuid import UUID

from storage.formats.message_schemas import (
    CONTROL_OF_QUORUM,
    GROUP_COORDINATOR,
    METADATA,
    TRANSACTION_COORDINATOR,
)
from storage.formats.partition_metadata import encode_uuid
from storage.formats.record import MalformedRecordError
from storage.formats.varint import CutVarintError, MalformedVarintError

CONSUMER_OFFSETS, TRANSACTION_STATE = "__consumer_offsets", "__transaction_state"
METADATA_TOPIC = "__cluster_metadata"
FRAME_VERSION = 1  # of a record of the metadata log
_CONTROL = ""  # is in no topic of this name
_TEXTS = {
    CONSUMER_OFFSETS: GROUP_COORDINATOR,
    TRANSACTION_STATE: TRANSACTION_COORDINATOR,
    METADATA_TOPIC: METADATA,
    _CONTROL: CONTROL_OF_QUORUM,
}
INT8, INT16, UINT16 = Struct(">b"), Struct(">h"), Struct(">H")
INT32, INT64, _FLOAT64 = Struct(">i"), Struct(">q"), Struct(">d")
_VARINT_BITS = 32
_NUMBERS = {"int8": INT8, "int16": INT16, "int32": INT32, "int64": INT64, "uint16": UINT16}
_EVERY = 1 << 15  # more than any version

Fields = dict[str, Any]  # by name: numbers, text, bytes, lists, and Fields again


class MessageFields:
    """The fields of one message, taken from the front."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def uvarint(self) -> int:
        data, at = self._data, self._at
        if at < len(data) and data[at] < 0x80:  # nearly every one
            self._at = at + 1
            return data[at]
        number = 0
        for shift in range(0, _VARINT_BITS, 7):
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number & 0xFFFF_FFFF
        raise MalformedVarintError("an unsigned varint goes on after 5 bytes")

    def number(self, layout: Struct) -> int:
        found: int = layout.unpack(self.take(layout.size))[0]
        return found

    def uuid(self) -> UUID:
        return UUID(bytes=self.take(16))

    def plausible(self, count: int) -> int:
        """The number of items of an array: no item has less than a byte."""
        if count > len(self._data) - self._at:
            raise MalformedRecordError(f"an array of {count} is cut short")
        return count

    def tagged(self) -> dict[int, "MessageFields"]:
        """All tagged fields, each to be read on its own."""
        count = self.uvarint()
        if not count:  # as a rule
            return {}
        return {self.uvarint(): MessageFields(self.take(self.uvarint())) for _ in range(count)}

    def require_end(self) -> None:
        if self._at != len(self._data):
            left = len(self._data) - self._at
            raise MalformedRecordError(f"{left} bytes are left")

    def take(self, count: int) -> bytes:
        at = self._at
        found = self._data[at : at + count]
        if len(found) < count:
            raise CutVarintError(f"{count} bytes expected, {len(found)} left")
        self._at = at + count
        return found


class Decoded(NamedTuple):
    """A key or a value, as far as it is known."""

    name: str | None  # of the type of record; None: it is not known
    version: int  # of a key: the type of the record
    fields: Fields | None  # None: problem says why not
    problem: str | None


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    type: str  # of an array: of its items
    is_array: bool
    first: int  # version that has it
    last: int
    is_nullable: bool
    tag: int | None
    fields: tuple["_Field", ...]  # of a struct


class MessageSchema(NamedTuple):
    name: str
    newest: int
    flexible_from: int
    fields: tuple[_Field, ...]


def decode_key(topic: str, key: bytes) -> Decoded:
    """What the key of a record says. topic: CONSUMER_OFFSETS or TRANSACTION_STATE."""
    return _decoded(key, schemas(topic)["key"], None)


def decode_value(topic: str, key: bytes, value: bytes) -> Decoded:
    """What its value says, which is that of its key's type."""
    record_type = int.from_bytes(key[:2], "big", signed=True) if len(key) >= 2 else -1
    return _decoded(value, schemas(topic)["value"], record_type)


def decode_metadata(value: bytes) -> tuple[int | None, Decoded]:
    """The type of a record of the metadata log, and what its value says."""
    message = MessageFields(value)
    try:
        frame, record_type, version = (message.uvarint() for _ in range(3))
    except (MalformedRecordError, MalformedVarintError):
        return None, Decoded(None, -1, None, "is too short for a type and a version")
    if frame != FRAME_VERSION:
        return None, Decoded(None, -1, None, f"frame of version {frame} is not known")
    schema = schemas(METADATA_TOPIC)["value"].get(record_type)
    if schema is None:
        problem = f"type {record_type} is not known"
        return record_type, Decoded(None, version, None, problem)
    return record_type, _message(message, schema, version)


def decode_control(control_type: int, value: bytes) -> Decoded:
    """What the value of a control record of the metadata log or a snapshot of it says."""
    return _decoded(value, schemas(_CONTROL)["value"], control_type)


def _decoded(data: bytes, schemas: Mapping[int, MessageSchema], record_type: int | None) -> Decoded:
    """record_type: of a value; None: data is a key, which begins with it."""
    if len(data) < INT16.size:
        return Decoded(None, -1, None, "is too short for a version")
    message = MessageFields(data)
    version = message.number(INT16)
    schema = schemas.get(version if record_type is None else record_type)
    if schema is None:
        what = "the type of its record" if record_type is not None else f"type {version}"
        return Decoded(None, version, None, f"{what} is not known")
    if record_type is None:
        return _message(message, schema, 0)._replace(version=version)
    return _message(message, schema, version)


def _message(message: MessageFields, schema: MessageSchema, version: int) -> Decoded:
    if not 0 <= version <= schema.newest:
        problem = f"version {version} is not known: versions up to {schema.newest} are"
        return Decoded(schema.name, version, None, problem)
    try:
        fields = read_message(message, schema, version)
    except (MalformedRecordError, MalformedVarintError) as error:
        return Decoded(schema.name, version, None, f"does not parse: {error}")
    return Decoded(schema.name, version, fields, None)


def read_message(message: MessageFields, schema: MessageSchema, version: int) -> Fields:
    """Read all fields of a message, of a version up to the newest one of its schema.

    Raise MalformedRecordError or MalformedVarintError where the bytes are no such message.
    """
    fields = _read(message, schema.fields, _Version(version, version >= schema.flexible_from))
    message.require_end()
    return fields


class _Version(NamedTuple):
    number: int
    is_flexible: bool


def _read(message: MessageFields, schema: tuple[_Field, ...], version: _Version) -> Fields:
    held = [field for field in schema if field.first <= version.number <= field.last]
    found = {field.name: _value(message, field, version) for field in held if field.tag is None}
    if version.is_flexible:
        tagged = message.tagged()
        for field in held:
            if field.tag in tagged:
                assert field.tag is not None
                found[field.name] = _value(tagged[field.tag], field, version)
    return found


def _value(message: MessageFields, field: _Field, version: _Version) -> Any:
    found: Any = None
    if not field.is_array:
        found = _item(message, field, version, field.is_nullable)
    elif (count := _length(message, INT32, version)) >= 0:
        found = [_item(message, field, version, False) for _ in range(message.plausible(count))]
    if found is None and not field.is_nullable:
        kind = "an array" if field.is_array else f"a {field.type}"
        raise MalformedRecordError(f"null where {kind} is needed")
    return found


def _item(message: MessageFields, field: _Field, version: _Version, is_nullable: bool) -> Any:
    if field.type in _NUMBERS:
        return message.number(_NUMBERS[field.type])
    return _READERS[field.type](message, field, version, is_nullable)


def _struct(message: MessageFields, field: _Field, version: _Version, is_nullable: bool) -> Any:
    if is_nullable and message.number(INT8) < 0:
        return None
    return _read(message, field.fields, version)


def _text(message: MessageFields, _: _Field, version: _Version, __: bool) -> Any:
    length = _length(message, INT16, version)
    if length < 0:
        return None
    try:
        return message.take(length).decode()
    except UnicodeDecodeError as error:
        raise MalformedRecordError("a string is not UTF-8") from error


def _bytes(message: MessageFields, _: _Field, version: _Version, __: bool) -> Any:
    length = _length(message, INT32, version)
    return None if length < 0 else message.take(length)


def _uuid(message: MessageFields, *_: object) -> Any:
    return encode_uuid(message.uuid())


def _length(message: MessageFields, layout: Any, version: _Version) -> int:
    """Read the length of a string, of bytes or of an array; below zero: null."""
    return message.uvarint() - 1 if version.is_flexible else message.number(layout)


def _bool(message: MessageFields, *_: object) -> Any:
    return message.number(INT8) != 0


def _float(message: MessageFields, *_: object) -> Any:
    return message.number(_FLOAT64)


_READERS: dict[str, Callable[[MessageFields, _Field, _Version, bool], Any]] = {
    "struct": _struct,
    "string": _text,
    "bytes": _bytes,
    "uuid": _uuid,
    "bool": _bool,
    "float64": _float,
}


@cache
def schemas(topic: str) -> dict[str, dict[int, MessageSchema]]:
    """Return the schemas of keys and values, by type of record."""
    lines = _TEXTS[topic].strip().splitlines()
    found: dict[str, dict[int, MessageSchema]] = {"key": {}, "value": {}}
    while lines:
        kind, record_type, name, newest, *flexible = lines.pop(0).split()
        flexible_from = int(flexible[1]) if flexible else _EVERY
        schema = MessageSchema(name, int(newest), flexible_from, _fields(lines, 1))
        found[kind][int(record_type)] = schema
    return found


def _fields(lines: list[str], indent: int) -> tuple[_Field, ...]:
    """Take away the lines that are indented so far, and what stands below them."""
    found = []
    while lines and len(lines[0]) - len(lines[0].lstrip()) == indent:
        name, type_, *words = lines.pop(0).split()
        first, last = 0, _EVERY
        if words and words[0][0].isdigit():
            versions = words.pop(0)
            first = int(versions.rstrip("+"))
            last = _EVERY if versions.endswith("+") else first
        found.append(
            _Field(
                name=name,
                type=type_.removeprefix("[]"),
                is_array=type_.startswith("[]"),
                first=first,
                last=last,
                is_nullable="nullable" in words,
                tag=int(words[-1]) if "tag" in words else None,
                fields=_fields(lines, indent + 1),
            )
        )
    return tuple(found)
