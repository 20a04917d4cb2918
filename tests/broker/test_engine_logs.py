"""Logs that a real broker, our engine and our commands write by turns: each finds what the others
left, clients too, and the broker has nothing to say about it."""

from collections.abc import Iterator

import pytest

from tests.broker import engine_logs, engine_story
from tests.broker.broker import Broker
from tests.broker.engine_logs import BATCH, HANGING, IDEMPOTENT, IN_SHARED, Entry, Partition
from tests.broker.engine_logs import Written as ByEngine
from tests.broker.engine_story import (
    APPENDED,
    CUT,
    CUT_BEFORE,
    PARTITIONS,
    RECORDS,
    ROLLED,
    TRUNCATED,
    TRUNCATED_TO,
    FoundByEngine,
    Seen,
    Story,
)
from tests.broker.views import ISOLATIONS

pytestmark = pytest.mark.broker
UNCOMMITTED, COMMITTED = "read_uncommitted", "read_committed"
OF_LOGS = (".storage.internals.", " kafka.log.", " ERROR ", " FATAL ", "/data")
NOT_OF_LOGS = "The config `log.cleaner.enable` is deprecated"
Values = dict[int, tuple[bytes | None, bytes | None]]  # key and value by offset


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("engine")) as broker:
        yield broker


@pytest.fixture(scope="module")
def story(broker: Broker) -> Story:
    return engine_story.told(broker)


def values(seen: Seen, partition: Partition, isolation: str) -> Values:
    records = seen.views[partition[0], isolation].records.items()
    return {at[1]: (each.key, each.value) for at, each in records if at[0] == partition[1]}


def end(seen: Seen, partition: Partition, isolation: str = UNCOMMITTED) -> int:
    return seen.views[partition[0], isolation].ends[partition[1]]


def at(first: int, entries: list[Entry]) -> Values:
    return {first + number: entry for number, entry in enumerate(entries)}


def written(what: ByEngine, without: frozenset[int] = frozenset()) -> Values:
    found = {what.first_offset + number: each for number, each in enumerate(what.entries)}
    return {offset: each for offset, each in found.items() if each and offset not in without}


def of_logs(complaints: list[str]) -> list[str]:
    words = (*OF_LOGS, *engine_story.TOPICS)
    return [
        line
        for line in complaints
        if any(word in line for word in words) and NOT_OF_LOGS not in line
    ]


def same(found: FoundByEngine, seen: Seen, partition: Partition) -> None:
    opened = found.logs[partition]
    assert opened.log_end == end(seen, partition)
    assert opened.producers == seen.producers[partition]
    # one that a leader noted for records that it never got goes when the log is opened (L-25.2)
    assert opened.epochs == [each for each in found.epochs[partition] if each[1] < opened.log_end]


@pytest.mark.parametrize("partition", PARTITIONS)
def test_our_engine_finds_what_a_broker_left(story: Story, partition: Partition) -> None:
    """Log end, leader epochs, producers with sequences and open transactions, as it described them.

    After a clean stop and after a kill: all of it had been acknowledged, so it is recovered.
    """
    same(story.after_stop, story.stopped, partition)
    same(story.after_kill, story.gone_on, partition)


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_consumers_read_what_our_engine_wrote(story: Story, isolation: str) -> None:
    """Every codec, transactions, in three segments; of an aborted one only those who ask for it."""
    what = story.by_engine["of-engine", 0]
    hidden = what.aborted if isolation == COMMITTED else frozenset[int]()
    assert values(story.restarted, ("of-engine", 0), isolation) == written(what, hidden)
    assert end(story.restarted, ("of-engine", 0), isolation) == len(what.entries) == 152
    assert len(what.aborted) == BATCH


def test_the_broker_knows_the_producers_of_our_engine(story: Story) -> None:
    """By the snapshot that our engine took: epoch, last sequence, coordinator's epoch."""
    told = story.restarted.producers["of-engine", 0]
    assert [
        (each.producer_id, each.epoch, each.last_sequence, each.coordinator_epoch) for each in told
    ] == [
        (IDEMPOTENT, 0, 2 * BATCH - 1, -1),
        (engine_logs.COMMITTED, 0, BATCH - 1, engine_logs.COORDINATOR_EPOCH),
        (engine_logs.ABORTED, 0, BATCH - 1, engine_logs.COORDINATOR_EPOCH),
    ]
    assert {each.txn_start_offset for each in told} == {-1}


def test_producers_of_our_engine_go_on_with_their_sequences(story: Story) -> None:
    """The next batch is taken, one of before is known, and one that leaves a gap is refused."""
    first = len(story.by_engine["of-engine", 0].entries)
    assert story.answers["next"] == (0, first)
    assert story.answers["duplicate"] == (0, 130)  # 100 + 10 + 10 + 10 lie before it
    assert story.answers["gap"] == (45, -1)  # OUT_OF_ORDER_SEQUENCE_NUMBER
    assert story.answers["next in shared"].error == 0
    known = {each.producer_id: each for each in story.gone_on.producers["shared", 0]}
    assert known[IN_SHARED].last_sequence == 2 * BATCH - 1


def test_clients_go_on_behind_what_our_engine_wrote(story: Story) -> None:
    """An idempotent producer with its sequence, a transactional one in the transaction that it had
    begun before, which is committed then."""
    shared = ("shared", 0)
    before = {
        **{10 * i + n: e for i in range(7) for n, e in enumerate(entries("idempotent"))},
        **at(70, entries("in a transaction")),
    }
    of_engine = written(story.by_engine[shared])
    after = {
        **at(95, entries("gone on")),
        **at(105, entries("still in it")),
        **at(116, entries("of the engine's producer")),  # 115 is the marker
    }
    assert values(story.restarted, shared, UNCOMMITTED) == before | of_engine
    assert end(story.restarted, shared, COMMITTED) == 70
    for isolation in ISOLATIONS:
        assert values(story.gone_on, shared, isolation) == before | of_engine | after
        assert end(story.gone_on, shared, isolation) == 126


def entries(what: str) -> list[Entry]:
    return engine_logs.entries(what, BATCH)


def test_a_transaction_of_our_engine_hangs(story: Story) -> None:
    """No coordinator knows of it."""
    first = at(0, entries("of a client"))
    hanging = ("hanging", 0)
    for seen in (story.restarted, story.gone_on):
        assert values(seen, hanging, COMMITTED) == first
        assert values(seen, hanging, UNCOMMITTED) == first | written(story.by_engine[hanging])
        known = {each.producer_id: each.txn_start_offset for each in seen.producers[hanging]}
        assert known[HANGING] == 10


# ---- after the kill, our engine and the commands -------------------------------------------------


def test_the_commands_end_well_and_the_broker_is_content_with_all_of_it(story: Story) -> None:
    assert {verb: done.returncode for verb, done in story.commands.items()} == dict.fromkeys(
        ("truncate", "delete-records", "roll", "append", "abort", "move"), 0
    ), story.commands
    assert of_logs([*story.restarted.complaints, *story.last.complaints]) == []


def test_what_was_appended_after_the_kill_is_read(story: Story) -> None:
    shared = ("shared", 0)
    found = values(story.last, shared, COMMITTED)
    before = values(story.gone_on, shared, COMMITTED) | written(story.recovered)
    assert story.recovered.first_offset == 126
    assert {offset: value for offset, value in found.items() if offset < 131} == before
    assert [found[offset][1] for offset in sorted(found) if offset >= 131] == [b"at last 0"] * 3
    assert end(story.last, shared, COMMITTED) == 131 + 3 + 1  # a marker
    idempotent = next(p for p in story.last.producers[shared] if p.last_sequence == 8 * BATCH)
    assert idempotent.epoch == 0


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_truncated_log_ends_where_it_was_said(story: Story, isolation: str) -> None:
    before = values(story.stopped, ("changed", TRUNCATED), isolation)
    kept = {offset: each for offset, each in before.items() if offset < TRUNCATED_TO}
    assert len(kept) == TRUNCATED_TO
    # a batch goes whole, and a log that is opened anew ends with its last one: of ten records here
    whole = {offset: each for offset, each in kept.items() if offset < 60}
    assert "log end offset: 100 becomes 60" in story.commands["truncate"].stdout
    expected = whole | at(60, [(b"key-0", b"at last 0")])
    assert values(story.last, ("changed", TRUNCATED), isolation) == expected


def test_a_log_begins_where_its_records_were_deleted(story: Story) -> None:
    before = values(story.stopped, ("changed", CUT), UNCOMMITTED)
    kept = {offset: each for offset, each in before.items() if offset >= CUT_BEFORE}
    assert values(story.last, ("changed", CUT), UNCOMMITTED) == kept | at(
        RECORDS, [(b"key-0", b"at last 0")]
    )


def test_a_rolled_log_goes_on_in_its_new_segment(broker: Broker, story: Story) -> None:
    before = values(story.stopped, ("changed", ROLLED), UNCOMMITTED)
    assert values(story.last, ("changed", ROLLED), UNCOMMITTED) == before | at(
        RECORDS, [(b"key-0", b"at last 0")]
    )
    (partition,) = broker.home.glob(f"data*/changed-{ROLLED}")
    sizes = {path.name: path.stat().st_size for path in partition.glob("*.log")}
    assert sorted(sizes) == ["00000000000000000000.log", "00000000000000000100.log"]
    assert all(sizes.values())


def test_consumers_read_what_log_append_wrote(story: Story) -> None:
    before = values(story.stopped, ("changed", APPENDED), UNCOMMITTED)
    assert values(story.last, ("changed", APPENDED), UNCOMMITTED) == {
        **before,
        RECORDS: (b"key-1", b"of the tool"),
        RECORDS + 1: (b"key-2", None),
        RECORDS + 2: (b"key-0", b"at last 0"),
    }


def test_an_aborted_transaction_hangs_no_longer(story: Story) -> None:
    """Readers of committed records get on, and never see it; a transaction of a client begins and
    ends behind it."""
    hanging, what = ("hanging", 0), story.by_engine["hanging", 0]
    behind = {o: each for o, each in written(what).items() if o >= 20}  # 10 to 19 are in it
    at_last = dict.fromkeys((26, 27), (b"key-0", b"at last 0"))  # 25 is its marker
    expected = at(0, entries("of a client")) | behind | at_last  # 28 is that of the client's
    assert values(story.last, hanging, COMMITTED) == expected
    assert end(story.last, hanging, COMMITTED) == end(story.last, hanging) == 29
    open_txns = {each.txn_start_offset for each in story.last.producers[hanging]}
    assert open_txns == {-1}
    assert story.state_stayed


def test_a_moved_log_is_where_it_was_moved_to(story: Story) -> None:
    """The broker writes to it there, and makes none where it was."""
    assert not story.moved.source_is_there
    assert story.moved.size_after > story.moved.size_before
    found = values(story.last, ("moved", 0), COMMITTED)
    parts = [*entries("of a client"), *entries("gone on"), (b"key-0", b"at last 0")]
    assert found == at(0, parts)


def test_the_controller_learns_where_a_moved_log_is(story: Story) -> None:
    """A broker that finds a replica in another log directory than the metadata say tells so when
    it starts: so a failure of the old directory is none of this replica."""
    assert story.moved.assigned_to == story.moved.directory_id
