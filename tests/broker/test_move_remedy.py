"""What we say of a log that is on its way to another log directory, done with Kafka's own tool.

1. a move is cut short by a stop; `explain` prints a command: it says how far the move is, cancels
   it, and asks for it again, as the words say;
2. a move is cut short, and the log itself is gone: a broker begins it again as an empty one, and
   empties the `-future` directory as well. Nobody recommends that start.
"""

import json
import os
import random
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from tests.broker import clients, log_dir_moves, views
from tests.broker.broker import Broker
from tests.broker.test_moved_partition import LOG_DIRS, NAME, SEGMENT, SETTINGS, TOPIC, fill
from tests.broker.workload import SEGMENT_BYTES, Writer
from tests.oracle import jars, versions
from tests.support.command_process import compactor

pytestmark = pytest.mark.broker
TOOLS = Path(__file__).with_name("tools-pom.xml")
PRINTED = re.compile(r"^ +kafka-reassign-partitions\.sh (.*)$", re.MULTILINE)
KEYS = 400


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(Path(os.path.realpath(tmp_path))) as broker:
        broker.start(SETTINGS)
        config = {"cleanup.policy": "compact", SEGMENT_BYTES: SEGMENT}
        clients.create(broker.bootstrap, NewTopic(TOPIC, 1, 1, config=config))
        fill(Writer(broker.bootstrap, 0, random.Random(4)), keys=KEYS, first_key=0)
        yield broker


def places_of(broker: Broker) -> tuple[Path, Path]:
    """The log directory that the log is in, and the other one."""
    first, second = (broker.home / name for name in LOG_DIRS)
    return (first, second) if (first / NAME).is_dir() else (second, first)


def cut_short(broker: Broker, target: Path) -> None:
    log_dir_moves.throttle(broker.bootstrap, 1)  # after each 16 KB a pause of seconds
    log_dir_moves.begin_move(broker.port, TOPIC, 0, target)
    log_dir_moves.wait_for_copied_bytes(target, NAME)
    broker.stop()


def test_the_printed_command_says_how_far_a_move_is_and_ends_it_or_asks_for_it_again(
    broker: Broker,
) -> None:
    _, target = places_of(broker)
    cut_short(broker, target)
    said = compactor("explain", *(broker.home / name for name in LOG_DIRS), NAME)
    assert "it goes on with the move if the log itself is still there" in said.stdout
    file = broker.home / "move.json"
    asked = {"topic": TOPIC, "partition": 0, "replicas": [1], "log_dirs": [str(target)]}
    file.write_text(json.dumps({"version": 1, "partitions": [asked]}))
    (printed,) = PRINTED.findall(said.stdout)
    given = printed.replace("HOST:9092", broker.bootstrap).replace("FILE", str(file))

    def reassign(option: str) -> str:
        main = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
        library = jars.fetched(TOOLS, versions.VERSIONS[broker.kafka].release)
        words = shlex.split(given.replace("--verify", option))
        command = [jars.tool("java"), "-cp", f"{library}/*", main, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done
        return done.stdout

    broker.start(SETTINGS)
    assert "Reassignment of replica moved-0-1 is still in progress" in reassign("--verify")
    reassign("--cancel")
    assert log_dir_moves.future_of(target, NAME) is None
    assert not (target / NAME).exists()
    reassign("--execute")
    log_dir_moves.throttle(broker.bootstrap, 1 << 30)
    log_dir_moves.wait_for_end_of_move(target, NAME)
    assert "Reassignment of replica moved-0-1 completed successfully" in reassign("--verify")
    records = views.read_all(broker.bootstrap, [TOPIC])[TOPIC, "read_uncommitted"].records
    assert len(records) == 2 * KEYS
    broker.stop()


def test_no_command_recommends_a_start_where_only_what_was_copied_is_left(broker: Broker) -> None:
    source, target = places_of(broker)
    cut_short(broker, target)
    shutil.move(source / NAME, broker.home / "away")
    log_dirs = [broker.home / name for name in LOG_DIRS]
    for words in (("verify", source), ("doctor", *log_dirs), ("recover", *log_dirs)):
        said = compactor(*words)
        assert said.returncode == 4, said
        assert "its directory is gone" in " ".join(said.stdout.split()), said
        assert "tart the broker" not in said.stdout
    broker.start(SETTINGS)
    deadline = time.monotonic() + clients.SECONDS
    while not (source / NAME).is_dir() and time.monotonic() < deadline:
        time.sleep(0.1)
    records = views.read_all(broker.bootstrap, [TOPIC])[TOPIC, "read_uncommitted"].records
    assert not records, "a broker begins it again"
