"""Entries of transaction indexes as one array, for logs with very many aborted transactions.

An array has a row for each entry, with the fields of AbortedTxn as int64. The format is in
`txn_index`, which needs no arrays.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats.txn_index import ENTRY, AbortedTxn, check, decode

ENTRY_ROW = np.dtype([("version", ">i2"), *((name, ">i8") for name in AbortedTxn._fields)])
assert ENTRY_ROW.itemsize == ENTRY.size

Entries = NDArray[np.int64]  # (n, 4): the fields of AbortedTxn


def columns_of(entries: Iterable[AbortedTxn]) -> Entries:
    """Many entries as one array."""
    return np.array(list(entries), np.int64).reshape(-1, len(AbortedTxn._fields))


def decode_columns(data: bytes, path: str) -> Entries:
    """Return what `txn_index.decode` gives, as one array; raise what it raises."""
    if len(data) % ENTRY.size == 0:
        rows = np.frombuffer(data, ENTRY_ROW)
        if not rows["version"].any():  # all are of VERSION
            return np.stack([rows[name] for name in AbortedTxn._fields], axis=1).astype(np.int64)
    return columns_of(decode(data, path))


def encode_columns(entries: Entries) -> bytes:
    """Lay out many entries."""
    rows = np.zeros(len(entries), ENTRY_ROW)
    for number, name in enumerate(AbortedTxn._fields):
        rows[name] = entries[:, number]
    return rows.tobytes()


def read_columns(path: str, files: Files = LOCAL) -> Entries:
    """Return what `txn_index.read` gives, as one array."""
    try:
        data = files.read_bytes(path)
    except FileNotFoundError:
        return columns_of(())
    return decode_columns(data, path)


def check_columns(entries: Entries, base_offset: int, path: str) -> None:
    """Raise what `txn_index.check` raises."""
    first, last = entries[:, 1], entries[:, 2]
    lowest = np.concatenate(([base_offset - 1], last[:-1])) if len(entries) else last
    if np.any((last <= lowest) | (first < 0) | (first > last)):
        check(map(AbortedTxn._make, entries.tolist()), base_offset, path)
