"""Two threads of one log manager: no directory goes offline, no checkpoint loses an update.

The files are in memory; a replacement of one takes its two steps there as on a disk, and each
operation on a checkpoint may be the moment at which the other thread goes on: a seed decides.
"""

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

import pytest

from storage.files.memory import MemoryFiles
from storage.formats import checkpoint
from storage.log import LogManager, ManagerOptions
from storage.log.engine.scheduler import ManualScheduler
from storage.log.manager.log_cleaner import CleanedLog, LogToClean
from storage.log.manager.manager_options import BY_HAND
from tests.storage.log.engine.batches_for_tests import batch

NOW_MS = 1_700_000_000_000
DIRS = ("/a", "/b")
SETTINGS = {"cleanup.policy": "compact", "file.delete.delay.ms": "0"}
CLEANED, TRUNCATED, ONE_OF_MANY, CREATED, MOVED = (("t", number) for number in range(5))
TURNS = 6  # of each operation, beside the other
SEEDS = 2


class _TwoStepFiles(MemoryFiles):
    """Files of which two threads may work in one directory, one call at a time."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._chance, self._alone = chance, threading.RLock()

    def replace_file(self, path: str, data: bytes) -> None:
        """As `storage.files.filesystem` does it: `.tmp` is made, written and renamed."""
        temporary = f"{path}.tmp"
        with self._alone:
            if self.exists(temporary):
                self.remove(temporary)
        self._let_others_go_on()
        with self._alone:
            if self.exists(temporary):
                raise FileExistsError(17, "File exists", temporary)
            made = self.open_to_change(temporary, create=True)
        self._let_others_go_on()
        made.write(0, data)
        made.close()
        self._let_others_go_on()
        with self._alone:
            self.rename(temporary, path)

    def read_bytes(self, path: str) -> bytes:
        with self._alone:
            data = super().read_bytes(path)
        self._let_others_go_on()
        return data

    def _let_others_go_on(self) -> None:
        if self._chance.random() < 0.5:
            time.sleep(self._chance.choice((0, 0.0002)))


class _QuickCleaner:
    """A round that changes no file: it says that the log is clean up to its active segment."""

    @contextmanager
    def cleaned(self, logs: Sequence[LogToClean], _: int) -> Iterator[list[CleanedLog]]:
        yield [CleanedLog(log.partition, (), log.active_base) for log in logs]


class _Story:
    """A manager of two directories, and what a thread may do with it over and over."""

    def __init__(self, seed: int) -> None:
        self.files = _TwoStepFiles(random.Random(seed))
        self.manager = LogManager(
            DIRS,
            ManagerOptions(
                clock=lambda: NOW_MS,
                scheduler=ManualScheduler(lambda: NOW_MS),
                files=self.files,
                lock=nullcontext,
                topic_settings={"t": SETTINGS},
                intervals=BY_HAND,
            ),
            _QuickCleaner(),
        )
        self.manager.start()
        for partition in (CLEANED, TRUNCATED, ONE_OF_MANY, MOVED):
            self.manager.prefer_directory(partition, "/a")
            self.append(partition)
        self.is_direct = False  # whether the last truncation was one of the log itself
        self.clean_to = 0  # what CLEANED was cleaned to last

    def append(self, partition: tuple[str, int]) -> None:
        log = self.manager.create(partition)
        log.append_as_leader(batch(0, NOW_MS))
        log.roll()
        log.append_as_leader(batch(0, NOW_MS))
        log.flush()
        log.follow_end()

    def clean(self) -> None:
        log = self.manager.logs[CLEANED]
        log.append_as_leader(batch(0, NOW_MS))
        log.roll()
        log.follow_end()
        self.manager.clean_logs()
        self.clean_to = log.segments[-1].base_offset

    def truncate(self) -> None:
        log = self.manager.logs[TRUNCATED]
        self.append(TRUNCATED)
        self.is_direct = not self.is_direct
        if self.is_direct:
            log.truncate_to(log.log_end_offset - 2)
        else:
            self.manager.truncate_to({TRUNCATED: log.log_end_offset - 2})

    def truncate_fully(self) -> None:
        self.append(ONE_OF_MANY)
        self.manager.truncate_fully(ONE_OF_MANY, 5)

    def create_and_delete(self) -> None:
        self.append(CREATED)
        self.manager.delete(CREATED)

    def move(self) -> None:
        source = self.manager.logs[MOVED]
        to = "/b" if source.path.startswith("/a/") else "/a"
        self.manager.pause_cleaning(MOVED)
        self.manager.prefer_directory(MOVED, to)
        copy = self.manager.create(MOVED, is_future=True)
        copy.truncate_fully(source.log_end_offset)
        self.manager.replace_with_future(MOVED)

    def write_points(self) -> None:
        self.manager.checkpoint_recovery_points()

    def write_starts(self) -> None:
        self.manager.checkpoint_log_starts()

    def wrong(self) -> list[str]:
        """What the checkpoints say that is not so."""
        found = [] if self.manager.live_directories == list(DIRS) else ["a directory is offline"]
        logs = self.manager.logs
        for log_dir in DIRS:
            here = {key: log for key, log in logs.items() if log.path.startswith(f"{log_dir}/")}
            for key, offset in self._read(log_dir, checkpoint.CLEANER_OFFSET).items():
                if key not in here:
                    found.append(f"{key}: dirty from {offset}, which is no log of {log_dir}")
                elif offset > here[key].segments[-1].base_offset:
                    found.append(f"{key}: dirty from {offset}, which is in the active segment")
            for key, offset in self._read(log_dir, checkpoint.RECOVERY_POINT).items():
                if key not in here:
                    found.append(f"{key}: recovery point {offset}, which is no log of {log_dir}")
                elif offset > here[key].log_end_offset:
                    found.append(f"{key}: recovery point {offset} is above the end of the log")
        dirty = self._read("/a", checkpoint.CLEANER_OFFSET).get(CLEANED, 0)
        if dirty != self.clean_to:
            found.append(f"{CLEANED}: dirty from {dirty}, but it was cleaned to {self.clean_to}")
        return found

    def _read(self, log_dir: str, name: str) -> dict[tuple[str, int], int]:
        return checkpoint.read(f"{log_dir}/{name}", self.files)


OPERATIONS = (
    _Story.clean,
    _Story.truncate,
    _Story.truncate_fully,
    _Story.create_and_delete,
    _Story.move,
    _Story.write_points,
    _Story.write_starts,
)
# the others write to one log each, which has one writer
BESIDE_ITSELF = (_Story.write_points, _Story.write_starts)
PAIRS = [
    pair
    for pair in itertools.combinations_with_replacement(OPERATIONS, 2)
    if pair[0] is not pair[1] or pair[0] in BESIDE_ITSELF
]


def _names(pair: tuple[Callable[[_Story], None], ...]) -> str:
    return " beside ".join(each.__name__ for each in pair)


@pytest.mark.parametrize("pair", PAIRS, ids=_names)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_two_operations_at_once_lose_no_checkpoint(
    pair: tuple[Callable[[_Story], None], ...], seed: int
) -> None:
    """L-27.4, L-27.5, C-17.5, C-17.6: Kafka's checkpoint files have a lock, its cleaner one for all
    that it knows."""
    story = _Story(seed)
    errors: list[BaseException] = []

    def repeat(operation: Callable[[_Story], None]) -> None:
        try:
            for _ in range(TURNS):
                operation(story)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=repeat, args=(each,), daemon=True) for each in pair]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [thread.is_alive() for thread in threads] == [False, False]
    assert (errors, story.wrong()) == ([], [])
    story.manager.close()
