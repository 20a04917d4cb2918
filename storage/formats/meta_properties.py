"""Identity of a log directory (`meta.properties`), a Java properties file.

Version 0: optional broker.id and cluster.id. Version 1 (KRaft): cluster.id and node.id. Either may
have directory.id. Source: Kafka, MetaProperties, java.util.Properties; spec F-15.3.
"""

import os
import re
from typing import NamedTuple

from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats.checkpoint import integer

META_PROPERTIES = "meta.properties"
VERSIONS = (0, 1)

_LINE_END = re.compile(r"\r\n|\r|\n")
_KEY = re.compile(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*[=:]?[ \t\f]*", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_NAMED_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_TO_ESCAPE = re.compile(r"[\\=:#! \t\n\r\f]|[^\x20-\x7e]")


class MetaProperties(NamedTuple):
    """Which cluster, broker and disk a log directory belongs to."""

    version: int
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None


def decode(data: bytes, path: str) -> MetaProperties:
    """Raise CorruptFileError where a required property is missing or is no number."""
    values = _properties(data, path)
    version = integer(values.get("version", "0"), 32, path, 0)
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
        f"{key}={_TO_ESCAPE.sub(_escaped, str(value))}\n"
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


def _properties(data: bytes, path: str) -> dict[str, str]:
    values = {}
    for line in _logical_lines(data.decode("latin-1")):
        key = _KEY.match(line)
        assert key is not None, "matches the empty string too"
        value = line[key.end() :]
        values[_unescaped(key[1], path)] = _unescaped(value, path)
    return values


def _logical_lines(text: str) -> list[str]:
    """Join lines that end in a lone backslash with the next; leave out comments and blank lines."""
    lines: list[str] = []
    continued = False
    for natural in _LINE_END.split(text):
        line = natural.lstrip(" \t\f")
        if not continued and (not line or line[0] in "#!"):
            continue
        if continued:
            lines[-1] += line
        else:
            lines.append(line)
        backslashes = len(line) - len(line.rstrip("\\"))
        continued = backslashes % 2 == 1
        if continued:
            lines[-1] = lines[-1][:-1]
    return lines


def _unescaped(text: str, path: str) -> str:
    def meaning(escape: re.Match[str]) -> str:
        code = escape[1]
        if len(code) == 5:
            return chr(int(code[1:], 16))
        if code == "u":
            raise CorruptFileError(path, 0, f"malformed \\u escape in {text!r}")
        return _NAMED_ESCAPES.get(code, code)

    return _ESCAPE.sub(meaning, text)


def _escaped(character: re.Match[str]) -> str:
    code = ord(character[0])
    if 0x20 <= code <= 0x7E:
        return f"\\{character[0]}"
    units = character[0].encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex().upper()}" for at in range(0, len(units), 2))
