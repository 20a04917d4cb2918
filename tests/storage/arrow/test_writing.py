"""Tables appended to a log, against batches that the slow builder makes and Kafka's own bytes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from compactor import (
    SCHEMA,
    Appended,
    AppendStoppedError,
    BadTableError,
    Batching,
    Log,
    LogOptions,
    Selection,
    append_table,
    read_table,
)
from storage.arrow import writing
from storage.codecs.compression import Codec
from storage.formats import record as record_format
from storage.formats.record import Record
from storage.formats.record_batch import encode_batch
from storage.log.errors import (
    RecordBatchTooLargeError,
    RecordTooLargeError,
    RecordValidationError,
)
from storage.log.log_config import LogConfig
from storage.log.scheduler import ManualScheduler
from storage.log.validation import AppendRequest
from tests.storage.kafka_batches import TWO_RECORDS

NOW_MS = 1_700_000_000_000
EPOCH_AT = slice(12, 16)


@contextmanager
def opened(path: Path, **config: Any) -> Iterator[Log]:
    options = LogOptions(
        clock=lambda: NOW_MS,
        scheduler=ManualScheduler(lambda: NOW_MS),
        config=LogConfig(**config),
    )
    path.parent.mkdir(exist_ok=True)
    with Log.open(str(path), options) as log:
        yield log


def table_of(records: Sequence[Record]) -> pa.Table:
    headers = [[{"key": k.decode(), "value": v} for k, v in r.headers] for r in records]
    times = [None if r.timestamp == -1 else r.timestamp for r in records]
    return pa.table(
        {
            "timestamp": pa.array(times, pa.timestamp("ms", tz="UTC")),
            "key": pa.array([r.key for r in records], pa.binary()),
            "value": pa.array([r.value for r in records], pa.binary()),
            "headers": pa.array(headers, SCHEMA.field("headers").type),
        }
    )


def random_records(chance: Random, count: int) -> list[Record]:
    sizes = (None, 0, 1, 63, 64, 200, 9000)

    def piece() -> bytes | None:
        size = chance.choice(sizes)
        return None if size is None else chance.randbytes(size // 2) + bytes(size - size // 2)

    return [
        Record(
            number,
            chance.choice((-1, 0, NOW_MS, NOW_MS + chance.randint(-(10**6), 10**6))),
            piece(),
            piece(),
            tuple((b"h" * chance.randint(0, 70), piece()) for _ in range(chance.choice((0, 0, 3)))),
        )
        for number in range(count)
    ]


def cut(records: Sequence[Record], batch_bytes: int) -> Iterator[list[Record]]:
    """Batches of so many bytes at most, header included, or of one record."""
    batch: list[Record] = []
    for each in records:
        first = batch[0] if batch else each
        longer = [*batch, each]
        size = 61 + sum(
            len(record_format.encode(r._replace(offset=i), 0, first.timestamp))
            for i, r in enumerate(longer)
        )
        if batch and size > batch_bytes:
            yield batch
            longer = [each]
        batch = longer
    if batch:
        yield batch


def files_of(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


@pytest.mark.parametrize("codec", list(Codec))
def test_batches_are_kafkas_own(tmp_path: Path, codec: Codec) -> None:
    records = [Record(0, 283843, b"key1", b"value1"), Record(1, 1234, b"key2", b"value2")]
    with opened(tmp_path / "t-0") as log:
        append_table(log, table_of(records), Batching(codec=codec, leader_epoch=3))
        expected = bytearray.fromhex(TWO_RECORDS[codec.name])
        expected[EPOCH_AT] = (3).to_bytes(4, "big")
        assert log.read(0).read() == expected


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("batch_bytes", [1, 500, 20_000])
def test_the_log_is_as_if_the_slow_builders_batches_were_appended(
    tmp_path: Path, codec: Codec, batch_bytes: int
) -> None:
    """Every file of it, with segments and indexes."""
    records = random_records(Random(f"{codec} {batch_bytes}"), 150)
    config = {"segment_bytes": 100_000}
    with opened(tmp_path / "ours" / "t-0", **config) as log:
        done = append_table(log, table_of(records), Batching(codec=codec, batch_bytes=batch_bytes))
        batches = list(cut(records, batch_bytes))
        assert done == Appended(0, 150, 150, len(batches))
    with opened(tmp_path / "slow" / "t-0", **config) as log:
        for batch in batches:
            numbered = [r._replace(offset=i) for i, r in enumerate(batch)]
            log.append_as_leader(encode_batch(numbered, codec))
    assert files_of(tmp_path / "ours" / "t-0") == files_of(tmp_path / "slow" / "t-0")


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_what_is_read_can_be_appended_and_read_again(tmp_path: Path, chunk: int) -> None:
    records = random_records(Random(5), 60)
    whole = table_of([*records, *records]).slice(11, 70)
    table = pa.Table.from_batches(whole.to_batches(max_chunksize=chunk))
    with opened(tmp_path / "t-0") as log:
        append_table(log, table)
        found = read_table(log)
        assert found.select(table.schema.names).to_pylist() == table.to_pylist()
        append_table(log, found.to_reader(), Batching(codec=Codec.ZSTD))
        again = read_table(log, Selection(start_offset=70))
        assert again.select(table.schema.names).to_pylist() == table.to_pylist()
        assert again.column("offset").to_pylist() == list(range(70, 140))


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_binary(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())],
)
def test_keys_and_values_may_be_text_of_any_type(tmp_path: Path, kind: pa.DataType) -> None:
    column = pa.array(["a", None, "ä", ""], pa.string()).cast(kind)
    with opened(tmp_path / "t-0") as log:
        append_table(log, pa.table({"key": column, "value": column}))
        found = read_table(log, Selection(columns=["key", "value", "timestamp"]))
    expected = [b"a", None, "ä".encode(), b""]
    assert [(row["key"], row["value"]) for row in found.to_pylist()] == [(k, k) for k in expected]
    now = datetime.fromtimestamp(NOW_MS / 1000, UTC)
    assert found.column("timestamp").to_pylist() == [now] * 4  # the time of the append


def test_times_of_other_units_and_integers_are_taken(tmp_path: Path) -> None:
    times = [pa.array([5, None], pa.int64()), pa.array([5_000, None], pa.timestamp("us"))]
    with opened(tmp_path / "t-0") as log:
        for column in times:
            append_table(log, pa.table({"value": ["a", "b"], "timestamp": column}))
        found = read_table(log).column("timestamp").cast(pa.int64()).to_pylist()
    assert found == [5, None, 5, None]


def test_headers_may_be_null(tmp_path: Path) -> None:
    kind = SCHEMA.field("headers").type
    columns = [pa.nulls(2), pa.array([None, [{"key": "k", "value": None}]], kind)]
    with opened(tmp_path / "t-0") as log:
        for column in columns:
            append_table(log, pa.table({"value": ["a", "b"], "headers": column}))
        found = read_table(log).column("headers").to_pylist()
    assert found == [[], [], [], [{"key": "k", "value": None}]]


def test_the_fields_of_a_header_are_taken_by_their_names(tmp_path: Path) -> None:
    with opened(tmp_path / "t-0") as log:
        append_table(log, pa.table({"key": ["k"], "headers": [[{"value": b"V", "key": "K"}]]}))
        found = read_table(log).column("headers").to_pylist()
    assert found == [[{"key": "K", "value": b"V"}]]


def test_a_record_may_be_larger_than_all_buffers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "ROOM_BYTES", 100)
    value = Random(1).randbytes(5000)
    for codec in Codec:
        with opened(tmp_path / codec.name / "t-0") as log:
            batching = Batching(codec=codec, batch_bytes=100)
            append_table(log, pa.table({"value": [b"a", value, b"b"]}), batching)
            assert read_table(log).column("value").to_pylist() == [b"a", value, b"b"]


def test_the_topic_says_codec_and_kind_of_times(tmp_path: Path) -> None:
    """As Kafka's own leader does with a batch of that codec."""
    config = {"compression_type": "lz4", "message_timestamp_type": "LogAppendTime"}
    records = [Record(i, 5 + i, b"k", b"v" * 100) for i in range(20)]
    with opened(tmp_path / "ours" / "t-0", **config) as log:
        append_table(log, table_of(records), Batching(codec=Codec.GZIP))
        types = read_table(log).column("timestamp_type").to_pylist()
    assert types == ["LogAppendTime"] * 20
    with opened(tmp_path / "slow" / "t-0", **config) as log:
        log.append_as_leader(encode_batch(records, Codec.LZ4), AppendRequest())
    assert files_of(tmp_path / "ours" / "t-0") == files_of(tmp_path / "slow" / "t-0")


@pytest.mark.parametrize(
    ("config", "record", "problem"),
    [
        ({"cleanup_policy": "compact"}, Record(0, 5, None, b"v"), "without a key"),
        ({}, Record(0, NOW_MS + 3_600_001, b"k", b"v"), "too far from the clock"),
        ({"message_timestamp_before_max_ms": 9}, Record(0, 5, b"k", b"v"), "too far"),
    ],
)
def test_records_that_a_leader_refuses_are_refused_before_any_is_appended(
    tmp_path: Path, config: dict[str, Any], record: Record, problem: str
) -> None:
    sound = Record(0, NOW_MS, b"k", b"v")
    with opened(tmp_path / "t-0", **config) as log:
        with pytest.raises(RecordValidationError, match=problem) as caught:
            append_table(log, table_of([sound, sound, record]))
        assert caught.value.positions == (2,)
        assert log.log_end_offset == 0


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"max_message_bytes": 500}, RecordTooLargeError),
        ({"segment_bytes": 500}, RecordBatchTooLargeError),
    ],
)
@pytest.mark.parametrize("codec", list(Codec))
def test_batches_that_are_too_large_are_refused_before_any_is_appended(
    tmp_path: Path, codec: Codec, config: dict[str, Any], problem: type[Exception]
) -> None:
    batching = Batching(codec=codec, batch_bytes=99)
    noise, headers = (
        Random(1).randbytes(500),
        [None, [{"key": "k", "value": Random(2).randbytes(500)}]],
    )
    with opened(tmp_path / "t-0", **config) as log:
        for more in ({"value": [b"a", noise]}, {"value": [b"a", b"b"], "headers": headers}):
            with pytest.raises(problem, match="a batch of 5"):
                append_table(log, pa.table(more), batching)
            assert log.log_end_offset == 0


def test_a_record_that_is_small_enough_when_compressed_is_taken(tmp_path: Path) -> None:
    with opened(tmp_path / "t-0", max_message_bytes=500) as log:
        table = pa.table({"value": [b"a", bytes(5000)]})
        append_table(log, table, Batching(codec=Codec.ZSTD, batch_bytes=99))
        assert log.log_end_offset == 2


def test_an_append_that_stops_counts_what_is_appended(tmp_path: Path) -> None:
    """The rest of the table can be appended, and nothing is there twice."""
    table = pa.concat_tables(
        [pa.table({"value": [b"a", b"b"]}), pa.table({"value": [b"c", b"d" * 600]})]
    )
    with opened(tmp_path / "t-0", max_message_bytes=500) as log:
        with pytest.raises(AppendStoppedError, match="after 2 records") as caught:
            append_table(log, table)
        assert isinstance(caught.value.cause, RecordTooLargeError)
        assert caught.value.appended == Appended(0, 2, 2, 1)
        append_table(log, table.slice(caught.value.appended.records, 1))
        assert read_table(log).column("value").to_pylist() == [b"a", b"b", b"c"]


def test_a_source_that_fails_is_counted_as_well(tmp_path: Path) -> None:
    first = pa.record_batch({"value": [b"a", b"b", b"c"]})

    def batches() -> Iterator[pa.RecordBatch]:
        yield first
        raise OSError("the source is gone")

    reader = pa.RecordBatchReader.from_batches(first.schema, batches())
    with opened(tmp_path / "t-0") as log:
        with pytest.raises(AppendStoppedError, match="the source is gone") as caught:
            append_table(log, reader)
        assert caught.value.appended.records == log.log_end_offset == 3


@pytest.mark.parametrize(
    "columns",
    [
        {"keys": ["a"]},
        {"timestamp": [1]},
        {"value": [1.5]},
        {"value": ["a"], "timestamp": ["yesterday"]},
        {"value": ["a"], "headers": [5]},
        {"value": ["a"], "headers": [[{"key": None, "value": b""}]]},
        {"value": ["a"], "headers": [[{"name": "a", "content": b""}]]},
        {"value": ["a"], "headers": [[{"key": "a"}]]},
    ],
)
def test_tables_of_which_no_records_can_be_made_are_refused(
    tmp_path: Path, columns: dict[str, Any]
) -> None:
    with opened(tmp_path / "t-0") as log:
        with pytest.raises(BadTableError):
            append_table(log, pa.table(columns))
        assert log.log_end_offset == 0


def test_nothing_is_appended_of_an_empty_table(tmp_path: Path) -> None:
    with opened(tmp_path / "t-0") as log:
        assert append_table(log, pa.table({"value": pa.array([], pa.string())})).records == 0
        assert log.log_end_offset == 0
