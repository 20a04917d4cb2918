"""What readers of a broker are given: records, latest values, groups' offsets."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConsumerGroupListing

from tests.broker import clients

ISOLATIONS = ("read_committed", "read_uncommitted")
Place = tuple[int, int]  # partition, offset
Latest = dict[tuple[int, bytes], tuple[Place, bytes | None]]  # by partition and key


@dataclass(frozen=True, slots=True)
class ReadRecord:
    timestamp: tuple[int, int]  # its type, and ms
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, str | bytes | None], ...]


@dataclass(frozen=True, slots=True)
class View:
    """All records of a topic that one kind of reader is given."""

    records: dict[Place, ReadRecord]  # in order of partitions and offsets
    ends: dict[int, int]  # where the reader stood at last; read_committed: last stable offset

    def latest(self, without: Iterable[Place] = ()) -> Latest:
        """The last record of each key, as if some records were not there."""
        left_out = frozenset(without)
        return {
            (place[0], record.key): (place, record.value)
            for place, record in self.records.items()
            if record.key is not None and place not in left_out
        }

    def values(self) -> set[bytes | None]:
        return {record.value for record in self.records.values()}


Views = dict[tuple[str, str], View]  # by topic and isolation level
Offsets = dict[str, dict[str, tuple[int, str | None]]]  # by group and TOPIC-PARTITION: and metadata


def aborted(views: Views, topic: str) -> set[Place]:
    """The records that were decided and that no read_committed reader is given."""
    committed, all_of_them = (views[topic, isolation] for isolation in ISOLATIONS)
    return {
        place
        for place in all_of_them.records.keys() - committed.records.keys()
        if place[1] < committed.ends[place[0]]
    }


def read_all(bootstrap: str, topics: Iterable[str]) -> Views:
    return {
        (topic, isolation): _read(bootstrap, topic, isolation)
        for topic in topics
        for isolation in ISOLATIONS
    }


def group_offsets(client: AdminClient) -> Offsets:
    """What each group has committed."""
    listed = client.list_consumer_groups(request_timeout=clients.SECONDS).result()
    return {group: dict(_offsets_of(client, group)) for group in _ids(listed.valid)}


def _read(bootstrap: str, topic: str, isolation: str) -> View:
    reader = clients.consumer(
        bootstrap,
        "unused",
        isolation_level=isolation,
        enable_partition_eof=True,
        auto_offset_reset="error",
        check_crcs=True,
        fetch_wait_max_ms=10,
    )
    view = View({}, {})
    try:
        partitions = reader.list_topics(topic, timeout=clients.SECONDS).topics[topic].partitions
        for partition in sorted(partitions):
            low = _log_start_offset(reader, TopicPartition(topic, partition))
            reader.assign([TopicPartition(topic, partition, low)])
            while (message := reader.poll(clients.SECONDS)) is not None:
                error, offset = message.error(), message.offset()
                assert offset is not None
                if error is not None:
                    if error.code() != KafkaError._PARTITION_EOF:
                        raise KafkaException(error)
                    view.ends[partition] = offset
                    break
                view.records[partition, offset] = ReadRecord(
                    message.timestamp(),
                    message.key(),
                    message.value(),
                    _headers_of(message),
                )
            assert partition in view.ends, f"{topic}-{partition}: nothing came in time"
    finally:
        reader.close()
    return view


def _log_start_offset(reader: Consumer, place: TopicPartition) -> int:
    watermarks = clients.patiently(
        lambda: reader.get_watermark_offsets(place, timeout=clients.SECONDS)
    )
    assert watermarks is not None, f"{place}: no answer in time"
    return watermarks[0]


def _headers_of(message: Message) -> tuple[tuple[str, str | bytes | None], ...]:
    headers = message.headers() or []
    return tuple(headers.items() if isinstance(headers, dict) else headers)


def _ids(groups: Iterable[ConsumerGroupListing]) -> list[str]:
    return sorted(group.group_id for group in groups)


def _offsets_of(client: AdminClient, group: str) -> Iterator[tuple[str, tuple[int, str | None]]]:
    asked = [ConsumerGroupTopicPartitions(group)]
    committed = clients.patiently(
        lambda: client.list_consumer_group_offsets(asked, request_timeout=clients.SECONDS)[
            group
        ].result()
    )
    for place in sorted(committed.topic_partitions):
        yield f"{place.topic}-{place.partition}", (place.offset, place.metadata)
