"""Producer snapshot (`<offset>.snapshot`): the active producers as of all records below an offset.

    0   version int16, 1
    2   CRC-32C uint32 of all bytes from 6
    6   number of entries int32
    10  entries of 46 bytes, in any order

Big-endian. Source: Kafka, ProducerStateManager.writeSnapshot; spec F-14.1, F-14.2.
"""

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.files.files import Files
from storage.files.local import LOCAL

VERSION = 1
HEADER = Struct(">hIi")  # version, CRC, number of entries
ENTRY = Struct(">qhiqiqiq")  # the fields of ProducerEntry
CHECKED_POSITION = 6
EXPIRATION_MS = 86_400_000  # of a producer, since its last write: a broker's default
_NONE = -1
assert HEADER.size == 10
assert ENTRY.size == 46


class ProducerEntry(NamedTuple):
    """What the log knows of a producer: its last batch, its last marker, its open transaction."""

    producer_id: int
    producer_epoch: int
    last_sequence: int | None  # of the last data batch in this epoch
    last_offset: int | None  # of the last data batch in this epoch
    offset_delta: int  # from the first offset of that batch to its last
    timestamp: int  # ms, of the last write, data or marker; -1: it had none
    coordinator_epoch: int | None  # of the last marker
    current_txn_first_offset: int | None  # None: no transaction is open


def decode(data: bytes, path: str) -> list[ProducerEntry]:
    """Raise CorruptFileError on any damage, UnsupportedFormatError for another version."""
    if len(data) < HEADER.size:
        raise CorruptFileError(path, 0, f"header has {len(data)} of {HEADER.size} bytes")
    version, crc, count = HEADER.unpack_from(data)
    if version != VERSION:
        raise UnsupportedFormatError(path, 0, f"snapshot version {version}, expected {VERSION}")
    computed = crc32c(memoryview(data)[CHECKED_POSITION:])
    if crc != computed:
        raise CorruptFileError(path, 2, f"CRC {crc:#010x}, but the bytes have {computed:#010x}")
    if count < 0 or HEADER.size + count * ENTRY.size != len(data):
        problem = f"a count of {count} for entries of {ENTRY.size} bytes in a file of {len(data)}"
        raise CorruptFileError(path, CHECKED_POSITION, problem)
    return [_from_disk(fields) for fields in ENTRY.iter_unpack(memoryview(data)[HEADER.size :])]


def encode(entries: Iterable[ProducerEntry]) -> bytes:
    """Lay entries out in the order given; Kafka's own is that of a hash map."""
    packed = [ENTRY.pack(*(_NONE if field is None else field for field in e)) for e in entries]
    checked = len(packed).to_bytes(4, "big") + b"".join(packed)
    return HEADER.pack(VERSION, crc32c(checked), len(packed)) + checked[4:]


def kept_on_loading(offsets: Sequence[int], base_offsets: Iterable[int]) -> list[int]:
    """Leave out what Kafka deletes on loading (F-14.4): snapshots at no segment's base offset.

    But the newest of those stays if it is not below the last segment.
    """
    bases = set(base_offsets)
    newest_elsewhere = max((offset for offset in offsets if offset not in bases), default=-1)
    last_base = max(bases, default=-1)
    return [
        offset
        for offset in offsets
        if offset in bases or (offset == newest_elsewhere and offset >= last_base)
    ]


def read(path: str, files: Files = LOCAL) -> list[ProducerEntry]:
    """Read and decode a snapshot file."""
    return decode(files.read_bytes(path), path)


def write(path: str, entries: Iterable[ProducerEntry], files: Files = LOCAL) -> None:
    """Replace the file in one step."""
    files.replace_file(path, encode(entries))


def _from_disk(fields: tuple[int, ...]) -> ProducerEntry:
    producer_id, epoch, last_sequence, last_offset, offset_delta, timestamp, coordinator, txn = (
        fields
    )
    return ProducerEntry(
        producer_id=producer_id,
        producer_epoch=epoch,
        last_sequence=None if last_sequence < 0 else last_sequence,
        last_offset=None if last_offset < 0 else last_offset,
        offset_delta=offset_delta,
        timestamp=timestamp,
        coordinator_epoch=None if coordinator < 0 else coordinator,
        current_txn_first_offset=None if txn < 0 else txn,
    )
