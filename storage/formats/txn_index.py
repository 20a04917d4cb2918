"""Transaction index (`.txnindex`): the aborted transactions that end in one segment.

A headerless run of 34-byte big-endian entries, by rising last offset: version int16, 0, then the
fields of AbortedTxn. There is no file where there is no entry. Source: Kafka, AbortedTxn,
TransactionIndex; spec F-11.
"""

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import NamedTuple

from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.files.files import Files
from storage.files.local import LOCAL

VERSION = 0
ENTRY = Struct(">hqqqq")
assert ENTRY.size == 34


class AbortedTxn(NamedTuple):
    """A transaction with data and an abort marker."""

    producer_id: int
    first_offset: int  # of the transaction's first batch
    last_offset: int  # of its abort marker
    last_stable_offset: int  # exclusive, as it stood when the marker was written


def encode(txn: AbortedTxn) -> bytes:
    """Lay one entry out."""
    return ENTRY.pack(VERSION, *txn)


def decode(data: bytes, path: str) -> Iterator[AbortedTxn]:
    """Raise CorruptFileError at the first entry that is cut short or of another version."""
    for position in range(0, len(data), ENTRY.size):
        entry = data[position : position + ENTRY.size]  # past the end: short, not an error
        if len(entry) < ENTRY.size:
            raise CorruptFileError(path, position, f"entry has {len(entry)} of {ENTRY.size} bytes")
        version, *fields = ENTRY.unpack(entry)
        if version != VERSION:
            raise UnsupportedFormatError(path, position, f"version {version}, expected {VERSION}")
        yield AbortedTxn(*fields)


def read(path: str, files: Files = LOCAL) -> list[AbortedTxn]:
    """Give all entries of a segment's index; none if it has no such file."""
    try:
        data = files.read_bytes(path)
    except FileNotFoundError:
        return []
    return list(decode(data, path))


def check(entries: Iterable[AbortedTxn], base_offset: int, path: str) -> None:
    """Raise CorruptFileError at the first entry that cannot be the segment's (F-11.2, F-11.6)."""
    lowest = base_offset
    for index, txn in enumerate(entries):
        if txn.last_offset < lowest:
            problem = f"last offset {txn.last_offset}, expected {lowest} or more"
            raise CorruptFileError(path, index * ENTRY.size, problem)
        if txn.first_offset < 0:
            problem = f"first offset {txn.first_offset} is negative"
            raise CorruptFileError(path, index * ENTRY.size, problem)
        if txn.first_offset > txn.last_offset:
            problem = f"first offset {txn.first_offset} is past last offset {txn.last_offset}"
            raise CorruptFileError(path, index * ENTRY.size, problem)
        lowest = txn.last_offset + 1


class Aborted(NamedTuple):
    """What one segment's index says about a range of offsets."""

    transactions: list[AbortedTxn]
    is_complete: bool  # False: go on with the next segment's index


def search(entries: Iterable[AbortedTxn], from_offset: int, end_offset: int) -> Aborted:
    """Return the aborted transactions that touch [from_offset, end_offset) for a fetch (F-11.5)."""
    found = []
    for txn in entries:
        if txn.last_offset >= from_offset and txn.first_offset < end_offset:
            found.append(txn)
        if txn.last_stable_offset >= end_offset:
            return Aborted(found, True)
    return Aborted(found, False)
