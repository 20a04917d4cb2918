"""Makes anew the directories that real brokers left: python -m tests.golden.make_broker_dirs.

Needs Kafka, as `make broker-test` does. They are what the how-to pages are about:

stopped   of a broker that was shut down. `orders-7` has a transaction that is open, and
          `__consumer_offsets-12` more than a segment of commits
killed    of the same one, which was started again, written to and killed
two       the same one's two directories, after it was started with a second one and shut down
other     of another broker that was shut down
configs.txt  what kafka-configs.sh describes of all topics
"""

import io
import sys
import tarfile
import tempfile
from pathlib import Path

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from tests.broker import clients, workload
from tests.broker.broker import Broker
from tests.golden.broker_dirs import ARCHIVE, CONFIGS

TOPICS = {
    "customers": (1, {"cleanup.policy": "compact"}),
    "orders": (8, {"cleanup.policy": "compact"}),
    "page-views": (1, {"cleanup.policy": "delete", "retention.ms": "-1"}),
}
SETTINGS = {
    "offsets.topic.num.partitions": "13",
    "log.index.size.max.bytes": "65536",  # a killed broker leaves all of it, in zeros
    "log.flush.offset.checkpoint.interval.ms": "1000",
}
SEGMENT_BYTES = "16384"
OFFSETS = "__consumer_offsets"
KEYS = 100


def main() -> int:
    with (
        tempfile.TemporaryDirectory(prefix="broker-dirs-") as folder,
        tarfile.open(ARCHIVE, "w:xz", preset=9, format=tarfile.PAX_FORMAT) as archive,
    ):
        _fill(Path(folder), archive)
    return 0


def _fill(folder: Path, archive: tarfile.TarFile) -> None:
    with Broker(folder / "one") as broker:
        broker.start(SETTINGS)
        _create(broker.bootstrap, list(TOPICS))
        hanging = _write_all(broker.bootstrap)
        _commit(broker.bootstrap)
        described = tarfile.TarInfo(CONFIGS)
        configs = _described(broker)
        described.size = len(configs)
        archive.addfile(described, io.BytesIO(configs))
        broker.stop()
        _keep(archive, broker.data, "stopped")
        broker.start(SETTINGS)
        _write(broker.bootstrap, "customers", 0, 900)
        broker.kill()
        _keep(archive, broker.data, "killed")
        del hanging
        broker.start({**SETTINGS, "log.dirs": "data,data2"})
        broker.stop()
        _keep(archive, broker.data, "two/kafka")
        _keep(archive, broker.home / "data2", "two/kafka2")
    with Broker(folder / "other") as other:
        other.start(SETTINGS)
        _create(other.bootstrap, ["customers"])
        _write(other.bootstrap, "customers", 0, 900)
        other.stop()
        _keep(archive, other.data, "other")


def _create(bootstrap: str, topics: list[str]) -> None:
    small = {workload.SEGMENT_BYTES: SEGMENT_BYTES}
    asked = [
        NewTopic(name, TOPICS[name][0], 1, config={**small, **TOPICS[name][1]}) for name in topics
    ]
    clients.create(bootstrap, *asked)


def _write_all(bootstrap: str) -> Producer:
    """The producer of the transaction that stays open."""
    for topic, partition in (("customers", 0), ("page-views", 0), ("orders", 3), ("orders", 7)):
        _write(bootstrap, topic, partition, 900)
    hanging = clients.producer(bootstrap, transactional_id="shop", transaction_timeout_ms=900_000)
    hanging.init_transactions(clients.SECONDS)
    hanging.begin_transaction()
    hanging.produce("orders", key=b"key-1", value=b"never committed", partition=7)
    clients.flush(hanging)
    _write(bootstrap, "orders", 7, 600)
    return hanging


def _write(bootstrap: str, topic: str, partition: int, count: int) -> None:
    values = (None if n % 50 == 49 else b"value %06d of %s" % (n, b"." * 40) for n in range(count))
    records = ((b"key-%d" % (n % KEYS), value) for n, value in enumerate(values))
    clients.write(bootstrap, topic, records, 50, partition)


def _commit(bootstrap: str) -> None:
    group = clients.consumer(bootstrap, _group())
    at = [TopicPartition("orders", partition, 1) for partition in range(8)]
    group.commit(offsets=at, asynchronous=False)
    clients.alter(bootstrap, OFFSETS, {workload.SEGMENT_BYTES: SEGMENT_BYTES})
    for offset in range(80):
        at = [TopicPartition("orders", partition, offset) for partition in range(8)]
        group.commit(offsets=at, asynchronous=False)
    group.close()


def _group() -> str:
    """A group whose commits are in partition 12, by Java's hash of a string."""
    count = int(SETTINGS["offsets.topic.num.partitions"])
    names = (f"billing-{number}" for number in range(1000))
    return next(name for name in names if _java_hash(name) % count == 12)


def _java_hash(text: str) -> int:
    """Without its sign bit, as Kafka takes it."""
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value & 0x7FFFFFFF


def _described(broker: Broker) -> bytes:
    """What the tool writes, which goes where the broker's own words go."""
    before = len(broker.log.read_bytes())
    broker.tool("kafka.admin.ConfigCommand", *"--entity-type topics --describe --all".split())
    said = broker.log.read_bytes()[before:].splitlines(keepends=True)
    return b"".join(line for line in said if line.startswith((b"All configs for", b"  ")))


def _keep(archive: tarfile.TarFile, directory: Path, name: str) -> None:
    for path in sorted(directory.rglob("*")):
        entry = archive.gettarinfo(path, f"{name}/{path.relative_to(directory)}")
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        if entry.isreg():
            with path.open("rb") as content:
                archive.addfile(entry, content)
        else:
            archive.addfile(entry)


if __name__ == "__main__":
    sys.exit(main())
