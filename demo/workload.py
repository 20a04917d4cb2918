"""Writes the log directory of the demonstration: a small shop's topics, with what they see in three
days of updates and deletions. The same seed gives the same records.

The topics' segments were smaller once than `segment.bytes` says now: so cleaning merges them.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from compactor import Batching, Log, LogConfig, append_table
from demo.new_log_dir import new_log_dir
from storage.codecs.compression import Codec

WRITTEN_SEGMENT_BYTES = 512 * 1024
SEGMENT_BYTES = 4 * 1024 * 1024
BATCH_RECORDS = 100
SPAN_MS = 3 * 24 * 60 * 60 * 1000
CLUSTER_ID = "demo"
_COLUMNS = pa.schema({"key": pa.binary(), "value": pa.binary(), "timestamp": pa.int64()})


@dataclass(frozen=True, slots=True)
class Topic:
    """How one topic is used."""

    name: str
    partitions: int
    codec: Codec
    share: float  # of all records
    keys: int  # in each partition
    value_bytes: int
    tombstones: float  # share of records that delete their key
    cleanup_policy: str | None  # None: the demonstration does not say, as happens


TOPICS = (
    Topic("orders", 2, Codec.LZ4, 0.40, 12_000, 120, 0.02, "compact"),
    Topic("prices", 1, Codec.NONE, 0.20, 2_000, 60, 0.0, "compact"),
    Topic("customers", 1, Codec.ZSTD, 0.15, 8_000, 200, 0.05, "compact"),
    Topic("sessions", 1, Codec.SNAPPY, 0.12, 20_000, 80, 0.40, "compact"),
    Topic("settings", 1, Codec.GZIP, 0.05, 300, 40, 0.01, "compact"),
    Topic("clicks", 1, Codec.LZ4, 0.06, 5_000, 60, 0.0, "delete"),
    Topic("experiments", 1, Codec.NONE, 0.02, 500, 60, 0.0, None),
)


def write_log_dir(path: str, records: int, end_ms: int, seed: int = 1) -> None:
    """Write about so many records, the last of them at end_ms."""
    config = LogConfig(segment_bytes=WRITTEN_SEGMENT_BYTES)
    with new_log_dir(path, CLUSTER_ID, config, lambda: end_ms) as manager:
        for topic in TOPICS:
            for partition in range(topic.partitions):
                log = manager.create((topic.name, partition))
                count = int(records * topic.share / topic.partitions)
                _fill(log, topic, count, random.Random(f"{seed} {topic.name} {partition}"))


def topic_configs() -> dict[str, dict[str, str]]:
    """What `--topic-configs` takes, for every topic of which something is known."""
    return {
        topic.name: {"cleanup.policy": topic.cleanup_policy, "segment.bytes": str(SEGMENT_BYTES)}
        for topic in TOPICS
        if topic.cleanup_policy is not None
    }


def _fill(log: Log, topic: Topic, count: int, chance: random.Random) -> None:
    """Append records up to the time of the log's clock; each chunk becomes a batch."""
    chunks = _chunks(topic, count, log.now_ms, chance)
    table = pa.RecordBatchReader.from_batches(_COLUMNS, chunks)
    append_table(log, table, Batching(codec=topic.codec))


def _chunks(
    topic: Topic, count: int, end_ms: int, chance: random.Random
) -> Iterator[pa.RecordBatch]:
    """Some keys change all the time, most seldom, as it is."""
    name = topic.name.encode()
    for first in range(0, count, BATCH_RECORDS):
        keys, values, times = [], [], []
        for number in range(first, min(first + BATCH_RECORDS, count)):
            keys.append(b"%s-%d" % (name, int(topic.keys * chance.random() ** 2)))
            is_deleted = chance.random() < topic.tombstones
            values.append(None if is_deleted else _value(topic, number, chance))
            times.append(end_ms - SPAN_MS + SPAN_MS * (number + 1) // count)
        yield pa.record_batch([keys, values, times], _COLUMNS)


def _value(topic: Topic, number: int, chance: random.Random) -> bytes:
    """Half of it says something new, half compresses well, as records of programs do."""
    text = f'{{"version":{number},"amount":{chance.random():.6f},"note":"'
    noise = chance.randbytes(topic.value_bytes // 4).hex()
    return (text + noise).ljust(topic.value_bytes, ".").encode() + b'"}'
