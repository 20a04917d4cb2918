"""One writer and four readers of one log, in threads, against a model that is one after the other.

The writer does random operations, and tells the model of each batch before it is appended: its time
is a number of its own, so that its header tells which one it is. What a reader is given has to be
batches of the model, whole and in order. The log is cut off, too, never below the high watermark:
who reads up to there notices nothing of it; who reads up to the log end meanwhile may be given what
is cut off, or an error of the log.

Files of old segments are removed when every read that may have them is over, for which Kafka waits
file.delete.delay.ms.
"""

import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from compactor import Log, LogOptions
from storage.files.local import LOCAL
from storage.log.batches import Batch, in_memory
from storage.log.errors import LogError, OffsetOutOfRangeError
from storage.log.local_log import ReadResult
from storage.log.log_config import LogConfig
from storage.log.log_state import FetchIsolation
from storage.log.scheduler import ManualScheduler
from tests.storage.log.batches_for_tests import batch

READERS = 4
MOST_OPEN = 3
FIRST_MS = 1_700_000_000_000
MAX_BYTES = (1, 300, 5_000)
BY_RETENTION_BYTES = (12_000, 60_000, 600_000)
OPERATIONS = {
    "append": 80,
    "follow_end": 8,
    "roll": 3,
    "flush": 3,
    "delete_records": 1,
    "apply_retention": 2,
    "truncate": 3,
}


class Written(NamedTuple):
    """A batch, as the model has it."""

    base_offset: int
    last_offset: int
    time_ms: int

    @classmethod
    def of(cls, found: Batch) -> "Written":
        return cls(found.base_offset, found.last_offset, found.max_timestamp)


class Model:
    """What the writer has put where, and what readers were given that is none of it."""

    def __init__(self, path: str, seed: int) -> None:
        self.random, self._clock_ms = random.Random(seed), FIRST_MS
        self.scheduler = ManualScheduler(lambda: self._clock_ms)
        self.config = LogConfig(
            segment_bytes=3_000,
            segment_index_bytes=120,
            index_interval_bytes=100,
            retention_bytes=self.random.choice(BY_RETENTION_BYTES),
        )
        self.path = path
        self.log = self.opened()
        self.batches: list[Written] = []  # of the log as it is now
        self._ever: set[Written] = set()
        self._gaps: set[tuple[int, int]] = set()  # that truncation has left: from, to
        self.serial = self.cuts = 0  # cuts: odd while the log is being cut off
        self.batches_read = 0
        self.problems: list[str] = []
        self.done = threading.Event()
        self._reads = [0] * READERS  # odd while one is going on

    def opened(self) -> Log:
        options = LogOptions(
            clock=lambda: self._clock_ms,
            scheduler=self.scheduler,
            config=self.config,
            files=LOCAL,
            max_open_files=MOST_OPEN,  # of many more: they are closed and opened all the time
        )
        return Log.open(self.path, options)

    # ---- the writer ---------------------------------------------------------------------------

    def write(self, seconds: float) -> None:
        """Do random operations for a while."""
        until = time.monotonic() + seconds
        names, weights = list(OPERATIONS), list(OPERATIONS.values())
        operations: dict[str, Callable[[], None]] = {
            "append": self._append,
            "follow_end": self.log.follow_end,
            "roll": lambda: _ignored(self.log.roll()),
            "flush": self.log.flush,
            "delete_records": self._delete_records,
            "apply_retention": self._apply_retention,
            "truncate": self._truncate,
        }
        try:
            while time.monotonic() < until and not self.problems:
                operations[self.random.choices(names, weights)[0]]()
                self._hold_against_log()
            self.log.follow_end()
        except Exception as error:
            self.problems.append(f"writer: {error!r}")
        finally:
            self.done.set()

    def _append(self) -> None:
        end, count = self.log.log_end_offset, self.random.randint(1, 5)
        self.serial += 1
        written = Written(end, end + count - 1, FIRST_MS + self.serial)
        self._ever.add(written)
        self.log.append_as_leader(batch(0, *[written.time_ms] * count))
        self.batches.append(written)

    def _delete_records(self) -> None:
        start, end = self.log.log_start_offset, self.log.high_watermark
        self.log.increment_log_start(self.random.randint(start, end))

    def _apply_retention(self) -> None:
        self.log.delete_old_segments()
        if self.random.random() < 0.2:
            self._wait_for_reads()
            self._clock_ms += self.config.file_delete_delay_ms
            self.scheduler.tick()
        first = self.log.segments[0].base_offset
        self.batches = [each for each in self.batches if each.base_offset >= first]

    def _wait_for_reads(self) -> None:
        """Until all that are going on have ended."""
        before = list(self._reads)
        while any(count % 2 and self._reads[i] == count for i, count in enumerate(before)):
            time.sleep(0)

    def _truncate(self) -> None:
        to = self.random.randint(self.log.high_watermark, self.log.log_end_offset)
        while self.batches and self.batches[-1].last_offset >= to:
            self.batches.pop()
        end = self.batches[-1].last_offset + 1 if self.batches else 0
        if end < to:
            self._gaps.add((end, to))
        self.cuts += 1
        self.log.truncate_to(to)
        self.cuts += 1

    def _hold_against_log(self) -> None:
        """As the model has it, one after the other."""
        end = self.batches[-1].last_offset + 1 if self.batches else 0
        found = self.log.log_end_offset
        if found != end and (end, found) not in self._gaps:
            self.problems.append(f"the log ends at {found}, not at {end}")

    def hold_all(self, log: Log) -> None:
        """Every batch of a log, against the model."""
        found = [Written.of(b) for s in log.segments for b in s.log.batches()]
        if found != self.batches:
            self.problems.append(f"{len(found)} batches in the log, {len(self.batches)} expected")

    # ---- a reader -----------------------------------------------------------------------------

    def read(self, number: int) -> None:
        """Read on until the writer has ended."""
        chance = random.Random(number)
        at = 0
        try:
            while not self.done.is_set():
                self._reads[number] += 1
                before, at = at, self._read(chance, at)
                self._reads[number] += 1
                if at == before:  # nothing new: let the writer go on
                    time.sleep(0.001)
        except Exception as error:
            self.problems.append(f"reader {number} at {at}: {error!r}")
            self.done.set()
        finally:
            self._reads[number] = 0

    def _read(self, chance: random.Random, at: int) -> int:
        """Read once; where to go on."""
        isolation = chance.choice(tuple(FetchIsolation))
        cuts, is_settled = self.cuts, isolation is not FetchIsolation.LOG_END
        is_settled = is_settled and at <= self.log.high_watermark
        try:
            result = self.log.read(at, chance.choice(MAX_BYTES), isolation)
            given = _given(result, chance.random() < 0.5)
        except OffsetOutOfRangeError:
            return self.log.log_start_offset
        except LogError:
            if is_settled or not self._is_cut_since(cuts):
                raise
            return self.log.high_watermark
        if is_settled or not self._is_cut_since(cuts):
            at = self._checked(at, given)
        if chance.random() < 0.05:
            return chance.randint(self.log.log_start_offset, self.log.high_watermark)
        return at

    def _is_cut_since(self, cuts: int) -> bool:
        return bool(cuts % 2) or self.cuts != cuts

    def _checked(self, at: int, given: Sequence[tuple[Written, bool]]) -> int:
        for found, is_valid in given:
            is_next = found.base_offset <= at <= found.last_offset or self._is_gap(at, found)
            if not is_valid or not is_next or found not in self._ever:
                self.problems.append(f"{found} at {at}, sound: {is_valid}, next: {is_next}")
                self.done.set()
            at = found.last_offset + 1
        self.batches_read += len(given)
        return at

    def _is_gap(self, at: int, found: Written) -> bool:
        return any(start <= at < end == found.base_offset for start, end in tuple(self._gaps))


def _given(result: ReadResult, at_once: bool) -> list[tuple[Written, bool]]:
    """The whole batches of a read, each with whether it is sound; read at once or one by one."""
    if result.records is None:
        return []
    found = in_memory(result.read()) if at_once else result.records.batches()
    return [(Written.of(each), each.is_valid()) for each in found]


def _ignored(_: object) -> None:
    pass


def run(path: str, seed: int, seconds: float) -> Model:
    """A log in threads for a while; then it is closed, opened again, and held against the model."""
    model = Model(path, seed)
    threads = [threading.Thread(target=model.read, args=(number,)) for number in range(READERS)]
    for thread in threads:
        thread.start()
    model.write(seconds)
    for thread in threads:
        thread.join(60)
    if not model.problems:
        model.hold_all(model.log)
        model.log.flush(force=True)
        model.log.close()
        with model.opened() as log:
            model.hold_all(log)
    return model
