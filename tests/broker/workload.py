"""What is written to the broker before anything is compacted: a load as clients give it.

Everything but clocks, producer ids and the exact cut of batches follows from the seed.

codec-X          compressed by the client, librdkafka
broker-X         compressed by the broker, with Java's libraries
altered          has null keys from before it was made a compacted topic
compact-delete   cleanup.policy compact,delete, LogAppendTime
idempotent       three idempotent producers
transactions     four transactional producers and a plain one overlap, a third is aborted
groups           ten that commit, one of which is deleted, and two with members
"""

import random
import time
from dataclasses import dataclass, field

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from tests.broker import clients

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# As segment.bytes, which Kafka 4 takes from 1 MiB up only
SEGMENT_BYTES = "internal.segment.bytes"
DATA_SEGMENT_BYTES = 65_536
TOPICS = {  # and how many partitions
    **{f"codec-{codec}": 2 for codec in (*CODECS, "mixed")},
    **{f"broker-{codec}": 1 for codec in CODECS[1:]},
    "altered": 1,
    "compact-delete": 1,
    "idempotent": 2,
    "transactions": 2,
}
MERGED = ("codec-mixed", "idempotent", "transactions", "__consumer_offsets", "__transaction_state")
GROUPS = tuple(f"group-{i}" for i in range(10))
DELETED_GROUP = "group-9"
MEMBERS = ("member-0", "member-1")
TRANSACTIONAL_IDS = tuple(f"txn-{i}" for i in range(4))

Header = tuple[str, str | bytes | None]
Payload = tuple[bytes | None, bytes | None, list[Header]]  # key, value


@dataclass(frozen=True, slots=True)
class Open:
    """A transaction that is open while the broker is down, and what its producer has sent."""

    producer: Producer
    values: frozenset[bytes]


@dataclass(slots=True)
class Writer:
    bootstrap: str
    records_per_topic: int
    rng: random.Random
    now_ms: int = field(default_factory=lambda: int(time.time() * 1000) - 3_600_000)

    def create(self, topic: str, **config: object) -> None:
        settings = {
            "cleanup.policy": "compact",
            SEGMENT_BYTES: DATA_SEGMENT_BYTES,
            "min.cleanable.dirty.ratio": 0,
            **{name.replace("_", "."): value for name, value in config.items()},
        }
        asked = NewTopic(topic, TOPICS[topic], 1, config={k: str(v) for k, v in settings.items()})
        clients.create(self.bootstrap, asked)

    def producer(self, **settings: object) -> Producer:
        return clients.producer(self.bootstrap, **settings)

    def send(
        self, producer: Producer, topic: str, payloads: list[Payload], partition: int = -1
    ) -> None:
        failures: list[str] = []
        for key, value, headers in payloads:
            self.now_ms += self.rng.randrange(5)
            producer.produce(
                topic,
                value=value,
                key=key,
                partition=partition,
                headers=headers,
                timestamp=self.now_ms,
                on_delivery=clients.delivered(failures),
            )
        clients.flush(producer)
        if failures:
            raise clients.DeliveryError(failures[0])

    def payloads(self, count: int, keys: int) -> list[Payload]:
        """Some keys are much more frequent than others; some values are empty, long, tombstones."""
        return [
            (self._key(int(keys * self.rng.random() ** 3)), self._value(), self._headers())
            for _ in range(count)
        ]

    def batches(self, count: int, keys: int, largest: int = 200) -> list[list[Payload]]:
        """So many records, each list of which becomes a batch or a few."""
        found = []
        while count > 0:
            some = min(self.rng.choice((1, 2, 10, 100, largest)), count)
            found.append(self.payloads(some, keys))
            count -= some
        return found

    def _key(self, number: int) -> bytes:
        return b"" if number == 0 else f"key-{number:08d}".encode()

    def _value(self) -> bytes | None:
        kind = self.rng.random()
        if kind < 0.07:
            return None if kind < 0.05 else b""
        size = 4000 if kind > 0.995 else self.rng.randrange(20, 300)
        return self.rng.randbytes(size // 2) + b"v" * (size - size // 2)

    def _headers(self) -> list[Header]:
        if self.rng.random() < 0.8:
            return []
        some: list[Header] = [("trace", self.rng.randbytes(8)), ("trace", b"again"), ("empty", b"")]
        return self.rng.sample([*some, ("null", None), ("größe", b"\x00\xff")], 3)


def write_codecs(writer: Writer) -> None:
    size = writer.records_per_topic
    producers = {codec: writer.producer(compression_type=codec) for codec in CODECS}
    for codec in (*CODECS, "mixed"):
        writer.create(f"codec-{codec}")
        for batch in writer.batches(size, keys=size // 10):
            chosen = writer.rng.choice(CODECS) if codec == "mixed" else codec
            writer.send(producers[chosen], f"codec-{codec}", batch)
    for codec in CODECS[1:]:
        writer.create(f"broker-{codec}", compression_type=codec)
        for batch in writer.batches(size // 2, keys=size // 20):
            writer.send(producers["none"], f"broker-{codec}", batch)


def write_policies(writer: Writer) -> None:
    size, producer = writer.records_per_topic, writer.producer()
    writer.create("altered", cleanup_policy="delete")
    writer.create(
        "compact-delete", cleanup_policy="compact,delete", message_timestamp_type="LogAppendTime"
    )
    for batch in writer.batches(size // 2, keys=size // 20):
        batch[::7] = [(None, value, headers) for _, value, headers in batch[::7]]
        writer.send(producer, "altered", batch)
    clients.alter(writer.bootstrap, "altered", {"cleanup.policy": "compact"})
    for topic in ("altered", "compact-delete"):
        for batch in writer.batches(size // 2, keys=size // 20):
            writer.send(producer, topic, batch)


def write_idempotent(writer: Writer) -> list[Producer]:
    """Return the producers, which go on later."""
    size = writer.records_per_topic
    writer.create("idempotent")
    producers = [
        writer.producer(enable_idempotence=True, compression_type=codec)
        for codec in ("none", "lz4", "none")
    ]
    for batch in writer.batches(size, keys=size // 10):
        writer.send(writer.rng.choice(producers), "idempotent", batch)
    return producers


def write_groups(writer: Writer) -> None:
    bootstrap, rng = writer.bootstrap, writer.rng
    places = [(topic, i) for topic in ("codec-none", "codec-zstd", "idempotent") for i in (0, 1)]
    groups = {group: clients.consumer(bootstrap, group) for group in GROUPS}
    for number in range(max(200, writer.records_per_topic // 4)):
        metadata = rng.choice(("", f"commit {number}"))
        some = [
            TopicPartition(topic, partition, number, metadata=metadata)
            for topic, partition in rng.sample(places, rng.randrange(1, len(places) + 1))
        ]
        groups[rng.choice(GROUPS)].commit(offsets=some, asynchronous=False)
        if number == 0:
            _shrink_segments(bootstrap, "__consumer_offsets", 16_384)
    for group in groups.values():
        group.close()
    for name in MEMBERS:
        _read_as_member(bootstrap, name)
    admin = clients.admin(bootstrap)
    clients.wait(admin.delete_consumer_groups([DELETED_GROUP]))


def write_transactions(writer: Writer) -> None:
    size, rng = writer.records_per_topic, writer.rng
    writer.create("transactions", compression_type="producer")
    plain, group = writer.producer(), clients.consumer(writer.bootstrap, "of-transactions")
    producers = {
        name: writer.producer(transactional_id=name, compression_type=rng.choice(CODECS))
        for name in TRANSACTIONAL_IDS
    }
    for producer in producers.values():
        producer.init_transactions(clients.SECONDS)
    _shrink_segments(writer.bootstrap, "__transaction_state", 4_096)
    left: dict[str, int] = {}  # batches of each open transaction
    for batch in writer.batches(size, keys=size // 10, largest=50):
        name = rng.choice((*TRANSACTIONAL_IDS, "plain"))
        if name == "plain":
            writer.send(plain, "transactions", batch)
            continue
        if name not in left:
            producers[name].begin_transaction()
            left[name] = rng.randrange(1, 6)
        writer.send(producers[name], "transactions", batch)
        left[name] -= 1
        if left[name] == 0:
            _end_transaction(rng, producers[name], group)
            del left[name]
    for name in left:
        _end_transaction(rng, producers[name], group)
    group.close()


def open_transaction(writer: Writer, transactional_id: str) -> Open:
    """Write to both partitions and decide nothing; then somebody else writes behind it."""
    producer = writer.producer(transactional_id=transactional_id, transaction_timeout_ms=900_000)
    producer.init_transactions(clients.SECONDS)
    producer.begin_transaction()
    values = []
    for partition in (0, 1):
        own = [f"{transactional_id} {partition} {i}".encode() for i in range(50)]
        values += own
        payloads: list[Payload] = [(value[-1:], value, []) for value in own]
        writer.send(producer, "transactions", payloads, partition)
        writer.send(writer.producer(), "transactions", writer.payloads(50, keys=20), partition)
    return Open(producer, frozenset(values))


def raise_segment_bytes(bootstrap: str) -> None:
    """So that segments are merged, at least those of some topics; of the others each stays one."""
    for topic in MERGED:
        clients.alter(bootstrap, topic, {SEGMENT_BYTES: str(1 << 20)})


def _end_transaction(rng: random.Random, producer: Producer, group: Consumer) -> None:
    if rng.random() < 0.3:
        offsets = [TopicPartition("transactions", i, rng.randrange(1000)) for i in (0, 1)]
        metadata = group.consumer_group_metadata()
        producer.send_offsets_to_transaction(offsets, metadata, clients.SECONDS)
    if rng.random() < 0.33:
        producer.abort_transaction(clients.SECONDS)
    else:
        producer.commit_transaction(clients.SECONDS)


def _read_as_member(bootstrap: str, group: str) -> None:
    member = clients.consumer(bootstrap, group, auto_offset_reset="earliest")
    member.subscribe(["codec-none", "codec-zstd"])
    for _ in range(5):
        if member.consume(200, timeout=10):
            member.commit(asynchronous=False)
    member.close()


def _shrink_segments(bootstrap: str, topic: str, size_bytes: int) -> None:
    """So that a broker's own topic, too, has segments to compact."""
    clients.alter(bootstrap, topic, {SEGMENT_BYTES: str(size_bytes)})
