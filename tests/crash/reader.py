"""Reads a log as two consumers do, slow and obvious: one of all records, one of committed ones."""

from pathlib import Path
from typing import NamedTuple

from storage.file_names import INDEX, LOG, TIME_INDEX, TXN_INDEX, file_name
from tests.support.made_log import ABORT_KEY, COMMIT_KEY
from tests.support.reference_batch import TRANSACTIONAL, ReferenceBatch, decode, split


class Value(NamedTuple):
    """A record without its key; a value of None is a tombstone."""

    offset: int
    value: bytes | None


class Segment(NamedTuple):
    """The bytes of a segment's files. A .txnindex without entries is as good as none."""

    base_offset: int
    log: bytes
    offset_index: bytes | None
    time_index: bytes | None
    txn_index: bytes

    @property
    def batches(self) -> list[ReferenceBatch]:
        return [decode(raw) for raw in split(self.log)]


Views = tuple[dict[bytes, Value], dict[bytes, Value]]


def segments_of(partition: Path) -> list[Segment]:
    bases = sorted(int(path.name[:20]) for path in partition.glob(f"*{LOG}"))
    return [_segment(partition, base) for base in bases]


def _segment(partition: Path, base_offset: int) -> Segment:
    def read(kind: str) -> bytes | None:
        path = partition / file_name(base_offset, kind)
        return path.read_bytes() if path.exists() else None

    log = read(LOG)
    assert log is not None
    return Segment(base_offset, log, read(INDEX), read(TIME_INDEX), read(TXN_INDEX) or b"")


def batches_of(segments: list[Segment]) -> list[ReferenceBatch]:
    return [batch for segment in segments for batch in segment.batches]


def records_of(batches: list[ReferenceBatch]) -> dict[int, tuple[bytes | None, bytes | None]]:
    """Key and value of every data record, by offset."""
    return {
        record.offset: (record.key, record.value)
        for batch in batches
        if not batch.is_control
        for record in batch.records
    }


def latest(batches: list[ReferenceBatch], log_start_offset: int) -> Views:
    """The last record of each key, for who reads all and for who reads what is committed."""
    uncommitted: dict[bytes, Value] = {}
    committed: dict[bytes, Value] = {}
    in_doubt: dict[int, list[tuple[bytes, Value]]] = {}  # by producer, until its marker comes
    for batch in batches:
        if batch.is_control:
            data = in_doubt.pop(batch.producer_id, [])
            keys = [record.key for record in batch.records]
            assert all(key in (ABORT_KEY, COMMIT_KEY) for key in keys)
            if COMMIT_KEY in keys:
                _take(committed, data)
            continue
        read = [
            (record.key, Value(record.offset, record.value))
            for record in batch.records
            if record.key is not None and record.offset >= log_start_offset
        ]
        _take(uncommitted, read)
        if batch.attributes & TRANSACTIONAL:
            in_doubt.setdefault(batch.producer_id, []).extend(read)
        else:
            _take(committed, read)
    return uncommitted, committed


def _take(view: dict[bytes, Value], read: list[tuple[bytes, Value]]) -> None:
    for key, value in read:
        if key not in view or view[key].offset < value.offset:
            view[key] = value
