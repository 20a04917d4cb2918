"""Logs that are written by turns: by a real broker and its clients, by our engine, by our commands.

1. by clients: producers of every kind write to a broker with two log directories; it is stopped;
2. by the engine: a `LogManager` opens both directories and appends to logs of the broker's, with
   producers and transactions of its own; one transaction is left hanging;
3. by clients again: the broker starts on that, and all producers go on; it is killed;
4. by the engine again: it recovers what the kill left, appends, and closes in good order;
5. by commands: `compactor log truncate`, `delete-records`, `roll`, `append`, `abort` and `move`;
6. the broker starts for the last time.
"""

import json
import random
import re
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from tests.broker import clients, engine_logs, requests, views
from tests.broker.broker import Broker
from tests.broker.engine_logs import BATCH, HANGING, IDEMPOTENT, IN_SHARED, Opened, Partition
from tests.broker.engine_logs import Written as ByEngine
from tests.broker.requests import ActiveProducer, Produced
from tests.broker.views import Views
from tests.broker.workload import Payload, Writer
from tests.support.command_process import compactor

LOG_DIRS = ("data", "data-too")
SETTINGS = {
    "log.dirs": ",".join(LOG_DIRS),
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",  # for which a controller waits after a kill
}
TOPICS = {"of-engine": 1, "shared": 1, "hanging": 1, "changed": 4, "moved": 2}
PARTITIONS = [(topic, number) for topic, count in TOPICS.items() for number in range(count)]
CHANGED = "changed"
TRUNCATED, CUT, ROLLED, APPENDED = range(4)  # partitions of it
RECORDS = 100  # in each partition of it, ten a batch
TRUNCATED_TO, CUT_BEFORE = 64, 35
MARKER_SECONDS = 60
OF_TOOL = ({"key": "key-1", "value": "of the tool"}, {"key": "key-2", "value": None})
_ASSIGNED = re.compile(r"partition change for moved-0 .*directories: \[\S+\] -> \[([\w-]+)\]")


@dataclass(frozen=True, slots=True)
class Seen:
    """The broker at some moment."""

    views: Views
    producers: dict[Partition, list[ActiveProducer]]
    complaints: list[str]


@dataclass(frozen=True, slots=True)
class FoundByEngine:
    logs: dict[Partition, Opened]
    epochs: dict[Partition, list[tuple[int, int]]]  # of the checkpoints, as the broker left them


@dataclass(frozen=True, slots=True)
class Clients:
    """Those that live through all of it."""

    writer: Writer
    idempotent: Producer
    transactional: Producer


@dataclass(frozen=True, slots=True)
class Story:
    stopped: Seen
    after_stop: FoundByEngine
    by_engine: dict[Partition, ByEngine]
    restarted: Seen
    answers: dict[str, Produced]
    gone_on: Seen  # and then killed
    after_kill: FoundByEngine
    recovered: ByEngine  # what was appended to `shared` then
    commands: dict[str, subprocess.CompletedProcess[str]]
    state_stayed: bool  # the files of __transaction_state, while commands ran
    last: Seen
    moved: "Moved"


@dataclass(frozen=True, slots=True)
class Moved:
    """Where a moved log is when a broker has been writing to it."""

    source_is_there: bool
    size_before: int
    size_after: int
    directory_id: str  # of the log directory that it was moved to
    assigned_to: str | None  # the one that the controller noted when the broker started


def told(broker: Broker) -> Story:
    broker.start(SETTINGS)
    living = _write(broker)
    stopped = _look(broker)
    broker.stop()
    after_stop, by_engine = _write_by_engine(broker)
    broker.start(SETTINGS)
    restarted = _look(broker)
    answers = _go_on(broker, living)
    gone_on = _look(broker)
    broker.kill()
    after_kill, recovered = _recover_by_engine(broker)
    state = _files_of_transaction_state(broker)
    source, target = _places(broker)
    commands = _command(broker, source, target)
    state_stayed = state == _files_of_transaction_state(broker)
    size_before = _size(target / "moved-0")
    broker.start(SETTINGS)
    _append_everywhere(broker, living)
    last = _look(broker)
    broker.stop()
    moved = Moved(
        source_is_there=(source / "moved-0").exists(),
        size_before=size_before,
        size_after=_size(target / "moved-0"),
        directory_id=_directory_id(target),
        assigned_to=_assigned(broker),
    )
    return Story(
        stopped,
        after_stop,
        by_engine,
        restarted,
        answers,
        gone_on,
        after_kill,
        recovered,
        commands,
        state_stayed,
        last,
        moved,
    )


def log_dirs(broker: Broker) -> list[Path]:
    return [broker.home / name for name in LOG_DIRS]


def _look(broker: Broker) -> Seen:
    read = views.read_all(broker.bootstrap, TOPICS)
    producers = {each: requests.active_producers(broker.port, *each) for each in PARTITIONS}
    return Seen(read, producers, broker.complaints())


def payloads(what: str, count: int) -> list[Payload]:
    return [(key, value, []) for key, value in engine_logs.entries(what, count)]


# ---- clients -------------------------------------------------------------------------------------


def _write(broker: Broker) -> Clients:
    topics = [NewTopic(name, count, 1) for name, count in TOPICS.items()]
    clients.create(broker.bootstrap, *topics)
    writer = Writer(broker.bootstrap, 0, random.Random(5))
    plain, idempotent = writer.producer(), writer.producer(enable_idempotence=True)
    for number in range(0, RECORDS, BATCH):
        for partition in range(TOPICS[CHANGED]):
            writer.send(plain, CHANGED, payloads(f"batch {number}", BATCH), partition)
    for topic in ("hanging", "moved"):
        for partition in range(TOPICS[topic]):
            writer.send(idempotent, topic, payloads("of a client", BATCH), partition)
    for _ in range(7):  # a broker keeps the last five batches of a producer
        writer.send(idempotent, "shared", payloads("idempotent", BATCH), 0)
    transactional = writer.producer(transactional_id="living", transaction_timeout_ms=900_000)
    transactional.init_transactions(clients.SECONDS)
    transactional.begin_transaction()
    writer.send(transactional, "shared", payloads("in a transaction", BATCH), 0)
    return Clients(writer, idempotent, transactional)


def _go_on(broker: Broker, living: Clients) -> dict[str, Produced]:
    """All producers, those of the engine too; of the latter what the broker answered."""
    writer = living.writer
    writer.send(living.idempotent, "shared", payloads("gone on", BATCH), 0)
    writer.send(living.transactional, "shared", payloads("still in it", BATCH), 0)
    living.transactional.commit_transaction(clients.SECONDS)
    _wait_for_markers(broker, "shared")
    writer.send(writer.producer(), "moved", payloads("gone on", BATCH), 0)
    again = engine_logs.entries("of the engine's producer", BATCH)

    def produce(topic: str, producer_id: int, sequence: int) -> Produced:
        batch = engine_logs.made(again, engine_logs.of_producer(producer_id, sequence))
        return requests.produce(broker.port, topic, 0, batch)

    return {
        "next": produce("of-engine", IDEMPOTENT, 2 * BATCH),
        "duplicate": produce("of-engine", IDEMPOTENT, BATCH),
        "gap": produce("of-engine", IDEMPOTENT, 5 * BATCH),
        "next in shared": produce("shared", IN_SHARED, BATCH),
    }


def _append_everywhere(broker: Broker, living: Clients) -> None:
    plain = living.writer.producer()
    for topic, partition in PARTITIONS:
        living.writer.send(plain, topic, payloads("at last", 1), partition)
    living.writer.send(living.idempotent, "shared", payloads("at last", 1), 0)
    living.transactional.begin_transaction()
    for topic in ("shared", "hanging"):
        living.writer.send(living.transactional, topic, payloads("at last", 1), 0)
    living.transactional.commit_transaction(clients.SECONDS)
    for topic in ("shared", "hanging"):
        _wait_for_markers(broker, topic)


def _wait_for_markers(broker: Broker, topic: str) -> None:
    """A coordinator writes them after it has told its producer that all is done."""
    deadline = time.monotonic() + MARKER_SECONDS
    while time.monotonic() < deadline:  # the tests tell what is still open
        found = requests.active_producers(broker.port, topic, 0)
        if all(each.txn_start_offset < 0 for each in found):
            break
        time.sleep(0.05)


# ---- our engine and our commands -----------------------------------------------------------------


def _write_by_engine(broker: Broker) -> tuple[FoundByEngine, dict[Partition, ByEngine]]:
    epochs = _epochs(broker)
    with engine_logs.manager_of(log_dirs(broker)) as manager:
        found = {each: engine_logs.opened(manager.logs[each]) for each in PARTITIONS}
        written = {
            ("of-engine", 0): engine_logs.write_everything(manager.logs["of-engine", 0]),
            ("shared", 0): engine_logs.write_shared(manager.logs["shared", 0]),
            ("hanging", 0): engine_logs.write_hanging(manager.logs["hanging", 0]),
        }
    return FoundByEngine(found, epochs), written


def _recover_by_engine(broker: Broker) -> tuple[FoundByEngine, ByEngine]:
    epochs = _epochs(broker)
    with engine_logs.manager_of(log_dirs(broker)) as manager:
        found = {each: engine_logs.opened(manager.logs[each]) for each in PARTITIONS}
        written = engine_logs.write_plain(manager.logs["shared", 0])
    return FoundByEngine(found, epochs), written


def _epochs(broker: Broker) -> dict[Partition, list[tuple[int, int]]]:
    dirs = log_dirs(broker)
    return {each: engine_logs.epochs_on_disk(dirs, f"{each[0]}-{each[1]}") for each in PARTITIONS}


def _places(broker: Broker) -> tuple[Path, Path]:
    """Where the log is that is to be moved, and where it goes."""
    one, other = log_dirs(broker)
    return (one, other) if (one / "moved-0").is_dir() else (other, one)


def _command(
    broker: Broker, source: Path, target: Path
) -> dict[str, subprocess.CompletedProcess[str]]:
    records = broker.home / "records.jsonl"
    records.write_text("".join(json.dumps(record) + "\n" for record in OF_TOOL))
    only = ("--only-replica", "--yes")

    def change(verb: str, name: str, *words: object) -> subprocess.CompletedProcess[str]:
        (place,) = [path for path in log_dirs(broker) if (path / name).is_dir()]
        return compactor("log", verb, place, name, *words)

    return {
        "truncate": change("truncate", f"changed-{TRUNCATED}", "--to", TRUNCATED_TO, *only),
        "delete-records": change("delete-records", f"changed-{CUT}", "--before", CUT_BEFORE, *only),
        "roll": change("roll", f"changed-{ROLLED}", "--yes"),
        "append": change("append", f"changed-{APPENDED}", "--records", records, *only),
        "abort": change("abort", "hanging-0", "--producer-id", HANGING, *only),
        "move": compactor("log", "move", source, "moved-0", target, "--yes"),
    }


def _files_of_transaction_state(broker: Broker) -> dict[str, bytes]:
    partitions = [p for path in log_dirs(broker) for p in path.glob("__transaction_state-*")]
    return {str(path): path.read_bytes() for p in partitions for path in _files(p)}


def _files(partition: Path) -> Iterable[Path]:
    return sorted(partition.iterdir())


def _directory_id(log_dir: Path) -> str:
    lines = (log_dir / "meta.properties").read_text().splitlines()
    return dict(line.split("=") for line in lines if "=" in line)["directory.id"]


def _assigned(broker: Broker) -> str | None:
    """What a controller says that notes in which log directory a replica is."""
    found = [_ASSIGNED.search(line) for line in broker.said()]
    return next((match[1] for match in found if match), None)


def _size(partition: Path) -> int:
    return sum(path.stat().st_size for path in partition.glob("*.log"))
