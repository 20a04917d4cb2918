"""Log directories as a data source of Spark, against the slow reader of the tests."""

import json
import sys
from collections.abc import Mapping
from datetime import datetime
from errno import EACCES
from pathlib import Path
from random import Random
from subprocess import run
from typing import Any

import pytest
from pyspark.sql.datasource import EqualTo, GreaterThan, In, InputPartition, LessThanOrEqual
from pyspark.sql.types import BinaryType, StructField, StructType

from cleaner_jobs.spark.kafka_log_source import (
    SCHEMA,
    BadOptionError,
    FilteredKafkaLogReader,
    KafkaLogDataSource,
)
from compactor import NotALogError
from storage.files.files import Entry
from storage.files.local import LOCAL
from tests.storage.arrow.slow_reading import rows_of
from tests.support.made_log import (
    ABORT_KEY,
    index_entry,
    keyed,
    log_of,
    make_partition,
    marker,
    of_producer,
    write_segment,
)
from tests.support.random_batches import random_batches
from tests.support.reference_batch import encode

PROBE = "tests.cleaner_jobs.spark.kafka_log_probe"
Reads = list[dict[str, Any]]


def source(path: Path, **options: str) -> KafkaLogDataSource:
    return KafkaLogDataSource({"path": str(path), **options})


def rows_without_spark(path: Path, **options: str) -> tuple[list[dict[str, Any]], int]:
    """The rows, and by how many parts."""
    reader = source(path, **options).reader(SCHEMA)
    parts = reader.partitions()
    return [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()], len(
        parts
    )


def many(root: Path, seed: int = 3) -> Path:
    """A partition of two segments with many index entries."""
    made = random_batches(Random(seed), 300)
    half = len(made) // 2
    parts = {part[0].base_offset: part for part in (made[:half], made[half:])}
    return make_partition(root, parts, interval_bytes=500)


@pytest.mark.parametrize("split_bytes", [1, 1000, 5000, 10**9])
def test_parts_of_any_size_hold_each_record_once(tmp_path: Path, split_bytes: int) -> None:
    path = many(tmp_path)
    found, parts = rows_without_spark(tmp_path, splitBytes=str(split_bytes))
    assert found == rows_of(path)
    assert parts > 10 if split_bytes < 5000 else parts > 1 if split_bytes == 5000 else parts == 1
    middle = found[len(found) // 2]["offset"]
    some, _ = rows_without_spark(tmp_path, splitBytes=str(split_bytes), startOffset=str(middle))
    assert some == [row for row in found if row["offset"] >= middle]
    index = next(path.glob("*.index"))
    index.write_bytes(Random(1).randbytes(800))  # it decides about sizes alone
    assert rows_without_spark(tmp_path, splitBytes=str(split_bytes))[0] == found


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_a_log_without_a_record_is_read_wherever_it_stands(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    empty, full = (f"{name}-0" for name in names)
    make_partition(tmp_path, {0: []}, empty)
    path = make_partition(tmp_path, {0: [keyed(0, "abc")]}, full)
    assert rows_without_spark(tmp_path)[0] == rows_of(path)


def test_parts_know_what_was_aborted_elsewhere(tmp_path: Path) -> None:
    path = make_partition(
        tmp_path, {0: [encode(of_producer(keyed(0, "ab"), 1)), encode(keyed(2, "c"))]}
    )
    write_segment(path, 3, [marker(3, 1, ABORT_KEY), encode(of_producer(keyed(4, "d"), 1))])
    (path / f"{3:020d}.txnindex").write_bytes(index_entry(1, 0, 3, 4))
    for snapshot in path.glob("*.snapshot"):
        snapshot.unlink()
    (tmp_path / ".kafka_cleanshutdown").unlink()
    found, _ = rows_without_spark(tmp_path, splitBytes="1", isolation="read_committed")
    assert [row["offset"] for row in found] == [2]


@pytest.mark.parametrize(
    "options",
    [
        {"topic": "t"},
        {"topics": " ,"},
        {"splitBytes": "0"},
        {"startOffset": "soon"},
        {"startTime": "soon"},
        {"isolation": "serializable"},
        {"includeControl": "maybe"},
        {"path": ""},
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path: Path, options: dict[str, str]) -> None:
    with pytest.raises(BadOptionError, match="kafka-log"):
        KafkaLogDataSource({"path": str(tmp_path), **options}).reader(SCHEMA)


@pytest.mark.parametrize("name", ["keys", "offset", "topic"])
def test_columns_that_there_are_not_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadOptionError, match=f"no column {name} binary"):
        source(tmp_path).reader(StructType([StructField(name, BinaryType())]))


def test_filters_leave_out_files_and_parts(tmp_path: Path) -> None:
    for topic in ("a", "b"):
        for number in (0, 1):
            make_partition(
                tmp_path / f"{topic}{number}", {0: [keyed(0, "abc")]}, f"{topic}-{number}"
            )
            (tmp_path / f"{topic}{number}" / f"{topic}-{number}").rename(
                tmp_path / f"{topic}-{number}"
            )
    reader = source(tmp_path, pushFilters="true").reader(SCHEMA)
    assert isinstance(reader, FilteredKafkaLogReader)
    filters = [
        In(("topic",), ("b", "c")),
        EqualTo(("partition",), 1),
        GreaterThan(("offset",), 0),
        LessThanOrEqual(("timestamp",), datetime.fromisoformat("1970-01-01T05:30:00.110+05:30")),
    ]
    assert reader.pushFilters(list(filters)) == filters  # Spark goes by them, too
    (part,) = reader.partitions()
    rows = [row for batch in reader.read(part) for row in batch.to_pylist()]
    assert [(row["topic"], row["partition"], row["offset"]) for row in rows] == [
        ("b", 1, 0),
        ("b", 1, 1),
    ]


def test_a_log_directory_may_be_named_like_a_partition(tmp_path: Path) -> None:
    make_partition(tmp_path / "disk-1", {0: [keyed(0, "abc")]}, "orders-0")
    for path in (tmp_path / "disk-1", tmp_path / "disk-1" / "orders-0"):
        rows, _ = rows_without_spark(path)
        assert [(row["topic"], row["key"]) for row in rows] == [
            ("orders", b"a"), ("orders", b"b"), ("orders", b"c"),
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("place", "topics", "missing"),
    [
        ("", "oders", "oders"),
        ("", "orders,oders", "oders"),
        ("orders-0", "returns", "returns"),
        ("orders-0", "orders,returns", "returns"),
    ],
)
@pytest.mark.parametrize("pushes", ["true", "false"])
def test_a_topic_that_is_not_there_is_refused(
    tmp_path: Path, place: str, topics: str, missing: str, pushes: str
) -> None:
    for topic in ("orders", "returns"):
        make_partition(tmp_path, {0: [keyed(0, "abc")]}, f"{topic}-0")
    reader = source(tmp_path / place, topics=topics, pushFilters=pushes).reader(SCHEMA)
    if isinstance(reader, FilteredKafkaLogReader):  # a filter may name any topic
        list(reader.pushFilters([EqualTo(("topic",), "none")]))
    with pytest.raises(BadOptionError, match=f"has no topic {missing}; it has orders"):
        reader.partitions()


@pytest.mark.parametrize("place", ["", "orders-0"])
def test_topics_that_are_there_are_read(tmp_path: Path, place: str) -> None:
    make_partition(tmp_path, {0: [keyed(0, "abc")]}, "orders-0")
    assert len(rows_without_spark(tmp_path / place, topics="orders, ")[0]) == 3


def test_a_log_directory_without_logs_is_empty(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").touch()
    (tmp_path / "orders-0.0123456789abcdef0123456789abcdef-delete").mkdir()
    reader = source(tmp_path).reader(SCHEMA)
    assert reader.partitions() == []
    assert list(reader.read(InputPartition(None))) == []


@pytest.mark.parametrize(
    ("place", "said"),
    [("", "is no log directory"), ("inner", "is no log directory"), ("disk-1", "holds no log")],
)
def test_a_directory_that_holds_no_log_is_refused(tmp_path: Path, place: str, said: str) -> None:
    (tmp_path / place / "other").mkdir(parents=True)
    with pytest.raises(NotALogError, match=f"{place}: {said}.*Nothing was read"):
        source(tmp_path / place).reader(SCHEMA).partitions()


@pytest.mark.parametrize("kind", ["link", "unreadable"])
def test_no_log_is_left_out_in_silence(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_partition(tmp_path, {0: [keyed(0, "abc")]}, "orders-0")
    path = make_partition(tmp_path / "elsewhere", {0: [keyed(0, "d")]}, "orders-1")
    if kind == "link":
        (tmp_path / "orders-1").symlink_to(path)
        with pytest.raises(NotALogError, match="orders-1: is a symbolic link"):
            source(tmp_path).reader(SCHEMA).partitions()
        return
    path.rename(tmp_path / "orders-1")
    listed = LOCAL.list_directory

    def list_directory(path: str) -> list[Entry]:
        if path.endswith("orders-1"):
            raise PermissionError(EACCES, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(type(LOCAL), "list_directory", lambda _, path: list_directory(path))
    with pytest.raises(PermissionError, match="orders-1"):
        source(tmp_path).reader(SCHEMA).partitions()


def by_spark(log_dir: Path, reads: Reads) -> Mapping[str, Any]:
    words = [sys.executable, "-m", PROBE, str(log_dir), json.dumps(reads)]
    ended = run(words, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, ended.stderr[-3000:]
    found: Mapping[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


@pytest.mark.spark
def test_spark_reads_what_the_slow_reader_reads(tmp_path: Path) -> None:
    """In one session, as it takes longer to start than all reads."""
    damaged = make_partition(tmp_path / "damaged", {0: [keyed(0, "abc"), keyed(3, "def")]})
    log = log_of(damaged, 0)
    log.write_bytes(log.read_bytes()[:-1] + b"?")
    path = many(tmp_path)
    expected = rows_of(path)
    middle = expected[len(expected) // 2]["offset"]
    time = "timestamp >= timestamp'1970-01-01 05:30:03'"
    found = by_spark(
        tmp_path,
        [
            {"name": "all", "options": {"splitBytes": "3000"}},
            {"name": "columns", "options": {}, "schema": "value BINARY, offset BIGINT"},
            {"name": "filtered", "options": {}, "filter": f"offset < {middle} and {time}"},
            {
                "name": "pushed",
                "options": {"pushFilters": "true"},
                "filter": f"offset < {middle} and {time}",
            },
            {"name": "refused", "options": {"isolation": "none"}},
            {"name": "damaged", "options": {}, "path": str(damaged)},
        ],
    )
    rows = sorted(found["all"]["rows"], key=lambda row: row["offset"])
    assert rows == [_plain(row) for row in expected]
    assert found["all"]["tasks"] > 5
    few = [{"value": row["value"], "offset": row["offset"]} for row in rows]
    assert found["columns"]["rows"] == few
    wanted = [r for r in rows if r["offset"] < middle and (r["timestamp"] or -1) >= 3]
    assert found["filtered"]["rows"] == found["pushed"]["rows"] == wanted
    assert "option isolation of kafka-log: 'none'" in found["refused"]["error"]
    at = len(encode(keyed(0, "abc")))
    assert f"{log}, byte {at}: checksum" in found["damaged"]["error"]


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    plain = dict(row)
    plain["timestamp"] = row["timestamp"].timestamp() if row["timestamp"] else None
    plain["headers"] = [{k: _hex(v) for k, v in header.items()} for header in row["headers"]]
    return {name: _hex(value) for name, value in plain.items()}


def _hex(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value
