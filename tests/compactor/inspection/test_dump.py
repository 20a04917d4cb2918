"""Dumps of every kind of file, against files that Kafka wrote and bytes laid out by hand."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from compactor.inspection.dump import rows_of
from compactor.inspection.dumped_log import WantedOffsets
from compactor.views.record_lines import json_of_row, text_of_row
from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.formats.record import Record
from storage.formats.record_batch import BatchOptions, encode_batch
from tests.compactor import small_log
from tests.storage.kafka_batches import (
    COMMIT_MARKER,
    DELETE_HORIZON,
    EMPTY,
    KAFKAS_FILES,
    two_records,
)
from tests.storage.legacy_vectors import V0_LZ4, V1
from tests.storage.log.test_cluster_metadata import batches, snapshot

BASE = "00000000000000000004"


def kafkas(directory: Path, *names: str) -> Path:
    for name in names or KAFKAS_FILES:
        (directory / name).write_bytes(bytes.fromhex(KAFKAS_FILES[name]))
    return directory


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in map(json_of_row, rows_of(str(path)))]


def text(path: Path) -> list[str]:
    return list(map(text_of_row, rows_of(str(path))))


def put(path: Path, data: bytes | str) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def test_a_log_as_json(tmp_path: Path) -> None:
    path = kafkas(tmp_path) / "00000000000000000000.log"
    found = rows(path)
    assert [row["kind"] for row in found] == ["batch", "record", "record"] + ["batch", "record"] * 2
    assert found[0] == {
        "kind": "batch",
        "position": 0,
        "size_bytes": 79,
        "base_offset": 0,
        "last_offset": 1,
        "records": 2,
        "codec": "none",
        "base_timestamp": 1700000000000,
        "max_timestamp": 1700000000000,
        "timestamp_type": "CreateTime",
        "delete_horizon_ms": None,
        "partition_leader_epoch": 0,
        "producer_id": 7,
        "producer_epoch": 2,
        "base_sequence": 0,
        "transactional": False,
        "control": False,
        "crc": 0x4B57ECC0,
    }
    assert found[4] == {
        "kind": "record",
        "offset": 2,
        "timestamp": 1700000000500,
        "key": "a",
        "value": "2",
        "headers": [["h", "x"], ["", None]],
    }
    nobody = ("producer_id", "producer_epoch", "base_sequence")
    assert [found[3][name] for name in nobody] == [None] * 3  # -1 on disk


def test_a_log_as_text_leaves_out_what_is_not_there_but_no_zero(tmp_path: Path) -> None:
    found = text(kafkas(tmp_path) / "00000000000000000000.log")
    assert found[0] == (
        "batch  position 0  size_bytes 79  base_offset 0  last_offset 1  records 2  codec none  "
        "base_timestamp 1700000000000  max_timestamp 1700000000000  timestamp_type CreateTime  "
        "partition_leader_epoch 0  producer_id 7  producer_epoch 2  base_sequence 0  crc 1264053440"
    )
    assert found[1] == '  record  offset 0  timestamp 1700000000000  key "a"  value "1"'
    assert found[2] == '  record  offset 1  timestamp 1699999999000  key "b"  value null'
    assert found[4].endswith('key "a"  value "2"  headers [["h", "x"], ["", null]]')


def test_control_batches_horizons_and_empty_batches(tmp_path: Path) -> None:
    path = put(tmp_path / f"{BASE}.log", COMMIT_MARKER + DELETE_HORIZON + EMPTY)
    marker, horizon = rows(path)[1], rows(path)[2]
    assert (marker["control_type"], marker["coordinator_epoch"]) == ("COMMIT", 347)
    assert horizon["delete_horizon_ms"] == 1073741823
    assert [row["records"] for row in rows(path) if row["kind"] == "batch"] == [1, 3, 0]


def test_what_is_not_utf_8_comes_as_hex(tmp_path: Path) -> None:
    record = Record(4, 5, b"\xff1", "ü".encode(), ((b"\xfe", b"null"),))
    path = put(tmp_path / f"{BASE}.log", encode_batch([record]))
    found = rows(path)[1]
    assert (found["key"], found["value"]) == ({"hex": "ff31"}, "ü")
    assert found["headers"] == [[{"hex": "fe"}, "null"]]
    assert text(path)[1] == (
        '  record  offset 4  timestamp 5  key {"hex": "ff31"}  value "ü"  '
        'headers [[{"hex": "fe"}, "null"]]'
    )


def test_a_damaged_log_is_shown_as_far_as_it_is_sound(tmp_path: Path) -> None:
    damaged = bytearray(two_records("NONE"))
    damaged[-1] ^= 1
    path = put(tmp_path / f"{BASE}.log", EMPTY + bytes(damaged))
    lines = map(text_of_row, rows_of(str(path)))
    assert next(lines).startswith("batch  position 0  ")
    with pytest.raises(CorruptFileError, match=f"{BASE}.log, byte 61: batch has CRC"):
        next(lines)


def test_indexes_and_snapshots(tmp_path: Path) -> None:
    kafkas(tmp_path)
    assert rows(tmp_path / "00000000000000000000.index") == [
        {"kind": "index", "offset": 2, "position": 79},
        {"kind": "index", "offset": 3, "position": 170},
    ]
    assert text(tmp_path / f"{BASE}.timeindex") == ["timeindex  timestamp 1700000000700  offset 6"]
    (snapshot,) = rows(tmp_path / f"{BASE}.snapshot")
    assert (snapshot["producer_id"], snapshot["last_offset"]) == (7, 1)
    assert snapshot["current_txn_first_offset"] is None
    aborted = "0000 00000000000003e8 0000000000000010 0000000000000017 0000000000000018"
    assert text(put(tmp_path / f"{BASE}.txnindex", bytes.fromhex(aborted))) == [
        "txnindex  producer_id 1000  first_offset 16  last_offset 23  last_stable_offset 24"
    ]


@pytest.mark.parametrize("suffix", [".cleaned", ".swap", ".deleted"])
def test_what_is_half_done_is_read_as_what_it_is_to_be(tmp_path: Path, suffix: str) -> None:
    index = bytes.fromhex("0000000200000063")
    path = put(tmp_path / f"{BASE}.index{suffix}", index)
    assert text(path) == ["index  offset 6  position 99"]


def test_files_of_text(tmp_path: Path) -> None:
    checkpoint = "0\n2\nb 0 5\na 1 0\n"
    for name in ("cleaner", "recovery-point", "log-start", "replication"):
        path = tmp_path / (f"{name}-offset-checkpoint")
        assert text(put(path, checkpoint)) == [
            "checkpoint  topic a  partition 1  offset 0",
            "checkpoint  topic b  partition 0  offset 5",
        ]
    assert text(put(tmp_path / "leader-epoch-checkpoint", "0\n1\n3 40\n")) == [
        "leader_epoch  epoch 3  start_offset 40"
    ]
    metadata = "version: 0\ntopic_id: AAAAAAAAAAcAAAAAAAAENQ"
    assert text(put(tmp_path / "partition.metadata", metadata)) == [
        "partition_metadata  version 0  topic_id AAAAAAAAAAcAAAAAAAAENQ"
    ]
    properties = "version=1\nnode.id=1\ncluster.id=c\n"
    assert text(put(tmp_path / "meta.properties", properties)) == [
        "meta_properties  version 1  cluster_id c  node_id 1"
    ]
    marker = '{"version":0,"brokerEpoch":9}'
    assert text(put(tmp_path / ".kafka_cleanshutdown", marker)) == [
        "clean_shutdown  broker_epoch 9"
    ]


def test_a_partition_directory_in_the_order_of_names(tmp_path: Path) -> None:
    kafkas(tmp_path, f"{BASE}.log", f"{BASE}.index", "leader-epoch-checkpoint")
    put(tmp_path / "notes.txt", "mine")
    (tmp_path / "directory").mkdir()
    kinds = [(row["kind"], row.get("name")) for row in rows(tmp_path)]
    assert kinds == [
        ("file", f"{BASE}.index"),
        ("index", None),
        ("file", f"{BASE}.log"),
        ("batch", None),
        ("record", None),
        ("record", None),
        ("batch", None),
        ("record", None),
        ("file", "leader-epoch-checkpoint"),
        ("leader_epoch", None),
        ("leader_epoch", None),
        ("unknown_file", "notes.txt"),
    ]


def test_a_file_that_vanishes_is_said_to(tmp_path: Path) -> None:
    kafkas(tmp_path, f"{BASE}.index", f"{BASE}.log")
    lines = map(json_of_row, rows_of(str(tmp_path)))
    next(lines)
    (tmp_path / f"{BASE}.index").unlink()
    (tmp_path / f"{BASE}.log").unlink()
    found = [json.loads(line) for line in lines]
    assert [(row["kind"], row["name"]) for row in found] == [
        ("vanished_file", f"{BASE}.index"),
        ("file", f"{BASE}.log"),
        ("vanished_file", f"{BASE}.log"),
    ]


@pytest.mark.parametrize("name", ["notes.txt", "abc.log", "12x.index", "4.log.gz", "log"])
def test_a_file_that_is_none_of_kafkas_is_refused(tmp_path: Path, name: str) -> None:
    path = put(tmp_path / name, b"")
    with pytest.raises(UnsupportedFormatError, match="not a file of a log directory"):
        text(path)


def test_messages_of_format_v0_and_v1_and_what_wrappers_hold(tmp_path: Path) -> None:
    """F-7: golden vectors 5 and 4 of the specification."""
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(V0_LZ4 + (5).to_bytes(8, "big") + V1[8:])
    found = rows(path)
    assert [row["kind"] for row in found] == ["message", "record", "record", "message", "record"]
    assert found[0] == {
        "kind": "message",
        "position": 0,
        "size_bytes": 98,
        "magic": 0,
        "offset": 1,
        "codec": "lz4",
        "timestamp": None,
        "timestamp_type": None,
        "crc": 66944826,
    }
    assert found[3]["timestamp_type"] == "CreateTime"
    assert [(row["offset"], row["timestamp"], row["key"]) for row in found if "key" in row] == [
        (0, None, "key1"),
        (1, None, "key2"),
        (5, 283843, "key1"),
    ]


def test_snapshots_and_records_of_the_metadata_log_are_shown_as_what_they_say(
    tmp_path: Path,
) -> None:
    """The records are Kafka's own: `tests/golden/metadata_records.jsonl`."""
    golden = Path(__file__).parents[2] / "golden" / "metadata_records.jsonl"
    lines = [json.loads(line) for line in golden.read_text(encoding="utf-8").splitlines()]
    values = [bytes.fromhex(line["hex"]) for line in lines if line["name"] != "ClientQuotaRecord"]
    directory = tmp_path / "__cluster_metadata-0"
    directory.mkdir()
    snapshot(directory, 9, *values, time_ms=1234)
    (made,) = directory.iterdir()
    shutil.copy(made, tmp_path / "bootstrap.checkpoint")
    log = directory / "00000000000000000000.log"
    log.write_bytes(batches(0, *values, b"\1\x63\0"))
    for path in (made, tmp_path / "bootstrap.checkpoint", log):
        found = [row for row in rows(path) if row["kind"] == "record"]
        told = [row["value"] for row in found if "control_type" not in row]
        names = [line["name"] for line in lines if line["name"] != "ClientQuotaRecord"]
        assert [value["name"] for value in told if value["name"]] == names
        assert {"name": "name-ä1", "topicId": "AAAAAAAAAAIAAAAAAAAAAw"} in [
            value.get("data") for value in told
        ]
    header, *_, footer = [row for row in rows(made) if row["kind"] == "record"]
    assert header["control_type"] == "SNAPSHOT_HEADER"
    assert header["last_contained_log_timestamp"] == 1234
    assert footer["control_type"] == "SNAPSHOT_FOOTER"
    assert list(rows(log))[-1]["value"]["problem"] == "type 99 is not known"


def test_the_state_of_the_quorum(tmp_path: Path) -> None:
    path = tmp_path / "quorum-state"
    path.write_text('{"leaderId":1,"leaderEpoch":4,"votedId":-1,"data_version":1}')
    assert list(rows(path)) == [
        {
            "kind": "quorum_state",
            "leaderId": 1,
            "leaderEpoch": 4,
            "votedId": None,
            "data_version": 1,
        }
    ]
    path.write_text("[1]")
    with pytest.raises(CorruptFileError, match="is no JSON object"):
        list(rows(path))


def test_only_some_offsets_and_no_more_than_so_many(tmp_path: Path) -> None:
    """Held against all rows: of a log whose batches they cut, and of a partition."""
    partition = small_log.build(tmp_path)
    whole = [row for row in rows_of(str(partition)) if row["kind"] == "record"]
    for first, end, limit in ((0, 7, None), (4, 5, None), (13, 20, 3), (0, 30, 29), (29, 99, None)):
        expected = [row for row in whole if first <= row["offset"] < end][:limit]
        found = list(rows_of(str(partition), WantedOffsets(first, end, limit)))
        assert [row for row in found if row["kind"] == "record"] == expected
        logs = {row["name"] for row in found if row["kind"] == "file"}
        assert logs == {f"{base:020d}.log" for base in (0, 15) if first < base + 15 and end > base}
        cut = [row for row in found if row["kind"] == "batch"]
        assert all(b["last_offset"] >= first and b["base_offset"] < end for b in cut)
    index = partition / "00000000000000000000.index"
    entries = list(rows_of(str(index)))
    wanted = WantedOffsets(entries[1]["offset"], limit=2)
    assert list(rows_of(str(index), wanted)) == entries[1:3]


def test_records_of_the_coordinators_are_shown_as_what_they_say(tmp_path: Path) -> None:
    """Bytes by Kafka's own serializers: `tests/golden/coordinator_records.jsonl`."""
    key = bytes.fromhex("0001 0001 67 0001 74 00000002")
    value = bytes.fromhex("0003 0000000000000005 ffffffff 0000 0000000000000007")
    records = [
        Record(0, 10, key, value),
        Record(1, 10, key, None),
        Record(2, 10, b"\0\x63x", b"\0\1"),
        Record(3, 10, key, b"\0\x09"),
    ]
    partition = tmp_path / "__consumer_offsets-3"
    partition.mkdir()
    put(partition / "00000000000000000000.log", encode_batch(records))
    found = [row for row in rows(partition) if row["kind"] == "record"]
    committed = {
        "type": 1, "name": "OffsetCommit", "data": {"group": "g", "topic": "t", "partition": 2}
    }  # fmt: skip
    said = {"offset": 5, "leaderEpoch": -1, "metadata": "", "commitTimestamp": 7}
    assert [row["key"] for row in found] == [
        committed,
        committed,
        {"type": 99, "problem": "type 99 is not known", "hex": "006378"},
        committed,
    ]
    problem = "version 9 is not known: versions up to 4 are"
    assert [row["value"] for row in found] == [
        {"version": 3, "data": said},
        None,
        {"version": 1, "problem": "the type of its record is not known", "hex": "0001"},
        {"version": 9, "problem": problem, "hex": "0009"},
    ]


_VOTER = {"voterId": 3, "voterDirectoryId": "AAAAAAAAAAEAAAAAAAAAAg"}
_OF_QUORUM = [  # hex and fields as Kafka 4.3.1 writes both
    (
        2,
        "000000000003020000000300000000000000010000000000000002000200000003000000000000000100000000"
        "000000020000",
        {"leaderId": 3, "voters": [_VOTER], "grantingVoters": [_VOTER]},
    ),
    (
        2,
        "0000000000030200000003000100",
        {"leaderId": 3, "voters": [{"voterId": 3}], "grantingVoters": []},
    ),
    (5, "0000000100", {"kRaftVersion": 1}),
    (
        6,
        "0000020000000700000000000000010000000000000002020b434f4e54524f4c4c45520468c3a4fde800000000"
        "01000000",
        {
            "voters": [
                {
                    "voterId": 7,
                    "voterDirectoryId": "AAAAAAAAAAEAAAAAAAAAAg",
                    "endpoints": [{"name": "CONTROLLER", "host": "hä", "port": 65000}],
                    "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
                }
            ]
        },
    ),
]


@pytest.mark.parametrize(("kind", "data", "fields"), _OF_QUORUM)
def test_control_records_of_the_quorum_are_shown_as_what_they_say(
    kind: int, data: str, fields: dict[str, Any], tmp_path: Path
) -> None:
    value = bytes.fromhex(data)
    if "voterDirectoryId" in str(fields) and kind == 2:
        value = b"\0\1" + value[2:]  # the version, which who writes it sets
    path = put(tmp_path / f"{BASE}-0000000001.checkpoint", _control(kind, value))
    record = rows(path)[1]
    assert record["value"] == {"version": int(value[1]), "data": fields}
    assert "hä" in "".join(text(path)) or kind != 6
    for damaged in (value[:-1], b"\0\x63" + value[2:], b"\0"):
        shown = rows(put(path, _control(kind, damaged)))[1]["value"]
        assert shown["hex"] == damaged.hex() and shown["problem"]


def _control(kind: int, value: bytes) -> bytes:
    record = Record(4, 1000, b"\0\0" + kind.to_bytes(2, "big"), value)
    return encode_batch([record], options=BatchOptions(is_control=True))
