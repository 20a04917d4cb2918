"""Edge cases of appends, producers, rolls, truncation and loading: docs/spec/engine.md, L-33.

What is expected stands in the tables of that page, which were run on Kafka 4.3.1. A batch of one
record with a key and a value of one byte has 70 bytes.
"""

from typing import Any

import pytest

from tests.engine.replay.replayed import replayed
from tests.support.files.memory import MemoryFiles

Line = dict[str, Any]

NOW = 1_700_000_000_000
OPEN: Line = {"op": "open"}
FAR = 2**31


def one(ts: int = NOW, **more: Any) -> Line:
    """An append of one record."""
    return {"op": "append", "records": [{"k": "k", "v": "v", "ts": ts}], **more}


def follower(base_offset: int, **more: Any) -> Line:
    return one(**{"as": "follower", "base_offset": base_offset, **more})


def by(seq: int, **more: Any) -> Line:
    """An append of producer 1."""
    return one(**{"pid": 1, "epoch": 0, "seq": seq, **more})


def marker(**more: Any) -> Line:
    return {"op": "end_txn", "pid": 1, "epoch": 0, "commit": True, **more}


def config(**settings: Any) -> Line:
    return {"op": "config", **{name.replace("_", "."): str(v) for name, v in settings.items()}}


def told(*script: Line) -> list[Line]:
    return replayed(MemoryFiles(), "/logs", script)


def outcome(line: Line) -> str:
    return str(line.get("error", "ok"))


APPENDS: list[tuple[str, list[Line], list[str]]] = [
    ("EE-66", [one(base_offset=5)], ["InvalidRecordException"]),
    ("EE-66", [{"op": "append", "batches": [one(), one()]}], ["InvalidRecordException"]),
    ("EE-67", [one(base_offset=5, origin="coordinator")], ["ok"]),
    ("EE-68", [follower(0, leader_epoch=-1)], ["IllegalArgumentException"]),
    ("EE-69", [config(max_message_bytes=70), one()], ["ok", "ok"]),
    (
        "EE-69",
        [config(max_message_bytes=69), one(), follower(0)],
        ["ok", "RecordTooLargeException", "ok"],
    ),
    ("EE-73", [one(), one(), follower(1)], ["ok", "ok", "UnexpectedAppendOffsetException"]),
    (
        "EE-75",
        [{"op": "append", "as": "follower", "batches": [follower(3), follower(3)]}],
        ["OffsetsOutOfOrderException"],
    ),
    ("EE-81", [{"op": "append", "hex": "00" * 11}], ["ok"]),
    (
        "EE-81",
        [{"op": "append", "hex": "00" * 8 + "0000000d" + "00" * 13}],
        ["CorruptRecordException"],
    ),
    (
        "EE-81",
        [{"op": "append", "hex": "00" * 8 + "00000032" + "00" * 4 + "03" + "00" * 45}],
        ["CorruptRecordException"],
    ),
    (
        "EE-90",
        [config(message_timestamp_type="LogAppendTime"), one(log_append_time=True)],
        ["ok", "RecordValidationException"],
    ),
    (
        "EE-93",
        [config(cleanup_policy="compact"), {"op": "append", "records": [{"k": None, "v": "v"}]}],
        ["ok", "RecordValidationException"],
    ),
    (
        "EE-93",
        [config(cleanup_policy="compact"), {"op": "append", "records": [{"k": "", "v": "v"}]}],
        ["ok", "ok"],
    ),
    ("EE-101", [by(2**31 - 1), by(0)], ["ok", "ok"]),
    ("EE-102", [by(77, epoch=4)], ["ok"]),
    ("EE-103", [by(0), by(1, epoch=1)], ["ok", "OutOfOrderSequenceException"]),
    ("EE-103", [by(0, epoch=1), by(1, epoch=0)], ["ok", "InvalidProducerEpochException"]),
    ("EE-104", [by(0, txn=True), by(1)], ["ok", "InvalidTxnStateException"]),
    (
        "EE-106",
        [marker(coordinator_epoch=epoch) for epoch in (3, 3, 4, 2)],
        ["ok", "ok", "ok", "TransactionCoordinatorFencedException"],
    ),
    (
        "EE-107",
        [by(0, txn=True), marker(epoch=1, transaction_version=2), by(0, epoch=1)],
        ["ok", "ok", "ok"],
    ),
    (
        "EE-107",
        [by(0, txn=True), marker(epoch=1, transaction_version=2), by(1, epoch=1)],
        ["ok", "ok", "OutOfOrderSequenceException"],
    ),
    ("EE-108", [by(0, txn=True), marker(), by(1, txn=True)], ["ok", "ok", "ok"]),
    ("EE-109", [marker(transaction_version=-1)], ["IllegalArgumentException"]),
    (
        "EE-110",
        [follower(0, pid=1, epoch=0, seq=0), follower(1, pid=1, epoch=0, seq=0)],
        ["ok", "ok"],
    ),
]


@pytest.mark.parametrize(("rule", "script", "expected"), APPENDS)
def test_what_is_refused_and_what_is_not(
    rule: str, script: list[Line], expected: list[str]
) -> None:
    assert [outcome(line) for line in told(OPEN, *script)[1:]] == expected, rule


@pytest.mark.parametrize(
    ("ts", "expected"),
    [
        (-100, "ok"),
        (-101, "InvalidTimestampException"),
        (50, "ok"),
        (51, "InvalidTimestampException"),
    ],
)
def test_bounds_of_times_are_inclusive(ts: int, expected: str) -> None:
    """EE-85."""
    bounds = config(message_timestamp_before_max_ms=100, message_timestamp_after_max_ms=50)
    line = told(bounds, OPEN, one(NOW + ts))[-1]
    assert line.get("cause", "ok") == expected


def test_nothing_of_an_empty_set_is_appended() -> None:
    """EE-65."""
    line = told(OPEN, {"op": "append", "records": []})[-1]
    assert (line["result"]["first_offset"], line["result"]["last_offset"]) == (-1, -1)
    assert line["state"]["log_end_offset"] == 0


def test_a_refused_append_has_registered_its_epoch() -> None:
    """EE-70."""
    line = told(config(segment_bytes=69), OPEN, one(leader_epoch=7))[-1]
    assert line["error"] == "RecordBatchTooLargeException"
    assert line["state"]["leader_epochs"] == [[7, 0]]
    assert line["state"]["log_end_offset"] == 0


def test_a_duplicate_has_rolled_a_segment() -> None:
    """EE-71."""
    script = (config(segment_bytes=139), OPEN, by(0), by(0, leader_epoch=4))
    line = told(*script)[-1]
    assert (line["result"]["first_offset"], line["result"]["last_offset"]) == (0, 0)
    assert line["result"]["log_append_time"] == NOW
    state = line["state"]
    assert state["log_end_offset"] == 1
    assert [s["base_offset"] for s in state["segments"]] == [0, 1]
    assert (state["leader_epochs"], state["snapshots"]) == ([[0, 0], [4, 1]], [1])


def test_a_wrong_sequence_has_rolled_one_too() -> None:
    """EE-72."""
    line = told(config(segment_bytes=139), OPEN, by(0), by(5, leader_epoch=4))[-1]
    assert line["error"] == "OutOfOrderSequenceException"
    assert len(line["state"]["segments"]) == 2
    assert line["state"]["leader_epochs"] == [[0, 0], [4, 1]]


def test_a_follower_skips_batches_of_epochs_that_it_does_not_know() -> None:
    """EE-76, EE-77."""
    batches = [{**follower(i), "batch_epoch": epoch} for i, epoch in enumerate((1, 3, 1))]
    line = told(OPEN, {"op": "append", "as": "follower", "leader_epoch": 2, "batches": batches})[-1]
    assert line["state"]["log_end_offset"] == 1
    line = told(OPEN, follower(0, leader_epoch=2, batch_epoch=9))[-1]
    assert (line["result"]["first_offset"], line["result"]["last_offset"]) == (-1, -1)


def test_an_old_message_empties_the_epochs() -> None:
    """EE-78."""
    assert told(OPEN, one(), follower(1, magic=1))[-1]["state"]["leader_epochs"] == []


@pytest.mark.parametrize(("base", "bases"), [(100, [0]), (FAR - 1, [0]), (FAR, [0, FAR])])
def test_a_follower_may_begin_anywhere(base: int, bases: list[int]) -> None:
    """EE-79, EE-80, EE-121."""
    state = told(OPEN, follower(base))[-1]["state"]
    assert state["log_end_offset"] == base + 1
    assert [s["base_offset"] for s in state["segments"]] == bases
    assert state["log_start_offset"] == 0


def test_the_last_five_batches_of_a_producer_are_known() -> None:
    """EE-100."""
    lines = told(OPEN, *map(by, range(6)), by(1), by(0))
    assert lines[-2]["result"]["first_offset"] == 1
    assert lines[-2]["state"]["log_end_offset"] == 6
    assert lines[-1]["error"] == "OutOfOrderSequenceException"


def test_markers_of_the_second_version_raise_the_epoch() -> None:
    """EE-105."""
    steps = [(5, 2), (4, 2), (4, 0), (6, 2), (6, 2), (5, 2), (5, 0), (6, 0)]
    markers = [marker(epoch=epoch, transaction_version=version) for epoch, version in steps]
    lines = told(OPEN, by(0, epoch=5, txn=True), *markers)[2:]
    refused = [outcome(line) != "ok" for line in lines]
    assert refused == [True, True, True, False, False, True, True, False]


@pytest.mark.parametrize(("age", "left"), [(86_399_999, 1), (86_400_000, 0)])
def test_a_producer_expires(age: int, left: int) -> None:
    """EE-111."""
    clock = {"op": "clock", "advance": age}
    assert (
        len(told(OPEN, by(0), clock, {"op": "expire_producers"})[-1]["state"]["producers"]) == left
    )


@pytest.mark.parametrize(("room", "segments"), [(140, 1), (139, 2)])
def test_a_segment_is_rolled_by_size(room: int, segments: int) -> None:
    """EE-115."""
    line = told(config(segment_bytes=room), OPEN, one(), one())[-1]
    assert len(line["state"]["segments"]) == segments


@pytest.mark.parametrize(("second", "segments"), [(1_000, 1), (1_001, 2), (None, 1)])
def test_a_segment_is_rolled_by_the_times_of_records(second: int | None, segments: int) -> None:
    """EE-116, EE-117."""
    later = -1 if second is None else NOW + second
    script = (
        config(segment_ms=1_000),
        OPEN,
        one(NOW),
        {"op": "clock", "advance": 90_000},
        one(later),
    )
    assert len(told(*script)[-1]["state"]["segments"]) == segments


@pytest.mark.parametrize(("wait", "segments"), [(10, 1), (11, 2)])
def test_without_times_a_segment_is_rolled_by_the_clock(wait: int, segments: int) -> None:
    """EE-118, EE-120."""
    for limit in (
        config(segment_ms=10),
        config(cleanup_policy="compact", max_compaction_lag_ms=10),
    ):
        script = (limit, OPEN, one(-1), {"op": "clock", "advance": wait}, one(-1))
        assert len(told(*script)[-1]["state"]["segments"]) == segments


def test_it_is_flushed_after_so_many_messages() -> None:
    """EE-125."""
    lines = told(config(flush_messages=2), OPEN, one(), one())
    assert [line["state"]["recovery_point"] for line in lines[2:]] == [0, 2]


def test_leader_epochs_and_where_they_end() -> None:
    """EE-126."""
    assign = [
        {"op": "assign_epoch", "epoch": epoch, "offset": offset}
        for epoch, offset in ((2, 6), (3, 9), (5, 9))
    ]
    asked = [{"op": "epoch_end_offset", "epoch": epoch} for epoch in (-1, 0, 2, 3, 5, 6)]
    lines = told(OPEN, follower(0, leader_epoch=0), follower(19, leader_epoch=0), *assign, *asked)
    assert lines[5]["state"]["leader_epochs"] == [[0, 0], [2, 6], [5, 9]]
    ends = [
        line["result"] and (line["result"]["epoch"], line["result"]["offset"]) for line in lines[6:]
    ]
    assert ends == [None, (0, 6), (2, 9), (2, 9), (5, 20), None]


def test_a_truncation_within_a_batch_ends_the_log_there() -> None:
    """EE-130, EE-131."""
    three = {"op": "append", "records": [{"k": "k", "v": "v"}] * 3}
    lines = told(OPEN, three, {"op": "truncate_to", "offset": 2}, one())
    assert (lines[2]["state"]["size"], lines[2]["state"]["log_end_offset"]) == (0, 2)
    assert lines[3]["result"]["first_offset"] == 2
    state = told(OPEN, one(), {"op": "roll"}, one(), {"op": "truncate_to", "offset": 1})[-1][
        "state"
    ]
    assert [(s["base_offset"], s["log"]) for s in state["segments"]] == [(0, 70), (1, 0)]


@pytest.mark.parametrize("start", [None, 30])
def test_a_log_begins_anew(start: int | None) -> None:
    """EE-134, EE-135."""
    line: Line = {"op": "truncate_fully", "offset": 40}
    if start is not None:
        line["log_start_offset"] = start
    state = told(OPEN, one(), {"op": "flush"}, line)[-1]["state"]
    assert state["log_start_offset"] == (40 if start is None else start)
    assert (state["log_end_offset"], state["high_watermark"], state["recovery_point"]) == (
        40,
        40,
        1,
    )
    assert state["snapshots"] == ([] if start is None else [40])


def test_the_log_start_moves_up_to_the_high_watermark() -> None:
    """EE-138."""
    to = [{"op": "delete_records", "offset": offset} for offset in ("hw+1", "hw", "hw", 0)]
    lines = told(OPEN, one(), one(), {"op": "high_watermark", "offset": 1}, *to)[-4:]
    assert outcome(lines[0]) == "OffsetOutOfRangeException"
    assert [line["result"]["incremented"] for line in lines[1:]] == [True, False, False]


@pytest.mark.parametrize(("most", "deleted"), [(141, 0), (140, 1), (139, 1)])
def test_segments_go_by_size(most: int, deleted: int) -> None:
    """EE-140."""
    three = [one(), {"op": "roll"}, one(), {"op": "roll"}, one()]
    end = {"op": "high_watermark", "offset": "end"}
    line = told(OPEN, *three, end, config(retention_bytes=most), {"op": "retention"})[-1]
    assert line["result"]["deleted"] == deleted


def test_an_empty_directory_with_a_log_start() -> None:
    """EE-150."""
    state = told({"op": "open", "clean": True, "log_start_offset": 500})[-1]["state"]
    names = ("log_start_offset", "log_end_offset", "high_watermark", "recovery_point")
    assert [state[name] for name in names] == [500] * 4
    assert ([s["base_offset"] for s in state["segments"]], state["snapshots"]) == ([500], [500])


def test_a_log_that_ends_before_its_start_is_emptied() -> None:
    """EE-151."""
    close, again = {"op": "close"}, {"op": "open", "log_start_offset": 5}
    lines = told(OPEN, one(), close, again, {"op": "files"})
    assert lines[3]["state"]["log_end_offset"] == 5
    assert "t-0/00000000000000000000.log.deleted" in {f["name"] for f in lines[4]["result"]}


@pytest.mark.parametrize(("clean", "point"), [(False, 1), (True, 2)])
def test_the_recovery_point_moves_only_after_a_clean_shutdown(clean: bool, point: int) -> None:
    """EE-152."""
    again = {"op": "open", "clean": clean, "recovery_point": 1}
    assert told(OPEN, one(), one(), {"op": "close"}, again)[-1]["state"]["recovery_point"] == point


def test_a_fresh_log_has_these_files() -> None:
    """EE-159."""
    names = {
        file["name"].removeprefix("t-0/") for file in told(OPEN, {"op": "files"})[-1]["result"]
    }
    stem = "0" * 20
    assert names == {f"{stem}.log", f"{stem}.index", f"{stem}.timeindex", "leader-epoch-checkpoint"}
