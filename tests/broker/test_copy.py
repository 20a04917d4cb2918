"""A copy made by `run --output`, with a broker at work on it; the original stays bit for bit.

1. a broker is written to, read, and stopped; its directory is copied;
2. another broker starts on the copy and is read; it is written to and rolls segments, it is killed,
   what a disk tears stands at the end of a log, and it starts again, which cuts that off; records
   are deleted, and it stops;
3. what says that no broker may start keeps one from starting.
"""

import os
import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from confluent_kafka import TopicPartition

from compactor.log_dirs.directory_state import NO_BROKER, UNFINISHED
from tests.broker import clients, views, workload
from tests.broker.broker import Broker, BrokerError
from tests.broker.views import ISOLATIONS, Views
from tests.broker.workload import Writer
from tests.support.command_process import compactor
from tests.support.file_states import FileState, state_of

pytestmark = pytest.mark.broker
TOPICS = ("idempotent", "transactions")
TORN = b"\0\0\0\0\0\0\x7f\xff\0\0\1\0torn"
WORDS = ("--include", "|".join(TOPICS), "--set", "cleanup.policy=compact")


@dataclass(frozen=True, slots=True)
class Story:
    original: dict[str, FileState]  # before anything was done
    original_at_end: dict[str, FileState]
    copied: subprocess.CompletedProcess[str]
    verified: subprocess.CompletedProcess[str]
    before: Views
    after: Views  # of a broker on the copy
    rolled: int  # segments that it has made
    deleted_to: int
    in_the_end: Views
    errors: list[str]  # of the starts on the copy


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Broker]]:
    homes = [tmp_path_factory.mktemp(name) for name in ("original", "copy")]
    with Broker(homes[0]) as first, Broker(homes[1]) as second:
        yield first, second


@pytest.fixture(scope="module")
def story(brokers: tuple[Broker, Broker]) -> Story:
    first, second = brokers
    first.start()
    writer = Writer(first.bootstrap, 2000, random.Random(5))
    workload.write_idempotent(writer)
    workload.write_transactions(writer)
    before = views.read_all(first.bootstrap, TOPICS)
    first.stop()
    original = state_of(first.data)
    copied = compactor("run", first.data, "--output", second.data, *WORDS)
    verified = compactor("verify", second.data, "--against", first.data, "--manifest")
    segments = set(second.data.rglob("*.log"))

    second.start()
    after = views.read_all(second.bootstrap, TOPICS)
    errors = second.errors()
    # records of compacted topics alone may not be deleted
    clients.alter(second.bootstrap, "idempotent", {"cleanup.policy": "compact,delete"})
    writer = Writer(second.bootstrap, 2000, random.Random(6))
    for payloads in writer.batches(2000, 100):
        writer.send(writer.producer(), "idempotent", payloads)
    rolled = len(set(second.data.rglob("*.log")) - segments)
    second.kill()
    with open(max((second.data / "transactions-0").glob("*.log")), "ab") as log:
        log.write(TORN)
    second.start()
    deleted_to = max(
        offset for at_, offset in after["idempotent", ISOLATIONS[1]].records if at_ == 0
    )
    admin = clients.admin(second.bootstrap)
    clients.wait(admin.delete_records([TopicPartition("idempotent", 0, deleted_to)]))
    in_the_end = views.read_all(second.bootstrap, TOPICS)
    errors += second.errors()
    second.stop()
    return Story(
        original=original,
        original_at_end=state_of(first.data),
        copied=copied,
        verified=verified,
        before=before,
        after=after,
        rolled=rolled,
        deleted_to=deleted_to,
        in_the_end=in_the_end,
        errors=errors,
    )


def test_it_is_proven_against_the_original(story: Story) -> None:
    assert story.copied.returncode == 0, story.copied
    assert story.verified.returncode == 0, story.verified


def test_the_original_is_bit_for_bit_as_it_was_to_the_end(story: Story) -> None:
    """Whatever a broker on the copy has done: bytes, names, times, and which files they are."""
    assert story.rolled > 0
    assert story.deleted_to > 0
    assert story.original_at_end == story.original


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_readers_of_the_copy_find_what_readers_of_the_original_found(
    story: Story, topic: str, isolation: str
) -> None:
    before, after = (found[topic, isolation] for found in (story.before, story.after))
    gone = views.aborted(story.before, topic)  # which a cleaning removes
    assert after.latest(gone) == before.latest(gone)
    assert after.ends == before.ends


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_the_broker_goes_on_with_the_copy(story: Story, isolation: str) -> None:
    written, kept = (story.in_the_end[topic, isolation] for topic in TOPICS)
    assert len(written.records) > 1000
    assert (
        min(offset for partition, offset in written.records if partition == 0) >= story.deleted_to
    )
    assert kept == story.after["transactions", isolation]
    assert story.errors == []


@pytest.mark.parametrize("name", [UNFINISHED, NO_BROKER])
def test_no_broker_starts_where_none_may(
    story: Story, brokers: tuple[Broker, Broker], name: str
) -> None:
    """F-1.4"""
    assert story.copied.returncode == 0
    _, broker = brokers
    os.mkdir(broker.data / name)
    try:
        with pytest.raises(BrokerError, match="ended with"):
            broker.start()
    finally:
        os.rmdir(broker.data / name)
