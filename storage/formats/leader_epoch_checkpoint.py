"""Leader epochs of a partition (`leader-epoch-checkpoint`): where each began, as text.

    0                   version
    2                   number of entries
    epoch start_offset  one line each, both rising

0 bytes where the log has no batch with an epoch. Source: Kafka, LeaderEpochCheckpointFile; spec
F-13.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from storage.errors import CorruptFileError
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats.checkpoint import decode_lines, encode_lines, entry_integer

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"


class EpochEntry(NamedTuple):
    """A leader epoch and the offset of the first record written in it."""

    epoch: int
    start_offset: int


def decode(data: bytes, path: str) -> list[EpochEntry]:
    """Raise CorruptFileError at the first line that Kafka would not take (F-13.2)."""
    return [_entry(fields, path, position) for position, fields in decode_lines(data, path, 2)]


def _entry(fields: Sequence[str], path: str, position: int) -> EpochEntry:
    epoch, start = fields
    return EpochEntry(
        entry_integer(epoch, 32, path, position), entry_integer(start, 64, path, position)
    )


def encode(entries: Iterable[EpochEntry]) -> bytes:
    """Lay entries out in the order given."""
    return encode_lines([f"{epoch} {start_offset}" for epoch, start_offset in entries])


def check(entries: Iterable[EpochEntry], path: str) -> None:
    """Raise CorruptFileError if epochs or their start offsets do not rise."""
    last = EpochEntry(-1, -1)
    for entry in entries:
        if entry.epoch <= last.epoch or entry.start_offset <= last.start_offset:
            problem = f"epoch {entry.epoch} at offset {entry.start_offset} does not follow "
            problem += f"epoch {last.epoch} at {last.start_offset}"
            raise CorruptFileError(path, 0, problem)
        last = entry


def read(path: str, files: Files = LOCAL) -> list[EpochEntry]:
    """Give the entries of a file; none if it is not there or empty."""
    try:
        data = files.read_bytes(path)
    except FileNotFoundError:
        return []
    return decode(data, path)


def write(path: str, entries: Iterable[EpochEntry], files: Files = LOCAL) -> None:
    """Replace the file in one step."""
    files.replace_file(path, encode(entries))
