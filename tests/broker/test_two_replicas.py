"""Why `--only-replica` is asked for: two brokers, a replica each, one of which is changed alone.

Two partitions have the same records. Of both the replica on the first broker is changed, by
`log truncate` and `log append`, so that it has another record at the last offset, in the same
leader epoch. Then both brokers start.
"""

import re
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker import clients, views
from tests.broker.broker import Broker, new_cluster_id
from tests.broker.engine_logs import entries
from tests.broker.views import Place, ReadRecord
from tests.support.command_process import compactor

pytestmark = pytest.mark.broker
TOPIC, RECORDS = "replicated", 10
LED_BY = {0: 1, 1: 2}  # the preferred leader of each partition
OF_TOOL = b"of the tool"
SECONDS = 60
QUICK = {
    "broker.heartbeat.interval.ms": "500",
    "replica.fetch.wait.max.ms": "100",
    "auto.leader.rebalance.enable": "false",
}
_OLDER_EPOCH = re.compile(r"Partition (\S+) has an older epoch \(\d+\) than the current leader")
_GIVEN_UP = re.compile(r"Partition (\S+) marked as failed$")


@dataclass(frozen=True, slots=True)
class Story:
    before: dict[Place, ReadRecord]
    refused: list[int]  # exit codes without --only-replica
    changed: list[int]  # and with it
    after: dict[Place, ReadRecord]  # by both leaders
    later: dict[Place, ReadRecord]  # the first broker alone is left
    in_sync: dict[int, list[int]]  # of each partition, before the second one was stopped
    complaints: list[str]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Broker]]:
    cluster = new_cluster_id()
    home = tmp_path_factory.mktemp("two")
    with Broker(home / "one", cluster) as one, Broker(home / "two", cluster) as two:
        yield one, two


@pytest.fixture(scope="module")
def story(brokers: tuple[Broker, Broker]) -> Story:
    one, two = brokers
    start(one, two)
    clients.create(one.bootstrap, NewTopic(TOPIC, 2, replica_assignment=[[1, 2], [2, 1]]))
    write(one)
    wait_for_leaders(clients.admin(one.bootstrap))
    before = read(one)
    two.stop()
    one.stop()
    refused = [change(one.data, partition).returncode for partition in LED_BY]
    changed = [change(one.data, partition, "--only-replica").returncode for partition in LED_BY]
    start(one, two)
    admin = clients.admin(one.bootstrap)
    in_sync = wait_for_leaders(admin)
    after = read(one)
    complaints = [*complaints_of(one), *complaints_of(two)]
    two.stop()
    later = read(one)
    one.stop()
    return Story(before, refused, changed, after, later, in_sync, complaints)


def complaints_of(broker: Broker) -> Iterator[str]:
    """Its warnings and errors, but that a follower fetched by the epoch of a leader that was just
    elected anew: the fetcher says that it waits for the news, and gives the partition up till then.
    """
    waits = {found[1] for line in broker.said() if (found := _OLDER_EPOCH.search(line))}
    for line in broker.complaints():
        given_up = _GIVEN_UP.search(line)
        if given_up is None or given_up[1] not in waits:
            yield line


def start(one: Broker, two: Broker) -> None:
    """The first is the controller, too."""
    second = {
        "process.roles": "broker",
        "node.id": "2",
        "listeners": f"PLAINTEXT://127.0.0.1:{two.port}",
        "controller.quorum.voters": f"1@127.0.0.1:{one.controller}",
    }
    with ThreadPoolExecutor(2) as pool:
        started = [pool.submit(one.start, QUICK), pool.submit(two.start, QUICK | second)]
        for each in started:
            each.result()


def write(broker: Broker) -> None:
    """Acknowledged by both replicas; a batch for each record, so that one alone can be cut off."""
    for partition in LED_BY:
        records = entries("of a client", RECORDS)
        clients.write(broker.bootstrap, TOPIC, records, 1, partition, acks="all")


def read(broker: Broker) -> dict[Place, ReadRecord]:
    return views.read_all(broker.bootstrap, [TOPIC])[TOPIC, "read_uncommitted"].records


def wait_for_leaders(admin: AdminClient) -> dict[int, list[int]]:
    """Until both replicas of each partition are in sync, and the preferred one leads; those that
    are in sync."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        found = admin.list_topics(TOPIC, timeout=clients.SECONDS).topics[TOPIC].partitions
        in_sync = {number: sorted(each.isrs) for number, each in found.items()}
        if all(len(each) == 2 for each in in_sync.values()):
            if {number: each.leader for number, each in found.items()} == LED_BY:
                break
            wanted = [TopicPartition(TOPIC, number) for number in LED_BY]
            admin.elect_leaders(ElectionType.PREFERRED, wanted).result(clients.SECONDS)
        time.sleep(0.1)
    return in_sync


def change(log_dir: Path, partition: int, *words: str) -> subprocess.CompletedProcess[str]:
    """The last record gives way to another one."""
    name = f"{TOPIC}-{partition}"
    cut = compactor("log", "truncate", log_dir, name, "--to", RECORDS - 1, *words, "--yes")
    if cut.returncode:
        return cut
    records = log_dir.parent / "records.jsonl"
    records.write_text(f'{{"key": "key-2", "value": "{OF_TOOL.decode()}"}}\n')
    return compactor("log", "append", log_dir, name, "--records", records, *words, "--yes")


def last(records: dict[Place, ReadRecord], partition: int) -> bytes | None:
    return records[partition, RECORDS - 1].value


def rest(records: dict[Place, ReadRecord]) -> dict[Place, ReadRecord]:
    return {place: each for place, each in records.items() if place[1] < RECORDS - 1}


def test_a_change_of_one_replica_is_refused_unless_it_is_said_to_be_the_only_one(
    story: Story,
) -> None:
    assert story.refused == [3, 3]
    assert story.changed == [0, 0]


def test_no_broker_notices_that_replicas_differ(story: Story) -> None:
    """Same end, same leader epoch: both are taken to be in sync."""
    assert story.in_sync == {0: [1, 2], 1: [1, 2]}
    assert [line for line in story.complaints if TOPIC in line or " ERROR " in line] == []


def test_what_is_read_depends_on_who_leads(story: Story) -> None:
    """Both partitions had the same last record, and the same was done to both."""
    assert [last(story.before, partition) for partition in LED_BY] == [b"of a client 9"] * 2
    assert [last(story.after, partition) for partition in LED_BY] == [OF_TOOL, b"of a client 9"]
    assert rest(story.after) == rest(story.before)


def test_a_record_becomes_another_one_when_the_leader_changes(story: Story) -> None:
    """At the same offset, without an error anywhere."""
    assert [last(story.later, partition) for partition in LED_BY] == [OF_TOOL, OF_TOOL]
    assert rest(story.later) == rest(story.before)
