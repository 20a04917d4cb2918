"""A log directory whose round spends much of its time in swaps: small logs of many groups.

Each group is one segment, of which so much stays that no two fit into one: a second round over
cleaned segments leaves the same bytes, so a round that was cut short ends as one that was not.
Beside them logs of Kafka's own, with transactions, from the golden corpora.
"""

import json
import random
import shutil
from pathlib import Path

from compactor import LogConfig, LogManager
from demo.new_log_dir import new_log_dir
from storage.codecs.compression import Codec
from storage.formats import checkpoint
from tests.golden import corpora
from tests.support.log_builder import Batch, Message, Producer, append

STABLE = {"plain": Codec.NONE, "zstd": Codec.ZSTD, "lz4": Codec.LZ4}
PARTITIONS = 2
SEGMENT_BYTES = 40_000
SEGMENTS = 12
BATCH_RECORDS = 20
VALUE_BYTES = 60
NEW_KEYS = 0.8  # the share of records whose key was not there before
TRANSACTIONAL = ("txn-102", "txn-105", "txn-115", "txn-117", "txn-127", "everything-207")
LATER = {"delete.retention.ms": "1000"}  # no horizon of one round is reached in the next
NOW_MS = corpora.now_ms()


def write(log_dir: Path, topic_configs: Path) -> None:
    """Write the directory, and the topics' configurations beside it."""
    config = LogConfig(segment_bytes=SEGMENT_BYTES)
    with new_log_dir(str(log_dir), "kill", config) as manager:
        for topic, codec in STABLE.items():
            for partition in range(PARTITIONS):
                _fill(manager, topic, partition, codec)
    fleet = corpora.extracted()
    known = json.loads(fleet.topic_configs.read_text())
    configs = {topic: known[topic] | LATER for topic in TRANSACTIONAL}
    stable = {"cleanup.policy": "compact", "segment.bytes": str(SEGMENT_BYTES)}
    topic_configs.write_text(json.dumps(configs | dict.fromkeys(STABLE, stable)))
    for topic in TRANSACTIONAL:
        shutil.copytree(fleet.before / f"{topic}-0", log_dir / f"{topic}-0")
    for name in (checkpoint.REPLICATION, checkpoint.RECOVERY_POINT, checkpoint.LOG_START):
        theirs = checkpoint.read(str(fleet.before / name))
        own = checkpoint.read(str(log_dir / name))
        own |= {key: offset for key, offset in theirs.items() if key[0] in TRANSACTIONAL}
        checkpoint.write(str(log_dir / name), own)


def is_stable(partition: str) -> bool:
    """Whether rounds over parts of a log leave what one round over all of it leaves."""
    return partition.rpartition("-")[0] in STABLE


def _fill(manager: LogManager, topic: str, partition: int, codec: Codec) -> None:
    chance = random.Random(f"{topic} {partition}")
    log = manager.create((topic, partition))
    keys: list[bytes] = []
    batch = 0
    while len(log.segments) <= SEGMENTS:
        messages = []
        for _ in range(BATCH_RECORDS):
            if not keys or chance.random() < NEW_KEYS:
                keys.append(b"key-%d" % len(keys))
                key = keys[-1]
            else:
                key = chance.choice(keys)
            value = None if chance.random() < 0.05 else chance.randbytes(VALUE_BYTES)
            messages.append(Message(key, value, NOW_MS - 10**9 + batch))
        append(log, Batch(messages, codec, Producer(partition, 0, batch * BATCH_RECORDS)))
        batch += 1
