"""Clients of the broker: librdkafka, set up so that nothing depends on its timers."""

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

SECONDS = 180
QUIET: dict[str, Any] = {
    "log_level": 0,
    "error_cb": lambda _: None,
    "reconnect.backoff.max.ms": 200,
}
NOT_YET = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)
T = TypeVar("T")


class DeliveryError(Exception):
    """The broker did not take records."""


def producer(bootstrap: str, **settings: Any) -> Producer:
    """One that sends only when it is flushed, so that a batch is what was produced since."""
    base = {"bootstrap.servers": bootstrap, "linger.ms": 20_000, "partitioner": "murmur2", **QUIET}
    return Producer(base | {name.replace("_", "."): value for name, value in settings.items()})


def consumer(bootstrap: str, group: str, **settings: Any) -> Consumer:
    """One that commits only when it is told to."""
    base = {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, **QUIET}
    return Consumer(base | {name.replace("_", "."): value for name, value in settings.items()})


def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, **QUIET})


def wait(futures: Mapping[Any, Future[Any]]) -> None:
    for future in futures.values():
        future.result(SECONDS)


def patiently(ask: Callable[[], T]) -> T:
    """Ask again while a broker that has just started says that it is not ready for that yet."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            return ask()
        except KafkaException as refused:
            error = refused.args[0]
            not_yet = error.retriable() or error.code() in NOT_YET
            if not not_yet or time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def create(bootstrap: str, *topics: NewTopic) -> None:
    """Create topics."""
    client = admin(bootstrap)  # has to live until the broker has answered
    wait(client.create_topics(list(topics)))


def alter(
    bootstrap: str,
    name: str,
    settings: Mapping[str, str | None],
    kind: ResourceType = ResourceType.TOPIC,
) -> None:
    """Set configurations of a topic, or of something else by its name; None: unset them."""
    entries = [
        ConfigEntry(
            key,
            value,
            incremental_operation=AlterConfigOpType.DELETE
            if value is None
            else AlterConfigOpType.SET,
        )
        for key, value in settings.items()
    ]
    client = admin(bootstrap)  # has to live until the broker has answered
    resource = ConfigResource(kind, name, incremental_configs=entries)
    wait(client.incremental_alter_configs([resource]))


def write(
    bootstrap: str,
    topic: str,
    records: Iterable[tuple[bytes, bytes | None]],
    per_batch: int,
    partition: int = -1,
    **settings: Any,
) -> None:
    """Write records of key and value with a new producer, so many in a batch."""
    client = producer(bootstrap, **settings)
    for number, (key, value) in enumerate(records, start=1):
        client.produce(topic, key=key, value=value, partition=partition)
        if number % per_batch == 0:
            flush(client)
    flush(client)


def topic_configs(client: AdminClient) -> dict[str, dict[str, str]]:
    """What `kafka-configs` describes of each topic: every configuration that has a value."""
    topics = client.list_topics(timeout=SECONDS).topics
    asked = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
    return {
        resource.name: {
            name: entry.value
            for name, entry in future.result(SECONDS).items()
            if entry.value is not None
        }
        for resource, future in client.describe_configs(asked).items()
    }


def flush(client: Producer) -> None:
    if client.flush(SECONDS):
        raise DeliveryError(f"the broker took no records within {SECONDS} s")


def delivered(failures: list[str]) -> Callable[[KafkaError | None, Message], None]:
    """A callback that collects what was not delivered."""

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(f"{message.topic()}-{message.partition()}: {error}")

    return on_delivery
