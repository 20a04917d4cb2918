"""The storage engine beside Kafka's: append, read, look-ups, loading, on one thread.

Both do the same work: batches of the same sizes, with times that rise by a millisecond a record,
in segments of 128 MB, all in the page cache. Processor time counts, less what it takes to make the
batches. The oracle's `engine-bench` is Kafka's side.
"""

import json
import random
import shutil
import struct
from collections.abc import Callable, Iterator
from functools import partial
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
from tests.bench.results import BenchError, EngineResult
from tests.bench.scratch import Setup
from tests.bench.timing import timed
from tests.bench.workloads import ENGINE, KAFKA, OURS
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


def measure(setup: Setup) -> tuple[EngineResult, ...]:
    setup.tell(f"{ENGINE}: append, read, look up, load")
    megabytes, lookups = (4, 2_000) if setup.is_quick else (300, LOOKUPS)
    folder = setup.scratch.copies / "engine"
    return tuple(compared(folder, megabytes, lookups, setup.repetitions))


def compared(folder: Path, megabytes: int, lookups: int, turns: int) -> list[EngineResult]:
    """Measure both sides in turn; BenchError where they did not do the same."""
    found: dict[tuple[str, str], EngineResult] = {}
    for _ in range(turns):
        of_kafka = {line[:3]: line for line in kafkas(folder, megabytes)}
        for line in ours(folder, megabytes, lookups):
            what = APPEND if line.what == APPEND_MANY else line.what
            # Kafka's side always looks up as many
            operations = LOOKUPS if what in (OFFSET, TIMESTAMP) else line.operations
            theirs = of_kafka.get((line.log, what, operations))
            if theirs is None:
                raise BenchError(f"{line} is nothing that Kafka did as often")
            result = found.setdefault(line[:2], EngineResult(line.log, line.what))
            for side, its in ((KAFKA, theirs), (OURS, line)):
                microseconds = 1e6 * its.cpu_seconds / its.operations
                result.microseconds.setdefault(side, []).append(microseconds)
    return list(found.values())


def kafkas(directory: Path, megabytes: int) -> Iterator[Measured]:
    directory.mkdir(parents=True, exist_ok=True)
    try:
        lines = kafka.run("engine-bench", directory, "--mb", str(megabytes), "--repeat", "3")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    for line in lines.splitlines():
        fields = json.loads(line)
        yield Measured(*(fields[name] for name in Measured._fields))


def ours(directory: Path, megabytes: int, lookups: int) -> Iterator[Measured]:
    """Do as `EngineBench`, operation by operation; what is not timed warms up."""
    for shape in SHAPES:
        side = _Side(directory, shape, megabytes << 20)
        try:
            for what, operations, cpu_seconds in side.measure(lookups):
                yield Measured(shape.name, what, operations, cpu_seconds)
        finally:
            shutil.rmtree(directory, ignore_errors=True)


class _Side:
    def __init__(self, directory: Path, shape: Shape, total_bytes: int) -> None:
        self._path, self._shape = directory / "t-0", shape
        self._batch = _batch(shape)
        self._batches = total_bytes // len(self._batch)
        self._now_ms = FIRST_MS

    def measure(self, lookups: int) -> Iterator[tuple[str, int, float]]:
        """Yield operations with how many there were, and their seconds."""
        for what, append in ((APPEND_MANY, self._append_at_once), (APPEND, self._append_each)):
            of_making = median(_seconds(partial(append, None)) for _ in range(3))
            appended = []
            for turn in range(4):  # the first warms up
                shutil.rmtree(self._path, ignore_errors=True)
                self._path.mkdir(parents=True)
                log = self._open(is_clean=True)
                seconds = _seconds(partial(append, log)) - of_making
                appended += [seconds] if turn else []
                if turn < 3 or what == APPEND_MANY:
                    log.close_handlers()
            yield what, self._batches, median(appended)
        yield READ, self._batches, _repeated(lambda: _read(log))
        chance, end = random.Random(1), log.log_end_offset
        offsets = [chance.randrange(end) for _ in range(lookups)]
        yield OFFSET, lookups, _repeated(lambda: _each(log.place_of, offsets))
        times = [FIRST_MS + offset for offset in offsets]
        yield TIMESTAMP, lookups, _repeated(lambda: _each(log.offset_by_timestamp, times))
        log.close_handlers()
        yield from self._loads()

    def _open(self, is_clean: bool) -> Log:
        def clock() -> int:
            return self._now_ms

        options = LogOptions(
            config=LogConfig(segment_bytes=128 << 20),
            clock=clock,
            scheduler=ManualScheduler(clock),
            state=LoadingState(is_clean=is_clean),
        )
        return Log.open(str(self._path), options)

    def _append_each(self, log: Log | None) -> None:
        """Append all batches; without a log make them alone."""
        for data in self._made():
            if log is not None:
                log.append_as_leader(data)

    def _append_at_once(self, log: Log | None) -> None:
        """Append all batches, as many by one call as it may take."""
        made, at_once = self._made(), CALL_BYTES // len(self._batch)
        while data := b"".join(islice(made, at_once)):
            if log is not None:
                log.append_batches_as_leader(data)

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

    def _loads(self) -> Iterator[tuple[str, int, float]]:
        taken: dict[str, list[float]] = {UNCLEAN: [], CLEAN: []}
        for turn in range(4):
            for what in (UNCLEAN, CLEAN):
                sample, log = timed(partial(self._open, what == CLEAN))
                taken[what] += [sample.cpu_seconds] if turn else []
                if log.log_end_offset != self._batches * self._shape.records:
                    raise BenchError(f"{what}: the log ends at {log.log_end_offset}")
                if what == UNCLEAN:
                    log.flush(force=True)
                    log.close()
                else:
                    log.close_handlers()
        for what, turns in taken.items():
            yield what, self._batches, median(turns)


def _batch(shape: Shape) -> bytearray:
    chance = random.Random(1)
    records = [
        Record(number, number, chance.randbytes(KEY_BYTES), chance.randbytes(shape.value_bytes))
        for number in range(shape.records)
    ]
    return bytearray(encode_batch(records))


def _seconds(work: Callable[[], object]) -> float:
    return timed(work)[0].cpu_seconds


def _repeated(work: Callable[[], object]) -> float:
    """Return the median of three, after one to warm up."""
    return median([_seconds(work) for _ in range(4)][1:])


def _read(log: Log) -> None:
    at, end = log.log_start_offset, log.log_end_offset
    while at < end:
        after = next_offset(log.read(at, FETCH_BYTES).read())
        assert after is not None, f"no whole batch at offset {at}"
        at = after


def _each(look_up: Callable[[int], object], values: list[int]) -> None:
    for value in values:
        look_up(value)
