"""`python -m tests.bench.small_segments`: a log of 30,000 small segments as a table, and memory.

The memory is that of two columns of a large log. Each line has what it must reach. Seconds of the
clock mean something on a machine that has nothing else to do; those of the processor come nearer
elsewhere; those of Spark's own processes are not among them.
"""

import argparse
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from unittest import mock

import pyarrow as pa

from compactor import Log, Selection, api, append_table, read_table
from demo.new_log_dir import new_log_dir
from storage.formats.record import Record
from storage.formats.record_batch import encode_batch
from tests.bench import timing
from tests.bench.results import BenchError
from tests.bench.workloads import NOW_MS
from tests.tables.spark_reader import spark_session

RECORDS, PARTITION, MIB = 50, "small-0", 1 << 20
ARROW_SECONDS, PARQUET_SECONDS, SPARK_SECONDS, PARQUET_SHARE = 15, 20, 60, 1.5
MOST_BEYOND_MIB = 300  # of memory beside what is returned
CHUNK = 20_000  # records of 1 kB at once


@contextmanager
def _created(log_dir: Path, topic: str) -> Iterator[Log]:
    """Yield a new log. Nothing is synced: the disk is not what is measured."""
    with mock.patch("os.fsync"), new_log_dir(str(log_dir), "bench", clock=lambda: NOW_MS) as made:
        yield made.create((topic, 0))


def write_small_segments(log_dir: Path, segments: int) -> Path:
    """Write a segment for each batch."""
    chance = Random(1)
    with _created(log_dir, "small") as log:
        for number in range(segments):
            if number:
                log.roll()
            values = (b"v" * 20 + chance.randbytes(60) for _ in range(RECORDS))
            records = [Record(i, NOW_MS, b"k%d" % i, value) for i, value in enumerate(values)]
            log.append_as_leader(encode_batch(records))
        return Path(log.path)


def write_large_log(log_dir: Path, mib: int) -> Path:
    """Write records of 1 kB."""
    chance = Random(1)
    values = pa.array([chance.randbytes(500) * 2 for _ in range(CHUNK)], pa.binary())
    with _created(log_dir, "large") as log:
        for _ in range(max(1, mib * MIB // (CHUNK * 1000))):
            keys = pa.array([chance.randbytes(8) for _ in range(CHUNK)], pa.binary())
            append_table(log, pa.table({"key": keys, "value": values}))
        return Path(log.path)


def timed(what: str, most_seconds: int, read: Callable[[], int], expected: int) -> str:
    """Return one line; BenchError where records are missing."""
    sample, found = timing.timed(read)
    if found != expected:
        raise BenchError(f"{what}: {found} records, expected {expected}")
    taken = f"{sample.seconds:7.1f} s, {sample.cpu_seconds:6.1f} s of the processor"
    return f"{what:24} {taken} (at most {most_seconds})"


def memory_of(read: Callable[[], pa.Table]) -> str:
    """Return how much more a read holds at its most than what it returns."""
    before, most, is_over = _resident_mib(), [0], threading.Event()

    def watch() -> None:
        while not is_over.wait(0.005):
            most[0] = max(most[0], _resident_mib())

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        returned = read().nbytes // MIB
    finally:
        is_over.set()
        watching.join()
    beyond = max(0, most[0] - before - returned)
    returns = f"{returned:7} MiB returned, {beyond} MiB beside them"
    return f"{'two columns':24} {returns} (at most {MOST_BEYOND_MIB})"


def _resident_mib() -> int:
    """Return what this process holds, without what is of files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith("RssAnon"))


def measure(root: Path, segments: int, large_mib: int, with_spark: bool) -> list[str]:
    """Return a line for each thing that is measured."""
    large = write_large_log(root / "large", large_mib)
    read_table(write_small_segments(root / "warm", 2))  # loads the kernels
    # first: what others have let go of would be taken again unseen
    memory = memory_of(lambda: read_table(large, Selection(columns=["offset", "key"])))
    partition = write_small_segments(root / "small", segments)
    log_dir, count, file = partition.parent, segments * RECORDS, root / "small.parquet"

    def to_parquet() -> int:
        return int(api.log_to_parquet(log_dir, PARTITION, file))

    found = [
        memory,
        timed("Arrow", ARROW_SECONDS, lambda: int(read_table(partition).num_rows), count),
        timed("Parquet", PARQUET_SECONDS, to_parquet, count),
    ]
    share = file.stat().st_size / sum(log.stat().st_size for log in partition.glob("*.log"))
    size = f"{share:7.2f} times its size (at most {PARQUET_SHARE})"
    found.append(f"{'Parquet, of the log':24} {size}")
    if with_spark:
        with spark_session() as session:
            frame = session.read.format("kafka-log").load(str(log_dir))
            found.append(timed("Spark count", SPARK_SECONDS, frame.count, count))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.small_segments")
    parser.add_argument("--segments", type=int, default=30_000)
    parser.add_argument("--mib", type=int, default=2000, help="of the large log")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="compactor-bench-") as root:
        for line in measure(Path(root), wanted.segments, wanted.mib, with_spark=True):
            sys.stdout.write(f"{line}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
