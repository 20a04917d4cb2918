"""A log manager, what two threads do with it, and what has to be so afterwards.

Each thread is the writer of a log of its own, and has a model of it; what concerns all logs, either
of them does. Files are in memory; a replacement of one takes its steps there as on a disk.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from compactor import Log, LogManager, ManagerOptions
from storage.files.files import Files
from storage.formats import checkpoint, clean_shutdown
from storage.formats.checkpoint import TopicPartition
from storage.log.errors import IllegalStateError, KafkaStorageError
from storage.log.manager_options import BY_HAND
from storage.log.scheduler import ManualScheduler
from tests.engine.pairs.key_cleaner import KeyCleaner, record_of
from tests.support.files.memory import MemoryFiles
from tests.support.made_log import batch, record
from tests.support.reference_batch import encode, split

NOW_MS = 1_700_000_000_000
LOGS = (("t", 0), ("u", 0))
COMPACT = {"cleanup.policy": "compact", "file.delete.delay.ms": "0", "retention.ms": "-1"}
KEYS = b"abcd"


def is_checkpoint(path: str) -> bool:
    """Whether all logs of a directory share a file."""
    return path.endswith("-offset-checkpoint")


class StepFiles(MemoryFiles):
    """A file is replaced in three steps: as on a disk, and as `storage.files.local` does."""

    def __init__(self, may_change: Callable[[bool], None]) -> None:
        super().__init__()
        self._between = may_change

    def replace_file(self, path: str, data: bytes) -> None:
        temporary, is_shared = f"{path}.tmp", is_checkpoint(path)
        if self.exists(temporary):
            self.remove(temporary)
        self._between(is_shared)
        if self.exists(temporary):
            raise FileExistsError(17, "File exists", temporary)
        made = self.open_to_change(temporary, create=True)
        self._between(is_shared)
        made.write(0, data)
        made.sync()
        made.close()
        self._between(is_shared)
        self.rename(temporary, path)


class Place(NamedTuple):
    """Where a manager works."""

    files: Files
    log_dirs: tuple[str, str]
    work_dir: str  # begins the names of directories
    lock: Callable[[str], AbstractContextManager[object]] = nullcontext

    def manager(self, cleaner: KeyCleaner) -> LogManager:
        options = ManagerOptions(
            clock=lambda: NOW_MS,
            scheduler=ManualScheduler(lambda: NOW_MS),
            files=self.files,
            lock=self.lock,
            topic_settings=dict.fromkeys(("t", "u"), COMPACT),
            intervals=BY_HAND,
            recovery_threads=1,
        )
        return LogManager(self.log_dirs, options, cleaner)


class Written(NamedTuple):
    offset: int
    key: bytes
    value: bytes | None


class OwnLog:
    """A log of one thread, as its model has it."""

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.written: list[Written] = []
        self.perhaps_gone: set[bytes] = set()  # keys of which a cleaning saw what was cut off then
        self.is_known = True  # False: an operation failed half-way, which it may beside an end

    @property
    def latest(self) -> dict[bytes, bytes]:
        """The last value of each key that was not deleted."""
        found = {each.key: each.value for each in self.written}
        return {key: value for key, value in found.items() if value is not None}

    def add(self, written: Written) -> None:
        self.written.append(written)
        self.perhaps_gone.discard(written.key)

    def begin(self, offset: int) -> None:
        self.written = [each for each in self.written if each.offset >= offset]

    def cut(self, offset: int) -> None:
        self.perhaps_gone |= {each.key for each in self.written if each.offset >= offset}
        self.written = [each for each in self.written if each.offset < offset]

    def differs(self, there: Mapping[bytes | None, bytes]) -> bool:
        """Whether the last values in a log are not those of the model."""
        latest = self.latest
        allowed = {key: value for key, value in latest.items() if key in self.perhaps_gone}
        return not latest.items() - allowed.items() <= there.items() <= latest.items()


class Story:
    """Two logs of a manager of two directories."""

    def __init__(self, chance: random.Random, place: Place) -> None:
        self.chance, self.place = chance, place
        self.files, self.log_dirs = place.files, place.log_dirs
        self.cleaner = KeyCleaner(self.files, place.work_dir)
        self.manager = place.manager(self.cleaner)
        self.is_closed = False
        self.logs = [OwnLog(partition) for partition in LOGS]

    def begin(self) -> None:
        """Start, with some records of each log cleaned."""
        self.manager.start()
        for own in self.logs:
            self.manager.prefer_directory(own.partition, self.log_dirs[0])
            self.manager.create(own.partition)
            for _ in range(3):
                self.append(own)
        self.manager.clean_logs()

    def log(self, own: OwnLog) -> Log:
        return self.manager.logs[own.partition]

    # ---- operations on a log of one's own -----------------------------------------------------

    def append(self, own: OwnLog, deleted: Sequence[bytes] = ()) -> None:
        """Deletions, some records and other deletions; perhaps a new segment."""
        log = self.manager.create(own.partition)
        keys = [bytes([self.chance.choice(KEYS)]) for _ in range(self.chance.randint(1, 4))]
        for number, key in enumerate([*deleted, *keys]):
            end = log.log_end_offset
            is_deletion = number < len(deleted) or self.chance.random() < 0.4
            value = None if is_deletion else b"%d" % end
            own.is_known, before = False, own.is_known
            log.append_as_leader(encode(batch(record(0, key, value))))
            own.is_known = before
            own.add(Written(end, key, value))
        if self.chance.random() < 0.8:
            log.roll()
        log.follow_end()

    def flush(self, own: OwnLog) -> None:
        self.append(own)
        self.log(own).flush()

    def truncate(self, own: OwnLog) -> None:
        self._truncate(own, lambda end: self.manager.truncate_to({own.partition: end}))

    def truncate_itself(self, own: OwnLog) -> None:
        self._truncate(own, self.log(own).truncate_to)

    def _truncate(self, own: OwnLog, truncate: Callable[[int], object]) -> None:
        log = self.log(own)
        end = self.chance.randint(log.log_start_offset, log.log_end_offset)
        base = max((s.base_offset for s in log.segments if s.base_offset <= end), default=end)
        self._cut_off(own, end, base, lambda: truncate(end))

    def truncate_fully(self, own: OwnLog) -> None:
        end = self.chance.randint(0, self.log(own).log_end_offset + 2)
        self._cut_off(own, end, end, lambda: self.manager.truncate_fully(own.partition, end), True)

    def truncate_itself_fully(self, own: OwnLog) -> None:
        end = self.chance.randint(0, self.log(own).log_end_offset + 2)
        self._cut_off(own, end, end, lambda: self.log(own).truncate_fully(end), True)

    def _cut_off(
        self,
        own: OwnLog,
        end: int,
        base: int,
        act: Callable[[], object],
        is_full: bool = False,
    ) -> None:
        """Paused, how far the log is clean then is known; else the cleaner may come between."""
        is_paused = self.chance.random() < 0.5
        clean = self.cleaner.cleaned_to
        own.is_known, before = False, own.is_known
        if is_paused:
            self.manager.pause_cleaning(own.partition)
            if (known := clean.get(own.partition)) is not None:
                clean[own.partition] = min(known, base)
        act()
        own.cut(0 if is_full else end)
        own.is_known = before
        if is_paused:
            self.manager.resume_cleaning(own.partition)
        else:
            clean[own.partition] = None
        self.append(own, [key for key in own.latest if self.chance.random() < 0.7])

    def delete_and_create(self, own: OwnLog) -> None:
        own.is_known, before = False, own.is_known
        self.manager.delete(own.partition, is_stray=self.chance.random() < 0.2)
        self.cleaner.cleaned_to.pop(own.partition, None)
        own.written, own.is_known = [], before
        self.append(own)

    def move(self, own: OwnLog) -> None:
        """As a broker does: paused, copied, replaced."""
        source = self.log(own)
        self.manager.pause_cleaning(own.partition)
        is_in_first = source.path.startswith(f"{self.log_dirs[0]}/")
        self.manager.prefer_directory(own.partition, self.log_dirs[is_in_first])
        copy = self.manager.create(own.partition, is_future=True)
        copy.truncate_fully(source.log_start_offset)
        for segment in source.segments:
            for each in split(segment.log.read(0, segment.size_bytes)):
                if record_of(each).offset >= copy.log_end_offset:
                    copy.append_as_follower(each, 0)
        copy.follow_end()
        if copy.log_end_offset < source.log_end_offset:  # of what a cleaning took at the end
            own.is_known = False
            self.cleaner.cleaned_to[own.partition] = None
        own.is_known, before = False, own.is_known
        self.manager.replace_with_future(own.partition)
        own.is_known = before

    def begin_later(self, own: OwnLog) -> None:
        """What lies below the log start is neither there nor gone."""
        log = self.log(own)
        start = self.chance.randint(log.log_start_offset, log.log_end_offset)
        own.is_known, before = False, own.is_known
        log.increment_log_start(start)
        self.manager.checkpoint_log_starts()
        own.begin(start)
        own.is_known = before
        self.append(own)

    def read(self, own: OwnLog) -> None:
        log = self.manager.get(own.partition)
        if log is None:  # as the manager is closed
            raise KeyError(own.partition)
        log.read(log.log_start_offset)

    def configure(self, own: OwnLog) -> None:
        policy = self.chance.choice(("compact", "delete", "compact,delete"))
        self.manager.configure_topic(own.partition[0], COMPACT | {"cleanup.policy": policy})
        self.append(own)

    def pause(self, own: OwnLog) -> None:
        self.manager.pause_cleaning(own.partition)
        self.append(own)
        self.manager.resume_cleaning(own.partition)

    # ---- operations on all --------------------------------------------------------------------

    def clean(self, own: OwnLog) -> None:
        self.append(own)
        self.manager.clean_logs()

    def retention(self, _: OwnLog) -> None:
        self.manager.apply_retention()

    def flush_dirty(self, _: OwnLog) -> None:
        self.manager.flush_dirty_logs()

    def recovery_points(self, _: OwnLog) -> None:
        self.manager.checkpoint_recovery_points()

    def log_starts(self, _: OwnLog) -> None:
        self.manager.checkpoint_log_starts()

    def failures(self, _: OwnLog) -> None:
        assert self.manager.handle_failed_directories() == []

    def close(self, _: OwnLog) -> None:
        self.is_closed = True
        assert self.manager.close() == []

    def let_go(self, _: OwnLog) -> None:
        self.is_closed = True
        self.manager.let_go()

    # ---- what has to be so --------------------------------------------------------------------

    def wrong(self) -> list[str]:
        """What the checkpoints and the logs say that is not so; the manager is closed then."""
        return self.wrong_now() + self.wrong_later()

    def wrong_now(self) -> list[str]:
        found = []
        if not self.is_closed:
            if self.manager.live_directories != list(self.log_dirs):
                found.append("a directory is out of use")
            self.manager.clean_logs()  # which finds whether one is offline
            found += self._wrong_checkpoints(self.manager, self.cleaner)
            self.chance.choice((self.manager.close, self.manager.let_go))()
        names = [
            entry.name for log_dir in self.log_dirs for entry in self.files.list_directory(log_dir)
        ]
        found += [f"{name} was left" for name in names if name.endswith(".tmp")]
        return found

    def _wrong_checkpoints(self, manager: LogManager, cleaner: KeyCleaner) -> list[str]:
        found = [] if not manager.handle_failed_directories() else ["a directory went offline"]
        for log_dir in self.log_dirs:
            both = [*manager.future_logs.items(), *manager.logs.items()]
            here = {key: log for key, log in both if log.path.startswith(f"{log_dir}/")}
            ends = {key: log.log_end_offset for key, log in here.items()}
            starts = {key: log.log_start_offset for key, log in here.items()}
            for name, most in (
                (checkpoint.CLEANER_OFFSET, ends),
                (checkpoint.RECOVERY_POINT, ends),
                (checkpoint.LOG_START, starts),
            ):
                for key, offset in _read(self.files, log_dir, name).items():
                    if offset > most.get(key, -1):
                        found.append(f"{name} in {log_dir}: {key} {offset}, not {most.get(key)}")
        return found + _lost_updates(manager, cleaner, self.files)

    def wrong_later(self) -> list[str]:
        """After the next start, and two cleanings, which take what is deleted."""
        found = []
        for log_dir in self.log_dirs:
            if self.chance.random() < 0.3 and clean_shutdown.exists(log_dir, self.files):
                self.files.remove(f"{log_dir}/{clean_shutdown.CLEAN_SHUTDOWN}")
        cleaner = KeyCleaner(self.files, f"{self.place.work_dir}later-")
        with self.place.manager(cleaner) as manager:
            for own in self.logs:
                if own.is_known and own.partition in manager.logs:
                    manager.logs[own.partition].roll()
            for _ in range(2):
                manager.clean_logs()
            manager.checkpoint_recovery_points()  # Kafka leaves those of before a recovery, too
            found += self._wrong_checkpoints(manager, cleaner)
            for own in self.logs:
                log = manager.logs.get(own.partition)
                if own.is_known and log is not None and own.differs(latest_of(log)):
                    found.append(f"{own.partition}: {latest_of(log)}, not {own.latest}")
        return found


def _read(files: Files, log_dir: str, name: str) -> Mapping[TopicPartition, int]:
    return checkpoint.read(f"{log_dir}/{name}", files)


def _lost_updates(manager: LogManager, cleaner: KeyCleaner, files: Files) -> list[str]:
    """Where it is known how far the last cleaning of a log came."""
    found = []
    for key, expected in cleaner.cleaned_to.items():
        log = manager.logs.get(key)
        if log is None or expected is None:
            continue
        entry = _read(files, log.path.rpartition("/")[0], checkpoint.CLEANER_OFFSET).get(key)
        if entry != expected:
            found.append(f"{key} is clean up to {expected}, not {entry}")
    return found


def latest_of(log: Log) -> dict[bytes | None, bytes]:
    """By the bytes of its segments, from the log start on."""
    found: dict[bytes | None, bytes | None] = {}
    for segment in log.segments:
        for each in map(record_of, split(segment.log.read(0, segment.size_bytes))):
            if each.offset >= log.log_start_offset:
                found[each.key] = each.value
    return {key: value for key, value in found.items() if value is not None}


Operation = Callable[[Story, OwnLog], None]
OPERATIONS: dict[str, tuple[Operation, tuple[str, ...]]] = {
    "append": (Story.append, ("create", "logs")),
    "flush": (Story.flush, ()),
    "truncate": (Story.truncate, ("truncate_to",)),
    "truncate itself": (Story.truncate_itself, ()),
    "truncate fully": (Story.truncate_fully, ("truncate_fully",)),
    "truncate itself fully": (Story.truncate_itself_fully, ()),
    "delete and create": (Story.delete_and_create, ("delete",)),
    "move": (Story.move, ("prefer_directory", "replace_with_future", "future_logs")),
    "begin later": (Story.begin_later, ()),
    "read": (Story.read, ("get",)),
    "configure": (Story.configure, ("configure_topic", "config_of")),
    "pause": (Story.pause, ("pause_cleaning", "resume_cleaning")),
    "clean": (Story.clean, ("clean_logs",)),
    "retention": (Story.retention, ("apply_retention",)),
    "flush dirty": (Story.flush_dirty, ("flush_dirty_logs",)),
    "recovery points": (Story.recovery_points, ("checkpoint_recovery_points",)),
    "log starts": (Story.log_starts, ("checkpoint_log_starts",)),
    "failures": (Story.failures, ("handle_failed_directories", "live_directories")),
    "close": (Story.close, ("close", "start")),
    "let go": (Story.let_go, ("let_go",)),
}
ENDS = ("close", "let go")
BESIDE_AN_END = (IllegalStateError, KafkaStorageError, KeyError, OSError)  # of a closed file
