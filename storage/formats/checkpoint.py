"""Offset checkpoints of a log directory: one offset for each topic partition, as text.

    0                       version
    2                       number of entries
    topic partition offset  one line each

Source: Kafka, CheckpointFile, OffsetCheckpointFile; spec F-13.1 to F-13.4. A malformed
one takes the whole log directory offline, so the reader is as strict as Kafka's.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from storage.errors import CorruptFileError, UnsupportedFormatError, shown
from storage.files.files import Files
from storage.files.local import LOCAL

TopicPartition = tuple[str, int]

CLEANER_OFFSET = "cleaner-offset-checkpoint"  # first dirty offset
RECOVERY_POINT = "recovery-point-offset-checkpoint"  # everything below is on disk
LOG_START = "log-start-offset-checkpoint"  # where it is past the first segment's base
REPLICATION = "replication-offset-checkpoint"  # high watermark
ALL = CLEANER_OFFSET, LOG_START, RECOVERY_POINT, REPLICATION

VERSION = 0

_INTEGER = re.compile(r"[+-]?0*[0-9]{1,19}", re.ASCII)
_LINE_END = re.compile(rb"\r\n|\r|\n")
_WHITE_SPACE = re.compile(r"[ \t\x0b\f]+")


class NotANumberError(CorruptFileError):
    """A field of an entry is no integer: to Kafka the file is not malformed (F-13.2)."""


class CheckpointLine(NamedTuple):
    """An entry, split into its fields, and where it starts in the file."""

    position: int
    fields: tuple[str, ...]


def read(path: str, files: Files = LOCAL) -> dict[TopicPartition, int]:
    """Give the entries of a checkpoint file; none for a file that is not there or is empty."""
    try:
        data = files.read_bytes(path)
    except FileNotFoundError:
        return {}
    return decode(data, path)


def write(path: str, entries: Mapping[TopicPartition, int], files: Files = LOCAL) -> None:
    """Replace the file in one step (F-13.3): a crash leaves the old entries or the new."""
    files.replace_file(path, encode(entries))


def decode(data: bytes, path: str) -> dict[TopicPartition, int]:
    """Raise CorruptFileError at the first line that Kafka would not take (F-13.2)."""
    entries = {}  # the later of two lines for one partition counts
    for position, (topic, partition, offset) in decode_lines(data, path, 3):
        key = topic, entry_integer(partition, 32, path, position)
        entries[key] = entry_integer(offset, 64, path, position)
    return entries


def encode(entries: Mapping[TopicPartition, int]) -> bytes:
    """Lay the entries out by topic, then partition; Kafka's own order is that of a hash map."""
    return encode_lines(
        [f"{topic} {part} {offset}" for (topic, part), offset in sorted(entries.items())]
    )


def decode_lines(data: bytes, path: str, field_count: int) -> Iterator[CheckpointLine]:
    """Split what all checkpoint files have in common: version, count, lines of fields.

    A caller that reads the numbers of each line before the next one meets errors in Kafka's order.
    """
    lines = _split_lines(data, path)
    if not lines:
        return
    version = integer(lines[0][1], 32, path, 0)
    if version != VERSION:
        raise UnsupportedFormatError(path, 0, f"checkpoint version {version}, expected {VERSION}")
    if len(lines) == 1:
        return
    count_position, count_text = lines[1]
    count = integer(count_text, 32, path, count_position)
    for position, line in lines[2:]:
        fields = tuple(_WHITE_SPACE.split(line.rstrip(" \t\x0b\f")))
        if len(fields) != field_count:
            problem = f"line {shown(line)}: {field_count} fields expected, found {len(fields)}"
            raise CorruptFileError(path, position, problem)
        yield CheckpointLine(position, fields)
    if len(lines) - 2 != count:
        problem = f"the count says {count}, and lines with entries: {len(lines) - 2}"
        raise CorruptFileError(path, count_position, problem)


def encode_lines(entries: list[str]) -> bytes:
    """Put version and count before the entries."""
    return "".join(f"{line}\n" for line in (VERSION, len(entries), *entries)).encode()


def integer(text: str, bits: int, path: str, position: int) -> int:
    """Read a signed integer of so many bits as Kafka does; CorruptFileError where it would not."""
    value = int(text) if _INTEGER.fullmatch(text) else None
    if value is None or not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise CorruptFileError(path, position, f"{shown(text)} is not a {bits}-bit integer")
    return value


def entry_integer(text: str, bits: int, path: str, position: int) -> int:
    """Read a number of an entry; NotANumberError where Kafka would not."""
    try:
        return integer(text, bits, path, position)
    except CorruptFileError as error:
        raise NotANumberError(path, position, error.problem) from error


def _split_lines(data: bytes, path: str) -> list[tuple[int, str]]:
    """Give the lines and where each starts; a last line need not be ended."""
    lines = []
    start = 0
    while start < len(data):
        end = _LINE_END.search(data, start)
        line = data[start : end.start() if end else len(data)]
        try:
            lines.append((start, line.decode()))
        except UnicodeDecodeError as error:
            raise CorruptFileError(path, start + error.start, "not UTF-8") from error
        start = end.end() if end else len(data)
    return lines
