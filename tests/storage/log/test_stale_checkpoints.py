"""No checkpoint of a log directory says more of a log than the log holds: whoever cut it off."""

import contextlib
from collections.abc import Callable

import pytest

from compactor import Log, LogManager, ManagerOptions
from storage.files.files import Files
from storage.formats import checkpoint, clean_shutdown
from storage.log.errors import KafkaStorageError
from storage.log.log_config import LogConfig
from storage.log.manager_options import BY_HAND
from storage.log.scheduler import ManualScheduler
from tests.storage.log.batches_for_tests import batch
from tests.support.files.memory import MemoryFiles
from tests.support.files.watched import Operation, WatchedFiles

NOW_MS = 1_700_000_000_000
T0 = ("t", 0)
CLEANER = f"/a/{checkpoint.CLEANER_OFFSET}"
RECOVERY = f"/a/{checkpoint.RECOVERY_POINT}"
BATCH_BYTES = len(batch(0, NOW_MS))


def manager_of(disk: Files) -> LogManager:
    options = ManagerOptions(
        clock=lambda: NOW_MS,
        scheduler=ManualScheduler(lambda: NOW_MS),
        files=disk,
        lock=contextlib.nullcontext,
        config=LogConfig().changed({"cleanup.policy": "compact"}),
        intervals=BY_HAND,
    )
    return LogManager(["/a", "/b"], options)


def append(manager: LogManager, count: int) -> None:
    for _ in range(count):
        manager.logs[T0].append_as_leader(batch(0, NOW_MS))


@pytest.fixture
def disk() -> MemoryFiles:
    """Segments 0 and 3 of five batches, closed in good order."""
    disk = MemoryFiles()
    with manager_of(disk) as manager:
        manager.create(T0)
        append(manager, 3)
        manager.logs[T0].roll()
        append(manager, 2)
    return disk


def tear(disk: MemoryFiles, base: int, batches: int) -> None:
    """Leave so much of a segment, and a bit of the next batch, after an unclean shutdown."""
    for log_dir in ("/a", "/b"):
        disk.remove(f"{log_dir}/{clean_shutdown.CLEAN_SHUTDOWN}")
    disk.truncate_file(f"/a/t-0/{base:020}.log", batches * BATCH_BYTES + 9)
    checkpoint.write(RECOVERY, {T0: 0}, disk)


@pytest.mark.parametrize(
    ("base", "batches", "clean", "dirty"),
    [(3, 1, 5, 0), (3, 1, 4, 4), (0, 2, 3, 0), (0, 2, 2, 2)],
    ids=["cut", "cut above it", "a segment gone", "one gone above it"],
)
def test_a_log_that_was_cut_off_at_a_start_is_dirty_as_a_whole(
    disk: MemoryFiles, base: int, batches: int, clean: int, dirty: int
) -> None:
    """C-4.1: what Kafka's cleaner says of a checkpoint past the end, but before any append."""
    tear(disk, base, batches)
    checkpoint.write(CLEANER, {T0: clean, ("gone", 1): 7}, disk)
    with manager_of(disk) as manager:
        assert manager.logs[T0].log_end_offset == base + batches
        assert checkpoint.read(CLEANER, disk) == {T0: dirty, ("gone", 1): 7}


def test_a_log_that_is_begun_anew_is_dirty(disk: MemoryFiles) -> None:
    """Its directory was removed by hand."""
    for entry in disk.list_directory("/a/t-0"):
        disk.remove(f"/a/t-0/{entry.name}")
    disk.remove_directory("/a/t-0")
    checkpoint.write(CLEANER, {T0: 3}, disk)
    with manager_of(disk) as manager:
        manager.prefer_directory(T0, "/a")
        manager.create(T0)
        assert checkpoint.read(CLEANER, disk) == {T0: 0}


def test_a_log_of_the_same_name_that_waits_for_its_deletion_says_nothing(disk: MemoryFiles) -> None:
    """L-25.4: it counts as empty, and is not the log that the entry is of."""
    disk.make_directory("/b/t-0.00000000000000000000000000000001-delete")
    checkpoint.write(CLEANER, {T0: 3}, disk)
    checkpoint.write(CLEANER.replace("/a", "/b"), {T0: 3}, disk)
    with manager_of(disk):
        assert checkpoint.read(CLEANER, disk) == {T0: 3}
        assert checkpoint.read(CLEANER.replace("/a", "/b"), disk) == {T0: 3}


@pytest.mark.parametrize(("clean", "then"), [({}, {}), ({T0: 2}, {T0: 2})])
def test_a_log_that_moves_takes_no_entry_of_an_earlier_one(
    disk: MemoryFiles, clean: dict[tuple[str, int], int], then: dict[tuple[str, int], int]
) -> None:
    """C-17.6."""
    there = CLEANER.replace("/a", "/b")
    checkpoint.write(CLEANER, clean, disk)
    checkpoint.write(there, {T0: 3}, disk)
    with manager_of(disk) as manager:
        manager.pause_cleaning(T0)
        manager.prefer_directory(T0, "/b")
        manager.create(T0, is_future=True).truncate_fully(5)
        manager.replace_with_future(T0)
        assert checkpoint.read(CLEANER, disk) == {}
        assert checkpoint.read(there, disk) == then


@pytest.mark.parametrize("damage", [b"0\n1\n", b"\xff"])
def test_a_cleaners_checkpoint_that_cannot_be_read_keeps_no_log_closed(
    disk: MemoryFiles, damage: bytes
) -> None:
    tear(disk, 3, 1)
    disk.replace_file(CLEANER, damage)
    with manager_of(disk) as manager:
        assert manager.live_directories == ["/a", "/b"]
        assert disk.read_bytes(CLEANER) == damage


def test_a_cut_in_the_active_segment_lowers_what_a_move_has_left_above_its_base(
    disk: MemoryFiles,
) -> None:
    """The copy of a log that was moved has segments of its own."""
    checkpoint.write(CLEANER, {T0: 4}, disk)
    with manager_of(disk) as manager:
        manager.logs[T0].truncate_to(3)
        assert checkpoint.read(CLEANER, disk) == {T0: 3}


@pytest.mark.parametrize("by", ["the log", "the manager"])
@pytest.mark.parametrize(("end", "is_full"), [(4, False), (2, False), (0, False), (1, True)])
def test_a_truncation_lowers_the_recovery_point(
    disk: MemoryFiles, by: str, end: int, is_full: bool
) -> None:
    """L-22.3: what is appended behind is looked at after a crash, in whichever segment it is."""
    with manager_of(disk) as manager:
        log = manager.logs[T0]
        if by == "the log":
            (log.truncate_fully if is_full else log.truncate_to)(end)
        elif is_full:
            manager.truncate_fully(T0, end)
        else:
            manager.truncate_to({T0: end})
        assert checkpoint.read(RECOVERY, disk) == {T0: end}


@pytest.mark.parametrize("is_full", [False, True])
def test_a_flush_says_nothing_of_what_was_cut_off_meanwhile(
    disk: MemoryFiles, is_full: bool
) -> None:
    """Else what is appended in its place counts as synced: Kafka's flush says so."""
    cuts: list[Callable[[int], object]] = []

    def before(operation: Operation) -> None:
        if cuts and operation.name == "sync":
            cuts.pop()(1)

    with manager_of(WatchedFiles(disk, before)) as manager:
        append(manager, 3)
        log = manager.logs[T0]
        cuts.append(log.truncate_fully if is_full else log.truncate_to)
        log.flush()
        assert (cuts, log.log_end_offset, log.recovery_point) == ([], 1, 1)
        append(manager, 3)
        assert log.recovery_point == 1


AFTER_ITS_END: dict[str, Callable[[Log], object]] = {
    "append": lambda log: log.append_as_leader(batch(0, NOW_MS)),
    "roll": lambda log: log.roll(),
    "truncate": lambda log: log.truncate_to(1),
    "truncate fully": lambda log: log.truncate_fully(1),
    "begin later": lambda log: log.increment_log_start(1),
    "close": lambda log: log.close(),
    "snapshot": lambda log: log.take_producer_snapshot(),
}


@pytest.mark.parametrize("what", AFTER_ITS_END)
def test_a_log_is_not_changed_once_its_manager_is_closed(disk: MemoryFiles, what: str) -> None:
    """Not even while the manager is closing: other logs are closed, and checkpoints written."""
    found: list[bool] = []

    def before(operation: Operation) -> None:
        if RECOVERY in operation.paths and not found:
            found.append(True)
            names = {e.name: e.size_bytes for e in disk.list_directory("/a/t-0")}
            with pytest.raises(KafkaStorageError):
                AFTER_ITS_END[what](log)
            assert {e.name: e.size_bytes for e in disk.list_directory("/a/t-0")} == names

    files = WatchedFiles(disk, lambda each: before(each) if is_closing else None)
    is_closing = False
    manager = manager_of(files)
    manager.start()
    log = manager.logs[T0]
    log.follow_end()
    is_closing = True
    assert manager.close() == []
    assert found
