"""One writer and four readers of one log, in threads, against a model that is one after the other.

The writer does random operations and tells the model of each batch before it is appended; what a
reader is given has to be batches of the model, whole and in order. `SECONDS_OF_THREADS=3600` is an
hour of it. The seed is in the message where it fails.
"""

import os
import random
import threading
import time
from pathlib import Path

from storage.files.local import LOCAL
from storage.log import Log, LogOptions
from storage.log.engine.errors import OffsetOutOfRangeError
from storage.log.engine.log_config import LogConfig
from storage.log.engine.lookup import Isolation
from storage.log.engine.scheduler import ManualScheduler
from tests.storage.log.engine.batches_for_tests import batch

NOW_MS = 1_700_000_000_000
SECONDS = float(os.environ.get("SECONDS_OF_THREADS", "1.5"))


def now_ms() -> int:
    return NOW_MS


class Model:
    """What the writer has put where: the time of each record is its offset, so that bytes tell."""

    def __init__(self, log: Log, seed: int) -> None:
        self.log, self.random = log, random.Random(seed)
        self.ends: dict[int, int] = {}  # of batches, by base offset
        self.problems: list[str] = []
        self.batches_read = 0
        self.done = threading.Event()

    def write(self) -> None:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until and not self.problems:
            kind = self.random.random()
            if kind < 0.8:
                self._append()
            elif kind < 0.9:
                self.log.follow_end()
            elif kind < 0.94:
                self.log.roll()
            elif kind < 0.98:
                self.log.flush()
            else:
                self._delete()
        self.log.follow_end()
        self.done.set()

    def _append(self) -> None:
        end = self.log.log_end_offset
        count = self.random.randint(1, 5)
        self.ends[end] = end + count
        self.log.append_as_leader(batch(0, *(NOW_MS + end + i for i in range(count))))
        if self.log.log_end_offset != end + count:
            self.problems.append(f"the log ends at {self.log.log_end_offset}, not {end + count}")

    def _delete(self) -> None:
        start, end = self.log.log_start_offset, self.log.high_watermark
        self.log.increment_log_start(self.random.randint(start, end))
        self.log.delete_old_segments()

    def read(self, number: int) -> None:
        try:
            self._read(random.Random(number))
        except Exception as error:
            self.problems.append(f"reader {number}: {error!r}")

    def _read(self, chance: random.Random) -> None:
        at = 0
        while not self.done.is_set():
            isolation = chance.choice((Isolation.LOG_END, Isolation.HIGH_WATERMARK))
            try:
                found = self.log.read(at, chance.choice((1, 300, 5_000)), isolation)
                records = found.records
                data = [] if records is None else list(records.batches())
                whole = [(b.base_offset, b.last_offset, b.is_valid()) for b in data]
            except OffsetOutOfRangeError:
                at = max(at, self.log.log_start_offset)
                continue
            at = self._checked(at, whole)
            self.batches_read += len(whole)
            if chance.random() < 0.05:
                at = self.log.log_start_offset

    def _checked(self, at: int, whole: list[tuple[int, int, bool]]) -> int:
        for base, last, is_valid in whole:
            is_next = base <= at <= last
            if not is_valid or not is_next or self.ends.get(base) != last + 1:
                self.problems.append(f"batch {base}-{last} at {at}, sound: {is_valid}")
            at = last + 1
        return at


def test_readers_see_what_the_writer_wrote(tmp_path: Path) -> None:
    """L-1.4: readers take no lock, and are given whole appends in order."""
    config = LogConfig(segment_bytes=3_000, index_interval_bytes=100)
    options = LogOptions(
        clock=now_ms, scheduler=ManualScheduler(now_ms), config=config, files=LOCAL
    )
    model = Model(Log.open(str(tmp_path / "t-0"), options), seed := time.time_ns())
    threads = [threading.Thread(target=model.read, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    model.write()
    for thread in threads:
        thread.join(30)
    assert model.problems == [], f"seed {seed}"
    assert len(model.ends) > 20
    assert model.batches_read > 20
    model.log.close()
