"""Identity of a log directory (`meta.properties`), a Java properties file.

Version 0: optional broker.id and cluster.id. Version 1 (KRaft): cluster.id and node.id. Either may
have directory.id. Source: Kafka, MetaProperties, java.util.Properties; spec F-15.3.
"""

import os
from typing import NamedTuple

from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats import java_text
from storage.formats.checkpoint import integer

META_PROPERTIES = "meta.properties"
VERSIONS = (0, 1)
_TRIMMED = "".join(map(chr, range(33)))  # what Java's String.trim takes away


class MetaProperties(NamedTuple):
    """Which cluster, broker and disk a log directory belongs to."""

    version: int
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None


def decode(data: bytes, path: str) -> MetaProperties:
    """Raise CorruptFileError where a required property is missing or is no number."""
    values = java_text.decode_properties(data, path)
    version = integer(values.get("version", "0").strip(_TRIMMED), 32, path, 0)
    if version not in VERSIONS:
        raise UnsupportedFormatError(path, 0, f"version {version}, expected one of {VERSIONS}")
    node_key = "broker.id" if version == 0 else "node.id"
    required = () if version == 0 else ("cluster.id", "node.id")
    for key in required:
        if key not in values:
            raise CorruptFileError(path, len(data), f"no {key}, which version {version} must have")
    node_id = integer(values[node_key], 32, path, 0) if node_key in values else None
    return MetaProperties(version, values.get("cluster.id"), node_id, values.get("directory.id"))


def encode(properties: MetaProperties) -> bytes:
    """Lay the properties out, those that are None left out."""
    node_key = "broker.id" if properties.version == 0 else "node.id"
    values = {
        "version": properties.version,
        node_key: properties.node_id,
        "cluster.id": properties.cluster_id,
        "directory.id": properties.directory_id,
    }
    lines = [
        f"{key}={java_text.escape_property(str(value))}\n"
        for key, value in values.items()
        if value is not None
    ]
    return "".join(lines).encode("ascii")


def read(log_dir: str, files: Files = LOCAL) -> MetaProperties:
    """Read the file of a log directory; FileNotFoundError if it has none."""
    path = os.path.join(log_dir, META_PROPERTIES)
    return decode(files.read_bytes(path), path)


def write(log_dir: str, properties: MetaProperties, files: Files = LOCAL) -> None:
    """Replace the file of a log directory in one step."""
    files.replace_file(os.path.join(log_dir, META_PROPERTIES), encode(properties))
