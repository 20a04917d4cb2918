"""Many logs in several directories: where they are created, what a start finds, what fails."""

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from compactor import LogManager, ManagerOptions
from storage.errors import ConfigError
from storage.files.local import LOCAL
from storage.formats import checkpoint, clean_shutdown
from storage.log.errors import IllegalStateError, KafkaError, KafkaStorageError
from storage.log.log_config import LogConfig
from storage.log.log_dir_lock import LogDirLockedError, lock_log_dir
from storage.log.manager_options import BY_HAND, INITIAL_TASK_DELAY_MS, TaskIntervals
from storage.log.producer_state_manager import ProducerStateManagerConfig
from storage.log.scheduler import ManualScheduler
from tests.storage.log.batches_for_tests import batch
from tests.support.file_states import open_below
from tests.support.files.memory import MemoryFiles
from tests.support.files.watched import Operation, WatchedFiles

SPEC = Path(__file__).parents[3] / "docs" / "spec"
T0 = ("t", 0)
DIRS = ["/a", "/b", "/c"]
DAY_MS = 86_400_000


class Broker:
    """Log directories in memory, a clock, and the manager that works on them."""

    def __init__(self, *log_dirs: str) -> None:
        self.now_ms = 1_700_000_000_000
        self.disk = MemoryFiles()
        self.broken = ""  # where every write fails
        self.unreadable = ""  # where nothing can be listed
        self.files = WatchedFiles(self.disk, self._fail)
        self.scheduler = ManualScheduler(lambda: self.now_ms)
        self.log_dirs = list(log_dirs)

    def _fail(self, operation: Operation) -> None:
        if self.unreadable and operation.name.startswith("list"):
            for path in operation.paths:
                if path.startswith(self.unreadable):
                    raise OSError(5, "Input/output error", path)
        changes = ("write", "replace_file", "rename", "sync", "open_to_change", "make_directory")
        if self.broken and operation.name in changes:
            for path in operation.paths:
                if path.startswith(self.broken):
                    raise OSError(5, "Input/output error", path)

    def manager(
        self, settings: Mapping[str, str] | None = None, intervals: TaskIntervals = BY_HAND
    ) -> LogManager:
        options = ManagerOptions(
            clock=lambda: self.now_ms,
            scheduler=self.scheduler,
            files=self.files,
            lock=contextlib.nullcontext,
            config=LogConfig().changed(settings or {}),
            intervals=intervals,
        )
        return LogManager(self.log_dirs, options)

    def names(self, log_dir: str) -> list[str]:
        return sorted(self.disk.list_names(log_dir)[0])

    def wait(self, ms: int) -> None:
        self.now_ms += ms
        self.scheduler.tick()


@pytest.fixture
def broker() -> Iterator[Broker]:
    yield Broker(*DIRS)


def test_new_logs_go_where_there_are_fewest(broker: Broker) -> None:
    """L-28.2, EE-170: with 20 partitions on 3 directories counts never differ by more than 1."""
    with broker.manager() as manager:
        for number in range(20):
            manager.create(("t", number))
            counts = [len(broker.names(log_dir)) for log_dir in DIRS]
            assert max(counts) - min(counts) <= 1


def test_a_log_queued_for_deletion_is_queued_again_at_the_start(broker: Broker) -> None:
    """L-25.4, L-26.4, L-27.6, EE-157."""
    with broker.manager() as manager:
        manager.create(T0).append_as_leader(batch(0, broker.now_ms))
        manager.delete(T0)
    with broker.manager() as manager:
        assert manager.logs == {}
        assert len(broker.names("/a")) == 1
        broker.wait(60_000)
        broker.wait(60_000)
        assert broker.names("/a") == []


def test_a_move_takes_the_copy_and_the_cleaners_checkpoint_along(broker: Broker) -> None:
    """L-28.7, L-28.8."""
    with broker.manager() as manager:
        log = manager.create(T0)
        log.append_as_leader(batch(0, broker.now_ms))
        log.follow_end()
        checkpoint.write("/a/cleaner-offset-checkpoint", {T0: 1}, broker.disk)
        manager.pause_cleaning(T0)
        manager.prefer_directory(T0, "/b")
        copy = manager.create(T0, is_future=True)
        copy.append_as_follower(log.read(0).read(), 0)
        manager.replace_with_future(T0)
        assert manager.logs[T0] is copy
        assert (copy.path, copy.high_watermark) == ("/b/t-0", 1)
        assert log.read(0).read() == copy.read(0).read()  # who has it may go on reading it
        assert checkpoint.read("/a/cleaner-offset-checkpoint", broker.disk) == {}
        assert checkpoint.read("/b/cleaner-offset-checkpoint", broker.disk) == {T0: 1}
        broker.wait(60_000)
        assert (broker.names("/a"), broker.names("/b")) == ([], ["t-0"])


@pytest.mark.parametrize(("end", "dirty"), [(6, 5), (5, 5), (4, 4), (3, 2), (1, 0)], ids=str)
@pytest.mark.parametrize("how", ["by the manager", "by the log"])
def test_a_truncated_log_is_clean_up_to_its_active_segment_at_most(
    broker: Broker, how: str, end: int, dirty: int
) -> None:
    """C-17.5. Segments 0, 2, 4 and 5; the active one begins where the log is clean to."""
    with broker.manager({"cleanup.policy": "compact"}) as manager:
        log = manager.create(T0)
        for count in (2, 2, 1, 2):
            if log.log_end_offset:
                log.roll()
            log.append_as_leader(batch(0, *[broker.now_ms] * count))
        checkpoint.write("/a/cleaner-offset-checkpoint", {T0: 5}, broker.disk)
        if how == "by the manager":
            manager.truncate_to({T0: end})
        else:
            log.truncate_to(end)
        assert log.log_end_offset == end
        assert checkpoint.read("/a/cleaner-offset-checkpoint", broker.disk) == {T0: dirty}


@pytest.mark.parametrize("policy", ["compact", "delete"])  # that is compacted again later
def test_a_log_that_begins_anew_is_not_clean(broker: Broker, policy: str) -> None:
    """C-17.5."""
    with broker.manager({"cleanup.policy": policy}) as manager:
        log = manager.create(T0)
        log.append_as_leader(batch(0, *[broker.now_ms] * 7))
        checkpoint.write("/a/cleaner-offset-checkpoint", {T0: 7}, broker.disk)
        log.truncate_fully(3)
        assert checkpoint.read("/a/cleaner-offset-checkpoint", broker.disk) == {T0: 3}


def test_a_copy_needs_another_directory(broker: Broker) -> None:
    """L-28.3."""
    with broker.manager() as manager:
        manager.create(T0)
        with pytest.raises(IllegalStateError, match="no directory is preferred"):
            manager.create(T0, is_future=True)


def test_one_log_in_two_directories_ends_the_start(broker: Broker) -> None:
    """L-26.4, L-28.8."""
    for log_dir in DIRS[:2]:
        broker.log_dirs = [log_dir]
        with broker.manager() as manager:
            manager.create(T0)
    broker.log_dirs = DIRS
    with pytest.raises(IllegalStateError, match=r"two directories: /./t-0 and /./t-0"):
        broker.manager().start()


def test_a_name_that_is_no_partition_ends_the_start(broker: Broker) -> None:
    """L-26.6, F-1.4."""
    broker.disk.make_directory("/a")
    broker.disk.make_directory("/a/notes")
    with pytest.raises(KafkaError, match="notes"):
        broker.manager().start()


def test_a_directory_that_fails_is_left_and_the_others_go_on(broker: Broker) -> None:
    """L-28.10, L-28.11."""
    with broker.manager() as manager:
        failing, sound = manager.create(T0), manager.create(("t", 1))
        broker.broken = "/a"
        with pytest.raises(KafkaStorageError):
            failing.append_as_leader(batch(0, broker.now_ms))
        assert manager.handle_failed_directories() == ["/a"]
        assert manager.live_directories == ["/b", "/c"]
        assert list(manager.logs) == [("t", 1)]
        sound.append_as_leader(batch(0, broker.now_ms))
        with pytest.raises(KafkaStorageError, match="offline"):
            manager.delete(T0)
    assert not clean_shutdown.exists("/a", broker.disk)
    assert clean_shutdown.exists("/b", broker.disk)


def test_a_log_that_cannot_be_closed_costs_its_directory_the_marker(broker: Broker) -> None:
    """L-26.9, EE-168."""
    manager = broker.manager()
    manager.start()
    manager.create(T0).append_as_leader(batch(0, broker.now_ms))
    manager.create(("t", 1))
    broker.broken = "/a"
    assert [failed.log_dir for failed in manager.close()] == ["/a"]
    assert not clean_shutdown.exists("/a", broker.disk)
    assert checkpoint.read("/a/recovery-point-offset-checkpoint", broker.disk) == {}
    assert clean_shutdown.exists("/b", broker.disk)


def test_an_entry_of_the_log_starts_is_gone_with_the_segments_below_it(broker: Broker) -> None:
    """L-27.5, EE-172."""
    path = "/a/log-start-offset-checkpoint"
    with broker.manager() as manager:
        log = manager.create(T0)
        for base in (0, 11, 21, 31, 41):
            while log.log_end_offset < base:
                log.append_as_leader(batch(0, broker.now_ms))
            if base:
                log.roll()
        log.follow_end()
        log.increment_log_start(31)
        manager.checkpoint_log_starts()
        assert checkpoint.read(path, broker.disk) == {T0: 31}
        assert manager.apply_retention() == 3
        manager.checkpoint_log_starts()
        assert checkpoint.read(path, broker.disk) == {}


def test_the_flusher_goes_by_the_time_of_the_last_flush(broker: Broker) -> None:
    """L-27.1, L-27.2."""
    with broker.manager({"flush.ms": "1000"}) as manager:
        log = manager.create(T0)
        log.append_as_leader(batch(0, broker.now_ms))
        broker.wait(999)
        manager.flush_dirty_logs()
        assert log.recovery_point == 0
        broker.wait(1)
        manager.flush_dirty_logs()
        assert log.recovery_point == 1


def test_settings_of_a_topic_reach_its_logs_at_once(broker: Broker) -> None:
    """L-28.4, L-28.5."""
    with broker.manager() as manager:
        log = manager.create(T0)
        manager.configure_topic("t", {"retention.ms": "5"})
        assert (log.config.retention_ms, manager.create(("t", 1)).config.retention_ms) == (5, 5)
        with pytest.raises(ConfigError):
            manager.configure_topic("t", {"retention.ms": "x"})
        assert manager.config_of("t").retention_ms == 5


def test_a_pause_that_was_not_given_cannot_be_taken_back(broker: Broker) -> None:
    with broker.manager() as manager:
        manager.pause_cleaning(T0)
        manager.resume_cleaning(T0)
        with pytest.raises(IllegalStateError):
            manager.resume_cleaning(T0)


def test_its_directories_are_locked_as_by_a_broker(tmp_path: Path) -> None:
    """L-26.2, F-15.1: against this process and every other."""
    asked = (
        "import fcntl, sys; file = open(sys.argv[1], 'r+')\n"
        "try: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "except OSError: print('locked')"
    )
    with LogManager([str(tmp_path)]) as manager:
        manager.create(T0)
        with pytest.raises(LogDirLockedError), lock_log_dir(str(tmp_path)):
            pass
        said = subprocess.run(
            [sys.executable, "-c", asked, str(tmp_path / ".lock")],
            capture_output=True,
            text=True,
            check=True,
        )
        assert said.stdout == "locked\n"
    assert LOCAL.exists(str(tmp_path / ".kafka_cleanshutdown"))


def test_one_directory_given_twice_is_refused(tmp_path: Path) -> None:
    """L-26.1."""
    with pytest.raises(KafkaError, match="given twice"):
        LogManager([str(tmp_path), f"{tmp_path}/."]).start()


def test_a_manager_that_is_closed_has_no_file_open(tmp_path: Path) -> None:
    """Nor one of a segment that is to be deleted later, which a start does."""
    options = ManagerOptions(scheduler=ManualScheduler(lambda: 0), intervals=BY_HAND)
    with LogManager([str(tmp_path)], options) as manager:
        log = manager.create(T0)
        log.append_as_leader(batch(0, 1_700_000_000_000))
        log.truncate_fully(10)
        assert any(".deleted" in name for name in open_below(tmp_path))
    assert open_below(tmp_path) == []


def test_a_power_cut_at_any_moment_of_a_move_keeps_the_records(broker: Broker) -> None:
    """L-28.8: what was flushed is in one of two directories, or in both, and then the start is
    refused, as in Kafka."""
    left: list[MemoryFiles] = []

    def cut(_: object = None) -> None:
        left.append(broker.disk.after_power_cut())

    broker.files = WatchedFiles(broker.disk, cut)
    with broker.manager() as manager:
        log = manager.create(T0)
        log.append_as_leader(batch(0, broker.now_ms))
        log.flush(force=True)
        records = log.read(0).read()
        manager.pause_cleaning(T0)
        manager.prefer_directory(T0, "/b")
        manager.create(T0, is_future=True).append_as_follower(records, 0)
        left.clear()
        manager.replace_with_future(T0)
        broker.wait(60_000)
        cut()
    refused = 0
    for disk in left:
        again = Broker(*DIRS)
        again.files = WatchedFiles(disk, again._fail)
        try:
            with again.manager() as manager:
                assert manager.logs[T0].read(0).read() == records
        except IllegalStateError as error:
            assert "two directories" in str(error)
            refused += 1
    assert len(left) > 10
    assert 0 < refused < len(left) / 2


# ---- layers, tasks, settings -------------------------------------------------------------------


def test_a_topic_id_on_disk_stays(broker: Broker) -> None:
    """L-24.6: here no broker gives another one, so what the file says holds, through every change
    of the log and of its place."""
    said = b"version: 0\ntopic_id: lqsLB7UFTL-jHmxagoKgdA\n"
    with broker.manager() as manager:
        manager.create(T0)
    broker.disk.replace_file("/a/t-0/partition.metadata", said)
    with broker.manager() as manager:
        log = manager.logs[T0]
        log.append_as_leader(batch(0, broker.now_ms))
        log.roll()
        manager.truncate_fully(T0, 5)
        assert broker.disk.read_bytes("/a/t-0/partition.metadata") == said
        manager.delete(T0)
        (name,) = broker.names("/a")
        assert broker.disk.read_bytes(f"/a/{name}/partition.metadata") == said


def test_a_log_that_cannot_be_read_takes_its_directory_offline(broker: Broker) -> None:
    """L-26.5: when all were tried; those of the other directories are there."""
    with broker.manager() as manager:
        for number in range(6):
            manager.create(("t", number)).append_as_leader(batch(0, broker.now_ms))
    broker.unreadable = "/a/t-0"
    manager = broker.manager()
    manager.start()
    broker.unreadable = ""
    assert manager.handle_failed_directories() == ["/a"]
    assert sorted(manager.logs) == [("t", number) for number in (1, 2, 4, 5)]  # /a had 0 and 3
    assert all(log.log_end_offset == 1 for log in manager.logs.values())
    manager.close()
    assert not clean_shutdown.exists("/a", broker.disk)


def test_its_tasks_begin_half_a_minute_after_the_start(broker: Broker) -> None:
    """L-26.8, L-27.1: then they come each at its interval."""
    path = "/a/recovery-point-offset-checkpoint"
    with broker.manager(intervals=TaskIntervals()) as manager:
        log = manager.create(T0)
        log.append_as_leader(batch(0, broker.now_ms))
        log.flush()
        broker.wait(29_999)
        assert checkpoint.read(path, broker.disk) == {}
        broker.wait(1)
        assert checkpoint.read(path, broker.disk) == {T0: 1}
        log.append_as_leader(batch(0, broker.now_ms))
        log.flush()
        broker.wait(59_999)
        assert checkpoint.read(path, broker.disk) == {T0: 1}
        broker.wait(1)
        assert checkpoint.read(path, broker.disk) == {T0: 2}


def test_a_directory_that_takes_no_log_is_passed_over(broker: Broker) -> None:
    """L-28.1: it goes offline, and the next one is tried; the preference is then forgotten."""
    with broker.manager() as manager:
        broker.broken = "/a"
        log = manager.create(T0)
        assert log.path == "/b/t-0"
        assert manager.create(T0) is log
        assert manager.handle_failed_directories() == ["/a"]
        manager.prefer_directory(("t", 1), "/a")
        with pytest.raises(KafkaStorageError, match="no log directory takes t-1"):
            manager.create(("t", 1))


def test_defaults_are_those_of_a_broker() -> None:
    """L-29.2, C-20.1: as the tables of the rules have them."""
    intervals, options, producers = TaskIntervals(), ManagerOptions(), ProducerStateManagerConfig()
    expected = {
        "num.recovery.threads.per.data.dir": options.recovery_threads,
        "log.flush.interval.messages": LogConfig().flush_messages,
        "log.flush.offset.checkpoint.interval.ms": intervals.recovery_points_ms,
        "log.flush.start.offset.checkpoint.interval.ms": intervals.log_starts_ms,
        "log.initial.task.delay.ms": INITIAL_TASK_DELAY_MS,
        "log.retention.check.interval.ms": intervals.retention_ms,
        "log.cleaner.backoff.ms": intervals.cleaning_ms,
        "log.segment.delete.delay.ms": LogConfig().file_delete_delay_ms,
        "transaction.max.timeout.ms": producers.max_transaction_ms,
        "producer.id.expiration.ms": producers.expiration_ms,
    }
    assert {name: broker_default(name) for name in expected} == expected
    # flushed by time only where an interval is set, which is longer than any log lives otherwise
    assert (intervals.flush_ms, broker_default("log.flush.scheduler.interval.ms")) == (
        None,
        2**63 - 1,
    )


def broker_default(name: str) -> int:
    """By the rules' tables."""
    row = re.compile(rf"^\| `{re.escape(name)}`[^|]*\|[^|]*\| (\d+) \|", re.MULTILINE)
    pages = "".join((SPEC / page).read_text("utf-8") for page in ("engine.md", "compaction.md"))
    found = row.search(pages)
    assert found is not None, name
    return int(found[1])
