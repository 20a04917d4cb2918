"""Requests to a broker that librdkafka has no call for, or whose words its callers cannot choose.

Source: Kafka, ProduceRequest.json (key 0, version 3), DescribeProducersRequest.json (key 61,
version 0, with compact strings and arrays).
"""

import socket
import struct
from dataclasses import dataclass
from typing import NamedTuple

from tests.broker import clients

CORRELATION_ID = 1
PRODUCE, DESCRIBE_PRODUCERS = 0, 61
ALL_IN_SYNC = -1
TIMEOUT_MS = 30_000
NO_TAGS = b"\0"


class Produced(NamedTuple):
    error: int  # 0: none
    base_offset: int


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class ActiveProducer:
    """What the leader of a partition knows of a producer."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    txn_start_offset: int  # of the open transaction; -1: there is none


def answer(port: int, key: int, version: int, body: bytes) -> bytes:
    """Ask the broker; give what follows the correlation id."""
    head = struct.pack(">hhih", key, version, CORRELATION_ID, -1)  # no client id
    with socket.create_connection(("127.0.0.1", port), timeout=clients.SECONDS) as connection:
        connection.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        with connection.makefile("rb") as reply:
            (length,) = struct.unpack(">i", reply.read(4))
            told = reply.read(length)
    assert struct.unpack_from(">i", told) == (CORRELATION_ID,)
    return told[4:]


def produce(port: int, topic: str, partition: int, batch: bytes) -> Produced:
    """Send one batch as it is: its producer, epoch and sequence are the caller's."""
    body = struct.pack(">hhi", -1, ALL_IN_SYNC, TIMEOUT_MS) + struct.pack(">i", 1) + string(topic)
    body += struct.pack(">iii", 1, partition, len(batch)) + batch
    told = answer(port, PRODUCE, 3, body)
    place = 4 + len(string(topic)) + 4  # topics, the name, partitions
    _, error, base_offset = struct.unpack_from(">ihq", told, place)
    return Produced(error, base_offset)


def active_producers(port: int, topic: str, partition: int) -> list[ActiveProducer]:
    """By rising producer id."""
    name = topic.encode()
    partitions = struct.pack(">Bi", 2, partition)  # a compact array of one
    topics = struct.pack(">BB", 2, len(name) + 1) + name + partitions + NO_TAGS
    told = answer(port, DESCRIBE_PRODUCERS, 0, NO_TAGS + topics + NO_TAGS)
    # tags of the header, throttle time, topics, the name, partitions
    place = 1 + 4 + 1 + 1 + len(name) + 1
    _, error, no_message, count = struct.unpack_from(">ihBB", told, place)
    assert (error, no_message) == (0, 0), f"{topic}-{partition}: error {error}"
    entry = struct.Struct(">qiiqiqB")
    places = (place + 8 + i * entry.size for i in range(count - 1))
    found = [entry.unpack_from(told, each)[:-1] for each in places]
    names = ("producer_id", "epoch", "last_sequence", "last_timestamp", "coordinator_epoch")
    fields = (*names, "txn_start_offset")
    return sorted(ActiveProducer(**dict(zip(fields, each, strict=True))) for each in found)


def string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data
