"""Logs as Arrow tables, against the slow twin: logs that Kafka wrote, and made ones."""

import tracemalloc
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from compactor import (
    COLUMNS,
    SCHEMA,
    STOPPED_AT,
    BadSelectionError,
    Log,
    LogOptions,
    NotALogError,
    RecordStream,
    Selection,
    read_table,
)
from storage.arrow import reading
from storage.arrow.log_view import splits_of
from storage.codecs.compression import Codec
from storage.errors import CorruptFileError
from storage.formats import batch_windows
from storage.log.scheduler import ManualScheduler
from tests.golden import corpora
from tests.storage.arrow.slow_reading import Row, rows_of
from tests.support.made_log import (
    ABORT_KEY,
    COMMIT_KEY,
    batch,
    index_entry,
    keyed,
    log_of,
    make_partition,
    marker,
    of_producer,
    packed,
    record,
)
from tests.support.random_batches import random_batches
from tests.support.reference_batch import ReferenceRecord, encode

COMMITTED = Selection(isolation="read_committed")
CODECS = list(Codec)


def read(partition: Path, **selected: object) -> list[Row]:
    table = read_table(str(partition), Selection(**selected))  # type: ignore[arg-type]
    table.validate(full=True)
    found: list[Row] = table.to_pylist()
    return found


def sample(count: int) -> list[str]:
    """Golden logs, the same ones each time, of all kinds."""
    return Random(7).sample(corpora.partitions(), count)


@pytest.mark.parametrize("partition", sample(25))
@pytest.mark.parametrize("folder", ["before", "after"])
def test_logs_of_kafka_come_as_the_slow_reader_has_them(partition: str, folder: str) -> None:
    """All formats and codecs, compacted or not, and transactions."""
    path = corpora.extracted().root / folder / partition
    assert read(path) == rows_of(path)
    assert read(path, control=True) == rows_of(path, control=True)


@pytest.mark.parametrize(
    "partition", [name for name in sample(60) if "txn" in name or "c8" in name]
)
def test_committed_reads_leave_out_what_was_aborted_or_is_undecided(partition: str) -> None:
    path = corpora.extracted().before / partition
    assert read(path, isolation="read_committed") == rows_of(path, is_committed=True)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("seed", range(4))
def test_windows_of_every_size_give_the_same_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, codec: Codec
) -> None:
    made = [b for b in random_batches(Random(seed), 60) if not b.attributes & 0x20]
    half = len(made) // 2
    segments = {
        part[0].base_offset: [packed(b, codec) for b in part] for part in (made[:half], made[half:])
    }
    path = make_partition(tmp_path, segments)
    expected = rows_of(path)
    assert read(path) == expected
    for window_bytes, window_batches in ((1, 100), (500, 3), (4096, 1)):
        monkeypatch.setattr(batch_windows, "WINDOW_BYTES", window_bytes)
        monkeypatch.setattr(batch_windows, "PAYLOAD_BYTES", window_bytes)
        monkeypatch.setattr(batch_windows, "WINDOW_BATCHES", window_batches)
        assert read(path) == expected


def small(root: Path) -> Path:
    """Offsets 0 to 9 at 100 to 190 ms, in four batches of two segments."""
    batches = [encode(keyed(0, "abc")), encode(keyed(3, "D.")), encode(keyed(5, "fg"))]
    return make_partition(root, {0: batches, 7: [encode(keyed(7, "hij"))]})


@pytest.mark.parametrize("start", [None, 0, 2, 3, 6, 7, 9, 10, 50])
@pytest.mark.parametrize("end", [None, 0, 1, 3, 5, 7, 8, 10, 99])
def test_offsets_bound_what_is_read(tmp_path: Path, start: int | None, end: int | None) -> None:
    found = read(small(tmp_path), start_offset=start, end_offset=end, columns=["offset"])
    wanted = range(10)[start or 0 : 10 if end is None else end]
    assert [row["offset"] for row in found] == list(wanted)


def test_times_bound_what_is_read_record_by_record(tmp_path: Path) -> None:
    times = [batch(record(0, b"a", timestamp=50), record(1, b"b", timestamp=10)), keyed(2, "c")]
    path = make_partition(tmp_path, {0: [encode(made) for made in times]})
    for start_ms, end_ms, expected in ((None, 50, [1]), (50, None, [0, 2]), (11, 51, [0])):
        found = read(path, start_ms=start_ms, end_ms=end_ms, columns=["offset"])
        assert [row["offset"] for row in found] == expected


def test_columns_come_as_they_are_asked_for(tmp_path: Path) -> None:
    path = small(tmp_path)
    every = rows_of(path)
    for name in COLUMNS:
        assert read(path, columns=[name]) == [{name: row[name]} for row in every]
    table = read_table(str(path), Selection(columns=["value", "offset"]))
    assert table.schema.names == ["value", "offset"]
    assert table.schema.field("value") == SCHEMA.field("value")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("columns", value)
            for value in (["nothing"], [], "key", b"key", None, 3, ["key", "key"])
        ),
        *(("columns", value) for value in ([None], ["key", 3])),
        *(("start_offset", value) for value in ("3", 1.5, True, 2**63, -(2**63), [1])),
        *(("end_offset", value) for value in ("3", 2**63, datetime(2026, 1, 1, tzinfo=UTC))),
        *(("start_ms", value) for value in ("2026-01-01", 2**63, 1.5, False)),
        *(("end_ms", value) for value in ("2026-01-01", -(2**63), date(2026, 1, 1))),
        *(("isolation", value) for value in ("committed", None, 1)),
        *(("max_bytes", value) for value in ("1M", 2**63, 1.5)),
        *((name, np.zeros(3)) for name in ("columns", "start_offset", "isolation", "control")),
        ("columns", [np.zeros(2)]),
        ("columns", [[]]),
        ("columns", [{}]),
        ("columns", pa.table({"a": [1] * 5000})),
        ("control", "yes"),
        ("until_damage", 1),
    ],
)
def test_a_selection_that_makes_no_sense_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(BadSelectionError, match=f"^{name}") as refused:
        Selection(**{name: value})
    assert len(str(refused.value)) < 400
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["start_offset", "end_ms", "max_bytes", "until_damage"])
def test_an_integer_that_python_does_not_write_is_refused_by_name(name: str) -> None:
    options: dict[str, Any] = {name: 10**5000}
    with pytest.raises(BadSelectionError, match=f"^{name}=a value of int: "):
        Selection(**options)


def test_times_may_be_datetimes(tmp_path: Path) -> None:
    """Without a zone one is of UTC; between two milliseconds it is the later one."""
    path = small(tmp_path)  # offset 3 has 130 ms
    moment = datetime(1970, 1, 1, 0, 0, 0, 130_000)
    expected = [{"offset": i} for i in range(3, 10)]
    for zone in (None, UTC):
        assert read(path, start_ms=moment.replace(tzinfo=zone), columns=["offset"]) == expected
    elsewhere = moment.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=-7)))
    assert read(path, start_ms=elsewhere, columns=["offset"]) == expected
    later = moment + timedelta(microseconds=1)
    assert read(path, start_ms=later, columns=["offset"]) == expected[1:]
    assert read(path, end_ms=later, columns=["offset"]) == [{"offset": i} for i in range(4)]
    assert read(path, end_ms=moment, columns=["offset"]) == [{"offset": i} for i in range(3)]


def test_no_more_of_the_log_is_read_than_may_be(tmp_path: Path) -> None:
    path = small(tmp_path)
    sizes = [len(data) for data in (encode(keyed(0, "abc")), encode(keyed(3, "D.")))]
    for most, expected in ((1, 3), (sizes[0], 3), (sum(sizes) - 1, 3), (sum(sizes), 5), (9999, 10)):
        assert len(read(path, max_bytes=most)) == expected
    assert len(read(path, max_bytes=1, start_offset=4)) == 1


def test_transactions_end_as_their_markers_and_the_index_say(tmp_path: Path) -> None:
    batches = [
        encode(of_producer(keyed(0, "ab"), 1)),
        encode(of_producer(keyed(2, "cd"), 2)),
        marker(4, 1, ABORT_KEY),
        encode(of_producer(keyed(5, "e"), 1)),
        marker(6, 2, COMMIT_KEY),
        marker(7, 1, COMMIT_KEY),
        encode(keyed(8, "f")),
        encode(of_producer(keyed(9, "g"), 3)),
        encode(keyed(10, "h")),
    ]
    path = make_partition(tmp_path, {0: batches})
    (path / "00000000000000000000.snapshot").unlink()
    (path.parent / ".kafka_cleanshutdown").unlink()
    for has_index in (True, False):  # what is not synced for certain is found anew
        if has_index:
            (path / "00000000000000000000.txnindex").write_bytes(index_entry(1, 0, 4, 2))
        else:
            (path / "00000000000000000000.txnindex").unlink()
        offsets = [row["offset"] for row in read(path, isolation="read_committed")]
        assert offsets == [2, 3, 5, 8]
        assert [row["offset"] for row in read(path)] == [0, 1, 2, 3, 5, 8, 9, 10]
        assert len(read(path, control=True)) == 11


@pytest.mark.parametrize("codec", CODECS)
def test_damage_is_an_error_behind_what_is_sound(tmp_path: Path, codec: Codec) -> None:
    """Or the end, where that is asked for; the table says so."""
    batches = [packed(keyed(3 * i, "abc"), codec) for i in range(5)]
    path = make_partition(tmp_path, {0: batches})
    log = log_of(path, 0)
    at = sum(map(len, batches[:3]))
    data = bytearray(log.read_bytes())
    data[at + 61] ^= 0x40
    for damaged in (bytes(data), bytes(data[: at + 30]), bytes(data[:at]) + bytes(100)):
        log.write_bytes(damaged)
        before = {file.name: file.read_bytes() for file in path.iterdir()}
        with pytest.raises(CorruptFileError) as caught:
            read_table(str(path))
        assert (caught.value.path, caught.value.position) == (str(log), at)
        table = read_table(str(path), Selection(until_damage=True))
        assert table.column("offset").to_pylist() == list(range(9))
        assert table.schema.metadata[STOPPED_AT] == str(caught.value).encode()
        assert {file.name: file.read_bytes() for file in path.iterdir()} == before


def test_headers_that_are_no_text_are_read_as_by_a_java_client(tmp_path: Path) -> None:
    headers = ((b"\xff\xfe", b"1"), ("ä".encode(), None), (b"", b""))
    made = batch(ReferenceRecord(0, 5, b"k", None, headers))
    path = make_partition(tmp_path, {0: [encode(made)]})
    (row,) = read(path, columns=["headers"])
    expected = [("��", b"1"), ("ä", None), ("", b"")]
    assert [(header["key"], header["value"]) for header in row["headers"]] == expected


def test_a_cleaning_that_was_cut_short_is_not_read(tmp_path: Path) -> None:
    path = small(tmp_path)
    (path / "00000000000000000000.log.swap").write_bytes(b"")
    with pytest.raises(NotALogError, match=r"00000000000000000000\.log\.swap"):
        read_table(str(path))
    with pytest.raises(NotALogError, match="no such directory"):
        read_table(str(tmp_path / "missing-0"))
    with pytest.raises(NotALogError, match="orders-0"):
        read_table(str(tmp_path))


@pytest.mark.parametrize("content", ["orders-0/", "meta.properties"])
def test_a_log_directory_that_is_named_like_a_partition_is_no_log(
    tmp_path: Path, content: str
) -> None:
    inside = tmp_path / "disk-1" / content
    inside.parent.mkdir()
    inside.mkdir() if content.endswith("/") else inside.touch()
    with pytest.raises(NotALogError, match="disk-1: is a log directory"):
        read_table(str(tmp_path / "disk-1"))


@pytest.mark.parametrize(
    "name", ["", "partition.metadata", f"{0:020d}.index", f"{0:020d}.log.deleted"]
)
def test_a_directory_without_a_segment_is_no_log(tmp_path: Path, name: str) -> None:
    path = tmp_path / "orders-0"
    path.mkdir()
    if name:
        (path / name).touch()
    for read_it in (read_table, RecordStream):
        with pytest.raises(NotALogError, match=r"orders-0: holds no log.*Nothing was read"):
            read_it(path)
    with pytest.raises(NotALogError, match="orders-0: holds no log"):
        splits_of(path, Selection(), 100)


def test_a_segment_that_is_a_link_is_not_left_out_in_silence(tmp_path: Path) -> None:
    path = small(tmp_path)
    (path / f"{100:020d}.log").symlink_to(path / f"{0:020d}.log")
    with pytest.raises(NotALogError, match=r"0100\.log: is a symbolic link.*Nothing was read"):
        read_table(path)


def test_a_log_without_a_record_is_an_empty_table(tmp_path: Path) -> None:
    assert read_table(make_partition(tmp_path, {0: []})).num_rows == 0


def test_a_partition_stays_one_whatever_else_is_in_it(tmp_path: Path) -> None:
    path = small(tmp_path)
    (path / "backup-1").mkdir()
    assert read_table(str(path)).num_rows == 10


@pytest.mark.parametrize(
    ("joined_rows", "expected"), [(1, [3, 2, 2, 3]), (4, [3, 4, 3]), (5, [5, 5]), (10, [10])]
)
def test_a_stream_joins_small_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, joined_rows: int, expected: list[int]
) -> None:
    monkeypatch.setattr(batch_windows, "WINDOW_BYTES", 100)
    monkeypatch.setattr(reading, "JOINED_ROWS", joined_rows)
    reader = RecordStream(str(small(tmp_path))).reader()
    assert isinstance(reader, pa.RecordBatchReader)
    assert [found.num_rows for found in reader] == expected


def test_what_stands_before_damage_comes_before_the_error(tmp_path: Path) -> None:
    """Also where it waits to be joined with what follows."""
    path = make_partition(tmp_path, {0: [keyed(0, "ab")], 2: [keyed(2, "c"), keyed(3, "d")]})
    log = log_of(path, 2)
    log.write_bytes(log.read_bytes()[:-1] + b"?")
    stream = iter(RecordStream(str(path)))
    assert next(stream).column("offset").to_pylist() == [0, 1, 2]
    with pytest.raises(CorruptFileError):
        next(stream)


YEAR_1_MS, YEAR_10000_MS = -62_135_596_800_000, 253_402_300_800_000


def test_times_that_are_no_dates_are_null_and_exact_in_ms(tmp_path: Path) -> None:
    """Kafka takes any time; a table that holds one still turns into Python objects."""
    two_days = 2 * 86_400_000  # so that no time zone has one of them in another year
    ends = (YEAR_10000_MS, YEAR_10000_MS - two_days, YEAR_1_MS, YEAR_1_MS + two_days - 1)
    dates = (YEAR_10000_MS - two_days - 1, YEAR_1_MS + two_days)
    times = [0, 2**63 - 1, *ends, *dates, -1]
    made = [batch(record(i, b"k", timestamp=time)) for i, time in enumerate(times)]
    table = read_table(make_partition(tmp_path, {0: made}))
    assert table.column("timestamp_ms").to_pylist() == [*times[:-1], None]
    shown = [None if t is None else t.isoformat() for t in table.column("timestamp").to_pylist()]
    assert shown == [
        "1970-01-01T00:00:00+00:00", None, None, None, None, None,
        "9999-12-29T23:59:59.999000+00:00", "0001-01-03T00:00:00+00:00", None,
    ]  # fmt: skip


def test_tables_of_several_logs_are_one_table(tmp_path: Path) -> None:
    read_of = [
        read_table(make_partition(tmp_path / name, {0: [keyed(0, keys)]}, f"{name}-0"))
        for name, keys in (("t", "abc"), ("u", "d"))
    ]
    grouped = pa.concat_tables(read_of).group_by(["topic", "timestamp_type"])
    counts = grouped.aggregate([("offset", "count")]).sort_by("topic").to_pydict()
    assert counts["topic"] == ["t", "u"]
    assert counts["offset_count"] == [3, 1]


@pytest.mark.parametrize("name", ["key", "offset", "timestamp", "headers", "topic"])
def test_a_table_keeps_no_more_memory_than_its_columns_need(tmp_path: Path, name: str) -> None:
    """The room for all that a batch could hold is given back."""
    made = [batch(*(record(8 * i + j, b"k", bytes(9000)) for j in range(8))) for i in range(40)]
    path = make_partition(tmp_path, {0: made})  # 320 records in 2.9 MB
    selection = Selection(columns=[name])
    read_table(path, selection)
    tracemalloc.start()
    try:
        table = read_table(path, selection)
        kept_bytes, _ = tracemalloc.get_traced_memory()  # numpy's arrays are counted, Arrow's not
    finally:
        tracemalloc.stop()
    assert table.num_rows == 320
    assert kept_bytes < 60_000


def test_an_open_log_is_read_as_it_is_when_the_read_begins(tmp_path: Path) -> None:
    options = LogOptions(clock=lambda: 1, scheduler=ManualScheduler(lambda: 1))
    with Log.open(str(tmp_path / "orders-0"), options) as log:
        for letters in ("ab", "c"):
            log.append_as_leader(encode(keyed(0, letters)))
            log.roll()
        stream = RecordStream(log, Selection(columns=["offset", "key"]))
        log.append_as_leader(encode(keyed(0, "d")))
        found = pa.Table.from_batches(list(stream))
        assert found.column("key").to_pylist() == [b"a", b"b", b"c"]
        assert read_table(log).num_rows == 4
        found = read_table(log, Selection(start_offset=2))
        assert found.column("key").to_pylist() == [b"c", b"d"]
        assert read_table(log, COMMITTED).num_rows == 0  # the high watermark has not moved
        log.follow_end()
        assert read_table(log, COMMITTED).num_rows == 4
