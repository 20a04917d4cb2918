"""A stopped broker's logs as Arrow tables, in the words in which readers of the broker are told."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME

from compactor import Selection, read_table
from storage.arrow.selection import Isolation
from tests.broker.views import Place, ReadRecord

KINDS = {"CreateTime": TIMESTAMP_CREATE_TIME, "LogAppendTime": TIMESTAMP_LOG_APPEND_TIME}


def read_tables(
    log_dir: Path, partitions: Mapping[str, Iterable[int]], isolation: Isolation
) -> dict[str, dict[Place, ReadRecord]]:
    """All records of topics, as consumers of an isolation level should be given them."""
    return {
        topic: {
            place: record
            for partition in numbers
            for place, record in _records(log_dir / f"{topic}-{partition}", isolation).items()
        }
        for topic, numbers in partitions.items()
    }


def _records(path: Path, isolation: Isolation) -> dict[Place, ReadRecord]:
    table = read_table(path, Selection(isolation=isolation))
    times = table.column("timestamp").cast("int64").to_pylist()
    return {
        (row["partition"], row["offset"]): ReadRecord(
            (KINDS[row["timestamp_type"]], time_ms),
            row["key"],
            row["value"],
            tuple((header["key"], header["value"]) for header in row["headers"]),
        )
        for row, time_ms in zip(table.to_pylist(), times, strict=True)
    }
