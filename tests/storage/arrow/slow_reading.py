"""The slow, obvious twin of the reader: each record of a partition as a dict of columns."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple

from storage.formats.legacy_messages import decode_header, decode_records
from storage.formats.record import Record
from storage.formats.record_batch import BatchHeader
from tests.support.reference_batch import split

Row = dict[str, Any]
_ENTRY = Struct(">hqqqq")  # of a .txnindex
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_MS = 86_400_000
FIRST_MS = -62_135_596_800_000 + 2 * _DAY_MS  # two days into the year 1
END_MS = 253_402_300_800_000 - 2 * _DAY_MS  # two days before the year 10000


class SlowBatch(NamedTuple):
    header: BatchHeader
    records: list[Record]

    @property
    def last_offset(self) -> int:
        return self.records[-1].offset if self.header.magic < 2 else self.header.last_offset


def batches_of(partition: Path) -> Iterator[SlowBatch]:
    for log in sorted(partition.glob("*.log")):
        for raw in split(log.read_bytes()):
            header = decode_header(raw, 0, str(log))
            yield SlowBatch(header, decode_records(raw, header, str(log), 0))


def rows_of(partition: Path, is_committed: bool = False, control: bool = False) -> list[Row]:
    """As a consumer gets them that begins at the log start (Kafka, CompletedFetch)."""
    batches, start = list(batches_of(partition)), _log_start(partition)
    end = _last_stable(batches) if is_committed else 2**63
    aborted = sorted(_aborted(partition), key=lambda txn: txn[1]) if is_committed else []
    open_aborts: set[int] = set()
    rows = []
    for batch in batches:
        header = batch.header
        while aborted and aborted[0][1] <= batch.last_offset:
            open_aborts.add(aborted.pop(0)[0])
        if header.is_control and header.magic == 2:
            if batch.records and batch.records[0].key == b"\0\0\0\0":
                open_aborts.discard(header.producer_id)
            if not control:
                continue
        elif header.magic == 2 and header.is_transactional and header.producer_id in open_aborts:
            continue
        rows += [_row(partition, header, r) for r in batch.records if start <= r.offset < end]
    return rows


def _log_start(partition: Path) -> int:
    checkpoint = partition.parent / "log-start-offset-checkpoint"
    lines = checkpoint.read_text().splitlines()[2:] if checkpoint.exists() else []
    noted = {f"{topic}-{number}": int(at) for topic, number, at in map(str.split, lines)}
    return noted.get(partition.name, 0)


def _last_stable(batches: Iterable[SlowBatch]) -> int:
    """Where the first transaction begins that has no marker."""
    begun: dict[int, int] = {}
    for header, _ in batches:
        if header.magic == 2 and header.is_control:
            begun.pop(header.producer_id, None)
        elif header.magic == 2 and header.is_transactional:
            begun.setdefault(header.producer_id, header.base_offset)
    return min(begun.values(), default=2**63)


def _aborted(partition: Path) -> Iterator[tuple[int, int]]:
    for index in partition.glob("*.txnindex"):
        for _, producer_id, first, _, _ in _ENTRY.iter_unpack(index.read_bytes()):
            yield producer_id, first


def _row(partition: Path, header: BatchHeader, record: Record) -> Row:
    topic, _, number = partition.name.rpartition("-")
    is_v2 = header.magic == 2
    sequence = None
    if header.base_sequence >= 0:
        sequence = (header.base_sequence + record.offset - header.base_offset) % 2**31
    kind = "LogAppendTime" if header.is_log_append_time else "CreateTime"
    return {
        "topic": topic,
        "partition": int(number),
        "offset": record.offset,
        "timestamp": _time(record.timestamp),
        "timestamp_ms": None if record.timestamp == -1 else record.timestamp,
        "timestamp_type": None if header.magic == 0 else kind,
        "key": record.key,
        "value": record.value,
        "headers": [{"key": _text(key), "value": value} for key, value in record.headers],
        "leader_epoch": _known(header.partition_leader_epoch) if is_v2 else None,
        "producer_id": _known(header.producer_id),
        "producer_epoch": _known(header.producer_epoch),
        "sequence": sequence,
        "is_transactional": is_v2 and header.is_transactional,
        "is_control": is_v2 and header.is_control,
    }


def _known(number: int) -> int | None:
    return None if number < 0 else number


def _time(timestamp_ms: int) -> datetime | None:
    if timestamp_ms == -1 or not FIRST_MS <= timestamp_ms < END_MS:
        return None
    return _EPOCH + timedelta(milliseconds=timestamp_ms)


def _text(key: bytes) -> str:
    return key.decode(errors="replace")
