"""What a leader checks of records and makes of them: spec L-13, and L-3 where it shows."""

import gzip
from struct import pack
from typing import Any
from zlib import crc32

from tests.engine.rules.case import NOW_MS, Case, Line
from tests.engine.rules.steps import (
    OPEN,
    at_time,
    batches,
    by,
    config,
    fails,
    found,
    in_txn,
    many,
    ok,
    one,
    read,
    record,
    refused,
    result,
    state,
)

COORDINATOR: Line = {"origin": "coordinator", "transaction_version": 1}
BOUNDS = config(message_timestamp_before_max_ms=100, message_timestamp_after_max_ms=50)
APPEND_TIME = config(message_timestamp_type="LogAppendTime")


def edited(line: Line, position: int, data: str) -> Line:
    """With bytes written over, and a checksum that holds."""
    return {**line, "edit": [[position, data]], "fix_crc": True}


def message(
    magic: int, offset: int, value: bytes | None, ts: int = NOW_MS, attributes: int = 0
) -> bytes:
    """A message of format 0 or 1 without a key."""
    time = pack(">q", ts) if magic else b""
    body = pack(">bb", magic, attributes) + time + pack(">i", -1)
    body += pack(">i", -1) if value is None else pack(">i", len(value)) + value
    return pack(">qiI", offset, 4 + len(body), crc32(body)) + body


def wrapped(*inner: bytes, offset: int | None = None, **more: Any) -> Line:
    """An append of a compressed message of format 1 around others."""
    value = gzip.compress(b"".join(inner), mtime=0)
    at = len(inner) - 1 if offset is None else offset
    return {"op": "append", "hex": message(1, at, value, attributes=1).hex(), **more}


def of_messages(*messages: bytes) -> Line:
    return {"op": "append", "hex": b"".join(messages).hex()}


def with_wrong_checksum(data: bytes) -> bytes:
    return data[:12] + bytes([data[12] ^ 1]) + data[13:]


CASES = [
    Case(
        "L-13.1, L-13.11",
        "by itself a topic keeps the producer's codec",
        OPEN,
        many(*range(9), codec="snappy"),
        result(source_compression="snappy"),
        read(0),
    ),
    Case(
        "L-13.1, L-13.12, L-18.4",
        "a topic without compression unpacks, and the size counts again then",
        config(compression_type="uncompressed", max_message_bytes=200),
        OPEN,
        many(*range(30), codec="gzip"),
        fails("RecordTooLargeException"),
        config(max_message_bytes=1000),
        many(*range(30), codec="gzip"),
        result(source_compression="gzip", first_offset=0, last_offset=29),
        state(log_end_offset=30, size=61 + 30 * 9),
    ),
    Case(
        "L-13.2",
        "one batch, but for uncompressed messages of old formats",
        OPEN,
        {"op": "append", "batches": [one(), one()]},
        fails("InvalidRecordException"),
        {"op": "append", "batches": [many(1, codec="gzip", magic=1)] * 2},
        fails("InvalidRecordException"),
        many(1, 2, 3, magic=1),
        result(last_offset=2),
    ),
    Case(
        "L-13.2",
        "a coordinator has to send one batch, too",
        OPEN,
        {"op": "append", "batches": [one(), one()], **COORDINATOR},
        fails("InvalidRecordException"),
    ),
    Case(
        "L-13.3",
        "each check of a batch of a client",
        OPEN,
        of_messages(message(1, 0, b"a"), message(0, 1, b"b")),
        fails("InvalidRecordException"),
        edited(one(), 57, "00000002"),
        fails("InvalidRecordException"),
        edited(one(), 57, "00000000"),
        fails("InvalidRecordException"),
        edited(one(), 23, "ffffffff"),
        fails("InvalidRecordException"),
        {"op": "append", "marker": "commit", "pid": 1, "epoch": 0},
        fails("InvalidRecordException"),
        edited(by(0), 53, "ffffffff"),
        fails("InvalidRecordException"),
        in_txn(0, to_magic=1),
        fails("IllegalArgumentException"),
        in_txn(0, to_magic=1, codec="gzip"),
        fails("UnsupportedForMessageFormatException"),
        by(0, to_magic=1),
        fails("UnsupportedForMessageFormatException"),
        one(to_magic=1),
        ok(),
        state(log_end_offset=1, producers=[]),
    ),
    Case(
        "L-13.3",
        "a coordinator's batch need not have as many records as offsets",
        OPEN,
        one(),
        many(1, 2, steps=[2], **COORDINATOR),
        result(first_offset=1, last_offset=2),
        state(log_end_offset=3),
    ),
    Case(
        "EE-98, L-13.4, L-13.5",
        "of mixed errors all records are told, and a wrong time counts more",
        BOUNDS,
        OPEN,
        wrapped(*(message(0, i, b"v") for i in range(5)), message(1, 5, b"v", NOW_MS - 1000)),
        refused("InvalidTimestampException", 0, 1, 2, 3, 4, 5),
    ),
    Case(
        "L-13.4",
        "a message within a wrapper that is compressed itself is told at once",
        OPEN,
        wrapped(message(1, 0, b"v"), message(1, 1, b"v", attributes=1)),
        fails("InvalidRecordException"),
    ),
    Case(
        "L-13.4",
        "a wrapper that is none is refused at once",
        OPEN,
        wrapped(),
        fails("InvalidRecordException"),
        wrapped(message(1, 5, b"v"), message(1, 7, b"v"), offset=6),
        fails("InvalidRecordException"),
        {"op": "append", "hex": message(1, 0, None, attributes=1).hex()},
        fails("InvalidRecordException"),
    ),
    Case(
        "L-13.4",
        "a message within a wrapper with a wrong checksum is told at once",
        config(cleanup_policy="compact"),
        OPEN,
        wrapped(message(1, 0, b"v"), with_wrong_checksum(message(1, 1, b"v"))),
        fails("CorruptRecordException"),
    ),
    Case(
        "L-13.4",
        "a compacted topic wants keys, also where it deletes; a key of no bytes is one",
        config(cleanup_policy="compact,delete"),
        OPEN,
        {"op": "append", "records": [record(), record(key=None), record(), record(key=None)]},
        refused("InvalidRecordException", 1, 3),
        {"op": "append", "records": [record(key="")]},
        ok(),
    ),
    Case(
        "L-13.4",
        "both bounds of time are inclusive, and no time is in them",
        BOUNDS,
        OPEN,
        many(NOW_MS - 100, NOW_MS - 101, -1, NOW_MS + 50, NOW_MS + 51),
        refused("InvalidTimestampException", 1, 4),
        many(NOW_MS - 100, -1, NOW_MS + 50),
        ok(),
    ),
    Case(
        "L-13.4",
        "a topic of append times takes no batch of them, whatever its records' times are",
        APPEND_TIME,
        BOUNDS,
        OPEN,
        many(1, 2, log_append_time=True),
        refused("InvalidTimestampException", 0, 1),
        many(1, 2),
        result(max_timestamp=NOW_MS, log_append_time=NOW_MS),
        at_time(NOW_MS),
        found(0, NOW_MS),
    ),
    Case(
        "L-13.5",
        "nothing is appended of a batch with one wrong record",
        config(cleanup_policy="compact"),
        OPEN,
        {"op": "append", "records": [record(), record(key=None)], "leader_epoch": 3},
        refused("InvalidRecordException", 1),
        state(log_end_offset=0, size=0, leader_epochs=[]),
    ),
    Case(
        "L-13.6",
        "uncompressed records get offsets behind the log end and the epoch of the leader",
        OPEN,
        many(5, 7, 6, leader_epoch=4),
        result(first_offset=0, last_offset=2, max_timestamp=7, last_leader_epoch=None),
        many(9, leader_epoch=4),
        result(first_offset=3, last_offset=3),
        read(0),
        batches((0, 2, 88), (3, 3, 70)),
        at_time("max"),
        found(3, 9, 4),
    ),
    Case(
        "L-13.6, L-3.5",
        "unknown bits of the attributes stay where the time is right, and go where it is not",
        OPEN,
        edited(one(5), 22, "80"),
        ok(),
        {**one(5), "edit": [[22, "80"], [35, "0000000000000006"]], "fix_crc": True},
        result(max_timestamp=5),
        read(0, max_bytes=70),
        read(1, max_bytes=70),
    ),
    Case(
        "L-13.8, L-3.2",
        "messages of format 0 become one batch without times",
        OPEN,
        many(5, 6, magic=0),
        result(max_timestamp=-1, first_offset=0, last_offset=1),
        read(0),
        batches((0, 1, 79)),
        at_time("max"),
        found(0, -1),
    ),
    Case(
        "L-13.8, L-3.2",
        "to an older format each record becomes a message",
        OPEN,
        many(5, 6, to_magic=1),
        result(max_timestamp=6),
        read(0),
        batches((0, 0, 36), (1, 1, 36)),
        many(7, to_magic=0),
        result(max_timestamp=-1),
        state(leader_epochs=[], size=36 * 2 + 28),
    ),
    Case(
        "L-13.9",
        "another codec than the topic's is another batch, the same one is not",
        config(compression_type="lz4"),
        OPEN,
        many(*range(20), codec="lz4"),
        ok(),
        many(*range(20), codec="snappy"),
        result(source_compression="snappy"),
        read(0),
    ),
    Case(
        "L-13.10",
        "a compressed batch that would be taken in place and cannot be is refused",
        OPEN,
        by(3, pid=7, base_offset=5, codec="lz4", **COORDINATOR),
        fails("UnsupportedOperationException"),
        state(log_end_offset=0, producers=[]),
        many(1, 2, steps=[2], codec="lz4", **COORDINATOR),
        fails("UnsupportedOperationException"),
    ),
    Case(
        "L-13.10, L-13.12",
        "a batch of another codec is built anew, wherever it begins",
        config(compression_type="gzip"),
        OPEN,
        by(3, pid=7, base_offset=5, codec="lz4", **COORDINATOR),
        result(first_offset=0, last_offset=0),
        state(pids=[7], last_seqs=[3], log_end_offset=1),
        read(0),
    ),
    Case(
        "L-13.10, L-13.12",
        "messages of format 1 with wrong offsets within their wrapper are built anew",
        OPEN,
        wrapped(message(1, 5, b"v"), message(1, 7, b"v"), offset=7, to_magic=1),
        result(first_offset=0, last_offset=1),
        state(log_end_offset=2),
        read(0),
        wrapped(message(1, 0, b"v"), message(1, 1, b"v"), to_magic=1),
        result(first_offset=2, last_offset=3),
        read(2),
    ),
    Case(
        "L-13.12, L-3.2",
        "a batch with a time below -1 cannot be built anew",
        config(compression_type="gzip"),
        OPEN,
        {
            **many(0, 1),
            "edit": [[27, "ff" * 7 + "fb"], [35, "ff" * 7 + "fc"]],
            "fix_crc": True,
        },
        fails("IllegalArgumentException"),
    ),
    Case(
        "L-13.11",
        "a compressed batch in place gets the largest time of its records",
        OPEN,
        edited(many(5, 6, codec="lz4"), 35, "0000000000000063"),
        result(max_timestamp=6, source_compression="lz4"),
        at_time("max"),
        found(1, 6),
    ),
    Case(
        "L-13.13",
        "all records of an append have one append time",
        APPEND_TIME,
        OPEN,
        many(1, 2, 3, magic=1),
        result(log_append_time=NOW_MS, max_timestamp=NOW_MS),
        at_time(1),
        found(0, NOW_MS),
    ),
    Case(
        "L-3.3",
        "nothing comes of no records",
        OPEN,
        {"op": "append", "records": []},
        result(first_offset=-1, last_offset=-1, valid_bytes=0),
    ),
]
