"""The story that the tests are about, a function for each step; each returns what was seen.

1. written: a broker is written to by all kinds of clients, read, and stopped;
2. compacted: `compactor run` takes its log directory;
3. restarted: the broker starts on what we left, and is read;
4. carried on: its clients, some of which lived through all this, go on;
5. cleaned by the broker: it starts again with its own cleaner, which takes every log again.
"""

import json
import random
import subprocess
import time
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition

from compactor.log_dirs.locked_log_dirs import lock_log_dirs
from tests.broker import clients, workload
from tests.broker.broker import Broker, BrokerError
from tests.broker.views import Offsets, Views, group_offsets, read_all
from tests.broker.workload import Open, Payload, Writer
from tests.oracle import compare
from tests.support.command_process import compactor

SEED = 1
RECORDS_PER_TOPIC = 4000
OWN_TOPICS = ("__consumer_offsets", "__transaction_state")
CLEANER_SECONDS = 180
AFTERWARDS = b"written after the compaction"


@dataclass(frozen=True, slots=True)
class Written:
    writer: Writer
    idempotent: list[Producer]
    to_be_committed: Open
    to_be_abandoned: Open
    configs: dict[str, dict[str, str]]
    views: Views
    offsets: Offsets
    beside_the_broker: subprocess.CompletedProcess[str]  # our run while it runs
    beside_our_lock: list[str]  # what the broker says, started while we hold the lock

    def compacted_partitions(self) -> list[str]:
        counts = {**workload.TOPICS, "__consumer_offsets": 4, "__transaction_state": 2}
        return sorted(
            f"{topic}-{partition}"
            for topic, config in self.configs.items()
            if "compact" in config["cleanup.policy"].split(",")
            for partition in range(counts[topic])
        )


@dataclass(frozen=True, slots=True)
class Compacted:
    exit_code: int
    told: str
    logs: dict[str, dict[str, Any]]  # by TOPIC-PARTITION: what the report says
    checkpoint: dict[str, int]  # by TOPIC-PARTITION: first dirty offset
    verified: subprocess.CompletedProcess[str]


@dataclass(frozen=True, slots=True)
class Seen:
    """A broker's clients and its log at some moment."""

    views: Views
    offsets: Offsets
    said: list[str]
    complaints: list[str]


@dataclass(frozen=True, slots=True)
class CarriedOn(Seen):
    resumed: dict[str, dict[str, int]]  # by group and TOPIC-PARTITION: where its reader began


@dataclass(frozen=True, slots=True)
class Recleaned(Seen):
    checkpoint: dict[str, int]  # by TOPIC-PARTITION: first dirty offset
    active: dict[str, int]  # and the base offset of the active segment


def write(broker: Broker) -> Written:
    broker.start()
    writer = Writer(broker.bootstrap, RECORDS_PER_TOPIC, random.Random(SEED))
    workload.write_codecs(writer)
    workload.write_policies(writer)
    idempotent = workload.write_idempotent(writer)
    workload.write_groups(writer)
    workload.write_transactions(writer)
    to_be_committed = workload.open_transaction(writer, "txn-to-be-committed")
    to_be_abandoned = workload.open_transaction(writer, "txn-to-be-abandoned")
    workload.raise_segment_bytes(broker.bootstrap)
    seen = _look(broker)
    configs = clients.topic_configs(clients.admin(broker.bootstrap))
    beside_the_broker = compactor(
        "run", broker.data, "--include", ".*", "--set", "cleanup.policy=compact"
    )
    broker.stop()
    return Written(
        writer=writer,
        idempotent=idempotent,
        to_be_committed=to_be_committed,
        to_be_abandoned=to_be_abandoned,
        configs=configs,
        views=seen.views,
        offsets=seen.offsets,
        beside_the_broker=beside_the_broker,
        beside_our_lock=_start_beside_our_lock(broker),
    )


def compact(broker: Broker, written: Written) -> Compacted:
    """As an operator does, with the topics' configurations as the broker described them."""
    configs, report = broker.home / "topic-configs.json", broker.home / "report.json"
    configs.write_text(json.dumps(written.configs))
    done = compactor(
        *("run", broker.data, "--topic-configs", configs, "--report", report),
        *("--set", "min.cleanable.dirty.ratio=0"),
    )
    logs = json.loads(report.read_text())["logs"] if report.exists() else []
    return Compacted(
        exit_code=done.returncode,
        told=done.stdout + done.stderr,
        logs={f"{log['topic']}-{log['partition']}": log for log in logs},
        checkpoint=compare.checkpoint_entries(broker.data),
        verified=compactor("verify", broker.data),
    )


def restart(broker: Broker) -> Seen:
    broker.start({"log.roll.ms": "1000"})  # so that what is appended next closes active segments
    return _look(broker)


def carry_on(broker: Broker, written: Written) -> CarriedOn:
    resumed = {group: _resume(broker, group) for group in workload.MEMBERS}
    writer, plain = written.writer, written.writer.producer()
    writer.now_ms += 60_000  # segments roll by the timestamps of their records
    for topic, partitions in workload.TOPICS.items():
        for partition in range(partitions):
            for _ in range(2):  # the first to close the active segment, the second for a new one
                _append(writer, plain, topic, partition)
    for producer in written.idempotent:
        for partition in (0, 1):
            _append(writer, producer, "idempotent", partition)
    written.to_be_committed.producer.commit_transaction(clients.SECONDS)
    _transactions(writer, ("txn-to-be-abandoned", *workload.TRANSACTIONAL_IDS))
    for group in workload.GROUPS[:-1]:
        _commit(broker, group)
    seen = _look(broker)
    broker.stop()
    return CarriedOn(seen.views, seen.offsets, seen.said, seen.complaints, resumed)


def clean_again(broker: Broker, written: Written) -> Recleaned:
    cleaner = {"log.cleaner.enable": "true", "log.cleaner.backoff.ms": "200"}
    broker.start({**cleaner, "log.cleaner.min.cleanable.ratio": "0"})
    deadline = time.monotonic() + CLEANER_SECONDS
    active = _active_segments(broker, written.compacted_partitions())
    while (checkpoint := compare.checkpoint_entries(broker.data)) != active:
        if time.monotonic() > deadline:
            break  # the tests tell which
        time.sleep(0.2)
    seen = _look(broker)
    broker.stop()
    return Recleaned(
        seen.views, seen.offsets, broker.said(), broker.complaints(), checkpoint, active
    )


def _start_beside_our_lock(broker: Broker) -> list[str]:
    with lock_log_dirs([str(broker.data)]), pytest.raises(BrokerError):
        broker.start()
    return broker.said()


def _look(broker: Broker) -> Seen:
    return Seen(
        read_all(broker.bootstrap, (*workload.TOPICS, *OWN_TOPICS)),
        group_offsets(clients.admin(broker.bootstrap)),
        broker.said(),
        broker.complaints(),
    )


def _append(writer: Writer, producer: Producer, topic: str, partition: int) -> None:
    writer.send(producer, topic, [(b"key-00000001", AFTERWARDS, [])], partition)


def _transactions(writer: Writer, transactional_ids: tuple[str, ...]) -> None:
    """One committed transaction of each; whatever it has left open is aborted before."""
    for name in transactional_ids:
        producer = writer.producer(transactional_id=name)
        producer.init_transactions(clients.SECONDS)
        producer.begin_transaction()
        for partition in (0, 1):
            payload: Payload = (name.encode(), AFTERWARDS, [])
            writer.send(producer, "transactions", [payload], partition)
        producer.commit_transaction(clients.SECONDS)


def _resume(broker: Broker, group: str) -> dict[str, int]:
    """Where a new reader of the group goes on, as the broker tells it."""
    reader = clients.consumer(broker.bootstrap, group, auto_offset_reset="error")
    places = [TopicPartition(t, i) for t in ("codec-none", "codec-zstd") for i in (0, 1)]
    found = clients.patiently(lambda: reader.committed(places, timeout=clients.SECONDS))
    reader.close()
    return {f"{place.topic}-{place.partition}": place.offset for place in found}


def _commit(broker: Broker, group: str) -> None:
    reader = clients.consumer(broker.bootstrap, group)
    for offset in (1, 2):
        place = TopicPartition("codec-gzip", 0, offset)
        reader.commit(offsets=[place], asynchronous=False)
    reader.close()


def _active_segments(broker: Broker, partitions: list[str]) -> dict[str, int]:
    """The base offset of each, up to which the cleaner can go."""
    return {
        name: max(int(path.stem) for path in (broker.data / name).glob("*.log"))
        for name in partitions
    }
