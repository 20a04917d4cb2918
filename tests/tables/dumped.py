"""What readers should find in a log: each record that `dump` shows, with the columns of a table."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from compactor import api

Row = dict[str, Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_END = 2**63


class _Transactions(NamedTuple):
    aborted: tuple[tuple[int, int, int], ...]  # producer, first offset, offset of the marker
    last_stable_offset: int


def rows_of(partition: Path, is_committed: bool) -> list[Row]:
    """As a consumer of this isolation level is given them, markers left out."""
    entries = list(_entries(partition))
    done = _transactions(entries) if is_committed else _Transactions((), _NO_END)
    return [
        _row(partition, batch, record)
        for batch, record in entries
        if record["offset"] < done.last_stable_offset
        and not batch.get("control")
        and not any(
            batch.get("transactional") and batch["producer_id"] == who and first <= at < last
            for at in (record["offset"],)
            for who, first, last in done.aborted
        )
    ]


def _entries(partition: Path) -> Iterator[tuple[Row, Row]]:
    """Each record with its batch, or with its message of format v0 or v1."""
    batch: Row = {}
    for path in sorted(partition.glob("*.log")):
        for row in api.dump(path):
            if row["kind"] in ("batch", "message"):
                batch = row
            elif row["kind"] == "record":
                yield batch, row


def _transactions(entries: list[tuple[Row, Row]]) -> _Transactions:
    """By the markers, in the order of the log."""
    begun = dict[int, int]()
    aborted = list[tuple[int, int, int]]()
    for batch, record in entries:
        if not batch.get("transactional"):
            continue
        producer_id = batch["producer_id"]
        if not batch["control"]:
            begun.setdefault(producer_id, batch["base_offset"])
        elif producer_id in begun:
            first = begun.pop(producer_id)
            if record["control_type"] == "ABORT":
                aborted.append((producer_id, first, record["offset"]))
    return _Transactions(tuple(aborted), min(begun.values(), default=_NO_END))


def _row(partition: Path, batch: Row, record: Row) -> Row:
    topic, _, number = partition.name.rpartition("-")
    is_v2 = batch["kind"] == "batch"
    time_ms = None if record["timestamp"] == -1 else record["timestamp"]
    sequence = batch.get("base_sequence")
    if sequence is not None:
        sequence = (sequence + record["offset"] - batch["base_offset"]) % 2**31
    return {
        "topic": topic,
        "partition": int(number),
        "offset": record["offset"],
        "timestamp": _time(time_ms),
        "timestamp_ms": time_ms,
        "timestamp_type": batch["timestamp_type"],
        "key": _bytes(record["key"]),
        "value": _bytes(record["value"]),
        "headers": [
            ((_bytes(key) or b"").decode(errors="replace"), _bytes(value))
            for key, value in record["headers"]
        ],
        "leader_epoch": batch.get("partition_leader_epoch"),
        "producer_id": batch.get("producer_id"),
        "producer_epoch": batch.get("producer_epoch"),
        "sequence": sequence,
        "is_transactional": is_v2 and batch["transactional"],
        "is_control": is_v2 and batch["control"],
    }


def _time(time_ms: int | None) -> datetime | None:
    """None in years that Python has not, and within two days of them."""
    try:
        if time_ms is None:
            return None
        for days in (-2, 2):
            _EPOCH + timedelta(milliseconds=time_ms, days=days)
        return _EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        return None


def _bytes(shown: str | dict[str, str] | None) -> bytes | None:
    if isinstance(shown, dict):
        return bytes.fromhex(shown["hex"])
    return None if shown is None else shown.encode()
