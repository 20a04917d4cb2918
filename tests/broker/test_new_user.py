"""An operator who has never seen this has a log directory of a broker that was just stopped.

He is given nothing but its path, writes no file, and asks: which of my topics need compaction, what
would it free, why does this one not compact, what blocks it, is it safe, how much room and time
will it take, did last night's run work? All of it within five minutes.
"""

import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewTopic

from tests.broker import clients
from tests.broker.broker import Broker
from tests.support.command_process import compactor

pytestmark = pytest.mark.broker
LIMIT_SECONDS = 300
TOPICS = {
    "customers": {"cleanup.policy": "compact"},
    "orders": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.3"},
    "page-views": {"cleanup.policy": "delete"},
    "payments": {"cleanup.policy": "compact", "min.compaction.lag.ms": "86400000"},
    "settings": {"cleanup.policy": "compact"},
}
OFFSETS = "__consumer_offsets"


@dataclass(frozen=True, slots=True)
class Asked:
    """What one command said, and how long it took."""

    code: int
    out: str
    seconds: float

    @property
    def words(self) -> str:
        return " ".join(self.out.split())


@dataclass(slots=True)
class Operator:
    data: Path
    notes: Path  # where reports go
    seconds: float = 0.0

    def asks(self, *words: str | Path, table: bool = True) -> Asked:
        began = time.monotonic()
        ended = compactor(*words, *(("--format", "json") if not table else ()))
        took = time.monotonic() - began
        self.seconds += took
        return Asked(ended.returncode, ended.stdout + ended.stderr * table, took)

    def json(self, *words: str | Path) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.asks(*words, table=False).out)
        return found


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    broker = Broker(tmp_path_factory.mktemp("broker"))
    try:
        broker.start()
        _fill(broker.bootstrap)
        broker.stop()
        yield Operator(broker.data, tmp_path_factory.mktemp("notes"))
    finally:
        broker.kill()


def _fill(bootstrap: str) -> None:
    admin = clients.admin(bootstrap)
    small = {"internal.segment.bytes": "65536"}
    asked = [NewTopic(name, 1, 1, config={**small, **own}) for name, own in TOPICS.items()]
    clients.wait(admin.create_topics(asked))
    rng = random.Random(14)
    for name in TOPICS:
        _write(bootstrap, rng, name, 50 if name == "settings" else 3000)
    hanging = clients.producer(bootstrap, transactional_id="shop", transaction_timeout_ms=900_000)
    hanging.init_transactions(clients.SECONDS)
    hanging.begin_transaction()
    hanging.produce("orders", key=b"k", value=b"v")
    clients.flush(hanging)
    _write(bootstrap, rng, "orders", 3000)
    group = clients.consumer(bootstrap, "billing")
    for offset in range(4000):  # more than a segment of them
        at = [TopicPartition(name, 0, offset) for name in TOPICS]
        if offset % 200:
            group.commit(offsets=at)
        else:
            group.commit(offsets=at, asynchronous=False)
    group.close()


def _write(bootstrap: str, rng: random.Random, topic: str, count: int) -> None:
    producer = clients.producer(bootstrap)
    for number in range(count):
        producer.produce(topic, key=b"key-%d" % rng.randrange(200), value=rng.randbytes(100))
        if number % 200 == 199:
            clients.flush(producer)
    clients.flush(producer)


def test_which_topics_need_compaction_what_blocks_the_others_and_is_it_safe(
    operator: Operator,
) -> None:
    """One screen: the topics by their dirty bytes to clean, remedies, time, room, and refusals."""
    found = operator.asks("plan", operator.data)
    assert found.code == 0, found
    assert "where the logs stand" in found.words
    for line in (
        "blocked by min.compaction.lag.ms wait, or lower min.compaction.lag.ms",
        "nothing dirty but the active segment wait for a new segment, or begin one: compactor log",
        "held back by: transaction start the broker, which ends it; if it hangs, compactor explain",
        "It would take about",
        "needed at the peak",
        "A run would not be refused: no broker and no other run is at work here",
    ):
        assert line in found.words
    document = operator.json("plan", operator.data)
    gains = {topic["topic"]: topic["gain_bytes"] for topic in document["topics"]}
    assert {name for name, gain in gains.items() if gain} == {"customers", "orders", OFFSETS}
    assert document["refusals"] == []


def test_what_would_it_free(operator: Operator) -> None:
    """An estimate without Spark, and the exact number: of logs this small they are the same."""
    sampled = operator.json("plan", operator.data, "--sample")
    dry = operator.json("run", operator.data, "--dry-run")
    freed = dry["totals"]["bytes_before"] - dry["totals"]["bytes_after"]
    assert freed > 0
    assert sampled["expected"]["least_bytes"] == sampled["expected"]["most_bytes"] == freed


@pytest.mark.parametrize(
    ("log", "says", "helps"),
    [
        ("page-views-0", "is not compacted: cleanup.policy is delete", "cleanup.policy=compact"),
        ("payments-0", "wait behind min.compaction.lag.ms of 1 day", "once its records are old"),
        ("settings-0", "only the active segment", "compactor log roll"),
        ("orders-0", "wait behind the open transaction", "find-hanging"),
        ("customers-0", "would be compacted now", ""),
    ],
)
def test_why_does_this_one_not_compact(operator: Operator, log: str, says: str, helps: str) -> None:
    found = operator.asks("explain", operator.data, log)
    assert found.code == 0, found
    assert says in found.words and helps in found.words


def test_is_this_machine_fit(operator: Operator) -> None:
    found = operator.asks("doctor", operator.data)
    assert found.code == 0, found
    assert "A run can be done" in found.words


def test_a_copy_first_then_the_run_and_did_it_work(operator: Operator) -> None:
    """What a careful person does; the report of the night is then asked in the morning."""
    copy = operator.notes / "copy"
    copied = operator.asks("run", operator.data, "--output", copy)
    assert copied.code == 0, copied
    verified = operator.asks("verify", copy, "--against", operator.data, "--manifest")
    assert verified.code == 0, verified
    report = operator.notes / "night.json"
    done = operator.asks("run", operator.data, "--report", report)
    assert done.code == 0, done
    assert "Next: start the broker" in done.words
    morning = operator.asks("report", report)
    assert morning.code == 0, morning
    assert "1 report: 3 logs cleaned" in morning.words
    again = operator.json("plan", operator.data)
    assert again["totals"]["to_clean"] == 0


def test_it_all_took_less_than_five_minutes(operator: Operator) -> None:
    assert 0 < operator.seconds < LIMIT_SECONDS
