"""The storage engine beside Kafka's: append, read, look-ups, loading, on one thread.

Both do the same work: batches of the same sizes, with times that rise by a millisecond a record,
in segments of 128 MB, all in the page cache. Processor time of the one thread counts, less what it
takes to make the batches. The oracle's `engine-bench` is Kafka's side.
"""

import json
import random
import shutil
import struct
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from statistics import median
from typing import NamedTuple

from crc32c import crc32c

from compactor import Log, LogOptions
from storage.formats.batch_header import (
    BASE_TIMESTAMP_AT,
    CHECKED_AT,
    CRC_AT,
    MAX_TIMESTAMP_AT,
)
from storage.formats.record import Record
from storage.formats.record_batch import encode_batch
from storage.log.file_records import next_offset
from storage.log.loading import LoadingState
from storage.log.log_config import LogConfig
from storage.log.scheduler import ManualScheduler
from tests.bench.errors import BenchError
from tests.bench.results import EngineResult
from tests.bench.scratch import Scratch
from tests.bench.workloads import KAFKA, OURS
from tests.oracle import kafka

APPEND, READ = "append", "read 1 MB at a time, bytes into memory"
APPEND_MANY = "append, many at once"  # which Kafka's leader does not: beside its appends one by one
OFFSET, TIMESTAMP = "offset lookup, random", "timestamp lookup, random"
UNCLEAN, CLEAN = "load after a crash, all to be recovered", "load after a clean shutdown"
FIRST_MS = 1_700_000_000_000  # where the clock of a script begins
LOOKUPS, FETCH_BYTES, CALL_BYTES, KEY_BYTES = 100_000, 1 << 20, 1 << 20, 8
_TIMES = struct.Struct(">qq")
_CRC = struct.Struct(">I")
assert BASE_TIMESTAMP_AT + 8 == MAX_TIMESTAMP_AT


class Shape(NamedTuple):
    """A log of batches that are all alike, by the name that the oracle gives it."""

    name: str
    records: int
    value_bytes: int


SHAPES = (
    Shape("1 KB batches", 1, 1_024 - 61 - 22),
    Shape("16 KB batches of 100-byte records", 154, 100 - 16),
)


class Measured(NamedTuple):
    """One line of a side."""

    log: str
    what: str
    operations: int
    cpu_seconds: float


def measure(scratch: Scratch, megabytes: int, lookups: int, turns: int) -> list[EngineResult]:
    """Both sides in turn; BenchError where they did not do the same."""
    found: dict[tuple[str, str], EngineResult] = {}
    for _ in range(turns):
        of_kafka = {line[:3]: line for line in kafkas(scratch.copies / "engine", megabytes)}
        for line in ours(scratch.copies / "engine", megabytes, lookups):
            what = APPEND if line.what == APPEND_MANY else line.what
            theirs = of_kafka.get(line._replace(what=what, operations=_counted(line))[:3])
            if theirs is None:
                raise BenchError(f"{line} is nothing that Kafka did as often")
            result = found.setdefault(line[:2], EngineResult(line.log, line.what))
            for side, its in ((KAFKA, theirs), (OURS, line)):
                microseconds = 1e6 * its.cpu_seconds / its.operations
                result.microseconds.setdefault(side, []).append(microseconds)
    return list(found.values())


def _counted(line: Measured) -> int:
    """Kafka always looks up as many as it does."""
    return LOOKUPS if line.what in (OFFSET, TIMESTAMP) else line.operations


def kafkas(directory: Path, megabytes: int) -> Iterator[Measured]:
    """What the oracle tells."""
    directory.mkdir(parents=True, exist_ok=True)
    try:
        told = kafka.run("engine-bench", directory, "--mb", str(megabytes), "--repeat", "3")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    for line in told.splitlines():
        fields = json.loads(line)
        yield Measured(*(fields[name] for name in Measured._fields))


def ours(directory: Path, megabytes: int, lookups: int) -> Iterator[Measured]:
    """As `EngineBench`, operation by operation; what is not timed warms up."""
    for shape in SHAPES:
        try:
            yield from _Side(directory, shape, megabytes << 20, lookups).measure()
        finally:
            shutil.rmtree(directory, ignore_errors=True)


class _Side:
    def __init__(self, directory: Path, shape: Shape, total_bytes: int, lookups: int) -> None:
        self._path, self._shape, self._lookups = directory / "t-0", shape, lookups
        self._batch = _batch(shape)
        self._batches = total_bytes // len(self._batch)
        self._now_ms = FIRST_MS

    def measure(self) -> Iterator[Measured]:
        at_once = CALL_BYTES // len(self._batch)
        for what, stamped in (
            (APPEND_MANY, lambda log: self._stamped_at_once(log, at_once)),
            (APPEND, self._stamped),
        ):
            cost = median(stamped(None) for _ in range(3))
            appended = []
            for turn in range(4):  # the first warms up
                log = self._begun()
                appended += [stamped(log) - cost] if turn else []
                if turn < 3 or what == APPEND_MANY:
                    log.close_handlers()
            yield self._told(what, self._batches, median(appended))
        yield self._told(READ, self._batches, _repeated(lambda: _read(log)))
        chance, end = random.Random(1), log.log_end_offset
        asked = [chance.randrange(end) for _ in range(self._lookups)]
        yield self._told(OFFSET, self._lookups, _repeated(lambda: _look_up_offsets(log, asked)))
        took = _repeated(lambda: _look_up_times(log, asked))
        yield self._told(TIMESTAMP, self._lookups, took)
        log.close_handlers()
        yield from self._loads()

    def _told(self, what: str, operations: int, cpu_seconds: float) -> Measured:
        return Measured(self._shape.name, what, operations, cpu_seconds)

    def _begun(self) -> Log:
        shutil.rmtree(self._path, ignore_errors=True)
        self._path.mkdir(parents=True)
        return self._open(is_clean=True)

    def _open(self, is_clean: bool) -> Log:
        config = LogConfig(segment_bytes=128 << 20)
        state = LoadingState(is_clean=is_clean)

        def clock() -> int:
            return self._now_ms

        scheduler = ManualScheduler(clock)
        options = LogOptions(config=config, clock=clock, scheduler=scheduler, state=state)
        return Log.open(str(self._path), options)

    def _stamped(self, log: Log | None) -> float:
        """Append all batches; without a log make them alone."""
        began = time.thread_time()
        for data in self._made():
            if log is not None:
                log.append_as_leader(data)
        return time.thread_time() - began

    def _stamped_at_once(self, log: Log | None, at_once: int) -> float:
        """Likewise, so many by one call."""
        began = time.thread_time()
        made = self._made()
        while data := b"".join(islice(made, at_once)):
            if log is not None:
                log.append_batches_as_leader(data)
        return time.thread_time() - began

    def _made(self) -> Iterator[bytes]:
        batch, records = self._batch, self._shape.records
        checked = memoryview(batch)[CHECKED_AT:]
        self._now_ms = FIRST_MS
        for _ in range(self._batches):
            now_ms = self._now_ms
            _TIMES.pack_into(batch, BASE_TIMESTAMP_AT, now_ms, now_ms + records - 1)
            _CRC.pack_into(batch, CRC_AT, crc32c(checked))
            yield bytes(batch)
            self._now_ms = now_ms + records

    def _loads(self) -> Iterator[Measured]:
        took: dict[str, list[float]] = {UNCLEAN: [], CLEAN: []}
        for turn in range(4):
            for what in (UNCLEAN, CLEAN):
                began = time.thread_time()
                log = self._open(is_clean=what == CLEAN)
                took[what] += [time.thread_time() - began] if turn else []
                if log.log_end_offset != self._batches * self._shape.records:
                    raise BenchError(f"{what}: the log ends at {log.log_end_offset}")
                if what == UNCLEAN:
                    log.flush(force=True)
                    log.close()
                else:
                    log.close_handlers()
        for what, runs in took.items():
            yield self._told(what, self._batches, median(runs))


def _batch(shape: Shape) -> bytearray:
    chance = random.Random(1)
    records = [
        Record(number, number, chance.randbytes(KEY_BYTES), chance.randbytes(shape.value_bytes))
        for number in range(shape.records)
    ]
    return bytearray(encode_batch(records))


def _repeated(work: Callable[[], object]) -> float:
    """The median of three, after one to warm up."""
    runs = []
    for _ in range(4):
        began = time.thread_time()
        work()
        runs.append(time.thread_time() - began)
    return median(runs[1:])


def _read(log: Log) -> None:
    at, end = log.log_start_offset, log.log_end_offset
    while at < end:
        after = next_offset(log.read(at, FETCH_BYTES).read())
        assert after is not None, f"no whole batch at offset {at}"
        at = after


def _look_up_offsets(log: Log, offsets: list[int]) -> None:
    for offset in offsets:
        log.place_of(offset)


def _look_up_times(log: Log, offsets: list[int]) -> None:
    for offset in offsets:
        log.offset_by_timestamp(FIRST_MS + offset)
