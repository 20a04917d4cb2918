"""A real broker accepts what we leave, and none of its clients can tell: `make broker-test`."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.arrow.selection import Isolation
from tests.broker import story, views, workload
from tests.broker.broker import Broker
from tests.broker.tables import read_tables
from tests.broker.views import ISOLATIONS, Latest, Views

pytestmark = pytest.mark.broker
ALL_TOPICS = (*workload.TOPICS, *story.OWN_TOPICS)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture(scope="session")
def written(broker: Broker) -> story.Written:
    return story.write(broker)


@pytest.fixture(scope="session")
def compacted(broker: Broker, written: story.Written) -> story.Compacted:
    return story.compact(broker, written)


@pytest.fixture(scope="session")
def restarted(broker: Broker, compacted: story.Compacted) -> story.Seen:
    assert compacted.logs, compacted.told
    return story.restart(broker)


@pytest.fixture(scope="session")
def carried_on(broker: Broker, written: story.Written, restarted: story.Seen) -> story.CarriedOn:
    assert restarted.views
    return story.carry_on(broker, written)


@pytest.fixture(scope="session")
def recleaned(
    broker: Broker, written: story.Written, carried_on: story.CarriedOn
) -> story.Recleaned:
    assert carried_on.views
    return story.clean_again(broker, written)


def naming(lines: list[str], partitions: list[str]) -> list[str]:
    """The lines about these partitions, of the cleaner, or about an error of any kind."""
    words = (*partitions, *ALL_TOPICS, "Cleaner", "cleaner-thread", " ERROR ", " FATAL ")
    return [line for line in lines if any(word in line for word in words)]


def latest_of(seen: Views, topic: str, isolation: str) -> Latest:
    """The last record of each key; aborted ones decide nothing, cleaned away or not."""
    return seen[topic, isolation].latest(without=views.aborted(seen, topic))


def test_a_run_beside_a_running_broker_is_refused(written: story.Written) -> None:
    """F-15.1: the broker holds the lock."""
    done = written.beside_the_broker
    assert done.returncode == 3, done
    assert "locked: a broker or another run works in this log directory" in done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["status"] == "refused"


def test_a_broker_that_starts_while_we_hold_the_lock_refuses(written: story.Written) -> None:
    """F-15.1: it takes the same lock."""
    said = "Failed to acquire lock on file .lock"
    assert any(said in line for line in written.beside_our_lock), written.beside_our_lock[-10:]


def test_every_kind_of_log_was_written(written: story.Written) -> None:
    topics = {name.rpartition("-")[0] for name in written.compacted_partitions()}
    assert topics == set(ALL_TOPICS)
    altered = written.views["altered", "read_uncommitted"].records.values()
    assert any(record.key is None for record in altered)
    assert views.aborted(written.views, "transactions")
    undecided = written.to_be_committed.values | written.to_be_abandoned.values
    seen = [written.views["transactions", isolation].values() for isolation in ISOLATIONS]
    assert undecided.isdisjoint(seen[0])
    assert undecided <= seen[1]


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_tables_of_the_stopped_brokers_logs_hold_what_its_consumers_were_given(
    broker: Broker, written: story.Written, isolation: Isolation
) -> None:
    """Of topics that clients write to; every record with key, value, time and headers."""
    partitions = {topic: range(count) for topic, count in workload.TOPICS.items()}
    found = read_tables(Path(broker.data), partitions, isolation)
    for topic in workload.TOPICS:
        assert found[topic] == written.views[topic, isolation].records, topic


def test_the_run_cleans_every_compacted_partition_and_verify_finds_nothing(
    written: story.Written, compacted: story.Compacted
) -> None:
    assert compacted.exit_code == 0, compacted.told
    others = {
        name: (compacted.logs[name]["status"], compacted.logs[name]["reason"])
        for name in written.compacted_partitions()
        if compacted.logs[name]["status"] != "cleaned"
    }
    assert others == {}
    assert set(written.compacted_partitions()) == compacted.checkpoint.keys()
    assert compacted.verified.returncode == 0, compacted.verified


def test_the_broker_starts_without_a_warning(written: story.Written, restarted: story.Seen) -> None:
    assert naming(restarted.complaints, written.compacted_partitions()) == []


@pytest.mark.parametrize("topic", workload.MERGED)
def test_segments_are_merged(
    written: story.Written, compacted: story.Compacted, topic: str
) -> None:
    """Several to one, indexes and all, so that the broker reads what stands in merged segments."""
    names = [name for name in written.compacted_partitions() if name.rpartition("-")[0] == topic]
    before, after = (
        sum(compacted.logs[name][count] for name in names)
        for count in ("segments_before", "segments_after")
    )
    assert before > after == len(names)


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("topic", ALL_TOPICS)
def test_every_key_has_the_value_it_had_and_a_record_that_stays_is_as_it_was(
    written: story.Written, restarted: story.Seen, topic: str, isolation: str
) -> None:
    """C-11.3: or its tombstone, which waits for a delete horizon a day from now.

    At its offset, with timestamp, key, value and headers; and the reader ends where it did.
    """
    values = [latest_of(v, topic, isolation) for v in (written.views, restarted.views)]
    assert values[1] == values[0]
    before, after = written.views[topic, isolation], restarted.views[topic, isolation]
    assert after.records.items() <= before.records.items()
    assert after.ends == before.ends
    assert isolation == "read_committed" or len(after.records) < len(before.records)


def test_null_keys_and_aborted_records_are_gone_from_what_was_cleaned(
    compacted: story.Compacted, restarted: story.Seen
) -> None:
    records = restarted.views["altered", "read_uncommitted"].records
    left = [offset for (_, offset), record in records.items() if record.key is None]
    assert [offset for offset in left if offset < compacted.checkpoint["altered-0"]] == []
    aborted = views.aborted(restarted.views, "transactions")
    cleaned_to = {i: compacted.checkpoint[f"transactions-{i}"] for i in (0, 1)}
    assert [(i, offset) for i, offset in aborted if offset < cleaned_to[i]] == []
    assert min(cleaned_to.values()) > 0


def test_group_offsets_are_still_there(written: story.Written, restarted: story.Seen) -> None:
    groups = set(workload.GROUPS) - {workload.DELETED_GROUP} | set(workload.MEMBERS)
    assert written.offsets.keys() == groups | {"of-transactions"}
    assert restarted.offsets == written.offsets


@pytest.mark.parametrize("group", workload.MEMBERS)
def test_a_member_resumes_where_it_stood(
    written: story.Written, carried_on: story.CarriedOn, group: str
) -> None:
    committed = {place: offset for place, (offset, _) in written.offsets[group].items()}
    assert committed
    assert committed.items() <= carried_on.resumed[group].items()


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("topic", workload.TOPICS)
def test_producers_go_on(
    restarted: story.Seen, carried_on: story.CarriedOn, topic: str, isolation: str
) -> None:
    """Behind what is there, in every partition; idempotent ones from the sequence they had."""
    before = restarted.views[topic, "read_uncommitted"]
    after = carried_on.views[topic, isolation]
    appended = [
        place for place, record in after.records.items() if record.value == story.AFTERWARDS
    ]
    assert len(appended) == {
        "idempotent": 2 * (2 + 3),  # a plain producer's two and one of each of the three
        "transactions": 2 * (2 + 1 + len(workload.TRANSACTIONAL_IDS)),
    }.get(topic, 2 * workload.TOPICS[topic])
    assert all(offset >= before.ends[partition] for partition, offset in appended)


def test_an_open_transaction_is_committed_by_its_producer_and_an_abandoned_one_aborted(
    written: story.Written, carried_on: story.CarriedOn
) -> None:
    seen = carried_on.views["transactions", "read_committed"].values()
    assert written.to_be_committed.values <= seen
    assert written.to_be_abandoned.values.isdisjoint(seen)


def test_groups_go_on(carried_on: story.CarriedOn) -> None:
    for group in workload.GROUPS[:-1]:
        assert carried_on.offsets[group]["codec-gzip-0"][0] == 2


def test_the_broker_has_nothing_to_complain_of_while_clients_go_on(
    written: story.Written, carried_on: story.CarriedOn
) -> None:
    assert naming(carried_on.complaints, written.compacted_partitions()) == []


def test_the_brokers_own_cleaner_takes_every_partition_and_has_nothing_to_complain_of(
    written: story.Written,
    compacted: story.Compacted,
    carried_on: story.CarriedOn,
    recleaned: story.Recleaned,
) -> None:
    """From where we stopped up to its active segment, which has moved on since."""
    assert recleaned.checkpoint == recleaned.active
    moved = {n for n, offset in compacted.checkpoint.items() if recleaned.active[n] > offset}
    assert moved == compacted.checkpoint.keys()
    assert naming(recleaned.complaints, written.compacted_partitions()) == []
    assert [line for line in recleaned.said if "uncleanable" in line.lower()] == []
    assert recleaned.offsets == carried_on.offsets


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("topic", ALL_TOPICS)
def test_every_key_has_its_value_after_the_brokers_own_cleaner(
    carried_on: story.CarriedOn, recleaned: story.Recleaned, topic: str, isolation: str
) -> None:
    before, after = (latest_of(v, topic, isolation) for v in (carried_on.views, recleaned.views))
    assert after == before


def test_the_metadata_log_is_no_business_of_ours(
    broker: Broker, compacted: story.Compacted
) -> None:
    status = compacted.logs.get("__cluster_metadata-0", {}).get("status")
    assert status in (None, "passed-over")
    assert (Path(broker.data) / "__cluster_metadata-0").is_dir()
