"""Logs of which rounds are measured: each has more of one thing than the first has."""

import random
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from compactor import Log, LogManager, append_table
from storage.formats.control_record import KEY, MARKER_VALUE, ControlType
from storage.formats.record import Record
from storage.formats.record_batch import BatchOptions, encode_batch
from storage.log.producer_state_entry import AppendOrigin
from storage.log.validation import AppendRequest

KEY_BYTES, ROWS = 10, 20_000  # rows are appended at once


class Shape(NamedTuple):
    """Of every log of a directory; all of it is dirty, but for an empty active segment."""

    name: str
    records: int = 300_000  # of all logs
    keys: int = 100_000  # of all logs
    value_bytes: int = 100
    segments: int = 3  # of all logs
    logs: int = 1
    transactions: int = 0  # of all logs, of ten records each, beside the other records


SHAPES = (
    Shape("first"),
    Shape("twice the records", records=600_000, segments=6),
    Shape("four times the bytes", value_bytes=430),
    Shape("each key once", keys=300_000),
    Shape("few keys", keys=1_000),
    Shape("300 segments", segments=300),
    Shape("100 logs", logs=100, segments=100),
    Shape("300 logs", logs=300, segments=300),
    Shape("10,000 transactions", transactions=10_000),
    Shape("3,000 transactions, 30 segments", transactions=3_000, segments=30),
    Shape("long", records=1_500_000, keys=700_000, segments=5),
    Shape("mixed", records=800_000, keys=300_000, value_bytes=200, segments=120, logs=40),
)


def write(shape: Shape, log_dir: Path) -> None:
    """The directory of a broker that was shut down cleanly."""
    log_dir.mkdir()
    chance = random.Random(shape.name)
    with LogManager([str(log_dir)]) as manager:
        for number in range(shape.logs):
            log = manager.create(("t", number))
            for segment in range(shape.segments // shape.logs):
                _fill(log, shape, chance, segment)
                log.roll()


def _fill(log: Log, shape: Shape, chance: random.Random, segment: int) -> None:
    """A segment."""
    records, keys = shape.records // shape.segments, shape.keys // shape.logs
    for begin in range(0, records, ROWS):
        count = min(ROWS, records - begin)
        values = chance.randbytes(count * shape.value_bytes)
        first = segment * records + begin
        drawn = (
            range(first, first + count)
            if shape.keys == shape.records
            else (chance.randrange(keys) for _ in range(count))
        )
        keyed = [b"%0*d" % (KEY_BYTES, key) for key in drawn]
        append_table(log, pa.table({"key": keyed, "value": _cut(values, shape.value_bytes)}))
    transactions = shape.transactions // shape.segments
    for number in range(transactions):
        sequence = 10 * (segment * transactions + number)
        own = [Record(n, 0, b"%0*d" % (KEY_BYTES, chance.randrange(keys)), b"v") for n in range(10)]
        sent_by = BatchOptions(
            producer_id=1, producer_epoch=0, base_sequence=sequence, is_transactional=True
        )
        log.append_as_leader(encode_batch(own, options=sent_by))
        log.append_as_leader(_marker(ControlType.COMMIT if number % 5 else ControlType.ABORT), _END)


_END = AppendRequest(origin=AppendOrigin.COORDINATOR, transaction_version=0)


def _marker(kind: ControlType) -> bytes:
    record = Record(0, 0, KEY.pack(0, kind), MARKER_VALUE.pack(0, 0))
    sent_by = BatchOptions(producer_id=1, producer_epoch=0, is_transactional=True, is_control=True)
    return encode_batch([record], options=sent_by)


def _cut(values: bytes, size: int) -> list[bytes]:
    return [values[at : at + size] for at in range(0, len(values), size)]
