"""The settings that we read from a broker's metadata log are those that its clients are told."""

import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from compactor import api
from compactor.api import Rules
from compactor.settings.config import parse_topic_configs
from storage.formats import meta_properties, partition_metadata
from storage.formats.kafka_settings import SETTINGS
from storage.log.cluster_metadata import METADATA_DIR, read_cluster_metadata
from tests.broker import clients
from tests.broker.broker import Broker

pytestmark = pytest.mark.broker

TOPICS = [f"topic-{number:02}" for number in range(50)]
DELETED, ANEW = TOPICS[40:44], TOPICS[44:48]
STATIC = {
    "log.retention.hours": "48",
    "log.roll.hours": "100",
    "log.cleaner.min.cleanable.ratio": "0.3",
    "log.index.interval.bytes": "2048",
    "metadata.log.max.record.bytes.between.snapshots": "6000",
}
CLUSTER_DEFAULTS = {"log.cleaner.delete.retention.ms": "123000", "log.retention.bytes": "77777777"}
OF_BROKER = {"log.cleaner.min.compaction.lag.ms": "17", "log.segment.bytes": "33554432"}
CHOICES = {
    "cleanup.policy": ["compact", "delete", "compact,delete"],
    "min.cleanable.dirty.ratio": ["0", "0.1", "0.75", "1"],
    "delete.retention.ms": ["0", "60000"],
    "min.compaction.lag.ms": ["0", "1000"],
    "max.compaction.lag.ms": ["2000", "9223372036854775807"],
    "segment.bytes": ["1048576", "104857600"],
    "retention.ms": ["-1", "3600000"],
    "compression.type": ["zstd", "producer"],
    "message.timestamp.type": ["LogAppendTime", "CreateTime"],
    "segment.ms": ["60000"],
    "preallocate": ["true"],
}


class Told(NamedTuple):
    """What clients were told of each topic: values by name."""

    home: Path
    described: str  # by kafka-configs --describe --all
    settings: dict[str, dict[str, str]]
    partitions: dict[str, int]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    home = tmp_path_factory.mktemp("metadata")
    with Broker(home) as broker:
        broker.start(STATIC)
        _change_everything(broker.bootstrap)
        _set_cluster_defaults(broker)
        _wait_for_snapshot(home)
        clients.alter(broker.bootstrap, TOPICS[7], {"retention.ms": "5000000"})
        admin = clients.admin(broker.bootstrap)
        settings = _described(admin)
        broker.tool("kafka.admin.ConfigCommand", "--describe", "--all", "--entity-type", "topics")
        yield Told(home, "\n".join(broker.said()), settings, _partitions(admin))


def _change_everything(bootstrap: str) -> None:
    """Create, configure, alter, delete and create anew; set defaults of brokers."""
    rng, admin = random.Random(14), clients.admin(bootstrap)
    clients.create(bootstrap, *(_new(name, rng) for name in TOPICS))
    clients.alter(bootstrap, "1", OF_BROKER, ResourceType.BROKER)
    for name in TOPICS[10:30]:
        first, *others = rng.sample(sorted(CHOICES), 3)
        clients.alter(bootstrap, name, dict.fromkeys(others) | {first: rng.choice(CHOICES[first])})
    clients.wait(
        admin.create_partitions([NewPartitions(TOPICS[3], 5), NewPartitions(TOPICS[4], 3)])
    )
    clients.wait(admin.delete_topics([*DELETED, *ANEW]))
    clients.patiently(lambda: _require_gone(admin, ANEW))
    compacted = {"cleanup.policy": "compact"}
    clients.create(bootstrap, *(NewTopic(name, 1, 1, config=compacted) for name in ANEW))


def _set_cluster_defaults(broker: Broker) -> None:
    """By Kafka's own tool: librdkafka knows no resource without a name."""
    defaults = ["--alter", "--entity-type", "brokers", "--entity-default"]
    settings = ",".join(f"{name}={value}" for name, value in CLUSTER_DEFAULTS.items())
    broker.tool("kafka.admin.ConfigCommand", *defaults, "--add-config", settings)


def _new(name: str, rng: random.Random) -> NewTopic:
    names = rng.sample(sorted(CHOICES), rng.randrange(6))
    return NewTopic(name, rng.choice([1, 2]), 1, config={n: rng.choice(CHOICES[n]) for n in names})


def _require_gone(admin: AdminClient, names: list[str]) -> None:
    there = admin.list_topics(timeout=60).topics
    if any(name in there for name in names):
        raise KafkaException(KafkaError(clients.NOT_YET[0]))


def _wait_for_snapshot(home: Path) -> None:
    deadline = time.monotonic() + clients.SECONDS
    while not list((home / "data" / METADATA_DIR).glob("*-*.checkpoint")):
        assert time.monotonic() < deadline, "the broker took no snapshot"
        time.sleep(0.2)


def _described(admin: AdminClient) -> dict[str, dict[str, str]]:
    wanted = [ConfigResource(ResourceType.TOPIC, n) for n in TOPICS if n not in DELETED]
    found = admin.describe_configs(wanted)
    return {
        resource.name: {e.name: e.value for e in future.result(clients.SECONDS).values()}
        for resource, future in found.items()
    }


def _partitions(admin: AdminClient) -> dict[str, int]:
    topics = admin.list_topics(timeout=60).topics
    return {name: len(topic.partitions) for name, topic in topics.items() if name in TOPICS}


def _ours(told: Told, data: Path) -> dict[str, dict[str, str]]:
    """Of the settings that this broker has: other Kafkas have more."""
    rules = Rules(server_properties=str(told.home / "server.properties"))
    return {
        name: {
            entry.name: _text(entry.value)
            for entry in api.configs(str(data), name, rules)[0].entries
            if entry.name in values
        }
        for name, values in told.settings.items()
    }


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _comparable(values: dict[str, str]) -> dict[str, str]:
    """Of the names that both know; a policy is a set."""
    found = {name: value for name, value in values.items() if name in SETTINGS}
    found["cleanup.policy"] = ",".join(sorted(found["cleanup.policy"].split(",")))
    found["min.cleanable.dirty.ratio"] = str(float(found["min.cleanable.dirty.ratio"]))
    return found


def test_every_effective_value_is_the_brokers(told: Told, tmp_path: Path) -> None:
    """While it runs, and of a copy as a crash would leave it."""
    assert len(told.settings) == len(TOPICS) - len(DELETED)
    expected = {name: _comparable(values) for name, values in told.settings.items()}
    found = _ours(told, told.home / "data")
    assert {name: _comparable(values) for name, values in found.items()} == expected
    _copy(told.home / "data" / METADATA_DIR, tmp_path / "copy")
    for name in told.settings:
        (tmp_path / "copy" / f"{name}-0").mkdir()
    shutil.copy(told.home / "data" / "meta.properties", tmp_path / "copy")
    found = _ours(told, tmp_path / "copy")
    assert {name: _comparable(values) for name, values in found.items()} == expected


def test_what_kafkas_own_tool_prints_is_taken_as_it_is(told: Told) -> None:
    """Beside the tool's own log, which stands in the same file here."""
    found = parse_topic_configs(f"{told.described}\n", "configs.txt")
    assert found.keys() == told.settings.keys()
    for name, values in found.items():
        as_text = {setting: _text(value) for setting, value in values.items()}
        assert _comparable(as_text) == _comparable(told.settings[name])


def test_topics_partitions_and_directories_are_the_brokers(told: Told) -> None:
    data = told.home / "data"
    metadata = read_cluster_metadata(str(data / METADATA_DIR))
    assert {name: len(image.replicas) for name, image in metadata.topics.items()} == told.partitions
    for name, image in metadata.topics.items():
        on_disk = partition_metadata.read(str(data / f"{name}-0" / "partition.metadata"))
        assert on_disk.topic_id == image.topic_id
    directory_id = partition_metadata.decode_uuid(
        meta_properties.read(str(data)).directory_id or ""
    )
    assert metadata.broker_log_dirs == {1: (directory_id,)}


def test_a_log_of_a_deleted_topic_is_not_planned_as_its_successor(
    told: Told, tmp_path: Path
) -> None:
    """The directory of the old log has the name of today's topic, and the id of the old one."""
    data = tmp_path / "data"
    for name in (METADATA_DIR, f"{ANEW[0]}-0", f"{TOPICS[0]}-0"):
        _copy(told.home / "data" / name, data)
    old = data / f"{ANEW[0]}-0"
    stranger = partition_metadata.read(str(data / f"{TOPICS[0]}-0" / "partition.metadata"))
    partition_metadata.write(str(old / "partition.metadata"), stranger)
    (data / f"{TOPICS[0]}-0").rename(data / f"{DELETED[0]}-0")
    everything = Rules(settings={"cleanup.policy": "compact"}, include="topic-.*")
    found = api.plan([str(data)], everything).round_plan
    reasons = {(r.topic, r.partition): r.reason or "" for r in found.not_cleaned}
    assert reasons[DELETED[0], 0].startswith("its topic was deleted: ")
    assert "one of the same name was created since" in reasons[ANEW[0], 0]


def _copy(directory: Path, into: Path) -> None:
    """What a crash would leave: a broker's indexes are mostly holes."""
    into.mkdir(exist_ok=True)
    subprocess.run(["cp", "-a", "--sparse=always", directory, into], check=True)
