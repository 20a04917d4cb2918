"""python -m tests.broker.read_speed: the same records by Kafka's Java consumer and by `read_table`.

A million records of 100 bytes in one log, uncompressed, as `make bench --only tables` has them. In
turn: a new consumer reads them three times from a broker on this machine, and `read_table` as often
from the files. What counts of each is its last time, when its code is warm. Needs a JDK.
"""

import argparse
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from confluent_kafka.admin import NewTopic

from compactor import (
    Batching,
    LogManager,
    ManagerOptions,
    Selection,
    append_table,
    read_table,
)
from compactor.host.output import print_line
from storage.log.manager_options import BY_HAND
from tests.bench.tables import chunk
from tests.broker import clients
from tests.broker.broker import POM, Broker
from tests.oracle import jars, versions

RECORDS, CHUNK = 1_000_000, 100_000
TIMES = 3  # in one process, of which the last one counts
TOPIC = "speed"
SOURCE = Path(__file__).with_name("java") / "ReadAll.java"
WANTED = Selection(columns=["offset", "timestamp", "key", "value"])


class Taken(NamedTuple):
    """Seconds for all records."""

    clock: float
    processor: float


class Turn(NamedTuple):
    consumer: Taken
    broker_processor: float
    ours: Taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=4)
    turns = parser.parse_args().turns
    with (
        tempfile.TemporaryDirectory(prefix="read-speed-", ignore_cleanup_errors=True) as home,
        Broker(Path(home, "home")) as broker,
    ):
        classes = compiled(Path(home, "classes"))
        fill(broker)
        broker.start()
        found = [turn(broker, classes) for _ in range(turns)]
        broker.stop()
    for name, values in (
        ("consumer, by the clock", [each.consumer.clock for each in found]),
        ("consumer, processor", [each.consumer.processor for each in found]),
        ("its broker, processor", [each.broker_processor for each in found]),
        ("read_table, by the clock", [each.ours.clock for each in found]),
        ("read_table, processor", [each.ours.processor for each in found]),
    ):
        shown = " ".join(f"{value:.2f}" for value in values)
        print_line(f"{name:26} {statistics.median(values):6.2f} s, of {shown}")


def compiled(classes: Path) -> str:
    """The class path of the consumer."""
    library = f"{jars.fetched(POM, versions.chosen().release)}/*"
    javac = [jars.tool("javac"), "-cp", library, "-d", str(classes), str(SOURCE)]
    subprocess.run(javac, check=True)
    return f"{library}:{classes}"


def fill(broker: Broker) -> None:
    """A topic by the broker, its records by our engine. The broker is stopped then."""
    broker.start()
    settings = {"segment.bytes": str(1 << 30)}
    clients.create(broker.bootstrap, NewTopic(TOPIC, 1, 1, config=settings))
    broker.stop()
    with LogManager([str(broker.data)], ManagerOptions(intervals=BY_HAND)) as manager:
        table = pa.Table.from_batches([chunk(i) for i in range(RECORDS // CHUNK)])
        append_table(manager.logs[TOPIC, 0], table, Batching())


def turn(broker: Broker, classes: str) -> Turn:
    before = broker.processor_seconds()
    consumer = by_consumer(broker, classes)
    used = (broker.processor_seconds() - before) / TIMES
    return Turn(consumer, used, [by_us(broker.data / f"{TOPIC}-0") for _ in range(TIMES)][-1])


def by_consumer(broker: Broker, classes: str) -> Taken:
    java = [jars.tool("java"), "-Xmx512m", "-XX:+UseSerialGC", "-cp", classes, "ReadAll"]
    words = [*java, broker.bootstrap, TOPIC, str(RECORDS), str(TIMES)]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    last = [line.split() for line in said.splitlines() if line.startswith("read ")][-1]
    assert int(last[3]) == RECORDS, said
    return Taken(float(last[1]), float(last[2]))


def by_us(partition: Path) -> Taken:
    clock, processor = time.perf_counter(), time.process_time()
    assert read_table(partition, WANTED).num_rows == RECORDS
    return Taken(time.perf_counter() - clock, time.process_time() - processor)


if __name__ == "__main__":
    main()
