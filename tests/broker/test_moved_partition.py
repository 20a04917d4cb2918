"""A partition on its way between two log directories of a real broker: no deleted key comes back.

1. a key is written, deleted long after it, and the partition begins to move: its copy has the value
   and does not have the tombstone yet when the broker is stopped;
2. two runs, the second of which would find the tombstone past its horizon;
3. the broker starts, goes on copying where it stopped, and puts the copy in the log's place;
4. it is stopped, and a run takes the log where it stands now.
"""

import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import NewTopic

from compactor import api
from compactor.outcome.exit_codes import ending_of_report
from compactor.outcome.json_values import to_json
from storage.log.log_dir import list_partition, log_end_offset
from tests.broker import clients, log_dir_moves, views
from tests.broker.broker import Broker
from tests.broker.views import View
from tests.broker.workload import SEGMENT_BYTES, Writer

pytestmark = pytest.mark.broker
TOPIC, NAME = "moved", "moved-0"
DELETED = b"deleted"
LOG_DIRS = ("data", "data-too")
SETTINGS = {"log.dirs": ",".join(LOG_DIRS)}
SEGMENT = "16384"  # a copy is appended a segment at a time, which has to fit into one
RULES = api.Rules(
    include=TOPIC,
    settings={
        "cleanup.policy": "compact",
        "delete.retention.ms": "0",
        "min.cleanable.dirty.ratio": "0",
        "segment.bytes": SEGMENT,
    },
)
# the first round ends behind the tombstone, so that the second one has something to clean
EVERYTHING = api.RunOptions(in_process=True)
FIRST_ROUND = api.RunOptions(in_process=True, map_capacity=900)
KEYS = 600


@dataclass(frozen=True, slots=True)
class Moved:
    tombstone_offset: int
    copied_up_to: int
    before: View
    runs: list[dict[str, Any]]  # what is said of the log
    files_stayed: bool
    after: View
    last_run: dict[str, Any]


def run(home: Path, options: api.RunOptions = EVERYTHING) -> dict[str, Any]:
    """What the report says of the log."""
    report = api.run([str(home / name) for name in LOG_DIRS], RULES, options)
    assert ending_of_report(report).exit_code == 0, report
    (log,) = [log for log in to_json(report)["logs"] if log["topic"] == TOPIC]
    return dict(log)


def write(writer: Writer) -> int:
    """Segments enough that a copy takes long; the offset of the tombstone."""
    producer = writer.producer()
    writer.send(producer, TOPIC, [(DELETED, b"value", [])])
    fill(writer, keys=KEYS, first_key=0)
    end = views.read_all(writer.bootstrap, [TOPIC])[TOPIC, "read_uncommitted"].ends[0]
    writer.send(producer, TOPIC, [(DELETED, None, [])])
    fill(writer, keys=KEYS, first_key=KEYS)
    return end


def fill(writer: Writer, keys: int, first_key: int) -> None:
    producer = writer.producer()
    for number in range(2 * keys):
        key = b"key-%d" % (first_key + number // 2)
        writer.send(producer, TOPIC, [(key, writer.rng.randbytes(300), [])])


def files_of(partition: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in partition.iterdir()}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(Path(os.path.realpath(tmp_path_factory.mktemp("moved")))) as broker:
        yield broker


@pytest.fixture(scope="module")
def story(broker: Broker) -> Moved:
    broker.start(SETTINGS)
    config = {"cleanup.policy": "compact", SEGMENT_BYTES: SEGMENT, "delete.retention.ms": "0"}
    clients.create(broker.bootstrap, NewTopic(TOPIC, 1, 1, config=config))
    tombstone_offset = write(Writer(broker.bootstrap, 0, random.Random(4)))
    before = views.read_all(broker.bootstrap, [TOPIC])[TOPIC, "read_uncommitted"]
    places = [broker.home / name for name in LOG_DIRS]
    (source,) = [place for place in places if (place / NAME).is_dir()]
    (target,) = [place for place in places if place != source]
    log_dir_moves.throttle(broker.bootstrap, 1)  # after each 16 KB a pause of seconds
    log_dir_moves.begin_move(broker.port, TOPIC, 0, target)
    log_dir_moves.wait_for_copied_bytes(target, NAME)
    broker.stop()
    future = log_dir_moves.future_of(target, NAME)
    assert future is not None
    copied_up_to = log_end_offset(list_partition(str(future), TOPIC, 0))
    files = files_of(source / NAME)
    runs = [run(broker.home, FIRST_ROUND)]
    time.sleep(0.01)  # the horizon that the first one set is its time
    runs.append(run(broker.home))
    files_stayed = files_of(source / NAME) == files
    broker.start(SETTINGS)
    log_dir_moves.throttle(broker.bootstrap, 1 << 30)
    log_dir_moves.wait_for_end_of_move(target, NAME)
    after = views.read_all(broker.bootstrap, [TOPIC])[TOPIC, "read_uncommitted"]
    broker.stop()
    return Moved(
        tombstone_offset, copied_up_to, before, runs, files_stayed, after, run(broker.home)
    )


def test_the_move_is_cut_short_between_the_value_and_its_tombstone(story: Moved) -> None:
    assert 1 <= story.copied_up_to <= story.tombstone_offset


def test_a_deleted_key_stays_deleted(story: Moved) -> None:
    records = sorted(story.after.records.items())
    assert [record.value for _, record in records if record.key == DELETED][-1:] in ([None], [])


def test_every_key_has_the_value_it_had(story: Moved) -> None:
    assert story.after.latest() == story.before.latest()


def test_the_log_is_passed_over_with_the_reason(story: Moved) -> None:
    assert [log["status"] for log in story.runs] == ["passed-over"] * 2
    assert all("is being moved to " in log["reason"] for log in story.runs)
    assert story.files_stayed


def test_once_the_move_has_ended_it_is_cleaned(story: Moved) -> None:
    assert story.last_run["status"] == "cleaned"
    assert story.last_run["records"]["dropped"]["superseded"] > 0
