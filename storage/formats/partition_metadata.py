"""Topic id of a partition (`partition.metadata`).

    version: 0
    topic_id: <16 bytes in URL-safe base64, unpadded>

No newline at the end. A KRaft broker takes a partition without it for a stray one. Source: Kafka,
PartitionMetadata, PartitionMetadataReadBuffer; spec F-13.5.
"""

import base64
import binascii
import os
import re
from typing import NamedTuple
from uuid import UUID

from storage.errors import CorruptFileError, shown
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats.checkpoint import integer

PARTITION_METADATA = "partition.metadata"
VERSION = 0

_SEPARATOR = re.compile(r":\s+", re.ASCII)
_TOPIC_ID_CHARACTERS = 22
_ZERO = UUID(int=0)


class PartitionMetadata(NamedTuple):
    """Version of the file and id of the topic."""

    version: int
    topic_id: UUID


def decode(data: bytes, path: str) -> PartitionMetadata:
    """Raise CorruptFileError where Kafka would not read a version and a topic id."""
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError as error:
        raise CorruptFileError(path, error.start, "not UTF-8") from error
    if len(lines) < 2:
        raise CorruptFileError(
            path, len(data), f"expected a line each with version and topic_id, found {len(lines)}"
        )
    topic_id_position = len(lines[0].encode()) + 1
    version = integer(_value(lines[0], path, 0), 32, path, 0)
    if version < 0:
        raise CorruptFileError(path, 0, f"version {version} is negative")
    topic_id = decode_uuid(_value(lines[1], path, topic_id_position))
    if topic_id is None or topic_id == _ZERO:
        raise CorruptFileError(path, topic_id_position, f"{shown(lines[1])} names no topic id")
    return PartitionMetadata(version, topic_id)


def encode(metadata: PartitionMetadata) -> bytes:
    """Lay the file out as Kafka writes it."""
    topic_id = encode_uuid(metadata.topic_id)
    return f"version: {metadata.version}\ntopic_id: {topic_id}".encode()


def encode_uuid(value: UUID) -> str:
    """Give a UUID in the text form that Kafka uses everywhere."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode("ascii")


def decode_uuid(text: str) -> UUID | None:
    """Give the UUID of its text form; None if the text is not one."""
    if len(text) != _TOPIC_ID_CHARACTERS:
        return None
    try:
        return UUID(bytes=base64.b64decode(f"{text}==", altchars=b"-_", validate=True))
    except (ValueError, binascii.Error):
        return None


def read(path: str, files: Files = LOCAL) -> PartitionMetadata:
    """Read the file; FileNotFoundError if it is not there."""
    return decode(files.read_bytes(path), path)


def topic_id_of(partition_dir: str, files: Files = LOCAL) -> str | None:
    """Give the id of the topic in Kafka's text form; None where an older broker wrote none."""
    try:
        return encode_uuid(read(os.path.join(partition_dir, PARTITION_METADATA), files).topic_id)
    except FileNotFoundError:
        return None


def write(path: str, metadata: PartitionMetadata, files: Files = LOCAL) -> None:
    """Replace the file in one step."""
    files.replace_file(path, encode(metadata))


def _value(line: str, path: str, position: int) -> str:
    parts = _SEPARATOR.split(line)
    if len(parts) != 2:
        raise CorruptFileError(path, position, f"{shown(line)} is not `name: value`")
    return parts[1]
