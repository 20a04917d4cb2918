"""A log manager whose logs are cleaned by rounds on Spark, from a thread in the background, while
others append to the same logs and read them."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from compactor import Log, LogManager, ManagerOptions, api
from storage.log.batches import in_memory
from storage.log.log_dir_lock import LogDirLockedError, lock_log_dir
from storage.log.log_manager import CleanedLog, LogToClean
from storage.log.manager_options import BY_HAND
from storage.log.scheduler import BackgroundScheduler
from storage.log.validation import AppendRequest
from tests.compactor.log_dirs.test_locked_log_dirs import other_process
from tests.golden.copies import golden_log, write_copies
from tests.golden.managed import (
    NOW_MS,
    active_bases,
    names_for_a_broker,
    replicate,
    require_kafkas_bytes,
    settings_of,
)
from tests.storage.log.batches_for_tests import batch

pytestmark = pytest.mark.spark
SECONDS = 60


class Beside:
    """Threads that use the logs until they are told to stop. What fails in one is kept."""

    def __init__(self, *actions: Callable[[], object]) -> None:
        self.rounds = [0] * len(actions)
        self.errors: list[BaseException] = []
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(number, action))
            for number, action in enumerate(actions)
        ]

    def _run(self, number: int, action: Callable[[], object]) -> None:
        try:
            while not self._stop.is_set():
                action()
                self.rounds[number] += 1
        except BaseException as error:
            self.errors.append(error)

    def __enter__(self) -> "Beside":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


class Announced:
    """A cleaner that says when it has been given the logs as they are at that moment."""

    def __init__(self, cleaner: api.Cleaner) -> None:
        self._cleaner, self.has_begun = cleaner, threading.Event()

    @contextmanager
    def cleaned(self, logs: Sequence[LogToClean], now_ms: int) -> Iterator[list[CleanedLog]]:
        self.has_begun.set()
        with self._cleaner.cleaned(logs, now_ms) as done:
            yield done


@pytest.fixture(scope="module")
def names() -> list[str]:
    return names_for_a_broker()[::4]


@pytest.fixture
def data(tmp_path: Path, names: list[str]) -> Path:
    write_copies(tmp_path / "data", {name: golden_log(name) for name in names})
    (tmp_path / "work").mkdir()
    return tmp_path / "data"


def offsets_in(log: Log) -> Iterator[int]:
    """The last offset of each batch from the start to the end, each checked."""
    offset, end = log.log_start_offset, log.log_end_offset
    while offset < end:
        data = log.read(offset).read()
        assert data, f"{log.path} gives nothing at offset {offset}, and ends at {end}"
        for each in in_memory(data):
            each.require_valid()
            yield each.last_offset
            offset = each.last_offset + 1


def read_through(logs: Sequence[Log]) -> None:
    for log in logs:
        found = list(offsets_in(log))
        assert found == sorted(set(found)), log.path


def append_to(logs: Sequence[Log], appended: dict[str, list[int]]) -> None:
    for log in logs:
        request = AppendRequest(leader_epoch=log.epochs.latest or 0)
        info = log.append_as_leader(batch(0, NOW_MS), request)
        appended.setdefault(log.path, []).append(info.first_offset)
    time.sleep(0.02)  # or active segments would be full before the round ends


@pytest.mark.older_codecs
def test_logs_are_cleaned_beside_appends_and_reads(
    spark: SparkSession, data: Path, tmp_path: Path, names: list[str]
) -> None:
    """To the bytes of Kafka's own cleaner, from a thread of the manager's scheduler and under the
    lock that it holds; nothing that was appended is lost, and no reader sees half of a swap."""
    failed: list[BaseException] = []
    ended, reports = threading.Event(), list[api.CleaningReport]()
    own = api.RunOptions(session=spark)
    by_4_3 = api.Cleaner(str(tmp_path / "work"), own, reports.append, kafka="4.3")
    cleaner = Announced(by_4_3)  # as the golden logs
    with BackgroundScheduler(failed.append) as scheduler:
        options = ManagerOptions(
            clock=lambda: NOW_MS,
            scheduler=scheduler,
            topic_settings=settings_of(names),
            intervals=BY_HAND,
        )
        with LogManager([str(data)], options, cleaner) as manager:
            replicate(manager, names)
            logs, appended = list(manager.logs.values()), dict[str, list[int]]()
            actives = active_bases(manager)
            ends = {log.path: log.log_end_offset for log in logs}
            others = (lambda: append_to(logs, appended), *[lambda: read_through(logs)] * 2)
            scheduler.schedule_once(manager.clean_logs, 1)
            scheduler.schedule_once(ended.set, 2)
            # what is appended before may close segments, and have more of the log cleaned
            assert cleaner.has_begun.wait(SECONDS)
            with Beside(*others) as beside:
                told = locked_out(data, ended)
            assert (beside.errors, failed, told) == ([], [], {"refused"})
            assert min(beside.rounds) > 2
            assert [len(report.logs) for report in reports] == [len(names)]
            require_kafkas_bytes(manager, data, actives)
            read_through(logs)
            for log in logs:
                offsets = appended[log.path]
                assert offsets == list(range(ends[log.path], log.log_end_offset))
                assert set(offsets) <= set(offsets_in(log))
    assert verified(data) == []


def locked_out(data: Path, ended: threading.Event) -> set[str]:
    """What other processes are told of the lock until the round has ended."""
    told = set()
    while not ended.wait(0.2):
        with other_process(data / ".lock") as said:
            told.add(said)
        with pytest.raises(LogDirLockedError), lock_log_dir(str(data)):
            pass
    return told


def verified(data: Path) -> list[str]:
    """Problems of the logs once they are closed."""
    return [str(finding) for finding in api.verify(str(data)).findings]
